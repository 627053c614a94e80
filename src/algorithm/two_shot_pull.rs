//! Two-stage all-reduce by reading: each rank reduces its own nth of all buffers into a temporary,
//! then gathers the others' nths.

use super::one_shot_pull::{THREADS, blocks_for, pull_trip};
use super::{Algorithm, Protocol, Request};
use crate::error::Result;
use crate::schedule::build::{Builder, slice, trips};
use crate::schedule::{Action, Collective, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "two_shot_pull",
    title: "two-stage",
    collective: Collective::AllReduce,
    protocols: &[Protocol::Simple],
    build,
};

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let kernel = request.kernel;
    let probe = kernel.is_probe();
    let part_bytes = request.bytes.div_ceil(u64::from(n));
    let blocks = request.blocks.unwrap_or_else(|| blocks_for(part_bytes)) as usize;
    let mut builder = Builder::new("two-stage pull", &request.gpus, blocks, THREADS);
    let home = |rank: u32| request.home(rank);
    let flags = |rank: u32| request.flag_home(rank);
    let inputs = builder.buffers(Role::Input, request.bytes, home);
    let scratch = builder.buffers(Role::Scratch, request.bytes, home);
    let outputs = builder.buffers(Role::Output, request.bytes, |r| request.gpus[r as usize]);
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    builder.barrier(kernel.fenced_barriers(), flags);
    for rank in 0..n {
        let (start, length) = slice(request.bytes, n, rank);
        for block in 0..blocks {
            for part in trips(start, length, block, blocks, THREADS) {
                let to = scratch[rank as usize];
                pull_trip(&mut builder, &kernel, (rank, block), &inputs, to, part);
            }
        }
    }
    // The temporaries must be visible before anybody reads them.
    builder.barrier(true, flags);
    for rank in 0..n {
        for block in 0..blocks {
            let trip_count = trips(0, part_bytes as u32 + 16, block, blocks, THREADS).count();
            for trip in 0..trip_count {
                let mut parts = Vec::new();
                for peer in 0..n {
                    let (start, length) = slice(request.bytes, n, peer);
                    if let Some(part) = trips(start, length, block, blocks, THREADS).nth(trip) {
                        builder.load(rank, block, scratch[peer as usize], part, Action::Set);
                        parts.push(part);
                        if probe {
                            // One element at a time, stored before the next is loaded.
                            builder.push(rank, block, Op::WaitLoads);
                        }
                    }
                }
                builder.push(rank, block, Op::WaitLoads);
                for part in parts {
                    let (offset, bytes) = (part.offset, part.bytes);
                    let buffer = outputs[rank as usize];
                    builder.push(rank, block, Op::Write { buffer, offset, bytes });
                }
            }
        }
    }
    if !probe {
        builder.push_all(Op::Delay(kernel.end));
    }
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
