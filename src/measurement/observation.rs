//! One observation and the run that it is of.

use serde::Serialize;

use crate::algorithm::{Implementation, Protocol};
use crate::prediction::regime::SMALL_BYTES;
use crate::schedule::Collective;
use crate::workload::Beside;

/// A memory, named without a compiled machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Memory {
    /// That of a GPU.
    Gpu(u32),
    /// Host memory nearest to a GPU.
    HostNear(u32),
}

/// What a group of blocks does to a memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadKind {
    /// Loads of 16 bytes, so many in flight a thread.
    Read(u32),
    /// Stores of 16 bytes.
    Write,
}

/// A group of equal blocks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load {
    /// GPU they run on.
    pub gpu: u32,
    /// Memory they address.
    pub memory: Memory,
    /// What they do.
    pub kind: LoadKind,
    /// How many.
    pub blocks: u32,
    /// Threads of each.
    pub threads: u32,
    /// They look at a stop flag now and then.
    pub stop_check: bool,
}

/// One copy by a GPU's copy engine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Copy {
    /// Memory read.
    pub from: Memory,
    /// Memory written.
    pub to: Memory,
    /// GPU whose engine does it.
    pub engine: u32,
    /// Bytes.
    pub bytes: u64,
    /// A bulk copy kernel of that GPU does it, not its engine.
    pub kernel: bool,
}

/// Which two GPUs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pair {
    /// These.
    Gpus(u32, u32),
    /// The first pair that nvidia-smi would call by this word (`PIX`, `NODE`, ...).
    Path(String),
}

/// Which memory carries a collective.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// Peer memory.
    Peer,
    /// Host memory.
    Host,
    /// Host memory for pairs that are neither below one switch nor joined by NVLink, as NCCL does
    /// without `NCCL_P2P_LEVEL` on AMD hosts.
    HostBeyondSwitch,
}

/// How a call is launched on the GPUs of its ranks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Launches {
    /// By a process or a thread for each GPU, or from a graph.
    AtOnce,
    /// One process launches on every GPU in turn, without a graph, so that no call can be shorter than
    /// that many launches: each takes so many ns where that is known of the host, and otherwise what
    /// the GPU's model takes.
    InTurn(Option<u32>),
}

/// A call to NCCL that says no more than its caller does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NcclCall {
    /// What it computes.
    pub collective: Collective,
    /// Version, such as `2.27.7`.
    pub version: String,
    /// Variables that were set, `NAME=VALUE` one after another.
    pub settings: String,
    /// The driver lets GPUs address each other.
    pub peer_to_peer: bool,
    /// NUMA nodes of a socket.
    pub numa_per_socket: u32,
    /// GPU of each rank.
    pub gpus: Vec<u32>,
    /// Bytes as nccl-tests counts them.
    pub bytes: u64,
    /// How it is launched on its GPUs.
    pub launches: Launches,
    /// Replayed from a CUDA graph, not launched call by call.
    pub in_graph: bool,
    /// The time is the mean of so few calls that the start of the first matters.
    pub first_of: Option<u32>,
}

/// A collective by a kernel that the source tells.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelCall {
    /// What it computes.
    pub collective: Collective,
    /// Entry of the algorithm table.
    pub algorithm: &'static str,
    /// Protocol.
    pub protocol: Protocol,
    /// Whose kernel.
    pub implementation: Implementation,
    /// GPU of each rank.
    pub gpus: Vec<u32>,
    /// Bytes as nccl-tests counts them.
    pub bytes: u64,
    /// Blocks or channels a rank, where they are known.
    pub blocks: Option<u32>,
    /// Which memory carries it.
    pub carrier: Carrier,
    /// How it is launched on its GPUs.
    pub launches: Launches,
    /// What went on beside it.
    pub beside: Vec<Beside>,
}

impl KernelCall {
    /// An all-reduce in Simple by peer memory, launched on all GPUs at once.
    pub fn all_reduce(
        algorithm: &'static str,
        implementation: Implementation,
        gpus: Vec<u32>,
        bytes: u64,
    ) -> KernelCall {
        KernelCall {
            collective: Collective::AllReduce,
            algorithm,
            protocol: Protocol::Simple,
            implementation,
            gpus,
            bytes,
            blocks: None,
            carrier: Carrier::Peer,
            launches: Launches::AtOnce,
            beside: Vec::new(),
        }
    }
}

/// What ran. Each kind gives figures by number; an [`Observation`] says which one it is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Run {
    /// Groups of blocks that load or store at full tilt, beside a chain of dependent 4-byte reads.
    /// Figure 0 is the chain's latency, ns; figure g + 1 the rate of group g, GB/s.
    LoadMix {
        /// Reader and memory of the chain, if there is one.
        chase: Option<(u32, Memory)>,
        /// The groups.
        loads: Vec<Load>,
    },
    /// Dependent reads by the first of a pair from the memory of the second; figure 0, ns.
    PeerRead {
        /// Reader and target.
        pair: Pair,
        /// Bytes of a read.
        bytes: u32,
    },
    /// Dependent reads of a memory; figure 0, ns.
    Chase {
        /// Reader.
        gpu: u32,
        /// Memory read.
        memory: Memory,
        /// What goes on beside them.
        beside: Vec<Beside>,
    },
    /// A flag there and back between two GPUs; figure 0 is one way, ns.
    Flag {
        /// The GPUs.
        pair: Pair,
        /// Flags lie in host memory, not in the poller's own.
        by_host: bool,
        /// With system fences and acquire loads.
        fenced: bool,
    },
    /// Copies at once. Figure 0 is the rate of all, GB/s: bytes over the time until the last has
    /// ended; figure i + 1 that of copy i by its own end; the last figure is the sum of these.
    Copies(Vec<Copy>),
    /// A collective; figure 0 is its time, us.
    Collective(KernelCall),
    /// A collective for which NCCL chooses all that its settings leave open; figure 0 is its time, us.
    Nccl(NcclCall),
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Folder of `measured/`.
    pub machine: String,
    /// Name of a built-in topology, or a path.
    pub topology: String,
    /// File, line, and a short text.
    pub id: String,
    /// Rows of one experiment are summarised together.
    pub experiment: String,
    /// What ran.
    pub run: Run,
    /// Which of the run's figures it is.
    pub figure: usize,
    /// Of `measured`: `ns`, `us`, `GB/s`.
    pub unit: &'static str,
    /// The value; of repeated rows, their median.
    pub measured: f64,
    /// Half of what lies between the lowest and the highest of several, relative.
    pub noise: Option<f64>,
    /// Rows that it is the median of.
    pub rows: u32,
    /// Constants were fitted to it; otherwise it checks them.
    pub fit: bool,
    /// A declared regime of the topology was read from it.
    pub regime: bool,
    /// Environment as the source tells it.
    pub condition: String,
    /// What was assumed where the source does not say.
    pub note: String,
}

/// What is added to the name of an experiment for calls whose rates weigh more than latencies.
pub(in crate::measurement) fn large(bytes: u64) -> &'static str {
    if bytes > SMALL_BYTES { ", over 256 KB" } else { "" }
}

/// A row that nothing is predicted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Folder of `measured/`.
    pub machine: String,
    /// File and line.
    pub id: String,
    /// Why.
    pub reason: String,
}
