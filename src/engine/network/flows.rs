//! Message-level networks: a pipe for each pair of memories and kind of traffic, first in first
//! out, at a rate that is the pair's own ([`super::alpha_beta`]) or shared ([`super::max_min`]).

use std::collections::{BTreeMap, VecDeque};

use super::max_min::{Demand, fair_rates};
use super::{Context, LinkUse, Load, NONE, Network, Notice, Store, Wrapped};
use crate::engine::pool::Pool;
use crate::fabric::regime::SlowedLink;
use crate::fabric::{EndpointId, Fabric, LinkId};
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
    Store(Store),
    Load { load: Load, seen: bool },
}

struct Pipe {
    /// Links of the payload and, for reads, of the requests, with femtoseconds per payload byte.
    costs: Vec<(LinkId, u64)>,
    /// How many of them, from the first on, carry the payload itself.
    payload_links: usize,
    /// Rate when alone, bytes per femtosecond.
    alone: f64,
    latency: Time,
    queue: VecDeque<u32>,
    /// Payload of the packets that `costs` holds for, and what each adds on the first link.
    packet: u32,
    overhead: u32,
    /// Bytes of the head not yet sent, in bytes of such packets.
    left: f64,
    rate: f64,
    updated: Time,
    generation: u32,
}

type Queue<'c> = Context<'c, Wrapped<Event>>;

/// The model; `SHARED` tells whether pipes share links.
pub struct Flows<'a, const SHARED: bool> {
    fabric: &'a Fabric,
    pipes: Vec<Pipe>,
    /// Pipe by payload source, payload target and kind of traffic: flags stay behind the data that
    /// they announce, as posted writes of one path do.
    index: BTreeMap<(EndpointId, EndpointId, TrafficKind), u32>,
    items: Pool<Item>,
    /// Pipes that move something, and how many of them use each link.
    active: Vec<u32>,
    users: Vec<u32>,
    slowed: Vec<SlowedLink>,
    stats: Vec<LinkUse>,
    hops: u64,
}

impl<'a, const SHARED: bool> Flows<'a, SHARED> {
    /// The model of a machine, at rest.
    pub fn new(fabric: &'a Fabric) -> Self {
        Flows {
            fabric,
            pipes: Vec::new(),
            index: BTreeMap::new(),
            items: Pool::new(),
            active: Vec::new(),
            users: vec![0; fabric.links.len()],
            slowed: Vec::new(),
            stats: vec![LinkUse::default(); fabric.links.len()],
            hops: 0,
        }
    }

    /// The pipe from one memory to another, made when first used.
    fn pipe(&mut self, from: EndpointId, to: EndpointId, kind: TrafficKind, packet: u32) -> u32 {
        if let Some(&pipe) = self.index.get(&(from, to, kind)) {
            return pipe;
        }
        let reads = kind != TrafficKind::PostedWrite;
        let pieces = match self.fabric.split(from, to) {
            0 => 1,
            split => packet.div_ceil(u32::from(split)).max(1),
        };
        let mut costs: Vec<(LinkId, u64)> = Vec::new();
        for &link in self.fabric.path(from, to).unwrap_or(&[]) {
            let record = &self.fabric.links[link as usize];
            let overhead = if reads { record.completion_overhead } else { record.write_overhead };
            // Acknowledgements of the requests travel with the data.
            let dllp = if reads { record.dllp } else { 0 };
            let wire = packet + overhead * pieces + dllp;
            let mut cost = record.fs_per_byte * u64::from(wire) / u64::from(packet);
            for slowed in self.slowed.iter().filter(|s| s.link == link && s.kind == kind) {
                // Links that share a cap get equal parts of it.
                cost = cost.max(slowed.rate.femtoseconds_per_byte() * slowed.sharing as u64);
            }
            costs.push((link, cost));
        }
        let latency = self.fabric.path_latency(from, to).unwrap_or_default();
        let payload_links = costs.len();
        let slowest = costs.iter().map(|entry| entry.1).max().unwrap_or(1).max(1);
        if reads {
            for &link in self.fabric.path(to, from).unwrap_or(&[]) {
                let record = &self.fabric.links[link as usize];
                let cost = record.fs_per_byte * u64::from(record.request) / u64::from(packet);
                costs.push((link, cost));
            }
        }
        self.pipes.push(Pipe {
            costs,
            payload_links,
            alone: 1.0 / slowest as f64,
            latency,
            packet,
            overhead: self.overhead(from, to, reads),
            queue: VecDeque::new(),
            left: 0.0,
            rate: 0.0,
            updated: Time::ZERO,
            generation: 0,
        });
        let pipe = self.pipes.len() as u32 - 1;
        self.index.insert((from, to, kind), pipe);
        pipe
    }

    /// What a packet adds to its payload on the first link of a path.
    fn overhead(&self, from: EndpointId, to: EndpointId, reads: bool) -> u32 {
        let first = self.fabric.path(from, to).and_then(|path| path.first());
        first.map_or(0, |&link| {
            let record = &self.fabric.links[link as usize];
            if reads { record.completion_overhead } else { record.write_overhead }
        })
    }

