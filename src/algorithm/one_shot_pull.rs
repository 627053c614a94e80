//! One-stage all-reduce by reading: a barrier, every rank loads all n buffers and adds them, and a
//! barrier so that nobody overwrites its input too early. On 8 GPUs, 56 buffers are read at once.
//!
//! vLLM and SGLang v1 read in the order of ranks, PyTorch and p2pmark from the next rank on; p2pmark
//! has no end barrier; SGLang v2 and PyTorch wait by atomics.

use super::kernel::{Implementation, Kernel};
use super::waiting::{self, barrier};
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, Part, trips};
use crate::schedule::{Action, BufferId, Collective, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "one_shot_pull",
    title: "one-stage",
    collective: Collective::AllReduce,
    structure: Structure::Flat,
    protocols: &[Protocol::Simple],
    implementations: &[
        Implementation::CustomAllReduce,
        Implementation::PcieOneShot,
        Implementation::SglangV2,
        Implementation::TorchSymmMem,
        Implementation::P2pmark,
        Implementation::Probe,
    ],
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
    builder.push(rank, block, Op::Write { buffer: to, offset, bytes, data: offset });
}

/// PyTorch launches at most this many blocks.
const TORCH_BLOCKS_MAX: u32 = 24;

/// Blocks of the kernel for a part of `bytes`, unless the caller says.
pub(super) fn blocks_of(request: &Request<'_>, bytes: u64) -> u32 {
    let most = match request.kernel.implementation {
        Implementation::TorchSymmMem => TORCH_BLOCKS_MAX,
        _ => BLOCKS_MAX as u32,
    };
    request.blocks.unwrap_or_else(|| blocks_for(bytes).min(most))
}

/// Ranks in the order in which `rank` reads them.
pub(super) fn read_order(request: &Request<'_>, rank: u32) -> impl Iterator<Item = u32> {
    let n = request.ranks();
    let rotated = matches!(
        request.kernel.implementation,
        Implementation::P2pmark | Implementation::TorchSymmMem
    );
    let first = if rotated { rank } else { 0 };
    (0..n).map(move |step| (first + step) % n)
}

fn build(request: &Request<'_>) -> Result<Schedule> {
    waiting::check(request)?;
    let kernel = request.kernel;
    let blocks = blocks_of(request, request.bytes) as usize;
    let mut builder = Builder::new("one-stage pull", &request.gpus, blocks, THREADS);
    let inputs = builder.buffers(Role::Input, request.bytes, |rank| request.home(rank));
    let outputs = builder.buffers(Role::Output, request.bytes, |r| request.gpus[r as usize]);
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    barrier(&mut builder, request, kernel.fenced_barriers());
    for rank in 0..request.ranks() {
        let sources: Vec<BufferId> =
            read_order(request, rank).map(|source| inputs[source as usize]).collect();
        for block in 0..blocks {
            for part in trips(0, request.bytes as u32, block, blocks, THREADS) {
                let to = outputs[rank as usize];
                pull_trip(&mut builder, &kernel, (rank, block), &sources, to, part);
            }
        }
    }
    if kernel.implementation != Implementation::P2pmark {
        barrier(&mut builder, request, kernel.fenced_barriers());
    }
    if !kernel.is_probe() {
        builder.push_all(Op::Delay(kernel.end));
    }
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
