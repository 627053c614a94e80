//! Plans of NCCL's primitives: a thread block has one rank that it sends to and one that it receives
//! from, and runs its steps in order.

use std::collections::BTreeMap;

use super::{Faults, Plan, Space};
use crate::error::Span;

/// What the GPUs do.
#[derive(Clone, Debug, PartialEq)]
pub struct Primitives {
    /// Channels.
    pub channels: u32,
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
pub(super) type Way = (u32, u32, u32);

impl Primitives {
    /// All that is wrong with them, each with its place.
    pub(super) fn faults(&self, plan: &Plan) -> Faults {
        let mut faults = Vec::new();
        for (rank, gpu) in self.gpus.iter().enumerate() {
            for block in &gpu.blocks {
                for step in &block.steps {
                    let fault = self.step_fault(plan, (rank, gpu), block, step);
                    faults.extend(fault.map(|fault| (fault, step.span.clone())));
                }
            }
        }
        if faults.is_empty() {
            faults.extend(self.unmatched());
        }
        faults
    }

    fn step_fault(
        &self,
        plan: &Plan,
        (rank, gpu): (usize, &PlanGpu),
        block: &PlanBlock,
        step: &PlanStep,
    ) -> Option<String> {
        let ranks = self.gpus.len() as u32;
        let outside =
            |(space, offset): (Space, u32)| plan.outside(gpu.scratch, space, offset, step.count);
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
    fn unmatched(&self) -> Faults {
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
