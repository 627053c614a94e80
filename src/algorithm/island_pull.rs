//! Island-hierarchical all-reduce by reading: each rank reduces its share inside its island, adds
//! the other islands' sums of that share, and gathers the rest of its island. Between islands
//! travels each byte once a direction.
//!
//! Temporaries alternate from call to call: a rank may still be read from across islands while its
//! own island starts the next call.

use super::islands::Shares;
use super::kernel::Implementation;
use super::one_shot_pull::{THREADS, blocks_of, pull_trip};
use super::waiting::{self, group_barrier};
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, trips};
use crate::schedule::{Action, BufferId, Collective, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "island_pull",
    title: "by islands, reading",
    collective: Collective::AllReduce,
    structure: Structure::Islands,
    protocols: &[Protocol::Simple],
    implementations: &[Implementation::CustomAllReduce],
    build,
};

fn build(request: &Request<'_>) -> Result<Schedule> {
    waiting::check(request)?;
    let kernel = request.kernel;
    let blocks = blocks_of(request, request.bytes) as usize;
    let mut builder = Builder::new("islands pull", &request.gpus, blocks, THREADS);
    let home = |rank: u32| request.home(rank);
    let inputs = builder.buffers(Role::Input, request.bytes, home);
    let island_sums = builder.buffers(Role::Scratch, request.bytes, home);
    let sums = builder.buffers(Role::Scratch, request.bytes, home);
    let outputs = builder.buffers(Role::Output, request.bytes, |r| request.gpus[r as usize]);
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    let shares = Shares::of(request);
    let pull = Pull { request, shares, blocks };
    for island in &pull.shares.islands {
        group_barrier(&mut builder, request, island, false);
    }
    let inside = |_: usize, island: usize| of(&inputs, &pull.shares.islands[island]);
    pull.owned(&mut builder, inside, &island_sums);
    if pull.shares.islands.len() > 1 {
        for group in pull.shares.counterparts() {
            group_barrier(&mut builder, request, &group, true);
        }
        let across = |piece: usize, _: usize| {
            of(&island_sums, &pull.shares.owners(piece).collect::<Vec<u32>>())
        };
        pull.owned(&mut builder, across, &sums);
    }
    let last = if pull.shares.islands.len() > 1 { &sums } else { &island_sums };
    for island in &pull.shares.islands {
        group_barrier(&mut builder, request, island, true);
    }
    pull.gather(&mut builder, last, &outputs);
    builder.push_all(Op::Delay(kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}

/// The buffers of some ranks.
fn of(buffers: &[BufferId], ranks: &[u32]) -> Vec<BufferId> {
    ranks.iter().map(|&rank| buffers[rank as usize]).collect()
}

struct Pull<'a> {
    request: &'a Request<'a>,
    shares: Shares,
    blocks: usize,
}

impl Pull<'_> {
    /// Every rank adds up its own pieces from the sources of (piece, island) into its buffer of `to`.
    fn owned(
        &self,
        builder: &mut Builder,
        sources: impl Fn(usize, usize) -> Vec<BufferId>,
        to: &[BufferId],
    ) {
        for (number, island) in self.shares.islands.iter().enumerate() {
            for &rank in island {
                for (piece, (start, length)) in self.shares.owned(number, rank) {
                    let from = sources(piece, number);
                    for block in 0..self.blocks {
                        for part in trips(start, length, block, self.blocks, THREADS) {
                            let (kernel, to) = (&self.request.kernel, to[rank as usize]);
                            pull_trip(builder, kernel, (rank, block), &from, to, part);
                        }
                    }
                }
            }
        }
    }

    /// Every rank reads all pieces from their owners in its island.
    fn gather(&self, builder: &mut Builder, from: &[BufferId], to: &[BufferId]) {
        for (number, island) in self.shares.islands.iter().enumerate() {
            for &rank in island {
                for block in 0..self.blocks {
                    let mut parts = Vec::new();
                    for &owner in island {
                        for (_, (start, length)) in self.shares.owned(number, owner) {
                            for part in trips(start, length, block, self.blocks, THREADS) {
                                builder.load(rank, block, from[owner as usize], part, Action::Set);
                                parts.push(part);
                            }
                        }
                    }
                    builder.push(rank, block, Op::WaitLoads);
                    for part in parts {
                        let (offset, bytes) = (part.offset, part.bytes);
                        let buffer = to[rank as usize];
                        builder.push(
                            rank,
                            block,
                            Op::Write { buffer, offset, bytes, data: offset },
                        );
                    }
                }
            }
        }
    }
}
