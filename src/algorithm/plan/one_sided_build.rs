//! A plan -> a schedule, by stores into the memory of peers.

use std::collections::{BTreeMap, BTreeSet};

use super::one_sided::{SemaphoreId, steps};
use super::{Move, OneSidedGpu, OneSidedKind, Piece, Plan};
use crate::algorithm::Request;
use crate::algorithm::lines::line_trips;
use crate::schedule::build::{Builder, Part, slice, trips};
use crate::schedule::{Action, BufferId, Lines, MessageId, Op, Schedule};
use crate::units::Time;

/// Threads of a block that the plan does not give.
const THREADS: u32 = 1024;
/// Bytes of a semaphore.
const SEMAPHORE: u32 = 4;
/// Packets of MSCCL++'s executor: 8 data and 8 flag bytes.
const PACKETS: Lines = Lines::Ll;

/// The schedule of a plan without faults, of bytes that its chunks divide.
pub(super) fn build(plan: &Plan, gpus: &[OneSidedGpu], request: &Request<'_>) -> Schedule {
    let blocks = gpus.iter().map(|gpu| gpu.blocks.len()).max().unwrap_or(0).max(1);
    let threads = plan.threads.unwrap_or(THREADS).clamp(32, 1024).next_multiple_of(32);
    let mut builder = Builder::new(plan.name.clone(), &request.gpus, blocks, threads);
    if let Some(start) = request.kernel.start_op(blocks) {
        builder.push_all(start);
    }
    let addressed = addressed(gpus);
    let mut spaces = Vec::new();
    for (rank, gpu) in (0..).zip(gpus) {
        let own = request.gpus[rank as usize];
        let home = if addressed.contains(&rank) { request.home(rank) } else { own };
        let add = |role, bytes| builder.buffer(rank, home, role, bytes);
        spaces.push(plan.spaces((rank, gpu.scratch), request.bytes, add));
    }
    let chunk = (request.bytes / u64::from(plan.chunks)) as u32;
    let (packets, semaphores) = (BTreeMap::new(), BTreeMap::new());
    let mut run = Run { request, builder, spaces, chunk, threads, packets, semaphores };
    run.messages(gpus);
    for (rank, gpu) in (0..).zip(gpus) {
        for (number, block) in gpu.blocks.iter().enumerate() {
            for step in &block.steps {
                run.step((rank, number), &step.kind);
            }
        }
    }
    run.builder.push_all(Op::Delay(request.kernel.end));
    run.builder.finish(request.bytes, plan.collective)
}

/// Ranks whose memory others address.
fn addressed(gpus: &[OneSidedGpu]) -> BTreeSet<u32> {
    let mut ranks = BTreeSet::new();
    for (rank, step) in steps(gpus) {
        if let OneSidedKind::Move(moved) = &step.kind {
            let pieces = moved.from.iter().chain(&moved.to);
            ranks.extend(pieces.map(|piece| piece.rank).filter(|of| *of != rank));
        }
    }
    ranks
}

struct Run<'a> {
    request: &'a Request<'a>,
    builder: Builder,
    /// Of each rank the buffers of input, output and scratch, with the first byte of each.
    spaces: Vec<[(BufferId, u32); 3]>,
    /// Bytes of a chunk.
    chunk: u32,
    threads: u32,
    /// Packets of a rank's chunk of scratch.
    packets: BTreeMap<(u32, u32), MessageId>,
    /// Flags of each semaphore: how many were made for signals, and the waits' next.
    semaphores: BTreeMap<SemaphoreId, (Vec<MessageId>, [usize; 2])>,
}

