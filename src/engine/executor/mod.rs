//! Runs the blocks of a schedule: actors (warps, or whole blocks) take their operations in order
//! and wait where the operation says so.

mod copy;
mod host;
mod host_reads;
mod multicast;
mod ops;
mod post;

use super::arrival::Arrivals;
use super::event_queue::EventQueue;
use super::network::{ActorId, Context, NONE, Network, Notice, Wrapped};
use super::outcome::{BlockUse, Outcome};
use super::slots::{SlotRange, Slots};
use crate::error::{Result, Stuck};
use host_reads::HostReads;
use std::collections::VecDeque;

use crate::fabric::{EndpointId, Fabric};
use crate::schedule::{Executor as BlockExecutor, Op, Schedule, WARP_BYTES, pages};
use crate::units::Time;

/// Choices of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOptions {
    /// How often the schedule is run, back to back.
    pub calls: u32,
    /// How long each rank computes before each call.
    pub arrivals: Arrivals,
    /// Bytes of blocks are counted from this time.
    pub counted_from: Time,
    /// End of a run of background blocks alone.
    pub stop_at: Time,
    /// Give up after this many events.
    pub events_max: u64,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            calls: 1,
            arrivals: Arrivals::AT_ONCE,
            counted_from: Time::ZERO,
            stop_at: Time::MAX,
            events_max: 20_000_000_000,
        }
    }
}

/// Runs a schedule over a network; gives back what happened, and who watched the network.
///
/// # Errors
/// When operations wait for each other or the event limit is reached.
pub fn run<N: Network>(
    fabric: &Fabric,
    schedule: &Schedule,
    mut network: N,
    options: RunOptions,
) -> Result<(Outcome, N::Observer)> {
    network.set_slowed(&fabric.slowed_links(&schedule.flows()));
    let (stop_at, events_max) = (options.stop_at, options.events_max);
    let mut machine = Machine::new(fabric, schedule, network, options);
    for actor in 0..machine.actors.len() as u32 {
        let rank = machine.blocks[machine.actors[actor as usize].block as usize].rank;
        let arrival = machine.options.arrivals.gap(0, rank as usize);
        machine.queue.push(arrival, Wrapped::Wake(actor));
    }
    while let Some((now, event)) = machine.queue.pop() {
        if now > stop_at || machine.running == 0 && machine.foreground {
            break;
        }
        machine.handle(now, event);
        machine.events += 1;
        if machine.events >= events_max {
            let (limit, waiting) = (events_max, machine.culprits());
            return Err(Stuck::EventLimit { limit, reached: now, waiting }.into());
        }
    }
    if machine.foreground && machine.running > 0 && stop_at == Time::MAX {
        return Err(Stuck::Deadlock { waiting: machine.culprits() }.into());
    }
    Ok(machine.outcome())
}

/// What an actor waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    /// Its next wake.
    Running,
    /// That at most this many of its loads are out.
    Loads(u32),
    /// Slots in its own memory, since then.
    Poll { slots: SlotRange, started: Time, acquire: bool },
    /// The return of its polling load.
    PollLoad { slots: SlotRange, started: Time, acquire: bool },
    /// The other warps of its block.
    Barrier,
    /// The other blocks of its rank.
    Kernel,
    /// Room in its GPU's egress.
    Room,
    /// Its copy.
    Copy,
    /// Nothing: it has ended.
    Done,
}

/// A copy under way.
#[derive(Copy, Clone, Debug, Default)]
struct CopyState {
    issued: u32,
    in_flight: u32,
    arrived: u32,
    next_issue: Time,
    armed: bool,
}

/// A warp, or a whole block where warps are fused.
struct Actor {
    block: u32,
    /// Which warp of its block.
    warp: u32,
    /// Next operation.
    position: u32,
    call: u32,
    outstanding: u32,
    /// When all its local loads are back.
    loads_done: Time,
    store_free: Time,
    /// Polls by load so far, when the last few were sent, and what the last one back took.
    poll_number: u32,
    polls_sent: [Time; POLLS_KEPT],
    poll_trip: PollTrip,
    /// Turns that it has still to wait for room.
    turns: u32,
    state: State,
    copy: CopyState,
}

/// What a poll by load took.
#[derive(Copy, Clone, Debug, Default)]
struct PollTrip {
    /// Until it was back.
    whole: Time,
    /// Of this, from the look at the memory on.
    back: Time,
}

/// Polls whose time of sending is kept: under load some come back after the actor went on.
const POLLS_KEPT: usize = 4;

