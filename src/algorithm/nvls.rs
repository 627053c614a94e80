//! NCCL's NVLS in one node (Simple protocol only), for the collectives that NCCL does so. In an
//! all-reduce some warps of each channel copy own data into a buffer that the switch can address, some
//! load the sum of this rank's chunk over all members and store it to all of them, and some copy what
//! arrives to the output. All run at once, loop after loop. Reduce-scatter is the first two of these,
//! with the sum stored to the own output; all-gather is the last two, with own data in place of the sum.
//!
//! The reducing warps wait until every member's chunk is in place. NCCL polls the least of all
//! members' counters through the switch; here every member stores a flag at the one that reduces,
//! which takes one way instead of a round trip and carries as few bytes.

use super::{Algorithm, Implementation, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, Part, slice, trips};
use crate::schedule::{Action, Block, BufferId, Collective, Executor, GroupId, Op, Role, Schedule};

/// NVLS all-reduce.
pub const ALL_REDUCE: Algorithm =
    algorithm(Collective::AllReduce, |request| build(request, Collective::AllReduce));
/// NVLS all-gather.
pub const ALL_GATHER: Algorithm =
    algorithm(Collective::AllGather, |request| build(request, Collective::AllGather));
/// NVLS reduce-scatter.
pub const REDUCE_SCATTER: Algorithm =
    algorithm(Collective::ReduceScatter, |request| build(request, Collective::ReduceScatter));

const fn algorithm(
    collective: Collective,
    build: fn(&Request<'_>) -> Result<Schedule>,
) -> Algorithm {
    Algorithm {
        name: "nvls",
        title: "NVLS",
        collective,
        structure: Structure::InSwitch,
        protocols: &[Protocol::Simple],
        implementations: &[Implementation::Nccl],
        build,
    }
}

/// Largest chunk of one rank in one loop (NCCL's default, `NCCL_NVLS_CHUNKSIZE`).
const CHUNK_MAX: u64 = 128 << 10;
/// NCCL halves the chunk while a call has fewer chunks than this for all channels and ranks
/// (`enqueue.cc`, as of 2.30).
const CHUNK_STEPS: [(u64, u64); 3] = [(64, 64 << 10), (8, 32 << 10), (2, 16 << 10)];
/// Trips whose accesses a thread has under way at a time.
const UNROLL: usize = 4;
/// Warps of an all-reduce that copy in, reduce and copy out: for up to six ranks, and for more.
const WARPS_FEW: [u32; 3] = [7, 7, 6];
const WARPS_MANY: [u32; 3] = [8, 5, 7];
/// Warps that only copy to or from the own GPU, and those that use the switch, of the 20 of the other two
/// collectives (`device/all_gather.h`, `reduce_scatter.h`).
const WARPS_COPY: u32 = 8;
const WARPS_SWITCH: u32 = 12;
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

/// Warps of each role of a channel; none where the collective has no such role.
fn warps(collective: Collective, ranks: u32) -> [u32; 3] {
    match collective {
        Collective::AllGather => [0, WARPS_SWITCH, WARPS_COPY],
        Collective::ReduceScatter => [WARPS_COPY, WARPS_SWITCH, 0],
        _ if ranks <= 6 => WARPS_FEW,
        _ => WARPS_MANY,
    }
}

/// A range of the call's data: first byte and length.
type Range = (u32, u32);

/// A loop of a channel: the ranges that all ranks' chunks make up, and each rank's chunk.
struct Round {
    all: Vec<Range>,
    own: Vec<Range>,
}

/// The loops of a channel.
fn rounds(
    request: &Request<'_>,
    collective: Collective,
    channels: u32,
    channel: u32,
) -> Vec<Round> {
    let n = request.ranks();
    let chunk = chunk_bytes(request.bytes, n, channels);
    let piece = (request.bytes / u64::from(n)) as u32;
    let (shared, taken) = match collective {
        Collective::AllReduce => (request.bytes, chunk * n),
        _ => (u64::from(piece), chunk),
    };
    let (mut start, mut left) = slice(shared, channels, channel);
    let mut rounds = Vec::new();
    while left > 0 {
        let length = left.min(taken);
        rounds.push(match collective {
            Collective::AllReduce => {
                let own = |rank| slice(u64::from(length), n, rank);
                let own = (0..n).map(own).map(|(at, bytes)| (start + at, bytes)).collect();
                Round { all: vec![(start, length)], own }
            }
            _ => {
                let own: Vec<Range> = (0..n).map(|rank| (rank * piece + start, length)).collect();
                Round { all: own.clone(), own }
            }
        });
        start += length;
        left -= length;
    }
    rounds
}

struct Nvls<'a> {
    request: &'a Request<'a>,
    collective: Collective,
    group: GroupId,
    /// Own data; copies of them; results as they arrive; the output.
    inputs: Vec<BufferId>,
    staged: Vec<BufferId>,
    arrived: Vec<BufferId>,
    outputs: Vec<BufferId>,
    threads: [u32; 3],
}

