//! The small programs that fabrics are measured with: pointer chase, ping-pong, and one chain of
//! reads beside groups of blocks that load or store at full tilt.

use crate::fabric::{EndpointId, Fabric};
use crate::schedule::build::{Builder, Part};
use crate::schedule::{Action, Block, Executor, Lines, Op, Role, Schedule};
use crate::topology::TrafficKind;

/// Large enough not to be a cache's.
const STREAM_BYTES: u64 = 1 << 30;
/// A load test looks at its stop flag after this many accesses.
const ACCESSES_A_CHECK: u32 = 8;

/// What a group of blocks does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// Loads, `in_flight` of 16 bytes a thread at a time.
    Read {
        /// Loads in flight a thread.
        in_flight: u32,
    },
    /// Stores of 16 bytes a thread.
    Write,
}

/// A group of equal blocks that load one memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct LoadGroup {
    /// GPU the blocks run on.
    pub gpu: u32,
    /// Memory they address.
    pub target: EndpointId,
    /// What they do.
    pub kind: LoadKind,
    /// How many blocks.
    pub blocks: u32,
    /// Threads of each.
    pub threads: u32,
    /// They look at a stop flag in local memory now and then, as a load test does.
    pub stop_check: bool,
}

/// `hops` dependent reads of `bytes` bytes by one thread of each listed (GPU, memory), each as a
/// rank of its own.
pub fn chase(readers: &[(u32, EndpointId)], bytes: u32, hops: u32) -> Schedule {
    let gpus: Vec<u32> = readers.iter().map(|reader| reader.0).collect();
    let mut builder = Builder::new("pointer chase", &gpus, 1, 32);
    for (rank, &(_, target)) in readers.iter().enumerate() {
        // A place of its own in memory: a chase is alone on its lines.
        let buffer = builder.buffer(rank as u32, target, Role::Scratch, 4096);
        for _ in 0..hops {
            let part = Part { offset: 0, bytes };
            builder.load(rank as u32, 0, buffer, part, Action::Discard);
            builder.push(rank as u32, 0, Op::WaitLoads);
        }
    }
    builder.finish(u64::from(bytes), None)
}

/// `rounds` flags back and forth between two GPUs, flags in the memories named; `fenced` with a
/// fence before each store and acquire polls.
pub fn ping_pong(gpus: [u32; 2], homes: [EndpointId; 2], rounds: u32, fenced: bool) -> Schedule {
    let mut builder = Builder::new("ping-pong", &gpus, 1, 32);
    for _ in 0..rounds {
        let there = builder.message(0, 1, homes[1], 4, Lines::Plain);
        let back = builder.message(1, 0, homes[0], 4, Lines::Plain);
        if fenced {
            builder.push(0, 0, Op::Fence);
        }
        builder.push(0, 0, Op::Flag(there));
        builder.push(0, 0, Op::PollFlag { message: back, acquire: fenced });
        builder.push(1, 0, Op::PollFlag { message: there, acquire: fenced });
        if fenced {
            builder.push(1, 0, Op::Fence);
        }
        builder.push(1, 0, Op::Flag(back));
    }
    builder.finish(4, None)
}

/// A chase of `hops` reads (none if zero) on the first group's GPU and memory, beside load groups,
/// each group a rank of its own: rank 0 is the chase, rank g + 1 group g.
pub fn load_mix(
    fabric: &Fabric,
    chase: Option<(u32, EndpointId, u32)>,
    groups: &[LoadGroup],
) -> Schedule {
    let mut gpus = vec![chase.map_or(groups.first().map_or(0, |g| g.gpu), |c| c.0)];
    gpus.extend(groups.iter().map(|group| group.gpu));
    let mut builder = Builder::new("load mix", &gpus, 0, 32);
    if let Some((_, target, hops)) = chase {
        let buffer = builder.buffer(0, target, Role::Scratch, 4096);
        let block = Block {
            executor: Executor::Sm,
            threads: 32,
            beside: None,
            background: false,
            ops: vec![],
        };
        let block = builder.add_block(0, block);
        for _ in 0..hops {
            builder.load(0, block, buffer, Part { offset: 0, bytes: 4 }, Action::Discard);
            builder.push(0, block, Op::WaitLoads);
        }
    }
    for (index, group) in groups.iter().enumerate() {
        let rank = index as u32 + 1;
        for _ in 0..group.blocks {
            let buffer = builder.buffer(rank, group.target, Role::Scratch, STREAM_BYTES);
            builder.cold(buffer);
            let ops = load_ops(fabric, group, buffer);
            let block = Block {
                executor: Executor::Sm,
                threads: group.threads,
                beside: None,
                background: true,
                ops,
            };
            builder.add_block(rank, block);
        }
    }
    builder.finish(0, None)
}

fn load_ops(fabric: &Fabric, group: &LoadGroup, buffer: u32) -> Vec<Op> {
    let bytes = group.threads * 16;
    let mut ops = Vec::new();
    let (kind, action) = (TrafficKind::SmRead, Action::Discard);
    match group.kind {
        LoadKind::Write => {
            for _ in 0..ACCESSES_A_CHECK {
                ops.push(Op::Write { buffer, offset: 0, bytes, data: 0 });
            }
        }
        LoadKind::Read { in_flight } => {
            for _ in 0..ACCESSES_A_CHECK / in_flight.max(1) {
                for _ in 0..in_flight.max(1) {
                    ops.push(Op::Load { buffer, offset: 0, bytes, data: 0, action, kind });
                }
                ops.push(Op::WaitLoads);
            }
        }
    }
    if group.stop_check {
        ops.push(Op::Delay(fabric.gpus[group.gpu as usize].stop_check));
    }
    ops
}
