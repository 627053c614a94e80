//! NCCL's kernels: what all their schedules share.
//!
//! A channel is a thread block. It moves data by primitives (send, receive-reduce-send, ...), each over
//! one chunk, between buffers and connections to its neighbours. A collective is a program of
//! primitives; how a primitive puts data on the wire is the protocol's business.
//!
//! Structure and numbers follow NCCL 2.30 (`device/primitives.h`, `prims_ll.h`, `prims_ll128.h`,
//! `prims_simple.h`, `enqueue.cc`).

mod connection;
mod lines;
mod simple;

use std::collections::BTreeSet;

use super::nccl::{self, Algorithm, Split};
use super::{Protocol, Request, Settled, Transport};
use crate::fabric::LinkClass;
use crate::schedule::build::{Builder, Part, trips};
use crate::schedule::{Action, BufferId, Collective, Lines, MessageId, Op, Role, Schedule};

use connection::Connection;

/// Bytes of the sector that holds a counter of steps.
const COUNTER_SECTOR: u32 = 32;
/// Steps of a connection's buffer.
pub(super) const STEPS: usize = 8;
/// Data bytes of an LL step: 512 KiB of 8 steps, half of it flags.
pub(super) const LL_CHUNK: u64 = 32_768;
/// Data bytes of an LL128 step: 4,915,200 of 8 steps, 120 of 128 bytes data.
pub(super) const LL128_CHUNK: u64 = 576_000;
/// Bytes of a Simple step: 4 MiB of 8 steps.
pub(super) const SIMPLE_STEP: u64 = 512 << 10;

/// How a call is split: as the caller says, or by NCCL's own limits.
pub(super) fn split(request: &Request<'_>, algorithm: Algorithm, kind: Collective) -> Split {
    let bytes = request.bytes;
    match request.settled {
        Some(Settled::Split(split)) => Split { bytes, ..split },
        _ => {
            let channels = request.blocks.unwrap_or_else(|| channels(request)).max(1);
            let collective = nccl::Collective::of(kind).unwrap_or(nccl::Collective::AllReduce);
            let (protocol, ranks) = (request.protocol, request.ranks());
            Split::new(collective, algorithm, protocol, bytes, ranks, channels)
        }
    }
}

/// First byte and length of each channel's share of a call; each holds whole elements.
pub(super) fn shares(split: &Split) -> Vec<(u32, u32)> {
    split.shares().into_iter().map(|(start, length)| (start as u32, length as u32)).collect()
}

/// Channels of the communicator: many where the first two ranks are joined by NVLink.
pub(super) fn channels(request: &Request<'_>) -> u32 {
    request.kernel.channels[usize::from(!joined_by_nvlink(request))]
}

/// Whether the first two ranks are joined by NVLink.
pub(super) fn joined_by_nvlink(request: &Request<'_>) -> bool {
    let class = request.fabric.first_class(request.gpus[0], request.gpus[1]);
    class == Some(LinkClass::Nvlink) && request.transport != Transport::Host
}

/// How the Simple protocol cuts what it sends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Slices {
    /// Bytes of a step of the buffer.
    pub(super) step: u64,
    /// Slices of a chunk, each announced by a flag of its own.
    pub(super) count: u32,
    /// Steps of a slice.
    pub(super) steps: u32,
}

impl Slices {
    /// Ring all-reduce, all-gather and reduce-scatter: chunks of 4 steps in 2 slices.
    pub(super) const PAIRS: Slices = Slices { step: SIMPLE_STEP, count: 2, steps: 2 };
    /// All others: a step is a slice is a chunk.
    pub(super) const SINGLE: Slices = Slices { step: SIMPLE_STEP, count: 1, steps: 1 };

    /// Largest chunk, bytes.
    pub(super) fn chunk(self) -> u64 {
        self.slice() * u64::from(self.count)
    }

    /// Largest slice, bytes.
    fn slice(self) -> u64 {
        self.step * u64::from(self.steps)
    }
}

/// Largest chunk of a protocol, data bytes.
pub(super) fn chunk_max(protocol: Protocol, slices: Slices) -> u64 {
    match protocol {
        Protocol::Ll => LL_CHUNK,
        Protocol::Ll128 => LL128_CHUNK,
        Protocol::Simple => slices.chunk(),
    }
}

/// A channel's data in chunks, the last shorter.
pub(super) fn chunks(start: u32, length: u32, largest: u64) -> impl Iterator<Item = Part> {
    let largest = largest.min(u64::from(u32::MAX)) as u32;
    (0..length.div_ceil(largest)).map(move |index| {
        let from = index * largest;
        Part { offset: start + from, bytes: largest.min(length - from) }
    })
}

/// Index of a connection.
pub(super) type ConnectionId = usize;

/// Who runs a primitive.
#[derive(Copy, Clone, Debug)]
pub(super) struct Place {
    /// Rank.
    pub(super) rank: u32,
    /// Block of the rank.
    pub(super) block: usize,
}

