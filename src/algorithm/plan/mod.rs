//! A plan that somebody wrote: what each thread block of each GPU sends, receives, adds and copies,
//! in chunks of the data. NCCL's primitives run it, as MSCCL's runtime does.

mod build;

use std::collections::BTreeMap;

use super::Protocol;
use crate::error::Span;
use crate::schedule::Collective;

pub use build::build;

/// A plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name.
    pub name: String,
    /// What it computes.
    pub collective: Collective,
    /// How data lie on the wire.
    pub protocol: Protocol,
    /// Chunks of the data that the sizes of a call count.
    pub chunks: u32,
    /// Channels.
    pub channels: u32,
    /// Results take the place of the inputs.
    pub in_place: bool,
    /// Threads of a block; nothing: as many as the protocol has.
    pub threads: Option<u32>,
    /// GPUs by rank.
    pub gpus: Vec<PlanGpu>,
}

/// One GPU of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanGpu {
    /// Chunks of scratch memory.
    pub scratch: u32,
    /// Its thread blocks.
    pub blocks: Vec<PlanBlock>,
}

/// A thread block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanBlock {
    /// Rank it sends to.
    pub send: Option<u32>,
    /// Rank it receives from.
    pub receive: Option<u32>,
    /// Channel of both.
    pub channel: u32,
    /// In order.
    pub steps: Vec<PlanStep>,
}

/// A step of a thread block.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanStep {
    /// What it does.
    pub kind: StepKind,
    /// Where its own data lie, in chunks.
    pub source: (Space, u32),
    /// Where it keeps the result, in chunks.
    pub target: (Space, u32),
    /// Chunks.
    pub count: u32,
    /// Block and step of this GPU that must have ended.
    pub after: Option<(usize, usize)>,
    /// Where it stands in the file.
    pub span: Span,
}

/// Memory of a GPU as plans name it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Space {
    /// The call's input.
    Input,
    /// The call's output.
    Output,
    /// In between.
    Scratch,
}

/// What a step does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Primitives of NCCL: receive, add own data, keep, send, each or not.
    Primitive {
        /// Takes a chunk from the neighbour.
        receive: bool,
        /// Adds or takes own data.
        own: bool,
        /// Keeps the result.
        keep: bool,
        /// Passes the result on.
        send: bool,
    },
    /// Adds own data to what lies at the target.
    Reduce,
    /// Only waits.
    Nothing,
}

impl StepKind {
    /// It takes a chunk from the neighbour.
    pub fn receives(self) -> bool {
        matches!(self, StepKind::Primitive { receive: true, .. })
    }

    /// It passes a chunk on.
    pub fn sends(self) -> bool {
        matches!(self, StepKind::Primitive { send: true, .. })
    }

    fn reads(self) -> bool {
        matches!(self, StepKind::Primitive { own: true, .. } | StepKind::Reduce)
    }

    fn keeps(self) -> bool {
        matches!(self, StepKind::Primitive { keep: true, .. } | StepKind::Reduce)
    }
}

/// One way between two ranks on a channel.
type Way = (u32, u32, u32);

impl Plan {
    /// Bytes, at least `bytes`, that split into the plan's chunks.
    pub fn round_up(&self, bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(16 * u64::from(self.chunks) * self.pieces())
    }

    /// Pieces that both the ranks and the chunks must split the data into evenly.
    fn pieces(&self) -> u64 {
        let n = self.gpus.len() as u64;
        let split = self.collective.in_pieces() && !u64::from(self.chunks).is_multiple_of(n);
        if split { n } else { 1 }
    }

    /// All that is wrong with it, each with its place.
    pub fn faults(&self) -> Vec<(String, Span)> {
        let mut faults = Vec::new();
        for (rank, gpu) in self.gpus.iter().enumerate() {
            for block in &gpu.blocks {
                for step in &block.steps {
                    let fault = self.step_fault(rank, gpu, block, step);
                    faults.extend(fault.map(|fault| (fault, step.span.clone())));
                }
            }
        }
        if faults.is_empty() {
            faults.extend(self.unmatched());
        }
        faults
    }