fn build(request: &Request<'_>, collective: Collective) -> Result<Schedule> {
    request.fabric.multicast(&request.gpus)?;
    let n = request.ranks();
    let fewest = request.bytes.div_ceil(CHANNEL_BYTES_MIN).max(1) as u32;
    let channels = request.blocks.unwrap_or_else(|| request.kernel.nvls_channels.min(fewest));
    let threads = warps(collective, n).map(|warps| 32 * warps);
    let mut builder = Builder::new("NVLS", &request.gpus, 0, 32);
    let roles: Vec<u32> = threads.into_iter().filter(|&threads| threads > 0).collect();
    for rank in 0..n {
        for channel in 0..channels {
            let first = channel * roles.len() as u32;
            for (role, &threads) in roles.iter().enumerate() {
                let (executor, beside) = (Executor::Sm, (role > 0).then_some(first));
                let block = Block { executor, threads, beside, background: false, ops: vec![] };
                builder.add_block(rank, block);
            }
        }
    }
    let all: Vec<u32> = (0..request.ranks()).collect();
    let group = builder.multicast_group(&all);
    let mut buffers =
        |role| builder.buffers(role, request.bytes, |rank| request.gpus[rank as usize]);
    let nvls = Nvls {
        request,
        collective,
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
    for channel in 0..channels {
        for round in rounds(request, collective, channels, channel) {
            nvls.one_loop(&mut builder, channel as usize, &round);
        }
    }
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(collective)))
}

impl Nvls<'_> {
    /// The blocks of a channel that copy in, use the switch, and copy out.
    fn blocks(&self, channel: usize) -> [usize; 3] {
        let roles = self.threads.iter().filter(|&&threads| threads > 0).count();
        let first = roles * channel;
        let copies_in = usize::from(self.threads[0] > 0);
        [first, first + copies_in, first + copies_in + 1]
    }

    /// One loop of a channel.
    fn one_loop(&self, builder: &mut Builder, channel: usize, round: &Round) {
        let n = self.request.ranks();
        let home = |rank: u32| self.request.gpus[rank as usize];
        let ranks: Vec<u32> = (0..n).collect();
        let staged = (self.threads[0] > 0).then(|| builder.barrier_flags(&ranks, home));
        let shared = (self.threads[2] > 0).then(|| builder.barrier_flags(&ranks, home));
        let [copy_in, switch, copy_out] = self.blocks(channel);
        for rank in 0..n {
            let at = rank as usize;
            if let Some(staged) = staged {
                let parts = self.parts(0, &round.all);
                copy(builder, (rank, copy_in), (self.inputs[at], self.staged[at]), &parts);
                let signal = Op::SignalPeers { base: staged, index: rank, count: n };
                post(builder, rank, copy_in, signal);
                self.wait(builder, rank, switch, staged);
            }
            for parts in self.parts(1, &round.own[at..=at]).chunks(UNROLL) {
                self.through_switch(builder, rank, switch, parts);
            }
            if let Some(shared) = shared {
                let base = shared + rank * n;
                post(builder, rank, switch, Op::FlagAll { group: self.group, base });
                self.wait(builder, rank, copy_out, shared);
                let parts = self.parts(2, &round.all);
                copy(builder, (rank, copy_out), (self.arrived[at], self.outputs[at]), &parts);
            }
        }
    }

    fn parts(&self, role: usize, ranges: &[Range]) -> Vec<Part> {
        let of = |&(start, length): &Range| trips(start, length, 0, 1, self.threads[role]);
        ranges.iter().flat_map(of).collect()
    }

    /// A few trips of the own chunk: summed over all or loaded, and stored to all or kept.
    fn through_switch(&self, builder: &mut Builder, rank: u32, block: usize, parts: &[Part]) {
        let group = self.group;
        for &part in parts {
            match self.collective {
                Collective::AllGather => {
                    builder.load(rank, block, self.inputs[rank as usize], part, Action::Set);
                }
                _ => builder.load_reduce((rank, block), group, self.staged[0], part),
            }
        }
        builder.push(rank, block, Op::WaitLoads);
        for &part in parts {
            if self.collective == Collective::ReduceScatter {
                builder.write(rank, block, self.outputs[rank as usize], part);
                continue;
            }
            let (base, Part { offset, bytes }) = (self.arrived[0], part);
            builder.push(rank, block, Op::WriteAll { group, base, offset, bytes });
        }
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

/// A few trips at a time from one buffer of the own GPU to another.
fn copy(
    builder: &mut Builder,
    (rank, block): (u32, usize),
    (from, to): (BufferId, BufferId),
    parts: &[Part],
) {
    for group in parts.chunks(UNROLL) {
        for &part in group {
            builder.load(rank, block, from, part, Action::Set);
        }
        builder.push(rank, block, Op::WaitLoads);
        for &part in group {
            builder.write(rank, block, to, part);
        }
    }
}

/// What was stored is announced.
fn post(builder: &mut Builder, rank: u32, block: usize, signal: Op) {
    builder.push(rank, block, Op::BlockBarrier);
    builder.push(rank, block, Op::Fence);
    builder.push(rank, block, signal);
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
