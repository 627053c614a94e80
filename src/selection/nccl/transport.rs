//! How the bytes of each hop travel: from GPU to GPU, through host memory, or by the network, with
//! the reason and the line that NCCL logs.

use serde::Serialize;

use super::beliefs::Beliefs;
use super::graph::{Graph, PathType, Pattern};
use super::path::Paths;
use super::system::System;

/// What a user and the launcher say of transports.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TransportOptions {
    /// All ranks are threads of one process.
    pub one_process: bool,
    /// `NCCL_P2P_DIRECT_DISABLE=1`: no plain pointers within a process.
    pub no_direct: bool,
    /// `NCCL_CUMEM_ENABLE`; the version's default when `None`.
    pub cumem: Option<bool>,
    /// `NCCL_P2P_READ_ENABLE`; only Ampere with NVLink reads when `None`.
    pub read: Option<bool>,
    /// `NCCL_P2P_USE_CUDA_MEMCPY=1`.
    pub copy_engine: bool,
    /// `NCCL_SHM_DISABLE=1`.
    pub no_shm: bool,
    /// `NCCL_SHM_USE_CUDA_MEMCPY=1`.
    pub shm_copy_engine: bool,
    /// `NCCL_SHM_MEMCPY_MODE`: 1 for the sender's engine, 2 for the receiver's, 3 for both; the
    /// sender's when `None`.
    pub shm_copy_mode: Option<u32>,
    /// `NCCL_NET_DISABLE_INTRA=1`: no network within a machine, however fast.
    pub no_net_inside: bool,
}

/// Bits of `NCCL_SHM_MEMCPY_MODE`.
const SENDERS_ENGINE: u32 = 1;
const RECEIVERS_ENGINE: u32 = 2;

/// How two ranks of a machine are joined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Stores (or loads) of one GPU in the memory of another.
    P2p {
        /// How the memory became addressable.
        by: Sharing,
        /// The receiver reads the sender's memory, Simple only.
        read: bool,
        /// A copy engine moves the data, Simple only.
        copy_engine: bool,
    },
    /// Host memory in between.
    Shm {
        /// The sender's copy engine fills it.
        send_copy_engine: bool,
        /// The receiver's copy engine empties it.
        receive_copy_engine: bool,
    },
    /// NICs.
    Net,
    /// NCCL would fail.
    None,
}

/// How the memory of another GPU becomes addressable.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Plain pointers of one process.
    DirectPointer,
    /// Handles of cuMem.
    Cumem,
    /// Handles of CUDA IPC.
    Ipc,
    /// Through the memory of the GPU of this rank.
    Indirect(u32),
}

/// One hop of a channel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hop {
    /// Rank that sends.
    pub from: u32,
    /// Rank that receives.
    pub to: u32,
    /// How.
    pub transport: Transport,
    /// How near the GPUs are.
    pub path: PathType,
    /// Why, a sentence without a full stop.
    pub reason: String,
}

impl Transport {
    /// As NCCL logs it after `via`.
    pub fn name(&self, system: &System) -> String {
        match self {
            Transport::P2p { by, read, copy_engine } => {
                let read = if *read { "/read" } else { "" };
                let engine = if *copy_engine { "/CE" } else { "" };
                match by {
                    Sharing::DirectPointer => format!("P2P/direct pointer{read}"),
                    Sharing::Cumem => format!("P2P/CUMEM{read}{engine}"),
                    Sharing::Ipc => format!("P2P/IPC{read}{engine}"),
                    Sharing::Indirect(rank) => {
                        format!("P2P/indirect/{rank}[{}]{read}", dev_of(system, *rank))
                    }
                }
            }
            Transport::Shm { send_copy_engine, receive_copy_engine } => {
                let word = |engine: bool| if engine { "CE" } else { "direct" };
                format!("SHM/{}/{}", word(*send_copy_engine), word(*receive_copy_engine))
            }
            Transport::Net => "NET".to_owned(),
            Transport::None => "nothing".to_owned(),
        }
    }
}

impl Hop {
    /// The line of NCCL's log for a channel.
    pub fn log_line(&self, channel: usize, system: &System) -> String {
        let connection = if matches!(self.transport, Transport::P2p { .. }) { "/0" } else { "" };
        let (from, to) = (self.from, self.to);
        format!(
            "Channel {channel:02}{connection} : {from}[{}] -> {to}[{}] via {}",
            dev_of(system, from),
            dev_of(system, to),
            self.transport.name(system)
        )
    }
}

fn place_of(system: &System, rank: u32) -> Option<usize> {
    system.gpus.iter().position(|&gpu| system.rank(gpu) == rank)
}