impl Run<'_> {
    /// Makes the packets and flags that will be stored.
    fn messages(&mut self, gpus: &[OneSidedGpu]) {
        for (rank, step) in steps(gpus) {
            match &step.kind {
                OneSidedKind::Move(moved) => {
                    for piece in moved.to.iter().filter(|piece| piece.packets) {
                        for chunk in piece.chunk..piece.chunk + moved.count {
                            self.packet(rank, piece.rank, chunk);
                        }
                    }
                }
                OneSidedKind::Signal { to, channel, .. } => {
                    let home = self.request.inbox(rank, *to);
                    let flag = self.builder.message(rank, *to, home, SEMAPHORE, Lines::Plain);
                    self.semaphores.entry((rank, *to, *channel)).or_default().0.push(flag);
                }
                OneSidedKind::Wait { .. } | OneSidedKind::Compute(_) => {}
            }
        }
    }

    fn packet(&mut self, from: u32, to: u32, chunk: u32) {
        if !self.packets.contains_key(&(to, chunk)) {
            let home = self.request.inbox(from, to);
            let message = self.builder.message(from, to, home, self.chunk, PACKETS);
            self.packets.insert((to, chunk), message);
        }
    }

    /// The flag of the next signal (side 0) or wait (side 1) of a semaphore.
    fn flag(&mut self, semaphore: SemaphoreId, side: usize) -> Option<MessageId> {
        let (flags, next) = self.semaphores.get_mut(&semaphore)?;
        next[side] += 1;
        flags.get(next[side] - 1).copied()
    }

    fn step(&mut self, (rank, block): (u32, usize), kind: &OneSidedKind) {
        match kind {
            OneSidedKind::Move(moved) => self.moved((rank, block), moved),
            OneSidedKind::Signal { to, channel, fenced } => {
                self.builder.push(rank, block, Op::BlockBarrier);
                if *fenced {
                    self.builder.push(rank, block, Op::Fence);
                }
                if let Some(flag) = self.flag((rank, *to, *channel), 0) {
                    self.builder.push(rank, block, Op::Flag(flag));
                }
            }
            OneSidedKind::Wait { from, channel } => {
                if let Some(message) = self.flag((*from, rank, *channel), 1) {
                    let poll = Op::PollFlag { message, acquire: false };
                    self.builder.push(rank, block, poll);
                }
                self.builder.push(rank, block, Op::BlockBarrier);
            }
            OneSidedKind::Compute(ns) => {
                self.builder.push(rank, block, Op::Delay(Time::from_ns(*ns as f64)));
            }
        }
    }

    fn moved(&mut self, place: (u32, usize), moved: &Move) {
        let (share, of) = moved.share;
        let packets = moved.from.iter().chain(&moved.to).any(|piece| piece.packets);
        if packets {
            for index in 0..moved.count {
                let split = (share as usize, of as usize);
                for trip in line_trips(PACKETS, (0, self.chunk), split, self.threads) {
                    self.trip(place, moved, index, trip.data, Some(trip.wire));
                }
            }
        } else {
            // Chunks of a move lie one after another.
            let (start, length) = slice(u64::from(self.chunk) * u64::from(moved.count), of, share);
            for part in trips(start, length, 0, 1, self.threads) {
                self.trip(place, moved, 0, part, None);
            }
        }
    }

    /// One trip over a part of the chunk `index` of a move, `wire` of its packets.
    fn trip(
        &mut self,
        (rank, block): (u32, usize),
        moved: &Move,
        index: u32,
        part: Part,
        wire: Option<Part>,
    ) {
        let data = index * self.chunk + part.offset;
        for (number, piece) in moved.from.iter().enumerate() {
            let action = if number == 0 { Action::Set } else { Action::Add };
            match wire.filter(|_| piece.packets) {
                Some(Part { offset, bytes }) => {
                    let message = self.packets[&(piece.rank, piece.chunk + index)];
                    let poll = Op::Poll { message, offset, bytes, data, action };
                    self.builder.push(rank, block, poll);
                    self.builder.push(rank, block, Op::Delay(self.request.kernel.line_trip));
                }
                None => {
                    let (buffer, at) = self.place(piece, index, part);
                    self.builder.load_at(rank, block, buffer, at, data, action);
                }
            }
        }
        self.builder.push(rank, block, Op::WaitLoads);
        if wire.is_none() {
            self.builder.push(rank, block, Op::Delay(self.request.kernel.trip));
        }
        for piece in &moved.to {
            match wire.filter(|_| piece.packets) {
                Some(Part { offset, bytes }) => {
                    let message = self.packets[&(piece.rank, piece.chunk + index)];
                    let send = Op::Send { message, offset, bytes, data };
                    self.builder.push(rank, block, send);
                }
                None => {
                    let (buffer, at) = self.place(piece, index, part);
                    self.builder.write_at(rank, block, buffer, at, data);
                }
            }
        }
    }

    /// Where a part of a chunk lies.
    fn place(&self, piece: &Piece, index: u32, part: Part) -> (BufferId, Part) {
        let (buffer, first) = self.spaces[piece.rank as usize][piece.space as usize];
        let offset = first + (piece.chunk + index) * self.chunk + part.offset;
        (buffer, Part { offset, bytes: part.bytes })
    }
}
