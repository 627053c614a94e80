//! What NCCL's host code settles before a kernel starts: the names of its collectives and
//! algorithms, and how a call is split over channels and threads (`enqueue.cc`, as of 2.29).

use serde::Serialize;

use super::Protocol;
use crate::workload;

/// Collectives that NCCL prices, in its order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Collective {
    /// From one rank to all.
    Broadcast,
    /// The sum, at one rank.
    Reduce,
    /// Every rank ends with what all gave.
    AllGather,
    /// Every rank ends with its part of the sum.
    ReduceScatter,
    /// Every rank ends with the sum.
    AllReduce,
}

impl Collective {
    /// All, with the words of logs, of `NCCL_ALGO` and of tuner files (there in lower case).
    pub const ALL: [(Collective, &'static str); 5] = [
        (Collective::Broadcast, "Broadcast"),
        (Collective::Reduce, "Reduce"),
        (Collective::AllGather, "AllGather"),
        (Collective::ReduceScatter, "ReduceScatter"),
        (Collective::AllReduce, "AllReduce"),
    ];

    /// NCCL's own collective for a call; all-to-all is sends and receives.
    pub fn of(kind: workload::Collective) -> Option<Collective> {
        match kind {
            workload::Collective::AllReduce => Some(Collective::AllReduce),
            workload::Collective::AllGather => Some(Collective::AllGather),
            workload::Collective::ReduceScatter => Some(Collective::ReduceScatter),
            workload::Collective::Broadcast => Some(Collective::Broadcast),
            workload::Collective::Reduce => Some(Collective::Reduce),
            workload::Collective::AllToAll => None,
        }
    }

    /// NCCL's word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// The collective of this name, in any case.
    pub fn from_name(name: &str) -> Option<Collective> {
        Self::ALL.iter().find(|entry| entry.1.eq_ignore_ascii_case(name)).map(|entry| entry.0)
    }

    /// Bytes on a rank's link for each byte of [`Collective::shared_bytes`], as the scheduler
    /// counts them.
    fn traffic(self, ranks: u32) -> u64 {
        match self {
            Collective::AllReduce => 2,
            Collective::AllGather | Collective::ReduceScatter => u64::from(ranks),
            Collective::Broadcast | Collective::Reduce => 1,
        }
    }

    /// The bytes that channels share out between them: one rank's block where blocks are gathered
    /// or scattered, the whole buffer otherwise. `bytes` is the size as nccl-tests counts it.
    pub fn shared_bytes(self, bytes: u64, ranks: u32) -> u64 {
        match self {
            Collective::AllGather | Collective::ReduceScatter => bytes / u64::from(ranks),
            _ => bytes,
        }
    }
}

/// NCCL's algorithms, in its order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// A chain inside a machine, two binary trees across.
    Tree,
    /// A ring.
    Ring,
    /// In the network's switches, all GPUs to their own NIC.
    CollnetDirect,
    /// In the network's switches, one GPU a rail.
    CollnetChain,
    /// In the NVSwitch.
    Nvls,
    /// NVLS inside, a tree across.
    NvlsTree,
    /// Logarithmic all-gather and reduce-scatter, one GPU a machine.
    Pat,
}

impl Algorithm {
    /// All, with the words of logs and `NCCL_ALGO`, and those of tuner files.
    pub const ALL: [(Algorithm, &'static str, &'static str); 7] = [
        (Algorithm::Tree, "Tree", "tree"),
        (Algorithm::Ring, "Ring", "ring"),
        (Algorithm::CollnetDirect, "CollNetDirect", "collnet_direct"),
        (Algorithm::CollnetChain, "CollNetChain", "collnet_chain"),
        (Algorithm::Nvls, "NVLS", "nvls"),
        (Algorithm::NvlsTree, "NVLSTree", "nvls_tree"),
        (Algorithm::Pat, "PAT", "pat"),
    ];

