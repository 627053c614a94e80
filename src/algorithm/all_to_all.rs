//! All-to-all as NCCL does it, by grouped sends and receives: in round d a rank sends to the rank d
//! after it and receives from the one d before, all rounds at once on warps of their own
//! (`init.cc`, ncclP2pSchedule; `enqueue.cc`, addP2pToPlan; `device/sendrecv.h` of NCCL 2.30).

use super::primitives::{
    ConnectionId, LL_CHUNK, Nccl, Place, Primitive, Slices, channels, chunks, joined_by_nvlink,
};
use super::{Algorithm, Implementation, Protocol, Request};
use crate::error::Result;
use crate::schedule::build::Part;
use crate::schedule::{Collective, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "all_to_all",
    title: "all-to-all",
    collective: Collective::AllToAll,
    protocols: &[Protocol::Simple, Protocol::Ll],
    implementations: &[Implementation::Nccl],
    build,
};

/// Bytes to a peer up to which NCCL sends lines, for each of the peer's channels.
pub const LL_BYTES_A_CHANNEL: u64 = 16_384;

/// Sends and receives that one thread block runs at a time, and its warps.
const WORKS_MAX: usize = 8;
const WARPS: u32 = 20;
/// Channels of a peer; over NVLink, for each NVLink of the bond.
const PEER_CHANNELS: u32 = 2;
/// Rate of one NVLink, by which NCCL counts a bond's, GB/s.
const NVLINK_GB_PER_S: f64 = 25.0;
/// Parts begin at multiples of this.
const PART_ALIGNMENT: u64 = 4096;
/// A part of more steps than this is halved, while there are channels.
const PART_STEPS_MAX: u64 = 32;

/// How a piece for one peer is cut.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Parts {
    /// Bytes of a step of the buffer.
    step: u64,
    /// Bytes of a part, all but the last.
    each: u64,
    /// How many.
    count: u32,
}

impl Parts {
    /// `nvlinks` join each pair of ranks: none on PCIe.
    fn of(piece: u64, ranks: u32, channels: u32, nvlinks: u32) -> Parts {
        let step: u64 = if nvlinks > 0 { 512 << 10 } else { 128 << 10 };
        let most = (PEER_CHANNELS * nvlinks.max(1)).next_power_of_two().min(channels);
        let mut few = most;
        while few > 1 && few * ranks > channels {
            few /= 2;
        }
        let mut count = few.min(piece.div_ceil(step / 8).max(1) as u32);
        let each = |count: u32| {
            piece.div_ceil(u64::from(count)).next_multiple_of(PART_ALIGNMENT).min(piece)
        };
        while count * 2 <= most && each(count) > PART_STEPS_MAX * step {
            count *= 2;
        }
        let each = each(count);
        Parts { step, each, count: piece.div_ceil(each) as u32 }
    }

    /// First byte and length of a part.
    fn part(self, piece: u64, index: u32) -> Part {
        let from = (u64::from(index) * self.each).min(piece);
        Part { offset: from as u32, bytes: self.each.min(piece - from) as u32 }
    }
}

/// The channel of a part: rounds begin at the reversed bits of their number, and parts follow.
fn channel_of(round: u32, part: u32, channels: u32) -> u32 {
    // Rounds beyond the channels begin again.
    let bits = channels.trailing_zeros();
    let base = (round % channels).reverse_bits().checked_shr(32 - bits).unwrap_or(0);
    (base + part) % channels
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
    let channels = request.blocks.unwrap_or_else(|| channels(request)).max(1).next_power_of_two();
    let piece = request.bytes / u64::from(n);
    let parts = Parts::of(piece, n, channels, nvlinks(request));
    let mut works: Vec<Vec<Work>> = (0..channels).map(|_| Vec::new()).collect();
    for round in 0..n {
        for index in 0..parts.count {
            let channel = channel_of(round, index, channels) as usize;
            works[channel].push(Work { round, part: parts.part(piece, index) });
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
    let slices = Slices { step: parts.step, count: 1, steps: 1 };
    let mut nccl = Nccl::new(request, name, works.len() as u32, &threads, slices);
    let chunk = if request.protocol == Protocol::Simple { parts.step } else { LL_CHUNK };
    let mut first = 0;
    for works in &works {
        let at_once = works.len().min(WORKS_MAX);
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
    fn rounds_begin_at_the_reversed_bits_of_their_number() {
        // 8 channels: 0 4 2 6 1 5 3 7.
        let bases: Vec<u32> = (0..8).map(|round| channel_of(round, 0, 8)).collect();
        assert_eq!(bases, [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!((channel_of(9, 0, 8), channel_of(7, 1, 8), channel_of(3, 0, 1)), (4, 0, 0));
    }

    #[test]
    fn large_pieces_take_more_channels() {
        // PCIe, 8 ranks on 16 channels: a piece of 16 KiB (an eighth of a step) is one part, a larger
        // one two; on 4 channels one part up to 32 steps of 128 KiB, 4 MiB, and two beyond.
        let count = |piece, channels| Parts::of(piece, 8, channels, 0).count;
        assert_eq!((count(16 << 10, 16), count((16 << 10) + 16, 16)), (1, 2));
        assert_eq!((count(4 << 20, 4), count((4 << 20) + 16, 4)), (1, 2));
    }
}