/// What a rank does with one chunk, in this order: receives it, adds or takes its own data, sends the
/// result, keeps it.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Primitive {
    /// From a neighbour.
    pub(super) receive: Option<ConnectionId>,
    /// The rank's own input, added to what was received.
    pub(super) own: bool,
    /// To a neighbour.
    pub(super) send: Option<ConnectionId>,
    /// Into the rank's output.
    pub(super) copy: bool,
    /// First byte within the call's data.
    pub(super) at: u32,
    /// Bytes.
    pub(super) length: u32,
    /// Where its own data lie, in place of the rank's input at `at`.
    pub(super) source: Option<(BufferId, u32)>,
    /// Where it keeps the result, in place of the rank's output at `at`.
    pub(super) target: Option<(BufferId, u32)>,
}

/// A schedule of NCCL's under construction.
pub(super) struct Nccl<'a> {
    pub(super) request: &'a Request<'a>,
    builder: Builder,
    inputs: Vec<BufferId>,
    outputs: Vec<BufferId>,
    connections: Vec<Connection>,
    slices: Slices,
    collective: Option<Collective>,
    /// What the blocks of each rank have run so far.
    begun: Vec<Vec<Begun>>,
}

/// What a block has run so far.
#[derive(Clone, Debug, Default)]
struct Begun {
    /// Kinds of primitives.
    kinds: BTreeSet<(bool, bool, bool, bool)>,
    /// Something was stored into host memory.
    stores_to_host: bool,
}

