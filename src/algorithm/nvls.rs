//! NCCL's NVLS all-reduce in one node (Simple protocol only): in each channel some warps copy own
//! data into a buffer that the switch can address, some load the sum of this rank's chunk over all
//! members and store it to all of them, and some copy what arrives to the output. The three run at
//! once, loop after loop.
//!
//! The reducing warps wait until every member's chunk is in place. NCCL polls the least of all
//! members' counters through the switch; here every member stores a flag at the one that reduces,
//! which takes one way instead of a round trip and carries as few bytes.

use super::{Algorithm, Implementation, Protocol, Request};
use crate::error::Result;
use crate::schedule::build::{Builder, Part, slice, trips};
use crate::schedule::{Action, Block, BufferId, Collective, Executor, GroupId, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "nvls",
    title: "NVLS",
    collective: Collective::AllReduce,
    protocols: &[Protocol::Simple],
    implementations: &[Implementation::Nccl],
    build,
};

/// Largest chunk of one rank in one loop (NCCL's default, `NCCL_NVLS_CHUNKSIZE`).
const CHUNK_MAX: u64 = 128 << 10;
/// NCCL halves the chunk while a call has fewer chunks than this for all channels and ranks
/// (`enqueue.cc`, as of 2.30).
const CHUNK_STEPS: [(u64, u64); 3] = [(64, 64 << 10), (8, 32 << 10), (2, 16 << 10)];
/// Trips whose accesses a thread has under way at a time.
const UNROLL: usize = 4;
/// Warps that copy in, reduce and copy out: for up to six ranks, and for more.
const WARPS_FEW: [u32; 3] = [7, 7, 6];
const WARPS_MANY: [u32; 3] = [8, 5, 7];
/// NCCL's scheduler gives a channel no less than this.
const CHANNEL_BYTES_MIN: u64 = 16 << 10;

/// Bytes that one rank reduces in one loop of one channel.
fn chunk_bytes(bytes: u64, ranks: u32, channels: u32) -> u32 {
    let places = u64::from(ranks) * u64::from(channels);
    let mut chunk = CHUNK_MAX;
    for (times, smaller) in CHUNK_STEPS {
        if bytes < times * places * chunk && chunk > smaller {
            chunk = smaller;
        }
    }
    chunk as u32
}

struct Nvls<'a> {
    request: &'a Request<'a>,
    group: GroupId,
    /// Own data; copies of them; results as they arrive; the output.
    inputs: Vec<BufferId>,
    staged: Vec<BufferId>,
    arrived: Vec<BufferId>,
    outputs: Vec<BufferId>,
    threads: [u32; 3],
}

fn build(request: &Request<'_>) -> Result<Schedule> {
    request.fabric.multicast(&request.gpus)?;
    let n = request.ranks();
    let fewest = request.bytes.div_ceil(CHANNEL_BYTES_MIN).max(1) as u32;
    let channels = request.blocks.unwrap_or_else(|| request.kernel.nvls_channels.min(fewest));
    let warps = if n <= 6 { WARPS_FEW } else { WARPS_MANY };
    let threads = warps.map(|warps| 32 * warps);
    let mut builder = Builder::new("NVLS", &request.gpus, 0, 32);
    for rank in 0..n {
        for _ in 0..channels {
            for threads in threads {
                let executor = Executor::Sm;
                builder.add_block(
                    rank,
                    Block { executor, threads, background: false, ops: Vec::new() },
                );
            }
        }
    }
    let all: Vec<u32> = (0..request.ranks()).collect();
    let group = builder.multicast_group(&all);
    let mut buffers =
        |role| builder.buffers(role, request.bytes, |rank| request.gpus[rank as usize]);
    let nvls = Nvls {
        request,
        group,
        inputs: buffers(Role::Input),
        staged: buffers(Role::Scratch),
        arrived: buffers(Role::Scratch),
        outputs: buffers(Role::Output),
        threads,
    };
    if let Some(start) = request.kernel.start_op(channels as usize) {
        builder.push_all(start);
    }
    let together = threads.iter().sum();
    let start = request.kernel.protocol_start(Protocol::Simple, together, false);
    builder.push_all(Op::Delay(start));
    let chunk = chunk_bytes(request.bytes, n, channels);
    for channel in 0..channels {
        let (mut start, mut left) = slice(request.bytes, channels, channel);
        while left > 0 {
            let length = left.min(chunk * n);
            nvls.one_loop(&mut builder, channel as usize, start, length);
            start += length;
            left -= length;
        }
    }
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}

