//! From a collective call to a schedule: one algorithm a file.
//!
//! A new algorithm is a new file, a `mod` line and an entry of [`ALGORITHMS`]; the generic tests
//! (`tests/it/schedules.rs`) prove every entry for many rank counts and sizes before its author
//! writes one.

pub mod all_to_all;
pub mod allpair_packet;
pub mod barrier;
pub mod chain;
pub mod expert_parallel;
pub mod island_pull;
pub mod island_push;
pub mod islands;
pub mod kernel;
mod lines;
pub mod nccl;
pub mod nvls;
pub mod nvls_one_shot;
pub mod nvls_packet;
pub mod nvls_two_shot;
pub mod one_shot_pull;
pub mod one_shot_push;
pub mod p2p;
pub mod plan;
mod primitives;
pub mod probe;
pub mod ring;
pub mod staged_ring;
pub mod streams;
pub mod two_shot_pull;
pub mod two_shot_pull_push;
pub mod two_shot_push;
mod waiting;

use crate::error::{Error, Result};
use crate::fabric::{EndpointId, Fabric};
use crate::schedule::{Collective, Schedule};
use crate::suggestion::known;

use nccl::Split;
use p2p::P2p;

pub use kernel::{BarrierKind, Implementation, Kernel};

/// How data lie on the wire and what tells the receiver that they are there.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// Data, then a fence and a flag.
    Simple,
    /// 16-byte lines, half of them flags.
    Ll,
    /// 128-byte lines, 8 bytes of them a flag.
    Ll128,
}

impl Protocol {
    /// All, with NCCL's names.
    pub const ALL: [(Protocol, &'static str); 3] =
        [(Protocol::Simple, "Simple"), (Protocol::Ll, "LL"), (Protocol::Ll128, "LL128")];

    /// NCCL's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// The protocol of this name, in any case.
    pub fn from_name(name: &str) -> Option<Protocol> {
        Self::ALL.iter().find(|entry| entry.1.eq_ignore_ascii_case(name)).map(|entry| entry.0)
    }
}

/// Which memory carries what one rank gives another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The receiving GPU's own memory (P2P); host memory where peers may not address each other.
    Peer,
    /// Host memory near the receiver (SHM).
    Host,
    /// A way for each listed (from, to) rank pair, peer memory written by the sender for the rest.
    Each(Vec<(u32, u32, Hop)>),
}

impl Transport {
    /// Host memory for the listed (from, to) rank pairs, peer memory for the rest.
    pub fn host_for(pairs: Vec<(u32, u32)>) -> Transport {
        Transport::Each(pairs.into_iter().map(|(from, to)| (from, to, Hop::Host)).collect())
    }
}

/// How data come from one rank to another.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// The sender writes into the receiver's GPU.
    Write,
    /// The receiver reads from the sender's GPU; lines are written all the same.
    Read,
    /// The sender writes into host memory near the receiver, which reads it (SHM).
    Host,
    /// The sender's copy engine, started by a host thread, carries what the sender laid down in its own
    /// memory to the receiver's GPU; lines are written all the same.
    Engine,
    /// As [`Hop::Host`], but copy engines carry the data there, from there, or both; lines are written
    /// and read all the same.
    HostEngine {
        /// The sender's, into host memory.
        send: bool,
        /// The receiver's, out of it.
        receive: bool,
    },
}

impl Hop {
    /// Whether data stand in host memory on their way.
    pub fn is_by_host(self) -> bool {
        matches!(self, Hop::Host | Hop::HostEngine { .. })
    }

    /// Whether copy engines carry a part of the way.
    pub fn is_by_engine(self) -> bool {
        matches!(self, Hop::Engine | Hop::HostEngine { .. })
    }
}

/// Which memory holds the flags of barriers between ranks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Flags {
    /// The memory of the GPU that waits, as every library here has it; host memory where peers may
    /// not address each other.
    #[default]
    Peer,
    /// Host memory near the GPU that waits.
    Host,
}

/// What NCCL's host code settles before a kernel starts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// How a collective is split over channels and threads; its size is that of the request.
    Split(Split),
    /// How sends and receives are shared out.
    Sends(P2p),
}

