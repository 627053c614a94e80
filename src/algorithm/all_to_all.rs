//! All-to-all by writing, as NCCL's grouped send and receive do it: each rank stores a piece into
//! every peer's buffer, all at once, each piece behind a fence and a flag.

use super::one_shot_pull::{THREADS, blocks_for};
use super::{Algorithm, Implementation, Protocol, Request};
use crate::error::Result;
use crate::schedule::build::{Builder, trips};
use crate::schedule::{Collective, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "all_to_all",
    title: "all-to-all",
    collective: Collective::AllToAll,
    protocols: &[Protocol::Simple],
    implementations: &[Implementation::Nccl],
    build,
};

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let kernel = request.kernel;
    let piece = (request.bytes / u64::from(n)) as u32;
    let blocks = request.blocks.unwrap_or_else(|| blocks_for(u64::from(piece))) as usize;
    let mut builder = Builder::new("all-to-all", &request.gpus, blocks, THREADS);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    // Elements keep their place in the sender's data; the receiver's piece s is written by rank s.
    let outputs = builder.buffers(Role::Output, request.bytes, |rank| request.home(rank));
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    for rank in 0..n {
        for block in 0..blocks {
            for step in 0..n {
                let peer = (rank + step) % n;
                for part in trips(0, piece, block, blocks, THREADS) {
                    let bytes = part.bytes;
                    builder.push(
                        rank,
                        block,
                        Op::Move {
                            from: inputs[rank as usize],
                            from_offset: peer * piece + part.offset,
                            to: outputs[peer as usize],
                            to_offset: rank * piece + part.offset,
                            bytes,
                        },
                    );
                }
            }
        }
    }
    builder.barrier(true, |rank| request.flag_home(rank));
    builder.push_all(Op::Delay(kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllToAll)))
}