impl Actor {
    /// When a poll was sent; `None` of one so long ago that it is forgotten.
    fn poll_sent(&self, number: u32) -> Option<Time> {
        let kept = self.poll_number - number < POLLS_KEPT as u32;
        kept.then(|| self.polls_sent[number as usize % POLLS_KEPT])
    }

    fn new(block: u32, warp: u32) -> Actor {
        Actor {
            block,
            warp,
            position: 0,
            call: 0,
            outstanding: 0,
            loads_done: Time::ZERO,
            store_free: Time::ZERO,
            poll_number: 0,
            polls_sent: [Time::ZERO; POLLS_KEPT],
            poll_trip: PollTrip::default(),
            turns: 0,
            state: State::Running,
            copy: CopyState::default(),
        }
    }
}

/// A block's state.
struct BlockState<'a> {
    rank: u32,
    gpu: u32,
    first_actor: u32,
    actor_count: u32,
    ops: &'a [Op],
    executor: BlockExecutor,
    background: bool,
    /// Its SM's unit for loads and stores, and when that is free, by the number of the first block.
    unit: u32,
    unit_free: Time,
    at_barrier: u32,
    /// When the last post has left.
    posted: Time,
    /// When a thread last looked at a counter of steps.
    looked: Time,
    used: BlockUse,
}

/// A rank's state.
struct RankState {
    first_actor: u32,
    actor_count: u32,
    /// Those of the kernel, which begins when all of them have ended the call before.
    meeting: u32,
    at_start: u32,
    /// When its host thread has done what it was asked for.
    host_free: Time,
}

struct Machine<'a, N: Network> {
    fabric: &'a Fabric,
    schedule: &'a Schedule,
    network: N,
    options: RunOptions,
    queue: EventQueue<Wrapped<N::Event>>,
    notices: Vec<Notice>,
    slots: Slots,
    slot_base: Vec<u32>,
    slots_per_call: u32,
    /// Address of each buffer and each message within its memory.
    buffer_address: Vec<u64>,
    message_address: Vec<u64>,
    actors: Vec<Actor>,
    blocks: Vec<BlockState<'a>>,
    ranks: Vec<RankState>,
    /// Reads of host memory under way, by GPU.
    host_reads: Vec<HostReads>,
    /// Actors waiting for room, by GPU.
    waiting_room: Vec<VecDeque<(ActorId, EndpointId)>>,
    /// Last store of each GPU to an NVLink peer.
    last_nvlink_store: Vec<Option<Time>>,
    call_ends: Vec<Vec<Time>>,
    /// Foreground actors that have not ended.
    running: u32,
    foreground: bool,
    now: Time,
    events: u64,
}

/// Pieces of a message that are polled apart.
fn pieces(bytes: u32) -> u32 {
    bytes.div_ceil(WARP_BYTES).max(1)
}

