//! Ring collectives: data pass from rank to rank in one direction, channel by channel.
//!
//! All-reduce takes n-1 steps of receive, add, send, then n-1 of receive, copy, send. Reduce-scatter is
//! the first half of it, all-gather the second. Broadcast and reduce are a chain along the ring from
//! or to the root, in chunks one after another (`device/all_reduce.h`, `all_gather.h`,
//! `reduce_scatter.h`, `broadcast.h`, `reduce.h` of NCCL 2.30).

use super::primitives::{
    ConnectionId, Nccl, Place, Primitive, Slices, chunk_max, chunks, shares, split,
};
use super::{Algorithm, Implementation, Protocol, Request, Structure, nccl};
use crate::error::Result;
use crate::schedule::build::{Part, slice};
use crate::schedule::{Collective, Schedule};

/// NCCL leaves LL for Simple at about this many bytes a rank (measured/wrx90-7955wx-4xpm50100-flat,
/// measured/dual-turin-9575f-direct: between 256 KB and 1 MB for eight GPUs); the tuner
/// of 2.28 changes at 512 KB for eight ranks on PCIe.
pub const LL_BYTES_A_RANK: u64 = 64 << 10;

/// Ring all-reduce.
pub const ALL_REDUCE: Algorithm =
    algorithm(Collective::AllReduce, |request| build(request, Collective::AllReduce));
/// Ring all-gather.
pub const ALL_GATHER: Algorithm =
    algorithm(Collective::AllGather, |request| build(request, Collective::AllGather));
/// Ring reduce-scatter.
pub const REDUCE_SCATTER: Algorithm =
    algorithm(Collective::ReduceScatter, |request| build(request, Collective::ReduceScatter));
/// Broadcast from rank 0 along the ring.
pub const BROADCAST: Algorithm =
    algorithm(Collective::Broadcast, |request| build(request, Collective::Broadcast));
/// Reduce to rank 0 along the ring.
pub const REDUCE: Algorithm =
    algorithm(Collective::Reduce, |request| build(request, Collective::Reduce));

const fn algorithm(
    collective: Collective,
    build: fn(&Request<'_>) -> Result<Schedule>,
) -> Algorithm {
    Algorithm {
        name: "ring",
        title: "ring",
        collective,
        structure: Structure::Flat,
        protocols: &[Protocol::Ll, Protocol::Ll128, Protocol::Simple],
        // The probe has this one only.
        implementations: match collective {
            Collective::AllReduce => &[Implementation::Nccl, Implementation::Probe],
            _ => &[Implementation::Nccl],
        },
        build,
    }
}

fn build(request: &Request<'_>, collective: Collective) -> Result<Schedule> {
    let probe = request.kernel.is_probe();
    let n = request.ranks();
    let shared = if collective.in_pieces() { request.bytes / u64::from(n) } else { request.bytes };
    let (shares, threads) = if probe {
        let channels = request.blocks.unwrap_or(1);
        ((0..channels).map(|channel| slice(shared, channels, channel)).collect(), 512)
    } else {
        let split = split(request, nccl::Algorithm::Ring, collective);
        (shares(&split), split.launch().workers(split.algorithm, split.protocol))
    };
    let slices = match collective {
        Collective::Broadcast | Collective::Reduce => Slices::SINGLE,
        _ => Slices::PAIRS,
    };
    let chunk_max = match request.protocol {
        Protocol::Ll | Protocol::Ll128 if probe => u64::from(u32::MAX),
        protocol => chunk_max(protocol, slices),
    };
    let blocks = vec![threads; shares.len()];
    let mut kernel = Nccl::new(request, ("ring", collective), shares.len() as u32, &blocks, slices);
    for (channel, (start, length)) in (0..).zip(shares) {
        let largest = match collective {
            Collective::AllReduce => even_chunk(length, n).min(chunk_max),
            _ => u64::from(length).min(chunk_max),
        };
        let mut ring = Ring::connect(&mut kernel, request.order(channel), channel, largest);
        if collective == Collective::AllReduce {
            rounds(start, length, n, chunk_max).iter().for_each(|round| ring.all_reduce(round));
            continue;
        }
        for chunk in chunks(start, length, chunk_max) {
            match collective {
                Collective::AllGather => ring.all_gather(chunk, shared as u32),
                Collective::ReduceScatter => ring.reduce_scatter(chunk, shared as u32),
                Collective::Broadcast => ring.broadcast(chunk),
                _ => ring.reduce(chunk),
            }
        }
    }
    Ok(kernel.finish())
}

/// Part of a channel's data: where it starts, how long a chunk of it is, and how long it is.
#[derive(Copy, Clone, Debug)]
struct Round {
    start: u32,
    chunk: u32,
    length: u32,
}

impl Round {
    /// First byte and length of a chunk; late chunks may be short or empty.
    fn chunk(&self, index: u32) -> (u32, u32) {
        let from = (index * self.chunk).min(self.length);
        (self.start + from, self.chunk.min(self.length - from))
    }
}

/// A channel's data shared evenly by the ranks, in whole elements.
fn even_chunk(length: u32, ranks: u32) -> u64 {
    u64::from(length).div_ceil(u64::from(ranks)).div_ceil(16) * 16
}

/// NCCL's loops over a channel's data: chunks as large as a slot holds, the last loop's smaller.
fn rounds(start: u32, length: u32, ranks: u32, chunk_max: u64) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut at = 0;
    while at < length {
        let rest = length - at;
        let chunk = even_chunk(rest, ranks).min(chunk_max) as u32;
        let taken = u64::from(rest).min(u64::from(chunk) * u64::from(ranks)) as u32;
        rounds.push(Round { start: start + at, chunk, length: taken });
        at += taken;
    }
    rounds
}

