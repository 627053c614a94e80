//! All-to-all as NCCL does it, by grouped sends and receives: in round d a rank sends to the rank d
//! after it and receives from the one d before, all rounds at once on warps of their own
//! (`init.cc`, ncclP2pSchedule; `enqueue.cc`, addP2pToPlan; `device/sendrecv.h` of NCCL 2.30).

use super::p2p::P2p;
use super::primitives::{
    ConnectionId, LL_CHUNK, Nccl, Place, Primitive, SIMPLE_STEP, Slices, channels, chunks,
    joined_by_nvlink,
};
use super::{Algorithm, Implementation, Protocol, Request, Settled, Structure};
use crate::error::Result;
use crate::schedule::build::Part;
use crate::schedule::{Collective, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "all_to_all",
    title: "all-to-all",
    collective: Collective::AllToAll,
    structure: Structure::Flat,
    protocols: &[Protocol::Simple, Protocol::Ll],
    implementations: &[Implementation::Nccl],
    build,
};

/// Sends and receives that one thread block runs at a time, and its warps.
const WORKS_MAX: usize = 8;
const WARPS: u32 = 20;
/// Channels of a peer; over NVLink, for each NVLink of the bond.
const PEER_CHANNELS: u32 = 2;
/// Rate of one NVLink, by which NCCL counts a bond's, GB/s.
const NVLINK_GB_PER_S: f64 = 25.0;
/// Parts begin at multiples of this.
const PART_ALIGNMENT: u64 = 4096;
/// Bytes of a part up to which NCCL sends lines.
const LL_MAX: u64 = 16_384;

/// How sends and receives are shared out: as the caller says, or by NCCL's own limits.
fn sends(request: &Request<'_>) -> P2p {
    if let Some(Settled::Sends(p2p)) = request.settled {
        return p2p;
    }
    let channels = request.blocks.unwrap_or_else(|| channels(request)).max(1).next_power_of_two();
    let nvlinks = nvlinks(request);
    P2p {
        channels,
        channels_a_peer: (PEER_CHANNELS * nvlinks.max(1)).next_power_of_two().min(channels),
        chunk: if nvlinks > 0 { SIMPLE_STEP } else { SIMPLE_STEP / 4 },
        ll_step: 2 * LL_CHUNK,
        ll_max: LL_MAX,
        parts_follow_ll: false,
        ranks: request.ranks(),
    }
}

/// First byte and length of a part of a piece that is cut in `count`.
fn part(piece: u64, count: u32, index: u32) -> Part {
    let each = piece.div_ceil(u64::from(count)).next_multiple_of(PART_ALIGNMENT).min(piece);
    let from = (u64::from(index) * each).min(piece);
    Part { offset: from as u32, bytes: each.min(piece - from) as u32 }
}

/// NVLinks between the first two ranks.
fn nvlinks(request: &Request<'_>) -> u32 {
    let path = request.fabric.path(request.gpus[0], request.gpus[1]);
    let first = path.and_then(|path| path.first()).filter(|_| joined_by_nvlink(request));
    first.map_or(0, |&link| {
        let rate = request.fabric.links[link as usize].wire_rate().as_gb_per_s();
        ((rate / NVLINK_GB_PER_S).round() as u32).max(1)
    })
}

/// One send and one receive: a part of a round.
struct Work {
    round: u32,
    part: Part,
}

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let p2p = sends(request);
    let piece = request.bytes / u64::from(n);
    let mut works: Vec<Vec<Work>> = (0..p2p.channels).map(|_| Vec::new()).collect();
    for round in 0..n {
        let (count, _) = p2p.parts(piece, round == 0);
        for index in 0..count {
            let part = part(piece, count, index);
            if part.bytes > 0 {
                works[p2p.channel(round, index) as usize].push(Work { round, part });
            }
        }
    }
    works.retain(|works| !works.is_empty());
    // Each work of a batch has warps of its own, half of them to send and half to receive.
    let mut threads = Vec::new();
    for works in &works {
        let at_once = works.len().min(WORKS_MAX);
        let warps = (WARPS / at_once as u32 / 2).max(1);
        threads.extend(std::iter::repeat_n(32 * warps, 2 * at_once));
    }
    let name = ("all-to-all", Collective::AllToAll);
    let slices = Slices { step: p2p.chunk, count: 1, steps: 1 };
    let mut nccl = Nccl::new(request, name, works.len() as u32, &threads, slices);
    let chunk = if request.protocol == Protocol::Simple { p2p.chunk } else { LL_CHUNK };
    let mut first = 0;
    for works in &works {
        let at_once = works.len().min(WORKS_MAX);
        nccl.set_groups(first, 2 * at_once);
        for (index, work) in works.iter().enumerate() {
            let block = first + 2 * (index % at_once);
            add(&mut nccl, n, piece as u32, chunk, work, block);
        }
        first += 2 * at_once;
    }
    Ok(nccl.finish())
}

/// All ranks' sends and receives of one work, in two blocks from `block` on.
fn add(nccl: &mut Nccl<'_>, n: u32, piece: u32, chunk: u64, work: &Work, block: usize) {
    let largest = u64::from(work.part.bytes).min(chunk);
    let connections: Vec<Option<ConnectionId>> = (0..n)
        .map(|rank| (work.round > 0).then(|| nccl.connect(rank, (rank + work.round) % n, largest)))
        .collect();
    for rank in 0..n {
        let (to, from) = ((rank + work.round) % n, (rank + n - work.round) % n);
        for part in chunks(work.part.offset, work.part.bytes, chunk) {
            let own = Primitive {
                own: true,
                at: to * piece + part.offset,
                length: part.bytes,
                ..Primitive::default()
            };
            let sends = Place { rank, block };
            let Some(connection) = connections[rank as usize] else {
                nccl.run(sends, Primitive { copy: true, ..own });
                continue;
            };
            nccl.run(sends, Primitive { send: Some(connection), ..own });
            let received = Primitive {
                receive: connections[from as usize],
                copy: true,
                at: from * piece + part.offset,
                length: part.bytes,
                ..Primitive::default()
            };
            nccl.run(Place { rank, block: block + 1 }, received);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin_at_whole_pages_and_cover_the_piece() {
        // 3 parts of 43,008 bytes: 14,336 are 3.5 pages, so 16,384 each, and the last the rest.
        let parts = [0, 1, 2].map(|index| part(43_008, 3, index));
        let bytes = parts.map(|part| part.bytes);
        assert_eq!(bytes, [16_384, 16_384, 10_240]);
        assert_eq!(parts[2].offset, 32_768);
        assert_eq!(part(16, 2, 1).bytes, 0);
    }
}
