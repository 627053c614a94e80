//! What each operation costs and starts.

use super::super::network::{ActorId, Context, Load, Network, Notice, Store, Wrapped};
use super::super::observer::Observer;
use super::super::slots::SlotRange;
use super::{Machine, POLLS_KEPT, PollTrip, State, pieces};
use crate::fabric::{EndpointId, LinkClass};
use crate::schedule::{BufferId, Executor as BlockExecutor, MessageId, Op, WARP_BYTES};
use crate::topology::TrafficKind;
use crate::units::Time;

/// A flag store occupies the store unit for this share of a full warp's store.
const FLAG_SHARE: u64 = 4;
/// Bytes of a line, the unit in which loads wait for room.
const LINE: u32 = 128;
/// Bytes of a flag.
pub(super) const FLAG: u32 = 4;
/// Bytes of the sector that a poll of a flag reads.
pub(super) const SECTOR: u32 = 32;

/// What comes of one operation.
pub(super) enum Next {
    /// The next one may start now.
    Now,
    /// The next one starts at this time.
    At(Time),
    /// The actor waits; something else will wake it.
    Waits,
    /// It has to be tried again.
    Retry,
}

impl<N: Network> Machine<'_, N> {
    /// Runs an actor's operations until one of them takes time or waits.
    pub(super) fn advance(&mut self, actor: ActorId) {
        let record = &self.actors[actor as usize];
        let watched = (record.warp == 0).then_some(record.block);
        let now = self.now;
        if let Some(block) = watched {
            self.network.observer().goes_on(block, now);
        }
        loop {
            let record = &self.actors[actor as usize];
            let block = record.block as usize;
            let Some(&op) = self.blocks[block].ops.get(record.position as usize) else {
                if !self.end_call(actor) {
                    if let Some(block) = watched {
                        self.network.observer().goes_on(block, now);
                    }
                    return;
                }
                continue;
            };
            let (call, position) = (record.call, record.position);
            if let Some(block) = watched {
                self.network.observer().begins(block, call, position, now);
            }
            match self.operate(actor, block, op) {
                Next::Now => self.actors[actor as usize].position += 1,
                Next::At(time) => {
                    self.actors[actor as usize].position += 1;
                    if time > self.now {
                        self.queue.push(time, Wrapped::Wake(actor));
                        return;
                    }
                }
                Next::Waits => {
                    self.actors[actor as usize].position += 1;
                    return;
                }
                Next::Retry => return,
            }
        }
    }

    /// Notes the end of a call; true when the actor begins another.
    fn end_call(&mut self, actor: ActorId) -> bool {
        let now = self.now;
        let record = &mut self.actors[actor as usize];
        let block = &mut self.blocks[record.block as usize];
        block.used.ended = now;
        if block.background {
            record.position = 0;
            // A background block without operations would spin for ever.
            assert!(!block.ops.is_empty(), "background blocks have operations");
            return true;
        }
        // A kernel does not wait for the host thread that serves it, nor the thread for a kernel.
        let proxy = block.executor == BlockExecutor::Proxy;
        if !proxy {
            let end = &mut self.call_ends[record.call as usize][block.rank as usize];
            *end = (*end).max(now);
        }
        if record.call + 1 < self.options.calls {
            record.call += 1;
            record.position = 0;
            if proxy || self.options.arrivals.at_once() {
                return true;
            }
            let (call, rank) = (record.call as usize, block.rank as usize);
            let gap = self.options.arrivals.gap(call, rank);
            self.meet(actor, rank, gap);
            return false;
        }
        record.state = State::Done;
        self.running -= 1;
        false
    }

    /// The actor's bytes of an operation: offset from the operation's start, and how many.
    pub(super) fn share(&self, actor: ActorId, bytes: u32) -> (u32, u32) {
        let record = &self.actors[actor as usize];
        if N::FUSES_WARPS {
            return (0, bytes);
        }
        let start = record.warp * WARP_BYTES;
        (start, bytes.saturating_sub(start).min(WARP_BYTES))
    }

    fn operate(&mut self, actor: ActorId, block: usize, op: Op) -> Next {
        let first_warp = self.actors[actor as usize].warp == 0;
        match op {
            Op::KernelStart(time) => self.kernel_start(actor, block, time),
            Op::Delay(time) => Next::At(self.now + time),
            Op::HostTurn(time) => self.host_turn(block, time),
            Op::Load { buffer, offset, bytes, kind, .. } => {
                self.load_buffer(actor, block, (buffer, offset), bytes, kind)
            }
            Op::WaitLoads => self.wait_loads(actor, 0),
            // The load of a move's own data is under way while earlier stores are issued.
            Op::Write { buffer: to, bytes, .. } | Op::Move { to, bytes, .. } => {
                let (_, bytes) = self.share(actor, bytes);
                if bytes == 0 {
                    return Next::Now;
                }
                let home = self.schedule.buffers[to as usize].home;
                self.store(actor, block, self.sm_store(block, home, bytes))
            }
            Op::Send { message, offset, bytes, .. } => {
                self.send(actor, block, message, offset, bytes)
            }
            Op::Poll { message, offset, bytes, .. } => {
                self.poll_each(actor, block, (message, 1), offset, bytes)
            }
            Op::PollEach { base, count, offset, bytes, .. } => {
                self.poll_each(actor, block, (base, count), offset, bytes)
            }
            Op::Flag(_)
            | Op::PollFlag { .. }
            | Op::PollCredit(_)
            | Op::PollStep(_)
            | Op::Post { .. }
            | Op::WaitPosts
            | Op::SignalPeers { .. }
            | Op::PollPeers { .. }
            | Op::Fence
                if !first_warp =>
            {
                Next::Now
            }
            Op::Flag(message) if self.is_proxy(block) => self.host_flag(actor, message),
            Op::Flag(message) => self.flag(actor, block, message),
            Op::PollFlag { message, acquire } => {
                let slot = SlotRange::one(self.slot(actor, message, 0));
                self.poll(actor, block, message, slot, SECTOR, acquire)
            }
            Op::PollCredit(message) => self.poll_credit(actor, block, message),
            Op::SignalPeers { base, index, count } => {
                self.signal_peers(actor, block, base + index * count, index, count)
            }
            Op::PollPeers { base, index, count, acquire } => {
                let first = self.slot(actor, base + index, 0);
                // A flag is one slot, so a column of the matrix steps by the length of a row.
                let slots = SlotRange { first, count, stride: count };
                self.poll(actor, block, base + index, slots, SECTOR, acquire)
            }
            Op::Fence => self.fence(block),
            Op::PollStep(message) => self.poll_step(actor, block, message),
            Op::Post { message, fenced } => self.post(actor, block, message, fenced),
            Op::WaitPosts => Next::At(self.blocks[block].posted.max(self.now)),
            Op::BlockBarrier => self.block_barrier(actor, block),
            Op::Copy { .. } => self.copy_start(actor, block),
            Op::LoadReduce { .. }
            | Op::WriteAll { .. }
            | Op::SendAll { .. }
            | Op::FlagAll { .. }
            | Op::AtomicPeers { .. } => self.for_group(actor, block, op),
        }
    }

    /// Stores a flag message.
    fn flag(&mut self, actor: ActorId, block: usize, message: MessageId) -> Next {
        let slots = SlotRange::one(self.slot(actor, message, 0));
        let record = self.schedule.messages[message as usize];
        let store = self.sm_store(block, record.home, record.bytes);
        self.store(actor, block, Store { slots, ..store })
    }

    /// Stores an actor's part of a message.
    fn send(
        &mut self,
        actor: ActorId,
        block: usize,
        message: MessageId,
        offset: u32,
        bytes: u32,
    ) -> Next {
        let (skip, bytes) = self.share(actor, bytes);
        if bytes == 0 {
            return Next::Now;
        }
        let first = self.slot(actor, message, (offset + skip) / WARP_BYTES);
        let slots = SlotRange { first, count: pieces(bytes), stride: 1 };
        let home = self.schedule.messages[message as usize].home;
        self.store(actor, block, Store { slots, ..self.sm_store(block, home, bytes) })
    }

    /// Goes on when a credit has been seen, at once if that was before.
    fn poll_credit(&mut self, actor: ActorId, block: usize, message: MessageId) -> Next {
        let model = &self.fabric.gpus[self.blocks[block].gpu as usize];
        let slots = SlotRange::one(self.slot(actor, message, 0));
        let visible = self.slots.visible(slots.first);
        if visible <= self.now {
            return Next::At((visible + model.poll_detect).max(self.now));
        }
        if self.schedule.messages[message as usize].home != self.blocks[block].gpu {
            return self.poll(actor, block, message, slots, SECTOR, false);
        }
        // It has been looking for a while: what a first look costs is behind it.
        let started = self.now.saturating_sub(model.poll_found);
        self.actors[actor as usize].state = State::Poll { slots, started, acquire: false };
        self.poll_on(actor);
        Next::Waits
    }

    /// Loads an actor's part of a buffer from an offset on.
    fn load_buffer(
        &mut self,
        actor: ActorId,
        block: usize,
        (buffer, offset): (BufferId, u32),
        bytes: u32,
        kind: TrafficKind,
    ) -> Next {
        let (skip, bytes) = self.share(actor, bytes);
        if bytes == 0 {
            return Next::Now;
        }
        let from = self.schedule.buffers[buffer as usize];
        let address = self.buffer_address[buffer as usize] + u64::from(offset + skip);
        let load = self.sm_load(actor, block, from.home, bytes);
        self.load(actor, block, Load { address, kind, cold: from.cold, ..load })
    }

    /// Polls an actor's part of some messages of equal size: the first of them, and how many.
    fn poll_each(
        &mut self,
        actor: ActorId,
        block: usize,
        (base, count): (MessageId, u32),
        offset: u32,
        bytes: u32,
    ) -> Next {
        let (skip, bytes) = self.share(actor, bytes);
        if bytes == 0 {
            return Next::Now;
        }
        let first = self.slot(actor, base, (offset + skip) / WARP_BYTES);
        let stride = pieces(self.schedule.messages[base as usize].bytes);
        let slots = if count == 1 {
            // A block that is one actor may be told in other trips than it polls.
            SlotRange { first, count: pieces(bytes), stride: 1 }
        } else {
            SlotRange { first, count, stride }
        };
        self.poll(actor, block, base, slots, bytes * count, false)
    }

    pub(super) fn slot(&self, actor: ActorId, message: MessageId, piece: u32) -> u32 {
        let call = self.actors[actor as usize].call;
        call * self.slots_per_call + self.slot_base[message as usize] + piece
    }

    /// All blocks of a rank meet, then pass `time`.
    fn kernel_start(&mut self, actor: ActorId, block: usize, time: Time) -> Next {
        let rank = self.blocks[block].rank as usize;
        self.meet(actor, rank, time);
        Next::Waits
    }

    /// An actor waits for all of its rank, then for `time`.
    fn meet(&mut self, actor: ActorId, rank: usize, time: Time) {
        self.ranks[rank].at_start += 1;
        self.actors[actor as usize].state = State::Kernel;
        if self.ranks[rank].at_start == self.ranks[rank].meeting {
            self.ranks[rank].at_start = 0;
            let first = self.ranks[rank].first_actor;
            for other in first..first + self.ranks[rank].actor_count {
                if !self.is_proxy(self.actors[other as usize].block as usize) {
                    self.resume(other, self.now + time);
                }
            }
        }
    }

    fn block_barrier(&mut self, actor: ActorId, block: usize) -> Next {
        let state = &mut self.blocks[block];
        let cost = self.fabric.gpus[state.gpu as usize].block_barrier;
        state.at_barrier += 1;
        self.actors[actor as usize].state = State::Barrier;
        if state.at_barrier == state.actor_count {
            state.at_barrier = 0;
            let (first, count) = (state.first_actor, state.actor_count);
            for other in first..first + count {
                self.resume(other, self.now + cost);
            }
        }
        Next::Waits
    }

    pub(super) fn wait_loads(&mut self, actor: ActorId, most: u32) -> Next {
        let record = &mut self.actors[actor as usize];
        if record.outstanding > most {
            record.state = State::Loads(most);
            return Next::Waits;
        }
        Next::At(record.loads_done.max(self.now))
    }

    /// A load of a memory by this actor, as an SM makes it.
    pub(super) fn sm_load(
        &self,
        actor: ActorId,
        block: usize,
        from: EndpointId,
        bytes: u32,
    ) -> Load {
        let gpu = self.blocks[block].gpu;
        Load::new(gpu, from, bytes, self.fabric.gpus[gpu as usize].sm_read, actor)
    }

    /// A store to a memory by this block, as an SM makes it.
    pub(super) fn sm_store(&self, block: usize, to: EndpointId, bytes: u32) -> Store {
        let gpu = self.blocks[block].gpu;
        Store::new(gpu, to, bytes, self.fabric.gpus[gpu as usize].sm_tlp)
    }

    /// A load of one warp (or block).
    pub(super) fn load(&mut self, actor: ActorId, block: usize, load: Load) -> Next {
        let Load { gpu, target: home, bytes, .. } = load;
        let model = &self.fabric.gpus[gpu as usize];
        let local = home == gpu;
        let by_host = !local && !self.fabric.is_gpu(home);
        if by_host && self.actors[actor as usize].outstanding >= model.loads_overlap_host {
            // Tried again when one of them is back.
            self.actors[actor as usize].state = State::Loads(model.loads_overlap_host - 1);
            return Next::Retry;
        }
        if !local
            && self.queues_with_stores(gpu, home)
            && !self.admitted(actor, gpu, home, bytes.div_ceil(LINE))
        {
            return Next::Retry;
        }
        let warps = u64::from(bytes.div_ceil(WARP_BYTES));
        let unit = self.blocks[block].unit as usize;
        let start = self.now.max(self.blocks[unit].unit_free);
        self.blocks[unit].unit_free = start + model.sm_load_interval * warps;
        let record = &mut self.actors[actor as usize];
        if local {
            let back = start + model.sm_load_interval * warps + model.local_load;
            record.loads_done = record.loads_done.max(back);
            return Next::Now;
        }
        record.outstanding += 1;
        self.issue_load(start + model.load_request, load);
        Next::Now
    }

    /// Whether loads wait behind stalled stores: on PCIe they do, on NVLink not
    /// (`measured/h200-nvlink-pair`: 1.3 to 2.1 us beside saturated stores).
    fn queues_with_stores(&self, gpu: u32, home: EndpointId) -> bool {
        self.fabric.first_class(gpu, home) == Some(LinkClass::Pcie)
    }

    /// Whether an access may enter its GPU's egress now; otherwise the actor waits its turn there,
    /// once for a store, once for every line of a load: the queue before the egress is one.
    fn admitted(&mut self, actor: ActorId, gpu: u32, home: EndpointId, turns: u32) -> bool {
        let record = &mut self.actors[actor as usize];
        match record.turns {
            0 if self.network.has_room(gpu, home) => return true,
            0 => record.turns = turns,
            1 => {
                record.turns = 0;
                return true;
            }
            _ => record.turns -= 1,
        }
        record.state = State::Room;
        self.network.want_room(gpu, home);
        self.waiting_room[gpu as usize].push_back((actor, home));
        false
    }

    /// A store of one warp (or block): waits for the SM's store unit and for room in the egress.
    pub(super) fn store(&mut self, actor: ActorId, block: usize, store: Store) -> Next {
        let Store { gpu, target: home, bytes, .. } = store;
        if home != gpu && !self.admitted(actor, gpu, home, 1) {
            return Next::Retry;
        }
        let model = &self.fabric.gpus[gpu as usize];
        let (full, warp) = match home == gpu {
            true => (model.sm_local_store_interval, model.sm_local_store_interval),
            false => (model.sm_store_interval, model.warp_store_interval),
        };
        let unit = Time::from_ps(
            (full.as_ps() * u64::from(bytes) / u64::from(WARP_BYTES))
                .max(full.as_ps() / FLAG_SHARE),
        );
        let record = &mut self.actors[actor as usize];
        let number = self.blocks[block].unit as usize;
        let start = self.now.max(self.blocks[number].unit_free).max(record.store_free);
        let issued = start + unit;
        self.blocks[number].unit_free = issued;
        let state = &mut self.blocks[block];
        record.store_free = start + if N::FUSES_WARPS { unit } else { warp };
        if start >= self.options.counted_from {
            state.used.stored += u64::from(bytes);
        }
        self.put(store, start, issued);
        Next::At(issued)
    }

    /// Sends a store that its SM issues from `start` to `issued`, or notes it in the GPU's own memory.
    pub(super) fn put(&mut self, store: Store, start: Time, issued: Time) {
        let Store { gpu, target: home, slots, .. } = store;
        let model = &self.fabric.gpus[gpu as usize];
        if home == gpu {
            if slots.count > 0 {
                self.notices.push(Notice::Visible(slots, issued + model.local_store_visible));
            }
            return;
        }
        if self.fabric.first_class(gpu, home) == Some(LinkClass::Nvlink) {
            self.last_nvlink_store[gpu as usize] = Some(self.now);
        }
        self.issue_store(start + model.store_pipeline, store);
    }

    pub(super) fn issue_store(&mut self, at: Time, store: Store) {
        let mut context =
            Context { queue: &mut self.queue, notices: &mut self.notices, slots: &self.slots };
        self.network.store(at, store, &mut context);
    }

    pub(super) fn issue_load(&mut self, at: Time, load: Load) {
        self.read_sent(at, &load);
        let mut context =
            Context { queue: &mut self.queue, notices: &mut self.notices, slots: &self.slots };
        self.network.load(at, load, &mut context);
    }

    /// Stores the flags of a row of the matrix, its own among them at once.
    fn signal_peers(
        &mut self,
        actor: ActorId,
        block: usize,
        row: MessageId,
        index: u32,
        count: u32,
    ) -> Next {
        let own = self.slot(actor, row + index, 0);
        self.notices.push(Notice::Visible(SlotRange::one(own), self.now));
        let mut last = self.now;
        for peer in (0..count).filter(|&peer| peer != index) {
            let message = row + peer;
            let slot = SlotRange::one(self.slot(actor, message, 0));
            let record = self.schedule.messages[message as usize];
            // One warp instruction with a lane a peer: the egress is not refused to flags.
            self.actors[actor as usize].store_free = Time::ZERO;
            let gpu = self.blocks[block].gpu;
            if record.home != gpu {
                self.network.has_room(gpu, record.home);
            }
            let store = Store { slots: slot, ..self.sm_store(block, record.home, FLAG) };
            last = last.max(self.flag_store(block, store));
        }
        Next::At(last)
    }

    /// A flag store that does not wait for room.
    pub(super) fn flag_store(&mut self, block: usize, store: Store) -> Time {
        let model = &self.fabric.gpus[store.gpu as usize];
        let unit = self.blocks[block].unit as usize;
        let start = self.now.max(self.blocks[unit].unit_free);
        let issued = start + model.flag_lane;
        self.blocks[unit].unit_free = issued;
        self.put(store, start, issued);
        issued
    }

    pub(super) fn poll(
        &mut self,
        actor: ActorId,
        block: usize,
        message: MessageId,
        slots: SlotRange,
        bytes: u32,
        acquire: bool,
    ) -> Next {
        let gpu = self.blocks[block].gpu;
        let home = self.schedule.messages[message as usize].home;
        if home == gpu || self.is_proxy(block) {
            self.actors[actor as usize].state = State::Poll { slots, started: self.now, acquire };
            self.poll_on(actor);
        } else {
            let idle = self.fabric.read_latency(gpu as usize, home, bytes).unwrap_or_default();
            let record = &mut self.actors[actor as usize];
            record.state = State::PollLoad { slots, started: self.now, acquire };
            if record.poll_trip.whole < idle {
                record.poll_trip = PollTrip { whole: idle, back: idle / 2 };
            }
            self.poll_load(actor, block, message, slots, bytes);
            self.remote_poll_on(actor);
        }
        Next::Waits
    }

    fn poll_load(
        &mut self,
        actor: ActorId,
        block: usize,
        message: MessageId,
        slots: SlotRange,
        bytes: u32,
    ) {
        let gpu = self.blocks[block].gpu;
        let model = &self.fabric.gpus[gpu as usize];
        let record = &mut self.actors[actor as usize];
        record.poll_number += 1;
        let poll_number = record.poll_number;
        record.polls_sent[poll_number as usize % POLLS_KEPT] = self.now;
        let home = self.schedule.messages[message as usize].home;
        let load = Load {
            address: self.message_address[message as usize],
            poll_number,
            poll: slots,
            ..Load::new(gpu, home, bytes, model.sm_read, actor)
        };
        self.issue_load(self.now + model.load_request, load);
    }

    /// Sends a poll by load again.
    pub(super) fn repoll(&mut self, actor: ActorId) {
        let record = &mut self.actors[actor as usize];
        if record.state == State::Copy {
            record.copy.armed = false;
            return self.copy_issue(actor);
        }
        let record = &self.actors[actor as usize];
        let block = record.block as usize;
        let State::PollLoad { slots, .. } = record.state else {
            return;
        };
        let op = self.blocks[block].ops[record.position as usize - 1];
        let (message, bytes) = match op {
            Op::Poll { message, bytes, .. } => (message, self.share(actor, bytes).1),
            Op::PollEach { base, count, bytes, .. } => (base, count * self.share(actor, bytes).1),
            Op::PollFlag { message, .. } | Op::PollCredit(message) | Op::PollStep(message) => {
                (message, SECTOR)
            }
            Op::PollPeers { base, index, .. } => (base + index, SECTOR),
            _ => return,
        };
        self.poll_load(actor, block, message, slots, bytes);
    }
}
