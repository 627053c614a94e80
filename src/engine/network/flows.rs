//! Message-level networks: a pipe for each pair of memories and kind of traffic, first in first
//! out, at a rate that is the pair's own ([`super::alpha_beta`]) or shared ([`super::max_min`]).

use std::collections::BTreeMap;

use super::max_min::Sharing;
use super::pipe::{Pipe, PipeKey};
use super::{Context, LinkUse, Load, NONE, Network, Notice, Store, Wrapped};
use crate::engine::observer::Unobserved;
use crate::engine::pool::Pool;
use crate::fabric::regime::SlowedLink;
use crate::fabric::{EndpointId, Fabric, MulticastGroup};
use crate::schedule::Schedule;
use crate::topology::TrafficKind;
use crate::units::Time;

/// Events of these models.
#[derive(Copy, Clone, Debug)]
pub enum Event {
    /// A store or load reaches its GPU's egress.
    Inject(u32),
    /// A load's request is at its memory.
    Served(u32),
    /// The head of a pipe has left, if the pipe's rate is still that of this generation.
    Finish(u32, u32),
    /// A load's data are back.
    Back(u32),
    /// A store's data are visible.
    Landed(u32),
}

/// What moves through a pipe.
#[derive(Copy, Clone)]
enum Item {
    /// `answer`: the load of a remote atomic whose request this is.
    Store {
        store: Store,
        answer: u32,
    },
    Load {
        load: Load,
        seen: bool,
        looked: Time,
    },
}

type Queue<'c> = Context<'c, Wrapped<Event>>;

/// The model; `SHARED` tells whether pipes share links.
pub struct Flows<'a, const SHARED: bool> {
    fabric: &'a Fabric,
    pipes: Vec<Pipe>,
    index: BTreeMap<PipeKey, u32>,
    groups: Vec<Option<MulticastGroup<'a>>>,
    items: Pool<Item>,
    /// Pipes that move something, where they share links.
    sharing: Sharing,
    slowed: Vec<SlowedLink>,
    stats: Vec<LinkUse>,
    observer: Unobserved,
    hops: u64,
}

impl<'a, const SHARED: bool> Flows<'a, SHARED> {
    /// The model of a machine, at rest.
    pub fn new(fabric: &'a Fabric, schedule: &Schedule) -> Self {
        Flows {
            fabric,
            groups: schedule.groups.iter().map(|gpus| fabric.multicast(gpus).ok()).collect(),
            pipes: Vec::new(),
            index: BTreeMap::new(),
            items: Pool::new(),
            sharing: Sharing::new(fabric.links.len()),
            slowed: Vec::new(),
            stats: vec![LinkUse::default(); fabric.links.len()],
            observer: Unobserved,
            hops: 0,
        }
    }

    /// The pipe of a key, made when first used.
    fn pipe(&mut self, key: PipeKey, packet: u32) -> u32 {
        if let Some(&pipe) = self.index.get(&key) {
            return pipe;
        }
        let group = self.group(key.group);
        let pipe = Pipe::new(self.fabric, &self.slowed, group, key, packet);
        self.pipes.push(pipe);
        let pipe = self.pipes.len() as u32 - 1;
        self.index.insert(key, pipe);
        pipe
    }

