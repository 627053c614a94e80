//! Two-stage all-reduce that reads, then writes: each rank reduces its own nth of all buffers and
//! stores the sum into every peer's result, between two barriers.
//!
//! TensorRT-LLM's two-shot copies its input into a shared buffer first and its result out of one at
//! the end; SGLang v2, PyTorch's in-place variant and MSCCL++'s zero-copy reduce-scatter and
//! all-gather work on registered buffers.

use super::kernel::Implementation;
use super::one_shot_pull::{THREADS, blocks_of, read_order};
use super::waiting::{self, barrier};
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, Part, slice, trips};
use crate::schedule::{Action, BufferId, Collective, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "two_shot_pull_push",
    title: "two-stage, read then write",
    collective: Collective::AllReduce,
    structure: Structure::Flat,
    protocols: &[Protocol::Simple],
    implementations: &[
        Implementation::FlashInfer,
        Implementation::SglangV2,
        Implementation::Mscclpp,
        Implementation::TorchSymmMem,
    ],
    build,
};

fn build(request: &Request<'_>) -> Result<Schedule> {
    waiting::check(request)?;
    let kernel = request.kernel;
    let copies = kernel.implementation == Implementation::FlashInfer;
    let blocks = blocks_of(request, request.bytes) as usize;
    let name = "two-stage read and write";
    let mut builder = Builder::new(name, &request.gpus, blocks, THREADS);
    let home = |rank: u32| request.home(rank);
    let local = |rank: u32| request.gpus[rank as usize];
    let bytes = request.bytes;
    // Results lie where peers can store them.
    let outputs = match copies {
        true => builder.buffers(Role::Output, bytes, local),
        false => builder.buffers(Role::Output, bytes, home),
    };
    let inputs = match copies {
        true => builder.buffers(Role::Input, bytes, local),
        false => builder.buffers(Role::Input, bytes, home),
    };
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    let (mut sources, mut results) = (inputs.clone(), outputs.clone());
    if copies {
        sources = builder.buffers(Role::Scratch, bytes, home);
        results = builder.buffers(Role::Scratch, bytes, home);
        copy(&mut builder, request, blocks, &inputs, &sources);
    }
    barrier(&mut builder, request, copies || kernel.fenced_barriers());
    for rank in 0..request.ranks() {
        for block in 0..blocks {
            let (start, length) = slice(bytes, request.ranks(), rank);
            for part in trips(start, length, block, blocks, THREADS) {
                reduce(&mut builder, request, (rank, block), &sources, &results, part);
            }
        }
    }
    barrier(&mut builder, request, true);
    if copies {
        copy(&mut builder, request, blocks, &results, &outputs);
    }
    if !kernel.is_probe() {
        builder.push_all(Op::Delay(kernel.end));
    }
    Ok(builder.finish(bytes, Some(Collective::AllReduce)))
}

/// One trip: loads a part of every source, adds, and stores the sum into every result.
fn reduce(
    builder: &mut Builder,
    request: &Request<'_>,
    (rank, block): (u32, usize),
    sources: &[BufferId],
    results: &[BufferId],
    part: Part,
) {
    for (index, source) in read_order(request, rank).enumerate() {
        let action = if index == 0 { Action::Set } else { Action::Add };
        builder.load(rank, block, sources[source as usize], part, action);
    }
    builder.push(rank, block, Op::WaitLoads);
    builder.push(rank, block, Op::Delay(request.kernel.trip));
    let (offset, bytes) = (part.offset, part.bytes);
    for step in 0..request.ranks() {
        let buffer = results[((rank + step) % request.ranks()) as usize];
        builder.push(rank, block, Op::Write { buffer, offset, bytes, data: offset });
    }
}

/// Every rank copies its buffer, each block what it touches in the stage between.
fn copy(
    builder: &mut Builder,
    request: &Request<'_>,
    blocks: usize,
    from: &[BufferId],
    to: &[BufferId],
) {
    let n = request.ranks();
    for rank in 0..n {
        for block in 0..blocks {
            for owner in 0..n {
                let (start, length) = slice(request.bytes, n, owner);
                for part in trips(start, length, block, blocks, THREADS) {
                    builder.load(rank, block, from[rank as usize], part, Action::Set);
                    builder.push(rank, block, Op::WaitLoads);
                    let (buffer, offset, bytes) = (to[rank as usize], part.offset, part.bytes);
                    builder.push(rank, block, Op::Write { buffer, offset, bytes, data: offset });
                }
            }
        }
    }
}
