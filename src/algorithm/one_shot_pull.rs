//! One-stage all-reduce by reading: a barrier, every rank loads all n buffers and adds them, and a
//! barrier so that nobody overwrites its input too early. On 8 GPUs, 56 buffers are read at once.

use super::kernel::{Implementation, Kernel};
use super::{Algorithm, Protocol, Request};
use crate::error::Result;
use crate::schedule::build::{Builder, Part, trips};
use crate::schedule::{Action, BufferId, Collective, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "one_shot_pull",
    title: "one-stage",
    collective: Collective::AllReduce,
    protocols: &[Protocol::Simple],
    build,
};

/// Threads of a block, here and in vLLM, SGLang and p2pmark.
pub const THREADS: u32 = 512;
/// vLLM and SGLang launch at most this many blocks.
pub const BLOCKS_MAX: u64 = 36;

/// Blocks by vLLM's and SGLang's rule: one for every 512 packs of 16 bytes.
pub fn blocks_for(bytes: u64) -> u32 {
    bytes.div_ceil(16).div_ceil(u64::from(THREADS)).clamp(1, BLOCKS_MAX) as u32
}

/// One trip of a block: loads a part of every source, in the kernel's groups, and stores the sum.
pub(super) fn pull_trip(
    builder: &mut Builder,
    kernel: &Kernel,
    (rank, block): (u32, usize),
    sources: &[BufferId],
    to: BufferId,
    part: Part,
) {
    let mut peer = 0;
    for group in kernel.load_groups(sources.len() as u32) {
        for _ in 0..group {
            let action = if peer == 0 { Action::Set } else { Action::Add };
            builder.load(rank, block, sources[peer], part, action);
            peer += 1;
        }
        builder.push(rank, block, Op::WaitLoads);
    }
    builder.push(rank, block, Op::Delay(kernel.trip));
    let (offset, bytes) = (part.offset, part.bytes);
    builder.push(rank, block, Op::Write { buffer: to, offset, bytes });
}

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let kernel = request.kernel;
    let blocks = request.blocks.unwrap_or_else(|| blocks_for(request.bytes));
    let mut builder = Builder::new("one-stage pull", &request.gpus, blocks as usize, THREADS);
    let home = |rank: u32| request.home(rank);
    let flags = |rank: u32| request.flag_home(rank);
    let inputs = builder.buffers(Role::Input, request.bytes, home);
    let outputs = builder.buffers(Role::Output, request.bytes, |r| request.gpus[r as usize]);
    if let Some(start) = kernel.start_op(blocks as usize) {
        builder.push_all(start);
    }
    builder.barrier(kernel.fenced_barriers(), flags);
    let rotated = kernel.implementation == Implementation::P2pmark;
    for rank in 0..n {
        for block in 0..blocks as usize {
            for part in trips(0, request.bytes as u32, block, blocks as usize, THREADS) {
                let sources = (0..n).map(|peer| {
                    let source = if rotated { (rank + peer) % n } else { peer };
                    inputs[source as usize]
                });
                let (sources, to) = (sources.collect::<Vec<_>>(), outputs[rank as usize]);
                pull_trip(&mut builder, &kernel, (rank, block), &sources, to, part);
            }
        }
    }
    if kernel.implementation != Implementation::P2pmark {
        builder.barrier(kernel.fenced_barriers(), flags);
    }
    if !kernel.is_probe() {
        builder.push_all(Op::Delay(kernel.end));
    }
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
