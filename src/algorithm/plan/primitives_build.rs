//! A plan -> a schedule, by NCCL's primitives.

use std::collections::BTreeMap;

use super::primitives::Way;
use super::{Plan, PlanBlock, PlanGpu, Primitives, Space, StepKind};
use crate::algorithm::primitives::{ConnectionId, Nccl, Place, Primitive, Slices, chunk_max};
use crate::algorithm::{Protocol, Request};
use crate::schedule::{BufferId, MessageId, Schedule};

/// Threads of MSCCL's blocks.
fn threads_of(protocol: Protocol) -> u32 {
    if protocol == Protocol::Ll128 { 640 } else { 512 }
}

/// The schedule of a plan without faults, of bytes that its chunks divide.
pub(super) fn build(plan: &Plan, primitives: &Primitives, request: &Request<'_>) -> Schedule {
    let blocks = primitives.gpus.iter().map(|gpu| gpu.blocks.len()).max().unwrap_or(0).max(1);
    let threads = plan.threads.unwrap_or(threads_of(plan.protocol)).clamp(32, 1024);
    let threads = vec![threads.next_multiple_of(32); blocks];
    let name = (plan.name.as_str(), plan.collective);
    let nccl =
        Nccl::without_data(request, name, primitives.channels.max(1), &threads, Slices::SINGLE);
    let mut run = Run {
        plan,
        gpus: &primitives.gpus,
        nccl,
        spaces: Vec::new(),
        ways: BTreeMap::new(),
        flags: BTreeMap::new(),
        waiting: waiting(&primitives.gpus),
    };
    run.buffers(request.bytes);
    run.connect();
    run.blocks(request.bytes / u64::from(plan.chunks));
    run.nccl.finish()
}

/// Who waits for what, in which loop: rank, block and step of both.
type Dependency = (u32, Step, Step, u32);
/// Block and number of a step.
type Step = (usize, usize);

struct Run<'a> {
    plan: &'a Plan,
    gpus: &'a [PlanGpu],
    nccl: Nccl<'a>,
    /// Of each rank the buffers of input, output and scratch, with the first byte of each.
    spaces: Vec<[(BufferId, u32); 3]>,
    ways: BTreeMap<Way, ConnectionId>,
    flags: BTreeMap<Dependency, MessageId>,
    /// Steps of a rank that wait for a step of it.
    waiting: BTreeMap<(u32, Step), Vec<Step>>,
}

fn waiting(gpus: &[PlanGpu]) -> BTreeMap<(u32, Step), Vec<Step>> {
    let mut waiting: BTreeMap<(u32, Step), Vec<Step>> = BTreeMap::new();
    for (rank, gpu) in (0..).zip(gpus) {
        for (number, block) in gpu.blocks.iter().enumerate() {
            for (at, step) in block.steps.iter().enumerate() {
                if let Some(after) = step.after {
                    waiting.entry((rank, after)).or_default().push((number, at));
                }
            }
        }
    }
    waiting
}

impl Run<'_> {
    fn buffers(&mut self, bytes: u64) {
        for (rank, gpu) in (0..).zip(self.gpus) {
            let add = |role, bytes| self.nccl.buffer(rank, role, bytes);
            self.spaces.push(self.plan.spaces((rank, gpu.scratch), bytes, add));
        }
    }

    fn connect(&mut self) {
        let largest = chunk_max(self.plan.protocol, Slices::SINGLE);
        for (rank, gpu) in (0..).zip(self.gpus) {
            for block in &gpu.blocks {
                let sends = block.steps.iter().any(|step| step.kind.sends());
                if let Some(to) = block.send.filter(|_| sends) {
                    let way = (rank, to, block.channel);
                    if !self.ways.contains_key(&way) {
                        let connection = self.nccl.connect(rank, to, largest);
                        self.ways.insert(way, connection);
                    }
                }
            }
        }
    }

    /// All steps; where a chunk does not fit into a slot, all of them again for each part of it.
    fn blocks(&mut self, chunk: u64) {
        let plan = self.plan;
        let gpus = self.gpus;
        let steps = gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|block| &block.steps);
        let most = u64::from(steps.map(|step| step.count).max().unwrap_or(1).max(1));
        let slot = chunk_max(plan.protocol, Slices::SINGLE) / 16 * 16;
        let whole = chunk * most <= slot;
        let part = if whole { chunk } else { chunk.min(slot) };
        let loops = chunk.div_ceil(part.max(1)) as u32;
        for pass in 0..loops {
            let from = u64::from(pass) * part;
            let length = part.min(chunk - from);
            for (rank, gpu) in (0..).zip(gpus) {
                for (number, block) in gpu.blocks.iter().enumerate() {
                    for at in 0..block.steps.len() {
                        let piece = Piece { chunk, from, length, whole, pass };
                        self.step(Place { rank, block: number }, block, at, piece);
                    }
                }
            }
        }
    }

    fn step(&mut self, place: Place, block: &PlanBlock, at: usize, piece: Piece) {
        let step = &block.steps[at];
        let own = (place.block, at);
        if let Some(other) = step.after {
            let flag = self.flag((place.rank, other, own, piece.pass));
            self.nccl.wait(place, flag);
        }
        // Chunks of a step lie one after another only where they are whole.
        let parts = if piece.whole { 1 } else { step.count };
        let length = if piece.whole { piece.chunk * u64::from(step.count) } else { piece.length };
        for index in 0..parts {
            let place_of = |spaces: &[(BufferId, u32); 3], (space, offset): (Space, u32)| {
                let (buffer, first) = spaces[space as usize];
                (buffer, first + (u64::from(offset + index) * piece.chunk + piece.from) as u32)
            };
            let spaces = &self.spaces[place.rank as usize];
            let (source, target) = (place_of(spaces, step.source), place_of(spaces, step.target));
            match step.kind {
                StepKind::Primitive { receive, own, keep, send } => {
                    let way = |from: Option<u32>, to: Option<u32>| {
                        self.ways.get(&(from?, to?, block.channel)).copied()
                    };
                    let primitive = Primitive {
                        receive: way(block.receive.filter(|_| receive), Some(place.rank)),
                        send: way(Some(place.rank), block.send.filter(|_| send)),
                        own,
                        copy: keep,
                        at: 0,
                        length: length as u32,
                        source: Some(source),
                        target: Some(target),
                    };
                    self.nccl.run(place, primitive);
                }
                StepKind::Reduce => self.nccl.reduce(place, source, target, length as u32),
                StepKind::Nothing => {}
            }
        }
        let waiting = self.waiting.get(&(place.rank, own)).cloned().unwrap_or_default();
        let flags: Vec<MessageId> = waiting
            .into_iter()
            .map(|other| self.flag((place.rank, own, other, piece.pass)))
            .collect();
        if !flags.is_empty() {
            self.nccl.signal(place, &flags);
        }
    }

    fn flag(&mut self, dependency: Dependency) -> MessageId {
        if let Some(&flag) = self.flags.get(&dependency) {
            return flag;
        }
        let flag = self.nccl.flag(dependency.0);
        self.flags.insert(dependency, flag);
        flag
    }
}

/// The part of each chunk that a pass over the plan moves.
#[derive(Copy, Clone)]
struct Piece {
    /// Bytes of a chunk.
    chunk: u64,
    /// First byte of the part.
    from: u64,
    /// Bytes of the part.
    length: u64,
    /// The part is all of the chunk.
    whole: bool,
    /// Number of the pass.
    pass: u32,
}