    /// NCCL's word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// The algorithm of this name, in any case.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Self::ALL.iter().find(|entry| entry.1.eq_ignore_ascii_case(name)).map(|entry| entry.0)
    }

    /// Runs in the NVSwitch, on channels of its own.
    pub fn is_nvls(self) -> bool {
        matches!(self, Algorithm::Nvls | Algorithm::NvlsTree)
    }

    /// Runs in the network's switches.
    pub fn is_collnet(self) -> bool {
        matches!(self, Algorithm::CollnetDirect | Algorithm::CollnetChain)
    }
}

/// Most channels of a communicator.
pub const CHANNELS_MAX: u32 = 64;
/// Most threads of a block.
pub const THREADS_MAX: u32 = 640;
/// Fewest threads with which a kernel starts; those that have no work leave at once.
pub const BLOCK_THREADS_MIN: u32 = 128;
/// Threads of a warp.
pub const WARP: u32 = 32;
/// Fewest threads that work.
const WORKERS_MIN: u32 = 96;
/// The scheduler gives a channel no less traffic than this (2.29; half of it before).
const CHANNEL_TRAFFIC_MIN: u64 = 32 << 10;

/// A call before it is split.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// What it computes.
    pub collective: Collective,
    /// By which algorithm.
    pub algorithm: Algorithm,
    /// In which protocol.
    pub protocol: Protocol,
    /// Size as nccl-tests counts it.
    pub bytes: u64,
    /// Ranks of the communicator.
    pub ranks: u32,
    /// Channels of the communicator; those of NVLS for NVLS.
    pub channels: u32,
    /// Most threads of a channel, without those that only synchronise.
    pub threads_max: u32,
    /// Bytes for which a thread is worth having.
    pub threshold: u64,
    /// Least traffic of a channel, bytes.
    pub channel_traffic_min: u64,
}

/// Channels and threads of a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Launch {
    /// Most channels that the tuner allows; the scheduler may use fewer ([`Split::shares`]).
    pub channels: u32,
    /// Threads that work in each, those that synchronise included.
    pub threads: u32,
}

impl Launch {
    /// Threads that move data, without the warp that only synchronises.
    pub fn workers(&self, algorithm: Algorithm, protocol: Protocol) -> u32 {
        let synchronises = protocol == Protocol::Simple && algorithm == Algorithm::Ring;
        self.threads - if synchronises { WARP } else { 0 }
    }

    /// Threads of a block as a profiler shows them.
    pub fn block_threads(&self) -> u32 {
        self.threads.max(BLOCK_THREADS_MIN)
    }
}

impl Split {
    /// A call with the limits that NCCL sets itself.
    pub fn new(
        collective: Collective,
        algorithm: Algorithm,
        protocol: Protocol,
        bytes: u64,
        ranks: u32,
        channels: u32,
    ) -> Split {
        let threads_max = threads_max(algorithm, protocol);
        let threshold = threshold(algorithm, protocol, ranks);
        Split {
            collective,
            algorithm,
            protocol,
            bytes,
            ranks,
            channels,
            threads_max,
            threshold,
            channel_traffic_min: CHANNEL_TRAFFIC_MIN,
        }
    }

    /// Takes channels, then threads, away while each thread would have less than its threshold.
    pub fn launch(&self) -> Launch {
        let (mut channels, mut threads) = (self.channels.max(1), self.threads_max);
        let small = |channels: u32, threads: u32| {
            self.bytes < u64::from(channels) * u64::from(threads) * self.threshold
        };
        // NVLS keeps all its channels and threads.
        let reduced = !self.algorithm.is_nvls() && self.algorithm != Algorithm::CollnetDirect;
        while reduced && channels >= 2 && small(channels, threads) {
            channels -= 1;
        }
        while reduced && threads.is_multiple_of(128) && small(channels, threads) {
            threads /= 2;
        }
        if self.protocol == Protocol::Simple && self.algorithm == Algorithm::Ring {
            threads += WARP; // one more warp waits and posts
        }
        threads = match self.algorithm {
            Algorithm::Tree | Algorithm::Pat => THREADS_MAX,
            _ => threads.max(WORKERS_MIN),
        };
        Launch { channels, threads }
    }