    /// Chunks of a space of a GPU.
    fn room(&self, gpu: &PlanGpu, space: Space) -> u32 {
        let piece = self.chunks / (self.gpus.len() as u32).max(1);
        match (space, self.collective) {
            (Space::Scratch, _) => gpu.scratch,
            (Space::Input, Collective::AllGather) => piece,
            (Space::Output, Collective::ReduceScatter) => piece,
            _ => self.chunks,
        }
    }

    fn step_fault(
        &self,
        rank: usize,
        gpu: &PlanGpu,
        block: &PlanBlock,
        step: &PlanStep,
    ) -> Option<String> {
        let ranks = self.gpus.len() as u32;
        let outside = |(space, offset): (Space, u32)| {
            let room = self.room(gpu, space);
            let end = offset.checked_add(step.count);
            end.is_none_or(|end| end > room).then(|| {
                format!("chunks {offset} and {} on are outside the {room} of {space:?}", step.count)
            })
        };
        let peer = |peer: Option<u32>, word: &str| match peer {
            None => Some(format!("it {word}, and its thread block has nobody to")),
            Some(other) if other >= ranks || other as usize == rank => {
                Some(format!("GPU {rank} {word} GPU {other}, of GPUs 0 to {}", ranks - 1))
            }
            Some(_) => None,
        };
        let moves = step.kind != StepKind::Nothing;
        if moves && step.count == 0 {
            return Some("a step of no chunk".to_owned());
        }
        let of = |wanted: bool, fault: Option<String>| fault.filter(|_| wanted);
        of(step.kind.sends(), peer(block.send, "sends to"))
            .or_else(|| of(step.kind.receives(), peer(block.receive, "receives from")))
            .or_else(|| step.kind.reads().then(|| outside(step.source)).flatten())
            .or_else(|| step.kind.keeps().then(|| outside(step.target)).flatten())
            .or_else(|| {
                let (at, number) = step.after?;
                let there = gpu.blocks.get(at).is_some_and(|other| number < other.steps.len());
                (!there).then(|| {
                    format!("it waits for step {number} of thread block {at}, which is not there")
                })
            })
    }

    /// What is sent and received on each way must be the same, one after another.
    fn unmatched(&self) -> Vec<(String, Span)> {
        type Sizes = Vec<(u32, Span)>;
        let mut ways: BTreeMap<Way, [Sizes; 2]> = BTreeMap::new();
        for (rank, gpu) in (0..).zip(&self.gpus) {
            for block in &gpu.blocks {
                for step in &block.steps {
                    let sides = [
                        block.send.filter(|_| step.kind.sends()).map(|to| (rank, to)),
                        block.receive.filter(|_| step.kind.receives()).map(|from| (from, rank)),
                    ];
                    for (side, way) in sides.into_iter().enumerate() {
                        let Some((from, to)) = way else { continue };
                        let sizes = ways.entry((from, to, block.channel)).or_default();
                        sizes[side].push((step.count, step.span.clone()));
                    }
                }
            }
        }
        let mut faults = Vec::new();
        for ((from, to, channel), [sent, received]) in ways {
            let same = sent.len().min(received.len());
            let differs = (0..same).find(|&at| sent[at].0 != received[at].0);
            let way = format!("GPU {from} to {to} on channel {channel}");
            let longer = if sent.len() > same { &sent } else { &received };
            if let Some(at) = differs {
                let (a, b) = (sent[at].0, received[at].0);
                let what = format!("{way}: {a} chunks are sent where {b} are received");
                faults.push((what, sent[at].1.clone()));
            } else if let Some(extra) = longer.get(same) {
                let (a, b) = (sent.len(), received.len());
                faults.push((format!("{way}: {a} steps send, {b} receive"), extra.1.clone()));
            }
        }
        faults
    }
}
