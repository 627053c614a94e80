//! Declared regimes: when the traffic of a schedule meets a regime's condition, and which links it
//! then slows.
//!
//! The engine never invents these; it applies what the topology file declares, and every result
//! they touch is also computed without them.

use std::collections::{BTreeMap, BTreeSet};

use super::{EndpointId, Fabric, LinkClass, LinkId};
use crate::topology::{Regime, RegimeScope, TrafficKind};
use crate::units::Bandwidth;

/// A regime as the engine sees it.
#[derive(Clone, Debug)]
pub struct FabricRegime {
    /// As declared.
    pub declared: Regime,
}

/// A flow of one traffic kind, from the GPU that issues it to the endpoint it addresses.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrafficFlow {
    /// What moves.
    pub kind: TrafficKind,
    /// The GPU that stores or loads.
    pub issuer: EndpointId,
    /// The memory it addresses.
    pub target: EndpointId,
}

/// A link that a regime slows, for one kind of traffic.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct SlowedLink {
    /// The link, in the direction of the payload.
    pub link: LinkId,
    /// What is slowed there.
    pub kind: TrafficKind,
    /// Payload rate that it and the links of the same group are held to together.
    pub rate: Bandwidth,
    /// Links that share the rate.
    pub group: usize,
    /// How many links share it.
    pub sharing: usize,
    /// Which declared regime does it.
    pub regime: usize,
}

impl FabricRegime {
    /// Takes over a declaration.
    pub fn of(declared: &Regime) -> FabricRegime {
        FabricRegime { declared: declared.clone() }
    }
}

impl Fabric {
    /// The links that the declared regimes slow under these flows.
    pub fn slowed_links(&self, flows: &BTreeSet<TrafficFlow>) -> Vec<SlowedLink> {
        let mut slowed = Vec::new();
        for (number, regime) in self.regimes.iter().enumerate() {
            self.apply(number, &regime.declared, flows, &mut slowed);
        }
        slowed
    }

    fn apply(
        &self,
        number: usize,
        regime: &Regime,
        flows: &BTreeSet<TrafficFlow>,
        slowed: &mut Vec<SlowedLink>,
    ) {
        // By uplink: which GPUs send through it, and to which root ports.
        let mut sources: BTreeMap<LinkId, BTreeSet<EndpointId>> = BTreeMap::new();
        let mut roots: BTreeMap<LinkId, BTreeSet<LinkId>> = BTreeMap::new();
        let mut crossing: Vec<(LinkId, &TrafficFlow)> = Vec::new();
        for flow in flows.iter().filter(|flow| flow.kind == regime.traffic) {
            let Some(path) = self.path(flow.issuer, flow.target) else {
                continue;
            };
            let crosses =
                path.iter().any(|&link| self.links[link as usize].class == LinkClass::Socket);
            if regime.across_sockets && !crosses {
                continue;
            }
            let Some((up, down)) = self.root_ports(path) else {
                continue;
            };
            sources.entry(up).or_default().insert(flow.issuer);
            roots.entry(up).or_default().insert(down);
            crossing.push((up, flow));
        }
        let struck = |up: &LinkId| {
            sources.get(up).map_or(0, BTreeSet::len) >= regime.sources_behind_uplink_min as usize
                && roots.get(up).map_or(0, BTreeSet::len) >= regime.destination_roots_min as usize
        };
        let cap = Bandwidth::from_gb_per_s(regime.cap_gb_per_s);
        let mut links: BTreeSet<LinkId> = BTreeSet::new();
        for (up, flow) in crossing.iter().filter(|(up, _)| struck(up)) {
            match regime.scope {
                RegimeScope::Uplink => {
                    links.insert(*up);
                }
                RegimeScope::SocketPair => links.extend(self.payload_socket_links(flow)),
            }
        }
        // A socket pair's cap holds for all its links of one direction together.
        let direction = |link: LinkId| match regime.scope {
            RegimeScope::Uplink => (link, 0),
            RegimeScope::SocketPair => {
                let (from, to) = self.links[link as usize].sockets.unwrap_or_default();
                (u32::from(from), u32::from(to) + 1)
            }
        };
        let mut directions: Vec<(u32, u32)> = links.iter().map(|&link| direction(link)).collect();
        directions.sort_unstable();
        directions.dedup();
        let first_group = slowed.iter().map(|entry| entry.group + 1).max().unwrap_or(0);
        for &link in &links {
            let own = direction(link);
            let place = directions.iter().position(|&other| other == own).unwrap_or(0);
            slowed.push(SlowedLink {
                link,
                kind: regime.traffic,
                rate: cap,
                group: first_group + place,
                sharing: links.iter().filter(|&&other| direction(other) == own).count(),
                regime: number,
            });
        }
    }

    /// The socket links that the flow's payload crosses: with the store, or back to the reader.
    fn payload_socket_links(&self, flow: &TrafficFlow) -> Vec<LinkId> {
        let payload_path = match flow.kind {
            TrafficKind::PostedWrite => self.path(flow.issuer, flow.target),
            TrafficKind::SmRead | TrafficKind::CopyRead => self.path(flow.target, flow.issuer),
        };
        payload_path
            .into_iter()
            .flatten()
            .copied()
            .filter(|&link| self.links[link as usize].class == LinkClass::Socket)
            .collect()
    }

    /// The links by which a path enters its first root complex and leaves its last.
    fn root_ports(&self, path: &[LinkId]) -> Option<(LinkId, LinkId)> {
        let socket_node = |node: u32| {
            self.links.iter().any(|link| {
                matches!(link.class, LinkClass::Socket | LinkClass::Memory) && link.from == node
            })
        };
        let up = path.iter().copied().find(|&link| socket_node(self.links[link as usize].to))?;
        let down =
            path.iter().copied().rev().find(|&l| socket_node(self.links[l as usize].from))?;
        Some((up, down))
    }
}