    fn group(&self, group: u32) -> Option<&MulticastGroup<'a>> {
        self.groups.get(group as usize)?.as_ref()
    }

    /// An item's bytes as bytes of the pipe's own packets: small packets weigh more.
    fn weight(&self, pipe: u32, item: u32) -> f64 {
        let state = &self.pipes[pipe as usize];
        let (bytes, packet) = match self.items[item] {
            Item::Store { store, .. } => (store.bytes, store.packet),
            Item::Load { load, .. } => (load.bytes, load.packet),
        };
        let wire = f64::from(bytes + bytes.div_ceil(packet.max(1)) * state.overhead);
        wire * f64::from(state.packet) / f64::from(state.packet + state.overhead)
    }

    fn bytes(&self, item: u32) -> u32 {
        match self.items[item] {
            Item::Store { store, .. } => store.bytes,
            Item::Load { load, .. } => load.bytes,
        }
    }

    /// Puts an item into a pipe.
    fn enter(&mut self, now: Time, pipe: u32, item: u32, context: &mut Queue<'_>) {
        let bytes = u64::from(self.bytes(item));
        let weight = self.weight(pipe, item);
        for index in 0..self.pipes[pipe as usize].costs.len() {
            let (link, cost) = self.pipes[pipe as usize].costs[index];
            let record = &self.fabric.links[link as usize];
            let busy = Time::from_ps((weight * cost as f64 / 1e3) as u64);
            let stats = &mut self.stats[link as usize];
            stats.busy += busy;
            stats.wire_bytes += busy.as_ps() * 1000 / record.fs_per_byte.max(1);
            let carries = index < self.pipes[pipe as usize].payload_links;
            stats.payload_bytes += if carries { bytes } else { 0 };
            stats.packets += 1;
            self.hops += 1;
        }
        let state = &mut self.pipes[pipe as usize];
        state.queue.push_back(item);
        if state.queue.len() == 1 {
            state.left = weight;
            state.updated = now;
            self.start(now, pipe, context);
        }
    }

    fn start(&mut self, now: Time, pipe: u32, context: &mut Queue<'_>) {
        let state = &mut self.pipes[pipe as usize];
        if SHARED {
            let touches = self.sharing.touches(&state.costs);
            self.sharing.begin(pipe, &state.costs);
            if touches {
                return self.share(now, context);
            }
        }
        state.rate = state.alone;
        self.schedule(now, pipe, context);
    }

    /// Rates of all active pipes anew.
    fn share(&mut self, now: Time, context: &mut Queue<'_>) {
        for &pipe in &self.sharing.active {
            let state = &mut self.pipes[pipe as usize];
            let gone = (now - state.updated).as_ps() as f64 * 1e3 * state.rate;
            state.left = (state.left - gone).max(0.0);
            state.updated = now;
        }
        let pipes = &self.pipes;
        self.sharing.fill(|pipe| &pipes[pipe as usize].costs);
        for place in 0..self.sharing.active.len() {
            let pipe = self.sharing.active[place];
            let rate = self.sharing.rates[pipe as usize];
            let state = &mut self.pipes[pipe as usize];
            if (state.rate - rate).abs() > rate * 1e-12 || state.generation == 0 {
                state.rate = rate;
                self.schedule(now, pipe, context);
            }
        }
    }

    fn schedule(&mut self, now: Time, pipe: u32, context: &mut Queue<'_>) {
        let state = &mut self.pipes[pipe as usize];
        state.generation += 1;
        let needs = Time::from_ps((state.left / state.rate / 1e3).ceil() as u64);
        let event = Event::Finish(pipe, state.generation);
        context.queue.push(now + needs, Wrapped::Network(event));
    }

    /// The head of a pipe has left: it travels on, and the next one starts.
    fn finish(&mut self, now: Time, pipe: u32, context: &mut Queue<'_>) {
        let state = &mut self.pipes[pipe as usize];
        let latency = state.latency;
        let Some(item) = state.queue.pop_front() else {
            return;
        };
        let next = state.queue.front().copied();
        match self.items[item] {
            Item::Store { store, .. } => {
                if store.copier != NONE {
                    context.notices.push(Notice::Departed(store.copier, store.bytes));
                }
                context.queue.push(now + latency, Wrapped::Network(Event::Landed(item)));
            }
            Item::Load { .. } => {
                context.queue.push(now + latency, Wrapped::Network(Event::Back(item)));
            }
        }
        if let Some(next) = next {
            let left = self.weight(pipe, next);
            let state = &mut self.pipes[pipe as usize];
            state.left = left;
            state.updated = now;
            self.schedule(now, pipe, context);
            return;
        }
        let state = &mut self.pipes[pipe as usize];
        state.rate = 0.0;
        if SHARED {
            self.sharing.end(pipe, &state.costs);
            if self.sharing.touches(&state.costs) {
                self.share(now, context);
            }
        }
    }

    /// A load's request is at its memory: the data enter their pipe.
    fn served(&mut self, now: Time, item: u32, context: &mut Queue<'_>) {
        let Item::Load { load, .. } = self.items[item] else {
            return;
        };
        let seen = load.poll.count > 0 && context.slots.all_visible(load.poll) <= now;
        // It is read half way between the request and the answer.
        let looked = now.saturating_sub(self.access(&load) / 2);
        self.items[item] = Item::Load { load, seen, looked };
        let (from, to, kind, group) = (load.target, load.gpu, load.kind, load.group);
        let pipe = self.pipe(PipeKey { from, to, kind, group }, load.packet);
        self.enter(now, pipe, item, context);
    }

    /// A store, or the request of a remote atomic, enters its pipe.
    fn send(&mut self, now: Time, store: Store, item: u32, context: &mut Queue<'_>) {
        let (from, to, group) = (store.gpu, store.target, store.group);
        let kind = TrafficKind::PostedWrite;
        let pipe = self.pipe(PipeKey { from, to, kind, group }, store.packet);
        self.enter(now, pipe, item, context);
    }

    /// A load's requests are sent: those of an atomic travel behind the stores before them.
    fn ask(&mut self, now: Time, load: Load, item: u32, context: &mut Queue<'_>) {
        if load.marks.count > 0 {
            let (gpu, target) = (load.gpu, load.target);
            let packet = self.fabric.gpus[gpu as usize].sm_tlp;
            let store = Store { slots: load.marks, ..Store::new(gpu, target, load.bytes, packet) };
            let request = self.items.keep(Item::Store { store, answer: item });
            return self.send(now, store, request, context);
        }
        let there = self.fabric.path_latency(load.gpu, load.target).unwrap_or_default();
        let at = now + there + self.access(&load);
        context.queue.push(at, Wrapped::Network(Event::Served(item)));
    }

    /// A store's last byte is at its memory.
    fn landed(&mut self, now: Time, item: u32, context: &mut Queue<'_>) {
        let Item::Store { store, answer } = self.items.take(item) else { return };
        let visible = now + self.visible_after(store.target);
        if store.copier != NONE {
            context.notices.push(Notice::Arrived(store.copier, store.bytes, visible));
        }
        let members = self.group(store.group).map_or(1, |group| group.ports.len());
        for member in (0..members).filter(|_| store.slots.count > 0) {
            context.notices.push(Notice::Visible(store.member_slots(member), visible));
        }
        if answer != NONE
            && let Item::Load { load, .. } = self.items[answer]
        {
            let at = now + self.access(&load);
            context.queue.push(at, Wrapped::Network(Event::Served(answer)));
        }
    }

    /// When the memory has the data of a load ready, after its request arrived.
    fn access(&self, load: &Load) -> Time {
        if self.fabric.is_gpu(load.target) {
            let gpu = &self.fabric.gpus[load.target as usize];
            let atomic = if load.marks.count > 0 { gpu.atomic } else { Time::ZERO };
            return gpu.completer + atomic;
        }
        let memory = &self.fabric.memories[load.target as usize - self.fabric.first_memory()];
        memory.read + if load.cold { memory.cold } else { Time::ZERO }
    }

    fn visible_after(&self, target: EndpointId) -> Time {
        if self.fabric.is_gpu(target) {
            return self.fabric.gpus[target as usize].write_visible;
        }
        self.fabric.memories[target as usize - self.fabric.first_memory()].write_visible
    }
}