    /// An item's bytes as bytes of the pipe's own packets: small packets weigh more.
    fn weight(&self, pipe: u32, item: u32) -> f64 {
        let state = &self.pipes[pipe as usize];
        let (bytes, packet) = match self.items[item] {
            Item::Store(store) => (store.bytes, store.packet),
            Item::Load { load, .. } => (load.bytes, load.packet),
        };
        let wire = f64::from(bytes + bytes.div_ceil(packet.max(1)) * state.overhead);
        wire * f64::from(state.packet) / f64::from(state.packet + state.overhead)
    }

    fn bytes(&self, item: u32) -> u32 {
        match self.items[item] {
            Item::Store(store) => store.bytes,
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
        let shared = SHARED && self.touches_others(pipe);
        self.active.push(pipe);
        for &(link, _) in &self.pipes[pipe as usize].costs {
            self.users[link as usize] += 1;
        }
        if shared {
            self.share(now, context);
        } else {
            self.pipes[pipe as usize].rate = self.pipes[pipe as usize].alone;
            self.schedule(now, pipe, context);
        }
    }

    fn touches_others(&self, pipe: u32) -> bool {
        self.pipes[pipe as usize].costs.iter().any(|&(link, _)| self.users[link as usize] > 0)
    }

    /// Rates of all active pipes anew.
    fn share(&mut self, now: Time, context: &mut Queue<'_>) {
        for &pipe in &self.active {
            let state = &mut self.pipes[pipe as usize];
            let gone = (now - state.updated).as_ps() as f64 * 1e3 * state.rate;
            state.left = (state.left - gone).max(0.0);
            state.updated = now;
        }
        let demands: Vec<Demand<'_>> = self
            .active
            .iter()
            .map(|&pipe| Demand { costs: &self.pipes[pipe as usize].costs })
            .collect();
        let rates = fair_rates(self.users.len(), &demands);
        for (place, rate) in rates.into_iter().enumerate() {
            let pipe = self.active[place];
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
            Item::Store(store) => {
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
        self.active.retain(|&other| other != pipe);
        for &(link, _) in &self.pipes[pipe as usize].costs {
            self.users[link as usize] -= 1;
        }
        self.pipes[pipe as usize].rate = 0.0;
        if SHARED && self.touches_others(pipe) {
            self.share(now, context);
        }
    }

    /// A load's request is at its memory: the data enter their pipe.
    fn served(&mut self, now: Time, item: u32, context: &mut Queue<'_>) {
        let Item::Load { load, .. } = self.items[item] else {
            return;
        };
        let seen = load.poll.count > 0 && context.slots.all_visible(load.poll) <= now;
        self.items[item] = Item::Load { load, seen };
        let pipe = self.pipe(load.target, load.gpu, load.kind, load.packet);
        self.enter(now, pipe, item, context);
    }

    /// When the memory has the data of a load ready, after its request arrived.
    fn access(&self, load: &Load) -> Time {
        if self.fabric.is_gpu(load.target) {
            return self.fabric.gpus[load.target as usize].completer;
        }
        let memory = &self.fabric.memories[load.target as usize - self.fabric.gpu_count];
        memory.read + if load.cold { memory.cold } else { Time::ZERO }
    }

    fn visible_after(&self, target: EndpointId) -> Time {
        if self.fabric.is_gpu(target) {
            return self.fabric.gpus[target as usize].write_visible;
        }
        self.fabric.memories[target as usize - self.fabric.gpu_count].write_visible
    }
}

impl<const SHARED: bool> Network for Flows<'_, SHARED> {
    type Event = Event;
    const FUSES_WARPS: bool = true;

    fn store(&mut self, at: Time, store: Store, context: &mut Queue<'_>) {
        let item = self.items.keep(Item::Store(store));
        context.queue.push(at, Wrapped::Network(Event::Inject(item)));
    }

    fn load(&mut self, at: Time, load: Load, context: &mut Queue<'_>) {
        let item = self.items.keep(Item::Load { load, seen: false });
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
                Item::Store(store) => {
                    let kind = TrafficKind::PostedWrite;
                    let pipe = self.pipe(store.gpu, store.target, kind, store.packet);
                    self.enter(now, pipe, item, context);
                }
                Item::Load { load, .. } => {
                    let there = self.fabric.path_latency(load.gpu, load.target).unwrap_or_default();
                    let at = now + there + self.access(&load);
                    context.queue.push(at, Wrapped::Network(Event::Served(item)));
                }
            },
            Event::Served(item) => self.served(now, item, context),
            Event::Finish(pipe, generation) => {
                if self.pipes[pipe as usize].generation == generation {
                    self.finish(now, pipe, context);
                }
            }
            Event::Back(item) => {
                if let Item::Load { load, seen } = self.items.take(item) {
                    let (actor, bytes, poll_number) = (load.actor, load.bytes, load.poll_number);
                    let notice = Notice::Loaded { actor, at: now, poll_number, seen, bytes };
                    context.notices.push(notice);
                }
            }
            Event::Landed(item) => {
                if let Item::Store(store) = self.items.take(item) {
                    let visible = now + self.visible_after(store.target);
                    if store.copier != NONE {
                        context.notices.push(Notice::Arrived(store.copier, store.bytes, visible));
                    }
                    if store.slots.count > 0 {
                        context.notices.push(Notice::Visible(store.slots, visible));
                    }
                }
            }
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
}