    /// What each channel in use has of [`Collective::shared_bytes`]: first byte and length. The
    /// scheduler deals whole cells, each as large as the least traffic of a channel (LL counts
    /// fourfold), so that small calls use fewer channels than [`Split::launch`] allows.
    pub fn shares(&self) -> Vec<(u64, u64)> {
        let bytes = self.collective.shared_bytes(self.bytes, self.ranks).max(1);
        let lines = if self.protocol == Protocol::Ll { 4 } else { 1 };
        let traffic = self.collective.traffic(self.ranks) * lines;
        let cell = self.channel_traffic_min.div_ceil(traffic).div_ceil(16) * 16;
        let cells = bytes.div_ceil(cell);
        let total = (bytes * traffic).max(self.channel_traffic_min);
        let each = (total / u64::from(self.launch().channels)).div_ceil(16) * 16;
        let dealt = each.div_ceil(cell * traffic).clamp(1, cells);
        let mut ends: Vec<u64> = (1..=cells.div_ceil(dealt)).map(|at| at * dealt * cell).collect();
        let most = u64::from(self.channels.max(1));
        if ends.len() as u64 > most {
            // More shares than channels: the first keeps its cells, the last takes the remainder.
            let even = (cells - dealt) / (most - 1).max(1);
            ends = (0..most).map(|at| (dealt + at * even) * cell).collect();
        }
        if let Some(last) = ends.last_mut() {
            *last = bytes;
        }
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(&ends).map(|(start, end)| (start, end - start)).collect()
    }
}

/// Most threads of a channel, without those that only synchronise.
pub fn threads_max(algorithm: Algorithm, protocol: Protocol) -> u32 {
    match (algorithm, protocol) {
        (_, Protocol::Ll128) => 640,
        (_, Protocol::Ll) | (Algorithm::Tree | Algorithm::Ring, Protocol::Simple) => 512,
        (_, Protocol::Simple) => THREADS_MAX,
    }
}