/// One channel's ring. Ranks stand at positions along it; each receives from the position before.
struct Ring<'r, 'a> {
    nccl: &'r mut Nccl<'a>,
    order: Vec<u32>,
    /// From each position to the next.
    connections: Vec<ConnectionId>,
    block: usize,
}

impl<'r, 'a> Ring<'r, 'a> {
    fn connect(
        nccl: &'r mut Nccl<'a>,
        order: Vec<u32>,
        channel: u32,
        largest: u64,
    ) -> Ring<'r, 'a> {
        let next = order.iter().cycle().skip(1);
        let pairs: Vec<(u32, u32)> = order.iter().copied().zip(next.copied()).collect();
        let connections =
            pairs.into_iter().map(|(from, to)| nccl.connect(from, to, largest)).collect();
        Ring { nccl, order, connections, block: channel as usize }
    }

    fn ranks(&self) -> usize {
        self.order.len()
    }

    fn at(&self, position: usize) -> usize {
        position % self.ranks()
    }

    fn run(&mut self, position: usize, primitive: Primitive) {
        let rank = self.order[self.at(position)];
        self.nccl.run(Place { rank, block: self.block }, primitive);
    }

    /// What a position receives from and sends to.
    fn neighbours(&self, position: usize) -> (Option<ConnectionId>, Option<ConnectionId>) {
        let before = self.at(position + self.ranks() - 1);
        (Some(self.connections[before]), Some(self.connections[self.at(position)]))
    }

    fn all_reduce(&mut self, round: &Round) {
        let n = self.ranks();
        for position in 0..n {
            let (receive, send) = self.neighbours(position);
            for step in 0..2 * n - 1 {
                let (at, length) = round.chunk(self.at(position + 2 * n - 1 - step) as u32);
                let primitive = Primitive {
                    receive: receive.filter(|_| step > 0),
                    own: step < n,
                    send: send.filter(|_| step < 2 * n - 2),
                    copy: step + 1 >= n,
                    at,
                    length,
                    ..Primitive::default()
                };
                self.run(position, primitive);
            }
        }
    }

    /// `chunk` lies within each rank's piece of `piece` bytes.
    fn all_gather(&mut self, chunk: Part, piece: u32) {
        let n = self.ranks();
        for position in 0..n {
            let (receive, send) = self.neighbours(position);
            for step in 0..n {
                let of = self.order[self.at(position + n - step)];
                let primitive = Primitive {
                    receive: receive.filter(|_| step > 0),
                    own: step == 0,
                    send: send.filter(|_| step + 1 < n),
                    copy: true,
                    at: of * piece + chunk.offset,
                    length: chunk.bytes,
                    ..Primitive::default()
                };
                self.run(position, primitive);
            }
        }
    }

    /// `chunk` lies within each rank's piece of `piece` bytes.
    fn reduce_scatter(&mut self, chunk: Part, piece: u32) {
        let n = self.ranks();
        for position in 0..n {
            let (receive, send) = self.neighbours(position);
            for step in 0..n {
                let of = self.order[self.at(position + 2 * n - 1 - step)];
                let primitive = Primitive {
                    receive: receive.filter(|_| step > 0),
                    own: true,
                    send: send.filter(|_| step + 1 < n),
                    copy: step + 1 == n,
                    at: of * piece + chunk.offset,
                    length: chunk.bytes,
                    ..Primitive::default()
                };
                self.run(position, primitive);
            }
        }
    }

    /// The position of the root, rank 0.
    fn root(&self) -> usize {
        self.order.iter().position(|&rank| rank == 0).unwrap_or(0)
    }

    fn broadcast(&mut self, chunk: Part) {
        let n = self.ranks();
        for hop in 0..n {
            let position = self.root() + hop;
            let (receive, send) = self.neighbours(position);
            let primitive = Primitive {
                receive: receive.filter(|_| hop > 0),
                own: hop == 0,
                send: send.filter(|_| hop + 1 < n),
                copy: true,
                at: chunk.offset,
                length: chunk.bytes,
                ..Primitive::default()
            };
            self.run(position, primitive);
        }
    }

    fn reduce(&mut self, chunk: Part) {
        let n = self.ranks();
        for hop in 0..n {
            let position = self.root() + 1 + hop;
            let (receive, send) = self.neighbours(position);
            let primitive = Primitive {
                receive: receive.filter(|_| hop > 0),
                own: true,
                send: send.filter(|_| hop + 1 < n),
                copy: hop + 1 == n,
                at: chunk.offset,
                length: chunk.bytes,
                ..Primitive::default()
            };
            self.run(position, primitive);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_round_is_shared_evenly() {
        // 14,336 bytes over 8 ranks: one round of 1,792-byte chunks.
        let found = rounds(0, 14_336, 8, 32_768);
        assert_eq!((found.len(), found[0].chunk), (1, 1792));
    }
}