/// What is asked of an algorithm.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The machine.
    pub fabric: &'a Fabric,
    /// GPU of each rank, in ring order.
    pub gpus: Vec<u32>,
    /// Bytes of the call as nccl-tests counts them.
    pub bytes: u64,
    /// Protocol, for those algorithms that have a choice.
    pub protocol: Protocol,
    /// Whose kernel it is.
    pub kernel: Kernel,
    /// Which memory carries the data.
    pub transport: Transport,
    /// Which memory holds the flags of barriers.
    pub flags: Flags,
    /// Blocks of each rank, where the caller decides; otherwise the implementation's own rule. For
    /// NCCL the channels of the communicator, of which a small call uses fewer.
    pub blocks: Option<u32>,
    /// What NCCL's host code settles for this communicator; by its own limits where it is not told.
    pub settled: Option<Settled>,
    /// Order of the ranks around the ring, or along the chain from its root, by channel; channels
    /// take them in turn. Empty: the order of `gpus` for all.
    pub orders: Vec<Vec<u32>>,
    /// Islands of ranks, for algorithms that go by islands; empty: those of the paths.
    pub islands: Vec<Vec<u32>>,
}

impl Request<'_> {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.gpus.len() as u32
    }

    /// Order of the ranks around a channel's ring, or along its chain from the root.
    pub fn order(&self, channel: u32) -> Vec<u32> {
        match self.orders.len() {
            0 => (0..self.ranks()).collect(),
            count => self.orders[channel as usize % count].clone(),
        }
    }

    /// The islands of ranks: those that were told, otherwise by the paths between the GPUs.
    pub fn islands(&self) -> Vec<Vec<u32>> {
        match self.islands.is_empty() {
            true => islands::islands(self.fabric, &self.gpus),
            false => self.islands.clone(),
        }
    }

    /// How data come from one rank to another.
    pub fn hop(&self, from: u32, to: u32) -> Hop {
        let apart = self.gpus[from as usize] != self.gpus[to as usize];
        match &self.transport {
            Transport::Peer if !self.fabric.peer_to_peer && apart => Hop::Host,
            Transport::Peer => Hop::Write,
            Transport::Host => Hop::Host,
            Transport::Each(hops) => {
                let told = hops.iter().find(|hop| (hop.0, hop.1) == (from, to));
                told.map_or(Hop::Write, |hop| hop.2)
            }
        }
    }

    /// Memory of the inbox that `to` polls for what `from` stores.
    pub fn inbox(&self, from: u32, to: u32) -> EndpointId {
        let gpu = self.gpus[to as usize];
        match self.fabric.home_memory[gpu as usize] {
            Some(memory) if self.hop(from, to).is_by_host() => memory,
            _ => gpu,
        }
    }

    /// Host memory near a rank's GPU; the GPU's own where it has none.
    pub fn host_memory(&self, rank: u32) -> EndpointId {
        let gpu = self.gpus[rank as usize];
        self.fabric.home_memory[gpu as usize].unwrap_or(gpu)
    }

    /// Memory of a rank's own data, as its peers address it.
    pub fn home(&self, rank: u32) -> EndpointId {
        let gpu = self.gpus[rank as usize];
        let by_host = self.transport == Transport::Host || !self.fabric.peer_to_peer;
        match self.fabric.home_memory[gpu as usize] {
            Some(memory) if by_host => memory,
            _ => gpu,
        }
    }

    /// Memory of the flags that a rank waits for in barriers.
    pub fn flag_home(&self, rank: u32) -> EndpointId {
        let gpu = self.gpus[rank as usize];
        match (self.flags, self.fabric.home_memory[gpu as usize]) {
            (Flags::Host, Some(memory)) => memory,
            _ => self.home(rank),
        }
    }
}

/// Who works with whom.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Structure {
    /// Ranks with each other, wherever they are.
    Flat,
    /// Ranks that are near each other first, then across.
    Islands,
    /// Ranks with an NVSwitch that copies and sums.
    InSwitch,
}

/// An algorithm.
pub struct Algorithm {
    /// The word on the command line.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What it computes.
    pub collective: Collective,
    /// Who works with whom.
    pub structure: Structure,
    /// Protocols it knows, its own choice first.
    pub protocols: &'static [Protocol],
    /// Whose kernels do it, the most common first.
    pub implementations: &'static [Implementation],
    /// Makes the schedule.
    pub build: fn(&Request<'_>) -> Result<Schedule>,
}

impl Algorithm {
    /// Whether ranks that are nearer to each other than to the rest work together first.
    pub fn is_by_islands(&self) -> bool {
        self.structure == Structure::Islands
    }