impl<const SHARED: bool> Network for Flows<'_, SHARED> {
    type Event = Event;
    type Observer = Unobserved;
    const FUSES_WARPS: bool = true;

    fn store(&mut self, at: Time, store: Store, context: &mut Queue<'_>) {
        let item = self.items.keep(Item::Store { store, answer: NONE });
        context.queue.push(at, Wrapped::Network(Event::Inject(item)));
    }

    fn load(&mut self, at: Time, load: Load, context: &mut Queue<'_>) {
        let item = self.items.keep(Item::Load { load, seen: false, looked: Time::ZERO });
        context.queue.push(at, Wrapped::Network(Event::Inject(item)));
    }

    fn has_room(&mut self, _gpu: u32, _target: EndpointId) -> bool {
        true
    }

    fn want_room(&mut self, _gpu: u32, _target: EndpointId) {}

    fn drain(&self, _gpu: u32, _now: Time) -> Time {
        Time::ZERO
    }

    fn handle(&mut self, now: Time, event: Event, context: &mut Queue<'_>) {
        match event {
            Event::Inject(item) => match self.items[item] {
                Item::Store { store, .. } => self.send(now, store, item, context),
                Item::Load { load, .. } => self.ask(now, load, item, context),
            },
            Event::Served(item) => self.served(now, item, context),
            Event::Finish(pipe, generation) => {
                if self.pipes[pipe as usize].generation == generation {
                    self.finish(now, pipe, context);
                }
            }
            Event::Back(item) => {
                if let Item::Load { load, seen, looked } = self.items.take(item) {
                    let Load { actor, target, bytes, poll_number, .. } = load;
                    context.notices.push(Notice::Loaded {
                        actor,
                        target,
                        at: now,
                        looked,
                        poll_number,
                        seen,
                        bytes,
                    });
                }
            }
            Event::Landed(item) => self.landed(now, item, context),
        }
    }

    fn set_slowed(&mut self, slowed: &[SlowedLink]) {
        self.slowed = slowed.to_vec();
    }

    fn link_use(&self) -> Vec<LinkUse> {
        self.stats.clone()
    }

    fn hops(&self) -> u64 {
        self.hops
    }

    fn observer(&mut self) -> &mut Unobserved {
        &mut self.observer
    }

    fn into_observer(self) -> Unobserved {
        self.observer
    }
}