impl<'a, N: Network> Machine<'a, N> {
    fn new(
        fabric: &'a Fabric,
        schedule: &'a Schedule,
        network: N,
        options: RunOptions,
    ) -> Machine<'a, N> {
        let mut slot_base = Vec::with_capacity(schedule.messages.len());
        let mut slots_per_call = 0;
        for message in &schedule.messages {
            slot_base.push(slots_per_call);
            slots_per_call += pieces(message.bytes);
        }
        let mut next_address = vec![0_u64; fabric.endpoint_count()];
        let mut place = |home: u32, span: u64| {
            let at = next_address[home as usize];
            next_address[home as usize] += span;
            at
        };
        let buffer_address = schedule.buffers.iter().map(|b| place(b.home, b.span())).collect();
        let message_address =
            schedule.messages.iter().map(|m| place(m.home, pages(u64::from(m.bytes)))).collect();
        let (mut actors, mut blocks, mut ranks) = (Vec::new(), Vec::new(), Vec::new());
        let mut running = 0;
        for (number, rank) in schedule.ranks.iter().enumerate() {
            let first_of_rank = actors.len() as u32;
            let first_block = blocks.len() as u32;
            let mut meeting = 0;
            for block in &rank.blocks {
                let fused = N::FUSES_WARPS || block.executor != BlockExecutor::Sm;
                let count = if fused { 1 } else { block.threads.div_ceil(32).max(1) };
                let first_actor = actors.len() as u32;
                for warp in 0..count {
                    actors.push(Actor::new(blocks.len() as u32, warp));
                }
                running += if block.background { 0 } else { count };
                meeting += if block.executor == BlockExecutor::Proxy { 0 } else { count };
                blocks.push(BlockState {
                    rank: number as u32,
                    gpu: rank.gpu,
                    first_actor,
                    actor_count: count,
                    ops: &block.ops,
                    executor: block.executor,
                    background: block.background,
                    unit: block.beside.map_or(blocks.len() as u32, |first| first_block + first),
                    unit_free: Time::ZERO,
                    at_barrier: 0,
                    posted: Time::ZERO,
                    looked: Time::ZERO,
                    used: BlockUse::default(),
                });
            }
            ranks.push(RankState {
                first_actor: first_of_rank,
                actor_count: actors.len() as u32 - first_of_rank,
                meeting,
                at_start: 0,
                host_free: Time::ZERO,
            });
        }
        Machine {
            fabric,
            schedule,
            network,
            queue: EventQueue::new(),
            notices: Vec::new(),
            slots: Slots::new(slots_per_call as usize * options.calls as usize),
            slot_base,
            slots_per_call,
            buffer_address,
            message_address,
            host_reads: fabric.gpus.iter().map(|_| HostReads::default()).collect(),
            waiting_room: vec![VecDeque::new(); fabric.gpus.len()],
            last_nvlink_store: vec![None; fabric.gpus.len()],
            call_ends: vec![vec![Time::ZERO; ranks.len()]; options.calls as usize],
            options,
            running,
            foreground: running > 0,
            actors,
            blocks,
            ranks,
            now: Time::ZERO,
            events: 0,
        }
    }

    fn handle(&mut self, now: Time, event: Wrapped<N::Event>) {
        self.now = now;
        match event {
            Wrapped::Wake(actor) => self.advance(actor),
            Wrapped::Repoll(actor) => self.repoll(actor),
            Wrapped::Network(event) => {
                let mut context = Context {
                    queue: &mut self.queue,
                    notices: &mut self.notices,
                    slots: &self.slots,
                };
                self.network.handle(now, event, &mut context);
            }
        }
        // What the handling adds comes after.
        let mut next = 0;
        while let Some(&notice) = self.notices.get(next) {
            next += 1;
            self.notice(notice);
        }
        self.notices.clear();
    }

    fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Visible(range, at) => {
                for slot in range.iter() {
                    let waiter = self.slots.mark(slot, at);
                    if waiter != NONE {
                        self.poll_on(waiter);
                        self.remote_poll_on(waiter);
                    }
                }
            }
            Notice::Loaded { actor, target, at, looked, poll_number, seen, bytes } => {
                let block = self.actors[actor as usize].block as usize;
                self.read_back(self.blocks[block].gpu, target, at);
                if poll_number == 0 {
                    self.loaded(actor, at, bytes);
                } else {
                    self.polled(actor, (looked, at), poll_number, seen);
                }
            }
            Notice::Departed(actor, bytes) => self.copy_departed(actor, bytes),
            Notice::Arrived(actor, bytes, at) => self.copy_arrived(actor, bytes, at),
            Notice::Room(gpu) => {
                let waiting = &mut self.waiting_room[gpu as usize];
                let Some((actor, _)) = waiting.pop_front() else { return };
                if let Some(&(_, target)) = waiting.front() {
                    self.network.want_room(gpu, target);
                }
                self.actors[actor as usize].state = State::Running;
                self.queue.push(self.now, Wrapped::Wake(actor));
            }
        }
    }

    /// A load of `actor` is back.
    fn loaded(&mut self, actor: ActorId, at: Time, bytes: u32) {
        let block = self.actors[actor as usize].block as usize;
        let model = &self.fabric.gpus[self.blocks[block].gpu as usize];
        if at >= self.options.counted_from {
            self.blocks[block].used.loaded += u64::from(bytes);
        }
        if self.actors[actor as usize].state == State::Copy {
            return self.copy_arrived(actor, bytes, at);
        }
        let back = at + model.load_return;
        let record = &mut self.actors[actor as usize];
        record.outstanding -= 1;
        record.loads_done = record.loads_done.max(back);
        if let State::Loads(most) = record.state
            && record.outstanding <= most
        {
            let at = if most == 0 { record.loads_done } else { back };
            self.resume(actor, at);
        }
    }

    /// A poll by load that looked at the memory and is back at these times: it has seen its slots, or
    /// it is sent again.
    fn polled(&mut self, actor: ActorId, (looked, at): (Time, Time), number: u32, seen: bool) {
        let record = &mut self.actors[actor as usize];
        let block = record.block as usize;
        let model = &self.fabric.gpus[self.blocks[block].gpu as usize];
        let back = at + model.load_return;
        // Also one that nobody waits for any more tells how long polls take.
        if let Some(sent) = record.poll_sent(number) {
            let whole = back.saturating_sub(sent);
            record.poll_trip = PollTrip { whole, back: back.saturating_sub(looked) };
        }
        let State::PollLoad { acquire, .. } = record.state else { return };
        if number != record.poll_number {
            return;
        }
        if seen {
            let extra = model.poll_extra(acquire);
            self.note_look(actor, back, back.saturating_sub(looked));
            self.resume(actor, back + extra);
        } else {
            self.queue.push(back + model.poll_loop, Wrapped::Repoll(actor));
        }
    }

    /// Slots that an actor polls by loads are marked. Its first load may still see them; later ones
    /// come at no particular phase, so on average half a period passes before one looks, and then the
    /// way back.
    fn remote_poll_on(&mut self, actor: ActorId) {
        let State::PollLoad { slots, started, acquire } = self.actors[actor as usize].state else {
            return;
        };
        let Some(visible) = self.all_visible(actor, slots) else { return };
        let record = &self.actors[actor as usize];
        let model = &self.fabric.gpus[self.blocks[record.block as usize].gpu as usize];
        let PollTrip { whole, back } = record.poll_trip;
        let looks = started + whole.saturating_sub(back);
        if visible <= looks && record.poll_sent(record.poll_number) == Some(started) {
            return;
        }
        let at = visible + (whole + model.poll_loop) / 2 + back;
        let extra = model.poll_extra(acquire);
        self.note_look(actor, at, back);
        self.resume(actor, at + extra);
    }

    /// Lets an actor go on with its next operation at `at`.
    fn resume(&mut self, actor: ActorId, at: Time) {
        self.actors[actor as usize].state = State::Running;
        self.queue.push(at.max(self.now), Wrapped::Wake(actor));
    }

    /// Looks again at an actor that polls its own memory.
    fn poll_on(&mut self, actor: ActorId) {
        let State::Poll { slots, started, acquire } = self.actors[actor as usize].state else {
            return;
        };
        let Some(visible) = self.all_visible(actor, slots) else { return };
        let block = self.actors[actor as usize].block as usize;
        let model = &self.fabric.gpus[self.blocks[block].gpu as usize];
        if self.blocks[block].executor == BlockExecutor::Proxy {
            // What looking takes is part of the host thread's turn.
            return self.resume(actor, visible.max(started));
        }
        let seen = if visible <= started {
            started + model.poll_found
        } else {
            (visible + model.poll_detect).max(started + model.poll_found)
        };
        let (extra, ago) = (model.poll_extra(acquire), model.local_load / 2);
        self.note_look(actor, seen, ago);
        self.resume(actor, seen + extra);
    }

    /// When the last of the slots is visible; if one is not marked yet, the actor waits for it.
    fn all_visible(&mut self, actor: ActorId, slots: SlotRange) -> Option<Time> {
        let missing = slots.iter().find(|&slot| self.slots.visible(slot) == Time::MAX);
        if let Some(missing) = missing {
            self.slots.wait(missing, actor);
            return None;
        }
        Some(self.slots.all_visible(slots))
    }

    /// Who waits for what, when nothing can go on.
    fn culprits(&self) -> Vec<String> {
        let waiting = self.actors.iter().filter(|actor| {
            actor.state != State::Done && !self.blocks[actor.block as usize].background
        });
        waiting
            .take(8)
            .map(|actor| {
                let block = &self.blocks[actor.block as usize];
                let op = block.ops.get(actor.position.saturating_sub(1) as usize);
                format!(
                    "rank {} block {} warp {} in call {} at operation {} ({op:?}), state {:?}",
                    block.rank, actor.block, actor.warp, actor.call, actor.position, actor.state
                )
            })
            .collect()
    }

    fn outcome(self) -> (Outcome, N::Observer) {
        let mut blocks: Vec<Vec<BlockUse>> = vec![Vec::new(); self.ranks.len()];
        for block in &self.blocks {
            blocks[block.rank as usize].push(block.used);
        }
        let outcome = Outcome {
            arrivals: self.options.arrivals,
            call_ends: self.call_ends,
            calls: self.options.calls,
            links: self.network.link_use(),
            blocks,
            counted_from: self.options.counted_from,
            ended: self.now,
            events: self.events,
            hops: self.network.hops(),
        };
        (outcome, self.network.into_observer())
    }
}
