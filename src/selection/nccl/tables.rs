//! Forms of NCCL's tables: figures by protocol, algorithm, hardware, generation and number of
//! machines, and the rules that changed between versions.

use serde::{Deserialize, Serialize};

use crate::algorithm::Protocol;
use crate::algorithm::nccl::Algorithm;

/// A figure for LL, LL128 and Simple.
pub type ByProtocol = [f32; 3];

/// Where NCCL keeps a protocol in its tables.
pub(super) fn index(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Ll => 0,
        Protocol::Ll128 => 1,
        Protocol::Simple => 2,
    }
}

/// Figures by algorithm.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByAlgorithm {
    tree: ByProtocol,
    ring: ByProtocol,
    collnet_direct: ByProtocol,
    collnet_chain: ByProtocol,
    nvls: ByProtocol,
    nvls_tree: ByProtocol,
    pat: ByProtocol,
}

impl ByAlgorithm {
    /// The figure.
    pub fn of(&self, algorithm: Algorithm, protocol: Protocol) -> f32 {
        let row = match algorithm {
            Algorithm::Tree => &self.tree,
            Algorithm::Ring => &self.ring,
            Algorithm::CollnetDirect => &self.collnet_direct,
            Algorithm::CollnetChain => &self.collnet_chain,
            Algorithm::Nvls => &self.nvls,
            Algorithm::NvlsTree => &self.nvls_tree,
            Algorithm::Pat => &self.pat,
        };
        row[index(protocol)]
    }
}

/// Time of a step by what carries it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByHardware {
    /// NVLink.
    pub nvlink: ByAlgorithm,
    /// Anything else in a machine.
    pub pci: ByAlgorithm,
    /// Between machines.
    pub net: ByAlgorithm,
}

/// Generations of GPU that NCCL tells apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Generation {
    /// Below compute capability 8.0.
    Volta,
    /// 8.x.
    Ampere,
    /// 9.x.
    Hopper,
    /// 10.0 and above: also RTX PRO 6000 and GeForce 50 (12.0).
    Blackwell,
}

/// Figures by generation.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ByGeneration<T> {
    volta: T,
    ampere: T,
    hopper: T,
    blackwell: T,
}

impl<T> ByGeneration<T> {
    /// The figure.
    pub fn of(&self, generation: Generation) -> &T {
        match generation {
            Generation::Volta => &self.volta,
            Generation::Ampere => &self.ampere,
            Generation::Hopper => &self.hopper,
            Generation::Blackwell => &self.blackwell,
        }
    }
}

/// Rates by number of machines: one, two, more.
pub type ByMachines = [f64; 3];

/// How a version finds a GPU's generation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GenerationRule {
    /// A100s alone are Ampere, all else is Volta.
    A100OrOlder,
    /// The newest row is Hopper's.
    UpToHopper,
    /// The newest row is Blackwell's.
    UpToBlackwell,
}

/// Network steps of a ring all-reduce over N machines.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterSteps {
    /// 2N.
    TwiceMachines,
    /// 2(N-1).
    TwiceAllButOne,
}

/// Where LL128 is on by default.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ll128Rule {
    /// All V100 or all A100, NVLink to each peer.
    V100OrA100Nvlink,
    /// All V100, all A100 or all H100, NVLink at most through one GPU.
    V100A100H100,
    /// All of one compute capability from 7.0, NVLink at most through one GPU.
    FromVoltaAlike,
    /// The same, or all from 9.0.
    FromVoltaAlikeOrHopper,
}

/// LL's share of a ring's rate.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingLlShare {
    /// All-reduce, reduce, and every call that spans machines.
    pub sums_or_spans: f64,
    /// Other calls.
    pub otherwise: f64,
}

/// LL128's share of a ring's rate.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RingLl128Share {
    /// With two GPUs a machine or more.
    pub several_gpus: f64,
    /// With fewer.
    pub one_gpu: f64,
}

/// What Tree makes of its graph's rate.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeShare {
    /// All protocols.
    pub graph: f64,
    /// LL divides by this.
    pub ll_divisor: f64,
    /// LL128 in one machine.
    pub ll128_one_machine: f64,
    /// LL128 across machines.
    pub ll128_across: f64,
    /// Where one GPU sends and receives for the machine.
    pub pattern_tree: f64,
}

/// What PAT makes of the tree's graph.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatShare {
    /// Share of its rate.
    pub graph: f64,
    /// Divides the network's latency.
    pub network_divisor: f64,
    /// A time a rank, us.
    pub rank_us: f64,
}

/// Least step of a ring across machines, us.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetOverhead {
    /// Intel's CPUs.
    pub intel: f32,
    /// AMD's.
    pub amd: f32,
    /// Others.
    pub other: f32,
    /// Simple takes so many times as much.
    pub simple_factor: f32,
}

/// Where [`Plateau`] begins.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlateauFrom {
    /// Bytes of a call for each rank.
    BytesARank(u64),
    /// Bytes of a call for each rank and channel, rounded down.
    BytesARankAndChannel(u64),
}

/// Factor on the latency of Ring Simple all-reduces across machines.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plateau {
    /// Before Ampere.
    pub older: f64,
    /// Ampere and since.
    pub ampere_on: f64,
    /// From which size on.
    pub above: PlateauFrom,
}

/// What CollNetDirect makes of its graph.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CollnetShare {
    /// A time a peer, us.
    pub peer_us: f64,
    /// Share of the rate from Hopper on.
    pub hopper_share: f64,
    /// Share of the network's rate in all-gather and reduce-scatter.
    pub network_share: f32,
}

/// Most threads of Ring Simple.
#[derive(Copy, Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimpleThreads {
    /// On graphs up to `narrow_up_to`.
    pub narrow: u32,
    /// On others.
    pub wide: u32,
    /// Rate of all channels of a graph, GB/s.
    pub narrow_up_to: f64,
}

/// Channels of NVLS.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NvlsChannels {
    /// Hopper.
    pub hopper: u32,
    /// Blackwell in one machine.
    pub blackwell: u32,
    /// Blackwell across machines.
    pub blackwell_across: u32,
}

/// Steps of send and receive, bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct P2pChunk {
    /// Where not every pair has NVLink.
    pub pcie: u64,
    /// Where every pair has.
    pub nvlink: u64,
    /// Across machines.
    pub network: u64,
}

/// Buffers of a connection, bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffers {
    /// LL.
    pub ll: u64,
    /// LL128.
    pub ll128: u64,
    /// Simple.
    pub simple: u64,
}

/// How memory of connections is taken, bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allocation {
    /// Flags in front of the buffers.
    pub header: u64,
    /// Memory that GPUs share comes in pieces of this.
    pub granularity: u64,
}