impl Nvls<'_> {
    /// One loop of a channel over `length` bytes from `start`.
    fn one_loop(&self, builder: &mut Builder, channel: usize, start: u32, length: u32) {
        let n = self.request.ranks();
        let home = |rank: u32| self.request.gpus[rank as usize];
        let ranks: Vec<u32> = (0..n).collect();
        let (staged, reduced) =
            (builder.barrier_flags(&ranks, home), builder.barrier_flags(&ranks, home));
        let [scatter, reduce, gather] = [0, 1, 2].map(|role| 3 * channel + role);
        for rank in 0..n {
            let all = self.parts(0, start, length);
            let copy = |builder: &mut Builder, block, from, to, parts: &[Part]| {
                for group in parts.chunks(UNROLL) {
                    for &part in group {
                        builder.load(rank, block, from, part, Action::Set);
                    }
                    builder.push(rank, block, Op::WaitLoads);
                    for &part in group {
                        builder.write(rank, block, to, part);
                    }
                }
            };
            let at = rank as usize;
            copy(builder, scatter, self.inputs[at], self.staged[at], &all);
            self.post(
                builder,
                rank,
                scatter,
                Op::SignalPeers { base: staged, index: rank, count: n },
            );
            self.wait(builder, rank, reduce, staged);
            let (own, own_length) = slice(u64::from(length), n, rank);
            for parts in self.parts(1, start + own, own_length).chunks(UNROLL) {
                self.reduce(builder, rank, reduce, parts);
            }
            let base = reduced + rank * n;
            self.post(builder, rank, reduce, Op::FlagAll { group: self.group, base });
            self.wait(builder, rank, gather, reduced);
            let all = self.parts(2, start, length);
            copy(builder, gather, self.arrived[at], self.outputs[at], &all);
        }
    }

    fn parts(&self, role: usize, start: u32, length: u32) -> Vec<Part> {
        trips(start, length, 0, 1, self.threads[role]).collect()
    }

    /// Sums of a few trips, stored to all.
    fn reduce(&self, builder: &mut Builder, rank: u32, block: usize, parts: &[Part]) {
        let group = self.group;
        for &part in parts {
            builder.load_reduce((rank, block), group, self.staged[0], part);
        }
        builder.push(rank, block, Op::WaitLoads);
        for &Part { offset, bytes } in parts {
            let base = self.arrived[0];
            builder.push(rank, block, Op::WriteAll { group, base, offset, bytes });
        }
    }

    /// What was stored is announced.
    fn post(&self, builder: &mut Builder, rank: u32, block: usize, signal: Op) {
        builder.push(rank, block, Op::BlockBarrier);
        builder.push(rank, block, Op::Fence);
        builder.push(rank, block, signal);
    }

    /// All ranks' announcements are waited for.
    fn wait(&self, builder: &mut Builder, rank: u32, block: usize, base: u32) {
        builder.push(
            rank,
            block,
            Op::PollPeers { base, index: rank, count: self.request.ranks(), acquire: false },
        );
        builder.push(rank, block, Op::BlockBarrier);
        builder.push(rank, block, Op::Delay(self.request.kernel.slice));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_shrink_with_the_call() {
        // 8 ranks and 16 channels are 128 places: 128 KiB from 64 x 128 x 128 KiB = 1 GiB on, 64 KiB
        // from 8 x 128 x 64 KiB = 64 MiB on, 32 KiB from 2 x 128 x 32 KiB = 8 MiB on.
        for (mib, kib) in [(1024, 128), (1023, 64), (64, 64), (63, 32), (8, 32), (7, 16), (1, 16)] {
            assert_eq!(chunk_bytes(mib << 20, 8, 16), kib << 10, "{mib} MiB");
        }
    }
}