fn dev_of(system: &System, rank: u32) -> u32 {
    place_of(system, rank).map_or(0, |place| system.dev(system.gpus[place]))
}

/// How the hops of a graph travel, channel by channel: a ring's in its direction with the hop back
/// to the first, a tree's down the chain and up again. NVLS has no hops.
pub fn hops(
    system: &System,
    paths: &Paths,
    beliefs: &Beliefs,
    options: &TransportOptions,
    graph: &Graph,
) -> Vec<Vec<Hop>> {
    let hop = |from: u32, to: u32| between(system, paths, beliefs, options, from, to);
    let channel = |ranks: &Vec<u32>| -> Vec<Hop> {
        let down = ranks.windows(2).map(|pair| hop(pair[0], pair[1]));
        match graph.pattern {
            Pattern::Ring if ranks.len() > 1 => {
                let back = hop(ranks[ranks.len() - 1], ranks[0]);
                down.chain([back]).collect()
            }
            Pattern::Nvls | Pattern::CollnetDirect => Vec::new(),
            _ => down.chain(ranks.windows(2).rev().map(|pair| hop(pair[1], pair[0]))).collect(),
        }
    };
    graph.channels.iter().map(channel).collect()
}

/// How two ranks are joined. Ranks that are not there are joined by nothing.
pub fn between(
    system: &System,
    paths: &Paths,
    beliefs: &Beliefs,
    options: &TransportOptions,
    from: u32,
    to: u32,
) -> Hop {
    let (Some(sender), Some(receiver)) = (place_of(system, from), place_of(system, to)) else {
        let reason = "no such rank".to_owned();
        return Hop { from, to, transport: Transport::None, path: PathType::Dis, reason };
    };
    let peer = paths.peer(sender, receiver);
    let (a, b) = (system.gpus[sender], system.gpus[receiver]);
    let faster = if options.no_net_inside { None } else { faster_nic(system, paths, a, b) };
    let relayed_copy = peer.relay.is_some() && options.copy_engine;
    let hop = |transport, reason| Hop { from, to, transport, path: peer.kind, reason };
    if peer.direct && !relayed_copy && (peer.relay.is_some() || faster.is_none()) {
        let ampere = system.compute_capability(a) == 80 && system.compute_capability(b) == 80;
        let reads = options.read.unwrap_or(peer.kind == PathType::Nvl && ampere);
        let plain = options.one_process && !options.no_direct && !options.copy_engine;
        let by = match peer.relay {
            Some(rank) => Sharing::Indirect(rank),
            None if plain => Sharing::DirectPointer,
            None if options.cumem.unwrap_or(beliefs.cumem()) => Sharing::Cumem,
            None => Sharing::Ipc,
        };
        let read = reads && !options.copy_engine;
        let transport = Transport::P2p { by, read, copy_engine: options.copy_engine };
        return hop(transport, peer.reason.clone());
    }
    if let Some((nic, gpus)) = faster {
        let reason = format!("both GPUs reach a NIC at {nic} GB/s, each other at {gpus} GB/s");
        return hop(Transport::Net, reason);
    }
    if options.no_shm {
        let (transport, then) = if system.nets.is_empty() {
            (Transport::None, "there is no NIC")
        } else {
            (Transport::Net, "NICs are left")
        };
        return hop(transport, format!("{}, SHM is switched off, {then}", peer.reason));
    }
    let by_engine = |bit: u32| {
        options.shm_copy_engine && options.shm_copy_mode.unwrap_or(SENDERS_ENGINE) & bit != 0
    };
    let (send_copy_engine, receive_copy_engine) =
        (by_engine(SENDERS_ENGINE), by_engine(RECEIVERS_ENGINE));
    hop(Transport::Shm { send_copy_engine, receive_copy_engine }, peer.reason.clone())
}

/// What the slower of two GPUs' nearest NICs gives and what the GPUs' own path does, GB/s, where
/// both have a NIC without a host bridge between that beats the path: NCCL then takes the network
/// even within a machine.
fn faster_nic(system: &System, paths: &Paths, a: usize, b: usize) -> Option<(f32, f32)> {
    let best = |gpu: usize| {
        let near = system.nets.iter().map(|&net| paths.between(gpu, net));
        let near = near.filter(|path| path.kind <= PathType::Pxb);
        near.map(|path| path.gb_per_s).fold(0.0, f32::max)
    };
    let (nic, gpus) = (best(a).min(best(b)), paths.between(a, b).gb_per_s);
    (nic > gpus).then_some((nic, gpus))
}
