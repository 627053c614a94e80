//! What message-level networks send through: a pipe over the links of a path, or over those of a
//! multicast group.

use std::collections::VecDeque;

use crate::fabric::regime::SlowedLink;
use crate::fabric::{EndpointId, Fabric, LinkId, MulticastGroup};
use crate::topology::TrafficKind;
use crate::units::Time;

/// Which pipe: payload source, payload target, kind of traffic, and group if there is one. Flags
/// stay behind the data that they announce, as posted writes of one path do.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PipeKey {
    pub(super) from: EndpointId,
    pub(super) to: EndpointId,
    pub(super) kind: TrafficKind,
    /// Index of a group, or none.
    pub(super) group: u32,
}

impl PipeKey {
    fn reads(&self) -> bool {
        self.kind != TrafficKind::PostedWrite
    }
}

/// A first in, first out pipe.
pub(super) struct Pipe {
    /// Links of the payload and, for reads, of the requests, with femtoseconds per payload byte.
    pub(super) costs: Vec<(LinkId, u64)>,
    /// How many of them, from the first on, carry the payload itself.
    pub(super) payload_links: usize,
    /// Rate when alone, bytes per femtosecond.
    pub(super) alone: f64,
    pub(super) latency: Time,
    pub(super) queue: VecDeque<u32>,
    /// Payload of the packets that `costs` holds for, and what each adds on the first link.
    pub(super) packet: u32,
    pub(super) overhead: u32,
    /// Bytes of the head not yet sent, in bytes of such packets.
    pub(super) left: f64,
    pub(super) rate: f64,
    pub(super) updated: Time,
    pub(super) generation: u32,
}

/// What the links of a pipe cost.
struct Costs<'a> {
    fabric: &'a Fabric,
    slowed: &'a [SlowedLink],
    kind: TrafficKind,
    /// Payload of a packet.
    packet: u32,
    /// Packets that each is cut into on its way.
    pieces: u32,
    /// Bytes that each is longer by.
    extra: u32,
    found: Vec<(LinkId, u64)>,
}

impl Costs<'_> {
    /// Adds what a link needs for a payload byte.
    fn payload(&mut self, link: LinkId) {
        let record = &self.fabric.links[link as usize];
        let reads = self.kind != TrafficKind::PostedWrite;
        let overhead = if reads { record.completion_overhead } else { record.write_overhead };
        // Acknowledgements of the requests travel with the data.
        let dllp = if reads { record.dllp } else { 0 };
        let wire = self.packet + overhead * self.pieces + dllp + self.extra;
        let mut cost = record.fs_per_byte * u64::from(wire) / u64::from(self.packet);
        for slowed in self.slowed.iter().filter(|s| s.link == link && s.kind == self.kind) {
            // Links that share a cap get equal parts of it.
            cost = cost.max(slowed.rate.femtoseconds_per_byte() * slowed.sharing as u64);
        }
        self.found.push((link, cost));
    }

    /// Adds what a link needs for the request of a payload byte.
    fn request(&mut self, link: LinkId) {
        let record = &self.fabric.links[link as usize];
        let cost = record.fs_per_byte * u64::from(record.request) / u64::from(self.packet);
        match self.found.iter_mut().find(|entry| entry.0 == link) {
            Some(entry) => entry.1 += cost,
            None => self.found.push((link, cost)),
        }
    }
}

impl Pipe {
    /// An empty pipe.
    pub(super) fn new(
        fabric: &Fabric,
        slowed: &[SlowedLink],
        group: Option<&MulticastGroup<'_>>,
        key: PipeKey,
        packet: u32,
    ) -> Pipe {
        let pieces = match fabric.split(key.from, key.to) {
            0 => 1,
            split => packet.div_ceil(u32::from(split)).max(1),
        };
        let (kind, found) = (key.kind, Vec::new());
        let mut costs = Costs { fabric, slowed, kind, packet, pieces, extra: 0, found };
        let (payload_links, latency) = match group {
            Some(group) => group_costs(&mut costs, group, key),
            None => path_costs(&mut costs, key),
        };
        let costs = costs.found;
        let slowest = costs[..payload_links].iter().map(|entry| entry.1).max().unwrap_or(1).max(1);
        let overhead = costs.first().map_or(0, |&(link, _)| {
            let record = &fabric.links[link as usize];
            if key.reads() { record.completion_overhead } else { record.write_overhead }
        });
        Pipe {
            costs,
            payload_links,
            alone: 1.0 / slowest as f64,
            latency,
            packet,
            overhead,
            queue: VecDeque::new(),
            left: 0.0,
            rate: 0.0,
            updated: Time::ZERO,
            generation: 0,
        }
    }
}

/// Costs along a path: how many links carry the payload, and the path's latency.
fn path_costs(costs: &mut Costs<'_>, key: PipeKey) -> (usize, Time) {
    let fabric = costs.fabric;
    for &link in fabric.path(key.from, key.to).unwrap_or(&[]) {
        costs.payload(link);
    }
    let payload_links = costs.found.len();
    if key.reads() {
        for &link in fabric.path(key.to, key.from).unwrap_or(&[]) {
            costs.request(link);
        }
    }
    (payload_links, fabric.path_latency(key.from, key.to).unwrap_or_default())
}

/// Costs of a group. A store goes up once and down to every member. A reduced load is read from
/// every member, by requests that the switch sends to all, and its sum goes down once.
fn group_costs(costs: &mut Costs<'_>, group: &MulticastGroup<'_>, key: PipeKey) -> (usize, Time) {
    let fabric = costs.fabric;
    let latency = |link: LinkId| fabric.links[link as usize].latency;
    let issuer = if key.reads() { key.to } else { key.from };
    let Some(own) = group.ports.iter().find(|port| port.gpu == issuer) else {
        return (0, Time::ZERO);
    };
    let ports = &group.ports;
    if !key.reads() {
        costs.extra = group.switch.overhead;
        costs.payload(own.up);
        ports.iter().for_each(|port| costs.payload(port.down));
        let farthest = ports.iter().map(|port| latency(port.down)).max().unwrap_or_default();
        return (costs.found.len(), latency(own.up) + farthest);
    }
    for port in ports {
        costs.payload(port.up);
        if let Some(entry) = costs.found.last_mut() {
            entry.1 = entry.1.max(group.switch.reduce_fs_per_byte);
        }
    }
    costs.payload(own.down);
    let payload_links = costs.found.len();
    costs.request(own.up);
    ports.iter().for_each(|port| costs.request(port.down));
    let farthest = ports.iter().map(|port| latency(port.up)).max().unwrap_or_default();
    (payload_links, farthest + group.switch.reduce_latency + latency(own.down))
}