impl<'a> Nccl<'a> {
    /// An empty schedule of `threads.len()` blocks that are the work of `channels` thread blocks.
    pub(super) fn new(
        request: &'a Request<'a>,
        (name, collective): (&str, Collective),
        channels: u32,
        threads: &[u32],
        slices: Slices,
    ) -> Nccl<'a> {
        let mut nccl =
            Nccl::without_data(request, (name, Some(collective)), channels, threads, slices);
        let local = |rank: u32| request.gpus[rank as usize];
        nccl.inputs = nccl.builder.buffers(Role::Input, request.bytes, local);
        nccl.outputs = nccl.builder.buffers(Role::Output, request.bytes, local);
        nccl
    }

    /// As [`Nccl::new`], but primitives say themselves where their data lie.
    pub(super) fn without_data(
        request: &'a Request<'a>,
        (name, collective): (&str, Option<Collective>),
        channels: u32,
        threads: &[u32],
        slices: Slices,
    ) -> Nccl<'a> {
        let name = format!("{name} {}", request.protocol.name());
        let most = threads.iter().copied().max().unwrap_or(32);
        let mut builder = Builder::new(name, &request.gpus, threads.len(), most);
        for (block, &count) in threads.iter().enumerate() {
            (0..request.ranks()).for_each(|rank| builder.set_threads(rank, block, count));
        }
        if let Some(start) = request.kernel.start_op(channels as usize) {
            builder.push_all(start);
        }
        // The blocks of a channel are groups of one thread block's warps.
        let together = threads.iter().sum::<u32>() / channels.max(1);
        let sends = collective == Some(Collective::AllToAll);
        let start = request.kernel.protocol_start(request.protocol, together, sends);
        builder.push_all(Op::Delay(start));
        let connections = Vec::new();
        let (inputs, outputs) = (Vec::new(), Vec::new());
        let begun = vec![vec![Begun::default(); threads.len()]; request.gpus.len()];
        Nccl { request, builder, inputs, outputs, connections, slices, collective, begun }
    }

    /// Joins two ranks one way. `largest` bounds the chunks that will pass, bytes.
    pub(super) fn connect(&mut self, from: u32, to: u32, largest: u64) -> ConnectionId {
        let slice = self.slices.slice().min(largest.next_multiple_of(16)) as u32;
        let connection = Connection::new(self.request, &mut self.builder, (from, to), slice);
        self.connections.push(connection);
        self.connections.len() - 1
    }

    /// Appends a primitive to a block.
    pub(super) fn run(&mut self, place: Place, primitive: Primitive) {
        self.begin(place, primitive);
        match self.request.protocol {
            Protocol::Simple => self.simple(place, primitive),
            Protocol::Ll => self.lines(place, primitive, Lines::Ll),
            Protocol::Ll128 => self.lines(place, primitive, Lines::Ll128),
        }
    }

    /// Adds a buffer in a rank's GPU.
    pub(super) fn buffer(&mut self, rank: u32, role: Role, bytes: u64) -> BufferId {
        let home = self.request.gpus[rank as usize];
        self.builder.buffer(rank, home, role, bytes)
    }

    /// Loads a part of a primitive's own data; `data` is its place within the call's data.
    fn load_own(&mut self, place: Place, primitive: Primitive, data: Part, action: Action) {
        let (buffer, at) = match primitive.source {
            Some(source) => source,
            None => (self.inputs[place.rank as usize], primitive.at),
        };
        let from = Part { offset: at + data.offset - primitive.at, bytes: data.bytes };
        self.builder.load_at(place.rank, place.block, buffer, from, data.offset, action);
    }

    /// Keeps a part of a primitive's result.
    fn keep(&mut self, place: Place, primitive: Primitive, data: Part) {
        let (buffer, at) = match primitive.target {
            Some(target) => target,
            None => (self.outputs[place.rank as usize], primitive.at),
        };
        let to = Part { offset: at + data.offset - primitive.at, bytes: data.bytes };
        self.builder.write_at(place.rank, place.block, buffer, to, data.offset);
    }

    /// A block of a rank waits until another block of it has come to a place; the flag is stored by
    /// [`Nccl::signal`].
    pub(super) fn wait(&mut self, place: Place, flag: MessageId) {
        self.push(place, Op::PollFlag { message: flag, acquire: false });
        self.push(place, Op::BlockBarrier);
    }

    /// A block of a rank says that it has come to a place.
    pub(super) fn signal(&mut self, place: Place, flags: &[MessageId]) {
        self.push(place, Op::BlockBarrier);
        if self.request.protocol == Protocol::Simple {
            self.push(place, Op::Fence);
        }
        flags.iter().for_each(|&flag| self.push(place, Op::Flag(flag)));
    }

    /// A flag within a rank's GPU.
    pub(super) fn flag(&mut self, rank: u32) -> MessageId {
        let home = self.request.gpus[rank as usize];
        self.builder.message(rank, rank, home, connection::FLAG, Lines::Plain)
    }

    /// Adds what lies at one place of a rank's memory to what lies at another.
    pub(super) fn reduce(
        &mut self,
        place: Place,
        from: (BufferId, u32),
        to: (BufferId, u32),
        length: u32,
    ) {
        let Place { rank, block } = place;
        for part in trips(0, length, 0, 1, self.threads(place)) {
            for ((buffer, at), action) in [(from, Action::Set), (to, Action::Add)] {
                let own = Part { offset: at + part.offset, bytes: part.bytes };
                self.builder.load_at(rank, block, buffer, own, part.offset, action);
            }
            self.push(place, Op::WaitLoads);
            let own = Part { offset: to.1 + part.offset, bytes: part.bytes };
            self.builder.write_at(rank, block, to.0, own, part.offset);
        }
    }

    /// What comes before a primitive: a look at the counters of the block's connections when it is
    /// the first, and its code when it is the first of its kind.
    fn begin(&mut self, place: Place, primitive: Primitive) {
        let Place { rank, block } = place;
        let ends = [primitive.receive, primitive.send];
        let by_host = ends.iter().flatten().any(|&id| self.connections[id].has_counters_in_host());
        let begun = &mut self.begun[rank as usize][block];
        begun.stores_to_host |= by_host;
        let (first, count) = (begun.kinds.is_empty(), begun.kinds.len());
        let (receive, send) = (primitive.receive.is_some(), primitive.send.is_some());
        begun.kinds.insert((receive, primitive.own, send, primitive.copy));
        let new = begun.kinds.len() > count;
        if self.request.kernel.is_probe() {
            return;
        }
        if first && by_host {
            // Counters in host memory are read over the link before anything else can be.
            let gpu = self.request.gpus[rank as usize];
            let memory = self.request.fabric.home_memory[gpu as usize];
            let read = memory.and_then(|memory| {
                self.request.fabric.read_latency(gpu as usize, memory, COUNTER_SECTOR)
            });
            self.push(place, Op::Delay(read.unwrap_or_default()));
        }
        if new && !first {
            self.push(place, Op::Delay(self.request.kernel.code(self.request.protocol)));
        }
    }

    /// Gives a block of one rank another number of threads.
    pub(super) fn set_threads(&mut self, place: Place, threads: u32) {
        self.builder.set_threads(place.rank, place.block, threads);
    }

    /// Says that `count` blocks from `first` on are groups of one thread block's warps.
    pub(super) fn set_groups(&mut self, first: usize, count: usize) {
        (first + 1..first + count).for_each(|block| self.builder.set_beside(block, first));
    }

    fn threads(&self, place: Place) -> u32 {
        self.builder.threads(place.rank, place.block)
    }

    fn push(&mut self, place: Place, op: Op) {
        self.builder.push(place.rank, place.block, op);
    }

    /// The finished schedule.
    pub(super) fn finish(mut self) -> Schedule {
        for rank in 0..self.request.ranks() {
            for block in 0..self.begun[rank as usize].len() {
                let place = Place { rank, block };
                self.push(place, Op::WaitPosts);
                // A kernel ends when its stores to host memory are visible.
                let to_host = self.begun[rank as usize][block].stores_to_host;
                if to_host && !self.request.kernel.is_probe() {
                    self.push(place, Op::Fence);
                }
            }
        }
        if !self.request.kernel.is_probe() {
            self.builder.push_all(Op::Delay(self.request.kernel.end));
        }
        self.builder.finish(self.request.bytes, self.collective)
    }
}
