//! Tree all-reduce inside one node, where NCCL's trees are chains: sums travel to the root and results
//! back, chunk by chunk, in two groups of a block's threads at once (`device/all_reduce.h`,
//! runTreeSplit, of NCCL 2.30).

use super::primitives::{
    ConnectionId, LL_CHUNK, LL128_CHUNK, Nccl, Place, Primitive, SIMPLE_STEP, Slices, chunks,
    shares, split,
};
use super::{Algorithm, Implementation, Protocol, Request, Structure, nccl};
use crate::error::Result;
use crate::schedule::build::Part;
use crate::schedule::{Collective, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "chain",
    title: "tree (chain in a node)",
    collective: Collective::AllReduce,
    structure: Structure::Flat,
    protocols: &[Protocol::Ll, Protocol::Ll128, Protocol::Simple],
    implementations: &[Implementation::Nccl],
    build,
};

/// Threads of a tree kernel, at the root all of one group.
const THREADS: u32 = 640;

/// Threads that reduce and threads that broadcast: 70 % with lines, since a tree may receive from
/// three; about half with Simple.
fn groups(protocol: Protocol) -> [u32; 2] {
    match protocol {
        Protocol::Simple => [384, 256],
        _ => [448, 192],
    }
}

/// Data bytes of a chunk: NCCL halves it while a channel would have too few to keep all `hops` busy
/// (`enqueue.cc`, calcCollChunking).
fn chunk(protocol: Protocol, bytes_a_channel: u64, hops: u32) -> u64 {
    let hops = f64::from(hops);
    // Chunks that a channel should have, and the size below which it is not halved for that.
    let (mut chunk, wanted): (u64, &[(f64, u64)]) = match protocol {
        Protocol::Ll => return LL_CHUNK,
        Protocol::Ll128 => {
            let steps = 1.0 + 0.1 * (hops + 1.0);
            let each = steps / (hops + 1.0);
            (LL128_CHUNK, &[(64.0 * each, 131_072), (16.0 * each, 32_768)])
        }
        Protocol::Simple => {
            (SIMPLE_STEP, &[(8.0 * hops, 131_072), (4.0 * hops, 65_536), (hops, 32_768)])
        }
    };
    for &(count, least) in wanted {
        while ((bytes_a_channel / chunk) as f64) < count && chunk > least {
            chunk /= 2;
        }
    }
    chunk
}

fn build(request: &Request<'_>) -> Result<Schedule> {
    let collective = Collective::AllReduce;
    let shares = shares(&split(request, nccl::Algorithm::Tree, collective));
    let channels = shares.len() as u32;
    let [up, down] = groups(request.protocol);
    let mut threads = Vec::new();
    for _ in 0..channels {
        threads.extend([up, down]);
    }
    let mut kernel = Nccl::new(request, ("chain", collective), channels, &threads, Slices::SINGLE);
    let chunk = chunk(request.protocol, request.bytes / u64::from(channels), request.ranks() - 1);
    // Whole elements: 576,000 halved five times is no multiple of 16.
    let chunk = chunk / 16 * 16;
    for (channel, (start, length)) in (0..).zip(shares) {
        let largest = u64::from(length).min(chunk);
        let mut chain = Chain::connect(&mut kernel, request.order(channel), channel, largest);
        chunks(start, length, chunk).for_each(|part| chain.chunk(part));
    }
    Ok(kernel.finish())
}

/// One channel. The first of `order` is the root.
struct Chain<'r, 'a> {
    nccl: &'r mut Nccl<'a>,
    order: Vec<u32>,
    /// From position p + 1 to p, and from p to p + 1.
    up: Vec<ConnectionId>,
    down: Vec<ConnectionId>,
    /// The block that reduces; the next one broadcasts.
    block: usize,
}

impl<'r, 'a> Chain<'r, 'a> {
    fn connect(
        nccl: &'r mut Nccl<'a>,
        order: Vec<u32>,
        channel: u32,
        largest: u64,
    ) -> Chain<'r, 'a> {
        let block = 2 * channel as usize;
        nccl.set_groups(block, 2);
        nccl.set_threads(Place { rank: order[0], block }, THREADS);
        let (mut up, mut down) = (Vec::new(), Vec::new());
        for pair in order.windows(2) {
            up.push(nccl.connect(pair[1], pair[0], largest));
            down.push(nccl.connect(pair[0], pair[1], largest));
        }
        Chain { nccl, order, up, down, block }
    }

    fn chunk(&mut self, part: Part) {
        let last = self.order.len() - 1;
        let plain = Primitive { at: part.offset, length: part.bytes, ..Primitive::default() };
        for position in 0..=last {
            let rank = self.order[position];
            let (reduces, broadcasts) =
                (Place { rank, block: self.block }, Place { rank, block: self.block + 1 });
            let children = (position < last).then_some(position);
            let below = children.map(|child| self.up[child]);
            let above = children.map(|child| self.down[child]);
            if position == 0 {
                let turn =
                    Primitive { receive: below, own: true, send: above, copy: true, ..plain };
                self.nccl.run(reduces, turn);
                continue;
            }
            let up = Some(self.up[position - 1]);
            self.nccl.run(reduces, Primitive { receive: below, own: true, send: up, ..plain });
            let from = Some(self.down[position - 1]);
            let back = Primitive { receive: from, send: above, copy: true, ..plain };
            self.nccl.run(broadcasts, back);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_shrink_until_the_chain_is_full() {
        // 7 hops, Simple. 64 MiB: 128 chunks of 512 KiB are at least 8 x 7 = 56. 8 MiB: 16, 32 and at
        // 128 KiB 64 chunks. 512 KiB: 131,072 for 56 chunks, 65,536 for 28; then 8 chunks are 7.
        let sizes = [64 << 20, 8 << 20, 512 << 10].map(|bytes| chunk(Protocol::Simple, bytes, 7));
        assert_eq!(sizes, [524_288, 131_072, 65_536]);
        assert_eq!(chunk(Protocol::Ll, 1 << 20, 7), 32_768);
    }
}
