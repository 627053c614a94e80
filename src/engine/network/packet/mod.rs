//! Every packet by itself: class queues at each ingress port, credits, round robin per packet,
//! egress queues of GPUs, completers. PCIe switches have no virtual output queues, so head-of-line
//! blocking is real; an NVSwitch is a crossbar in which a packet waits for its own output only.
//!
//! A packet is one 16-byte value that moves from queue to queue. Where a port is idle and nothing
//! waits, a packet is sent on in the event of its arrival; only where packets compete does a port
//! have events of its own.

mod endpoint;
mod link;
mod memory;
mod multicast;
mod switch;
mod transaction;

use std::collections::VecDeque;

use super::{Context, LinkUse, Load, NONE, Network, Store, Wrapped};
use crate::engine::observer::Observer;
use crate::engine::pool::Pool;
use crate::engine::slots::SlotRange;
use crate::fabric::regime::SlowedLink;
use crate::fabric::{END_OF_PATH, EndpointId, Fabric, LinkId};
use crate::schedule::Schedule;
use crate::topology::TrafficKind;
use crate::units::Time;

use endpoint::Egress;
use memory::MemoryPort;
use multicast::Multicast;
use transaction::Transaction;

/// A packet on its way.
#[derive(Copy, Clone, Debug)]
pub struct Tlp {
    /// Where it is: index into the fabric's path links of the link it is on or waits for.
    cursor: u32,
    /// The transaction it belongs to; for the last write of a store, what to tell.
    transaction: u32,
    /// Payload bytes.
    payload: u16,
    /// Traffic class: [`POSTED`], [`NON_POSTED`] or [`COMPLETION`].
    class: u8,
    /// Flag bits below.
    flags: u8,
}

const POSTED: u8 = 0;
const NON_POSTED: u8 = 1;
const COMPLETION: u8 = 2;
/// The last packet of its transaction.
const LAST: u8 = 1;
/// Made by a copy engine.
const COPY: u8 = 2;
/// Cut into 64-byte pieces by a root complex on its way.
const SPLIT: u8 = 4;
/// A read of a host line for which other loads of this GPU may wait.
const LINE: u8 = 8;

/// To or from all members of a multicast group.
const MULTICAST: u8 = 16;
/// A remote atomic, or the old value that it returns.
const ATOMIC: u8 = 32;

/// Events of this model.
#[derive(Copy, Clone, Debug)]
pub enum Event {
    /// A packet is at the far end of a link.
    Arrive(LinkId, Tlp),
    /// A link may send the next packet.
    PortFree(LinkId),
    /// A store or load reaches its GPU's egress.
    Inject(u32),
    /// Completions of a read leave a memory or GPU.
    Complete(Tlp),
    /// A switch port has added a member's data to a sum.
    Reduced(LinkId, Tlp),
    /// A memory port has served a packet and its buffer is free.
    Served(LinkId, Tlp),
}

/// One directed link's sending side, and the queues behind it at the node it enters.
struct LinkState {
    busy_until: Time,
    /// A `PortFree` event is on its way.
    armed: bool,
    /// Something could be sent but for the credits of the far end.
    starved: bool,
    /// Round robin over the sending node's ingress ports.
    turn: u8,
    /// Bit p of class c: the head of that queue of the sending node's port p wants this link.
    waiting: [u128; 3],
    /// Buffer in use at the far end, by class.
    used: [u32; 3],
    /// Queues at the far end, by class, with the order of arrival and its time.
    queues: [VecDeque<Queued>; 3],
    /// What waits at a crossbar for this link to leave it, with the port whose buffer holds it. Its
    /// order is that of the copies of one packet, or none.
    crossing: VecDeque<(LinkId, Queued)>,
    arrivals: u32,
    /// Acknowledgement bytes owed to the other direction.
    debt: u32,
    /// The regulator that holds each kind of traffic, if a regime does.
    slowed: [Option<u32>; 3],
    stats: LinkUse,
}

impl LinkState {
    /// Bit p: some queue's head at the sending node's port p wants this link.
    fn ports_waiting(&self) -> u128 {
        self.waiting[0] | self.waiting[1] | self.waiting[2]
    }

    /// Whether anything at the sending node waits for this link.
    fn any_waits(&self) -> bool {
        self.ports_waiting() != 0 || !self.crossing.is_empty()
    }
}

#[derive(Copy, Clone)]
struct Queued {
    tlp: Tlp,
    order: u32,
    since: Time,
}

/// The packet model.
pub struct Packet<'a, O> {
    fabric: &'a Fabric,
    links: Vec<LinkState>,
    /// Entering link of each node and port.
    ports: Vec<Vec<LinkId>>,
    /// Egress of each link that leaves an endpoint.
    egress: Vec<Option<Egress>>,
    /// Stores and loads between their instructions and the egress.
    pending: Pool<Pending>,
    transactions: Pool<Transaction>,
    /// Rates that declared regimes hold groups of links to.
    regulators: Vec<Regulator>,
    memory_ports: Vec<Option<MemoryPort>>,
    /// When each host memory has moved all that it has taken.
    memory_busy: Vec<Time>,
    lines: memory::LineTable,
    multicast: Multicast<'a>,
    observer: O,
    hops: u64,
}

/// One rate for a group of links: when it has passed all that it has taken.
#[derive(Copy, Clone)]
struct Regulator {
    fs_per_byte: u64,
    free: Time,
}

/// A store or load between its instruction and the egress.
#[derive(Copy, Clone)]
enum Pending {
    Store(Store),
    Load(Load),
}

type Queue<'c> = Context<'c, Wrapped<Event>>;

