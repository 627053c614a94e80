//! The intermediate form: what the blocks of every rank do, operation by operation.
//!
//! A [`Schedule`] is plain data between algorithms and the engine. A rank runs on a GPU and has
//! blocks of threads; a block runs its operations in order. Elements of 16 bytes belong to threads
//! in turn, so a warp of 32 threads touches 512 contiguous bytes in a trip: an operation covers one
//! trip of the whole block and each warp takes its 512 bytes of it.
//!
//! Data travel as **messages**, stored by the sender straight into a slot that the receiver polls
//! (flags travel in the line), or as loads and stores of **buffers** ordered by flags and barriers.
//! What each operation does to the data is stated beside what it costs, so that [`proof`] can show
//! that every rank ends with every contribution exactly once.

pub mod build;
pub mod messages;
mod op;
pub mod proof;

pub use op::{Action, Op};

use serde::Serialize;

use crate::fabric::EndpointId;
use crate::topology::TrafficKind;

pub use crate::workload::Collective;

/// Bytes of one thread's access.
pub const ELEMENT_BYTES: u32 = 16;
/// Bytes that a warp touches in one trip.
pub const WARP_BYTES: u32 = 32 * ELEMENT_BYTES;
/// Index of a message.
pub type MessageId = u32;
/// Index of a buffer.
pub type BufferId = u32;
/// Index of a multicast group.
pub type GroupId = u32;

/// What all ranks do in one call.
#[derive(Clone, Debug, Serialize)]
pub struct Schedule {
    /// Algorithm and protocol, for people.
    pub name: String,
    /// Bytes of the call as nccl-tests counts them.
    pub bytes: u64,
    /// What the data must be at the end; `None` for probes, which move bytes only.
    pub collective: Option<Collective>,
    /// The ranks.
    pub ranks: Vec<RankProgram>,
    /// In-band messages.
    pub messages: Vec<Message>,
    /// Memory that is loaded from and stored to.
    pub buffers: Vec<Buffer>,
    /// GPUs whose memories stand behind one multicast address of an NVSwitch, group by group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Vec<EndpointId>>,
}

/// One rank.
#[derive(Clone, Debug, Serialize)]
pub struct RankProgram {
    /// The GPU it runs on; several ranks may share one.
    pub gpu: u32,
    /// Its thread blocks, each on an SM of its own.
    pub blocks: Vec<Block>,
}

/// What executes a block.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Executor {
    /// Threads of a streaming multiprocessor.
    Sm,
    /// A copy engine, or a bulk copy kernel that behaves like one.
    CopyEngine,
    /// A host thread of the rank, which takes turns among the rank's blocks of this kind, and the copy
    /// engine that it starts.
    Proxy,
}

/// One thread block or copy engine.
#[derive(Clone, Debug, Serialize)]
pub struct Block {
    /// What runs it.
    pub executor: Executor,
    /// Threads, a multiple of 32.
    pub threads: u32,
    /// An earlier block of the rank of whose thread block these warps are too: they share its SM's unit
    /// for loads and stores. `None`: a thread block of its own.
    pub beside: Option<u32>,
    /// Runs again and again until all other blocks have ended.
    pub background: bool,
    /// In order.
    pub ops: Vec<Op>,
}

/// A message: a slot in some memory that one rank stores into and another polls.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Message {
    /// Storing rank.
    pub from: u32,
    /// Polling rank.
    pub to: u32,
    /// Memory that holds the slot.
    pub home: EndpointId,
    /// Bytes stored, flags included.
    pub bytes: u32,
    /// Data bytes among them.
    pub data: u32,
    /// How data lie in it.
    pub lines: Lines,
}

/// How data lie in a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lines {
    /// Data only, or a bare flag.
    Plain,
    /// 16-byte lines of 8 data and 8 flag bytes.
    Ll,
    /// 8-byte packets of 4 data and 4 flag bytes.
    Ll8,
    /// 128-byte lines of 120 data and 8 flag bytes.
    Ll128,
}

impl Lines {
    /// Wire bytes that carry `data` bytes.
    pub fn wire_bytes(self, data: u64) -> u64 {
        match self {
            Lines::Plain => data,
            Lines::Ll => data.div_ceil(8) * 16,
            Lines::Ll8 => data.div_ceil(4) * 8,
            Lines::Ll128 => data.div_ceil(120) * 128,
        }
    }

    /// Data bytes in `wire` bytes of full lines.
    pub fn data_bytes(self, wire: u64) -> u64 {
        match self {
            Lines::Plain => wire,
            Lines::Ll => wire / 16 * 8,
            Lines::Ll8 => wire / 8 * 4,
            Lines::Ll128 => wire / 128 * 120,
        }
    }
}

/// A range of memory.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Buffer {
    /// Memory that holds it.
    pub home: EndpointId,
    /// Rank it belongs to.
    pub rank: u32,
    /// Its part in the call.
    pub role: Role,
    /// Size.
    pub bytes: u64,
    /// Lines are not in the host's cache: a stream over much memory.
    pub cold: bool,
}

/// Granularity at which buffers and messages are laid apart in a memory.
const PAGE: u64 = 4096;

/// Bytes rounded up to whole pages.
pub fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

impl Buffer {
    /// Addresses that it takes of its memory; none when it is cold, since no two loads share a line.
    pub fn span(&self) -> u64 {
        if self.cold { 0 } else { pages(self.bytes) }
    }
}

/// A buffer's part in the call.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The rank's own data; never changed.
    Input,
    /// Where results go.
    Output,
    /// The rank's own data first, and the results in their place at the end.
    InPlace,
    /// In between.
    Scratch,
}

impl Schedule {
    /// Number of ranks.
    pub fn rank_count(&self) -> usize {
        self.ranks.len()
    }

    /// All flows by traffic kind, from issuing GPU to addressed memory, for declared regimes.
    pub fn flows(&self) -> std::collections::BTreeSet<crate::fabric::regime::TrafficFlow> {
        use crate::fabric::regime::TrafficFlow;
        let mut flows = std::collections::BTreeSet::new();
        let mut add = |kind, issuer, target| {
            if issuer != target {
                flows.insert(TrafficFlow { kind, issuer, target });
            }
        };
        for rank in &self.ranks {
            for op in rank.blocks.iter().flat_map(|block| &block.ops) {
                match *op {
                    Op::Load { buffer, kind, .. } => {
                        add(kind, rank.gpu, self.buffers[buffer as usize].home);
                    }
                    Op::Write { buffer, .. } | Op::Move { to: buffer, .. } => {
                        let target = self.buffers[buffer as usize].home;
                        add(TrafficKind::PostedWrite, rank.gpu, target);
                    }
                    Op::Send { message, .. } => {
                        let target = self.messages[message as usize].home;
                        add(TrafficKind::PostedWrite, rank.gpu, target);
                    }
                    Op::Copy { from, to, push, .. } => {
                        let (from, to) = (self.buffers[from as usize], self.buffers[to as usize]);
                        if push {
                            add(TrafficKind::PostedWrite, rank.gpu, to.home);
                        } else {
                            add(TrafficKind::CopyRead, rank.gpu, from.home);
                        }
                    }
                    // Flags are a few bytes: they neither cause nor feel a regime. Multicast crosses
                    // an NVSwitch, where no regime is declared.
                    _ => {}
                }
            }
        }
        flows
    }
}