    /// Whether it needs an NVSwitch that copies stores and sums loads (NVLink SHARP); its builder
    /// refuses GPUs without one.
    pub fn is_in_switch(&self) -> bool {
        self.structure == Structure::InSwitch
    }
}

/// All algorithms.
pub const ALGORITHMS: &[Algorithm] = &[
    ring::ALL_REDUCE,
    ring::ALL_GATHER,
    ring::REDUCE_SCATTER,
    ring::BROADCAST,
    ring::REDUCE,
    chain::ALGORITHM,
    one_shot_pull::ALGORITHM,
    one_shot_push::ALGORITHM,
    two_shot_pull::ALGORITHM,
    two_shot_pull_push::ALGORITHM,
    two_shot_push::ALGORITHM,
    allpair_packet::ALGORITHM,
    staged_ring::ALGORITHM,
    island_pull::ALGORITHM,
    island_push::ALGORITHM,
    island_push::STAGED,
    all_to_all::ALGORITHM,
    nvls::ALL_REDUCE,
    nvls::ALL_GATHER,
    nvls::REDUCE_SCATTER,
    nvls_two_shot::ALGORITHM,
    nvls_one_shot::ALGORITHM,
    nvls_packet::ALGORITHM,
];

/// The algorithms of a collective.
pub fn of(collective: Collective) -> impl Iterator<Item = &'static Algorithm> {
    ALGORITHMS.iter().filter(move |algorithm| algorithm.collective == collective)
}

/// The algorithm of this name that does this collective.
///
/// # Errors
/// When there is none, with the names that are.
pub fn find(collective: Collective, name: &str) -> Result<&'static Algorithm> {
    of(collective).find(|algorithm| algorithm.name == name).ok_or_else(|| {
        let help = known(name, "known", of(collective).map(|algorithm| algorithm.name));
        Error::request(format!("there is no {} algorithm `{name}`", collective.title()), help)
    })
}

/// Largest call that is built as a schedule; larger ones are extrapolated from two smaller.
pub const BYTES_MAX: u64 = 256 << 20;

/// Builds the schedule of a call, refusing what no algorithm can do.
///
/// # Errors
/// Fewer than two ranks, a size that does not split into elements of 16 bytes or is too large, or
/// ring orders or islands that do not name every rank once.
pub fn build(algorithm: &Algorithm, request: &Request<'_>) -> Result<Schedule> {
    if request.ranks() < 2 {
        return Err(Error::request(
            "a collective needs at least two ranks",
            "choose a machine with two GPUs or more",
        ));
    }
    let rounded = algorithm.collective.round_up(request.bytes, request.gpus.len());
    if request.bytes != rounded {
        return Err(Error::request(
            format!("{} bytes do not split into elements of 16 bytes", request.bytes),
            format!("these kernels move 16 bytes a thread: round up to {rounded}"),
        ));
    }
    let every_rank_once = |ranks: &[u32]| {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..request.ranks())
    };
    if let Some(order) = request.orders.iter().find(|order| !every_rank_once(order)) {
        return Err(Error::request(
            format!("{order:?} is no order of {} ranks", request.ranks()),
            "a ring order names every rank once",
        ));
    }
    if !request.islands.is_empty() && !every_rank_once(&request.islands.concat()) {
        return Err(Error::request(
            format!("{:?} are no islands of {} ranks", request.islands, request.ranks()),
            "islands name every rank once, such as islands=0-3/4-7",
        ));
    }
    if request.bytes > BYTES_MAX {
        return Err(Error::request(
            format!("{} bytes are more than a schedule is built for", request.bytes),
            format!("at most {BYTES_MAX}"),
        ));
    }
    if !algorithm.protocols.contains(&request.protocol) {
        let names: Vec<&str> = algorithm.protocols.iter().map(|p| p.name()).collect();
        return Err(Error::request(
            format!("{} has no protocol {}", algorithm.name, request.protocol.name()),
            format!("it knows {}", names.join(", ")),
        ));
    }
    for &a in &request.gpus {
        for &b in &request.gpus {
            if a != b && request.fabric.path_at(a, b).is_none() {
                return Err(Error::request(
                    format!("GPU {a} has no way to GPU {b}"),
                    "join them by links, or leave one out",
                ));
            }
        }
    }
    (algorithm.build)(request)
}