impl<'a, O: Observer> Packet<'a, O> {
    /// The model of a machine, at rest, with who watches it.
    pub fn new(fabric: &'a Fabric, schedule: &Schedule, observer: O) -> Packet<'a, O> {
        let mut ports = vec![Vec::new(); fabric.node_count];
        for (index, link) in fabric.links.iter().enumerate() {
            debug_assert_eq!(ports[link.to as usize].len(), usize::from(link.in_port));
            ports[link.to as usize].push(index as LinkId);
        }
        let links = fabric
            .links
            .iter()
            .map(|_| LinkState {
                busy_until: Time::ZERO,
                armed: false,
                starved: false,
                turn: 0,
                waiting: [0; 3],
                used: [0; 3],
                queues: [VecDeque::new(), VecDeque::new(), VecDeque::new()],
                crossing: VecDeque::new(),
                arrivals: 0,
                debt: 0,
                slowed: [None; 3],
                stats: LinkUse::default(),
            })
            .collect();
        let egress = fabric
            .links
            .iter()
            .map(|link| {
                ((link.from as usize) < fabric.endpoint_count()).then(|| Egress::new(fabric, link))
            })
            .collect();
        let memory_ports = fabric
            .links
            .iter()
            .map(|link| {
                let target = link.to as usize;
                (target >= fabric.first_memory() && target < fabric.endpoint_count())
                    .then(|| MemoryPort::new(target - fabric.first_memory()))
            })
            .collect();
        Packet {
            fabric,
            links,
            ports,
            egress,
            pending: Pool::new(),
            transactions: Pool::new(),
            regulators: Vec::new(),
            memory_ports,
            memory_busy: vec![Time::ZERO; fabric.memories.len()],
            lines: memory::LineTable::new(fabric, schedule),
            multicast: Multicast::new(fabric, schedule),
            observer,
            hops: 0,
        }
    }

    fn first_link(&self, source: EndpointId, target: EndpointId) -> LinkId {
        let start = self.fabric.path_at(source, target);
        start.map_or(NONE, |start| self.fabric.path_links[start as usize])
    }
}

impl<O: Observer> Network for Packet<'_, O> {
    type Event = Event;
    type Observer = O;
    const FUSES_WARPS: bool = false;

    fn store(&mut self, at: Time, store: Store, context: &mut Queue<'_>) {
        let link = self.first_link(store.gpu, store.target);
        self.reserve(link, store.bytes);
        let index = self.pending.keep(Pending::Store(store));
        context.queue.push(at, Wrapped::Network(Event::Inject(index)));
    }

    fn load(&mut self, at: Time, load: Load, context: &mut Queue<'_>) {
        let index = self.pending.keep(Pending::Load(load));
        context.queue.push(at, Wrapped::Network(Event::Inject(index)));
    }

    fn has_room(&mut self, gpu: u32, target: EndpointId) -> bool {
        let link = self.first_link(gpu, target);
        self.egress[link as usize].as_mut().is_none_or(Egress::has_room)
    }

    fn want_room(&mut self, gpu: u32, target: EndpointId) {
        let link = self.first_link(gpu, target);
        if let Some(egress) = self.egress[link as usize].as_mut() {
            egress.want_room();
        }
    }

    fn drain(&self, gpu: u32, _now: Time) -> Time {
        let mut longest = Time::ZERO;
        for (link, egress) in self.egress.iter().enumerate() {
            if let Some(egress) = egress
                && self.fabric.links[link].from == gpu
            {
                longest = longest.max(self.fabric.links[link].serialization(egress.queued_bytes()));
            }
        }
        longest
    }

    fn handle(&mut self, now: Time, event: Event, context: &mut Queue<'_>) {
        match event {
            Event::Arrive(link, tlp) => self.arrive(now, link, tlp, context),
            Event::PortFree(link) => {
                self.links[link as usize].armed = false;
                self.serve(now, link, context);
            }
            Event::Inject(index) => self.inject(now, index, context),
            Event::Complete(tlp) => self.complete(now, tlp, context),
            Event::Reduced(link, tlp) => self.reduced(now, link, tlp, context),
            Event::Served(link, tlp) => self.served(now, link, tlp, context),
        }
    }

    fn set_slowed(&mut self, slowed: &[SlowedLink]) {
        for entry in slowed {
            let kind = traffic_index(entry.kind);
            self.links[entry.link as usize].slowed[kind] = Some(entry.group as u32);
            let regulator =
                Regulator { fs_per_byte: entry.rate.femtoseconds_per_byte(), free: Time::ZERO };
            if self.regulators.len() <= entry.group {
                self.regulators.resize(entry.group + 1, regulator);
            }
            self.regulators[entry.group] = regulator;
        }
    }

    fn link_use(&self) -> Vec<LinkUse> {
        self.links.iter().map(|link| link.stats).collect()
    }

    fn hops(&self) -> u64 {
        self.hops
    }

    fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    fn into_observer(self) -> O {
        self.observer
    }
}

fn traffic_index(kind: TrafficKind) -> usize {
    match kind {
        TrafficKind::PostedWrite => 0,
        TrafficKind::SmRead => 1,
        TrafficKind::CopyRead => 2,
    }
}

impl<O: Observer> Packet<'_, O> {
    /// The link that a packet takes after the one at its cursor, if any.
    fn next_link(&self, tlp: &Tlp) -> Option<LinkId> {
        let next = self.fabric.path_links[tlp.cursor as usize + 1];
        (next != END_OF_PATH).then_some(next)
    }

    fn visible(&self, slots: SlotRange, at: Time, context: &mut Queue<'_>) {
        if slots.count > 0 {
            context.notices.push(super::Notice::Visible(slots, at));
        }
    }
}