/// Bytes for which a thread is worth having.
pub fn threshold(algorithm: Algorithm, protocol: Protocol, ranks: u32) -> u64 {
    match (algorithm, protocol) {
        (Algorithm::Ring, Protocol::Ll) => 8 * u64::from(ranks),
        (_, Protocol::Ll | Protocol::Ll128) => 8,
        (Algorithm::CollnetDirect | Algorithm::CollnetChain, Protocol::Simple) => 512,
        (_, Protocol::Simple) => 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Protocol::{Ll, Ll128, Simple};

    fn ring(protocol: Protocol, bytes: u64, ranks: u32, channels: u32) -> Split {
        Split::new(Collective::AllReduce, Algorithm::Ring, protocol, bytes, ranks, channels)
    }

    #[test]
    fn channels_and_threads_are_those_of_nccl() {
        // bytes, protocol, channels in use, threads: 8 ranks, a communicator of 8 channels.
        // LL needs 8 x 8 = 64 bytes a thread: 14,336 < 8 x 512 x 64 takes channels down to 1, and
        // 14,336 < 256 x 64 = 16,384 threads to 128. Simple needs 64 bytes a thread too.
        let known = [
            (14_336, Ll, 1, 128),
            (43_008, Ll, 1, 512),
            (65_536, Ll, 2, 512),
            (14_336, Simple, 1, 160),
            (43_008, Simple, 1, 544),
            (65_536, Simple, 2, 544),
            // 8 bytes a thread: 2 x 640 x 8 = 10,240 fits in 14,336, but one cell of 16 KiB holds it.
            (14_336, Ll128, 1, 640),
            (43_008, Ll128, 3, 640),
            // 4,096 < 64 x 64 x 2: 64 threads, but three warps are the least.
            (4096, Ll, 1, 96),
            (4096, Simple, 1, 96),
        ];
        for (bytes, protocol, channels, threads) in known {
            let split = ring(protocol, bytes, 8, 8);
            let found = (split.shares().len(), split.launch().threads);
            assert_eq!(found, (channels, threads), "{bytes} {}", protocol.name());
        }
        let split = ring(Ll128, 14_336, 8, 8);
        assert_eq!(split.launch().channels, 2, "the tuner allows two");
        assert_eq!(ring(Ll128, 43_008, 8, 8).launch().channels, 8);
        assert_eq!(ring(Ll, 4096, 8, 8).launch().block_threads(), 128);
    }

    #[test]
    fn two_ranks_on_nvlink_use_the_measured_channels() {
        // measured/h200-nvlink-pair/README.md: 24 channels, Ring LL up to 1 MiB.
        let known =
            [(14_336, 1), (28_672, 3), (43_008, 5), (57_344, 7), (131_072, 16), (262_144, 22)];
        // NCCL 2.28 deals cells of 16 KiB of traffic: 262,144 bytes are 128 of them, 6 a channel.
        for (bytes, channels) in known {
            let split = Split { channel_traffic_min: 16 << 10, ..ring(Ll, bytes, 2, 24) };
            assert_eq!(split.shares().len(), channels, "{bytes}");
        }
        assert_eq!(ring(Simple, 4 << 20, 2, 24).shares().len(), 24);
    }

    #[test]
    fn trees_always_take_all_threads_and_nvls_all_channels() {
        let tree = Split::new(Collective::AllReduce, Algorithm::Tree, Ll, 14_336, 8, 8).launch();
        // 8 bytes a thread, whatever the ranks: 3 x 512 x 8 = 12,288 fits.
        assert_eq!(tree, Launch { channels: 3, threads: 640 });
        let nvls = Split::new(Collective::AllReduce, Algorithm::Nvls, Simple, 65_536, 8, 16);
        assert_eq!(nvls.launch(), Launch { channels: 16, threads: 640 });
        // 65,536 x 2 / 16 = 8 KiB of traffic a channel is less than the 32 KiB of a cell.
        assert_eq!(nvls.shares().len(), 4);
    }

    #[test]
    fn calls_have_nccls_collectives() {
        for (kind, name) in workload::Collective::ALL {
            let word = name.replace('_', "");
            assert_eq!(Collective::of(kind), Collective::from_name(&word), "{name}");
        }
    }

    #[test]
    fn the_last_channel_takes_what_is_left_over() {
        // Broadcast, Simple: cells of 32 KiB. 1 MiB and 16 bytes are 33 cells; with 64 channels a
        // 33rd is opened for the last, with 32 the last has 32 KiB and the 16 bytes.
        let split = |channels| {
            let bytes = (1 << 20) + 16;
            Split::new(Collective::Broadcast, Algorithm::Ring, Simple, bytes, 8, channels)
        };
        let (wide, narrow) = (split(64).shares(), split(32).shares());
        assert_eq!((wide.len(), wide[32]), (33, (1 << 20, 16)));
        assert_eq!((narrow.len(), narrow[31]), (32, (31 << 15, (32 << 10) + 16)));
    }

    #[test]
    fn shares_cover_the_data_once() {
        for (collective, _) in Collective::ALL {
            for bytes in [8, 16, 4096, 14_336, 43_008, 65_552, 1 << 20, (1 << 20) + 16] {
                for channels in [1, 2, 7, 24, 64] {
                    for (protocol, _) in Protocol::ALL {
                        let split =
                            Split::new(collective, Algorithm::Ring, protocol, bytes, 8, channels);
                        let shares = split.shares();
                        let mut at = 0;
                        for (start, length) in &shares {
                            assert!(*start == at && *length > 0, "{split:?}");
                            at += length;
                        }
                        assert_eq!(at, collective.shared_bytes(bytes, 8).max(1), "{split:?}");
                        assert!(shares.len() <= split.channels as usize, "{split:?}");
                    }
                }
            }
        }
    }
}
