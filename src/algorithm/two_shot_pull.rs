//! Two-stage all-reduce by reading: each rank reduces its own nth of all buffers into a temporary,
//! then gathers the others' nths.

use super::kernel::Implementation;
use super::one_shot_pull::{THREADS, blocks_of, pull_trip, read_order};
use super::waiting::{self, barrier};
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, slice, trips};
use crate::schedule::{Action, BufferId, Collective, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "two_shot_pull",
    title: "two-stage",
    collective: Collective::AllReduce,
    structure: Structure::Flat,
    protocols: &[Protocol::Simple],
    implementations: &[
        Implementation::CustomAllReduce,
        Implementation::TorchSymmMem,
        Implementation::Probe,
    ],
    build,
};

/// PyTorch's two-shot runs blocks of this many threads.
const TORCH_THREADS: u32 = 1024;

fn build(request: &Request<'_>) -> Result<Schedule> {
    waiting::check(request)?;
    let n = request.ranks();
    let kernel = request.kernel;
    let torch = kernel.implementation == Implementation::TorchSymmMem;
    let threads = if torch { TORCH_THREADS } else { THREADS };
    // vLLM and SGLang launch for the whole call, though a block has only an nth of it.
    let blocks = blocks_of(request, request.bytes) as usize;
    let mut builder = Builder::new("two-stage pull", &request.gpus, blocks, threads);
    let home = |rank: u32| request.home(rank);
    let inputs = builder.buffers(Role::Input, request.bytes, home);
    let scratch = builder.buffers(Role::Scratch, request.bytes, home);
    let outputs = builder.buffers(Role::Output, request.bytes, |r| request.gpus[r as usize]);
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    barrier(&mut builder, request, kernel.fenced_barriers());
    for rank in 0..n {
        let sources: Vec<BufferId> =
            read_order(request, rank).map(|source| inputs[source as usize]).collect();
        let (start, length) = slice(request.bytes, n, rank);
        for block in 0..blocks {
            for part in trips(start, length, block, blocks, threads) {
                let to = scratch[rank as usize];
                pull_trip(&mut builder, &kernel, (rank, block), &sources, to, part);
            }
        }
    }
    // The temporaries must be visible before anybody reads them.
    barrier(&mut builder, request, true);
    for rank in 0..n {
        for block in 0..blocks {
            gather(&mut builder, request, (rank, block), (blocks, threads), &scratch, &outputs);
        }
    }
    if torch {
        // Nobody may change its temporary while others read it.
        barrier(&mut builder, request, false);
    }
    if !kernel.is_probe() {
        builder.push_all(Op::Delay(kernel.end));
    }
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}

/// The second stage of one block: reads every rank's nth.
fn gather(
    builder: &mut Builder,
    request: &Request<'_>,
    (rank, block): (u32, usize),
    (blocks, threads): (usize, u32),
    scratch: &[BufferId],
    outputs: &[BufferId],
) {
    let n = request.ranks();
    let longest = slice(request.bytes, n, 0).1;
    // vLLM's kernel and the probe's, which was written after it, store each element before they load
    // the next: the compiler cannot know that results and temporaries lie apart.
    let one_at_a_time = request.kernel.implementation != Implementation::TorchSymmMem;
    for trip in 0..trips(0, longest, block, blocks, threads).count() {
        let mut parts = Vec::new();
        for peer in read_order(request, rank) {
            let (start, length) = slice(request.bytes, n, peer);
            if let Some(part) = trips(start, length, block, blocks, threads).nth(trip) {
                builder.load(rank, block, scratch[peer as usize], part, Action::Set);
                parts.push(part);
                if one_at_a_time {
                    builder.push(rank, block, Op::WaitLoads);
                }
            }
        }
        builder.push(rank, block, Op::WaitLoads);
        for part in parts {
            let (offset, bytes) = (part.offset, part.bytes);
            let buffer = outputs[rank as usize];
            builder.push(rank, block, Op::Write { buffer, offset, bytes, data: offset });
        }
    }
}
