//! Which way traffic goes: shortest paths over the machine's graph, with the hardware's own rules.
//!
//! GPUs, NICs and memories do not forward. Direct NVLink beats PCIe. Equal paths are settled by the
//! lowest link number, and parallel socket links by a static hash, as the hardware does.

use petgraph::algo::astar;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use super::{LinkKind, NodeId, NodeKind, Topology};

/// One step of a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The link of [`Topology::links`] taken; `None` inside a chip (host bridge to its socket,
    /// socket to its memory, virtual switch to virtual switch).
    pub link: Option<usize>,
    /// Where the step starts.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
}

/// Path costs are in hundredths of a PCIe hop, so that NVLink is taken where it is direct.
const PCIE_HOP: u32 = 100;
const NVLINK_HOP: u32 = 10;
const ON_CHIP_HOP: u32 = 10;
const SOCKET_HOP: u32 = 150;
/// Through a node that does not forward: more than any open path, and a sum of it over all nodes
/// still fits.
const CLOSED: u64 = 1 << 40;

/// The machine's graph, ready to answer routes.
pub struct Router<'a> {
    topology: &'a Topology,
    graph: DiGraph<NodeId, (Option<usize>, u32)>,
}

impl<'a> Router<'a> {
    /// Builds the graph: an edge a direction for each link, and the steps inside chips.
    pub fn new(topology: &'a Topology) -> Router<'a> {
        let mut graph = DiGraph::new();
        for index in 0..topology.nodes.len() as u32 {
            graph.add_node(NodeId(index));
        }
        let at = |id: NodeId| NodeIndex::new(id.index());
        let mut both = |a: NodeId, b: NodeId, weight: (Option<usize>, u32)| {
            graph.add_edge(at(a), at(b), weight);
            graph.add_edge(at(b), at(a), weight);
        };
        for (index, link) in topology.links.iter().enumerate() {
            let cost = match link.kind {
                LinkKind::Pcie(_) => PCIE_HOP,
                LinkKind::Nvlink(_) => NVLINK_HOP,
                LinkKind::Xgmi(_) | LinkKind::Upi(_) => SOCKET_HOP,
                LinkKind::Network(_) => 10 * PCIE_HOP,
            };
            both(link.a, link.b, (Some(index), cost));
        }
        for (index, node) in topology.nodes.iter().enumerate() {
            let here = NodeId(index as u32);
            match &node.kind {
                NodeKind::HostBridge(_) | NodeKind::HostMemory(_) => {
                    if let Some(socket) = topology.socket_of(here) {
                        both(here, socket, (None, ON_CHIP_HOP));
                    }
                }
                NodeKind::PcieSwitch(_) => {
                    for other in topology.chip_of(here).into_iter().filter(|&other| other > here) {
                        both(here, other, (None, ON_CHIP_HOP));
                    }
                }
                _ => {}
            }
        }
        Router { topology, graph }
    }

    /// The steps from `source` to `target`; `None` when there is no way.
    pub fn route(&self, source: NodeId, target: NodeId) -> Option<Vec<Hop>> {
        let direct = self.shortest(source, target)?;
        let peers = [source, target].iter().all(|&id| self.is_device(id));
        let by_switches_only = direct.iter().all(|hop| {
            matches!(hop.link, Some(link) if matches!(self.topology.links[link].kind, LinkKind::Pcie(_)))
        }) && direct.iter().all(|hop| !matches!(self.topology.kind(hop.to), NodeKind::HostBridge(_)));
        if peers && by_switches_only && self.topology.settings.acs_redirect {
            return self.redirected(source, target).or(Some(direct));
        }
        Some(direct)
    }

    /// Up to the host bridge and down again, as ACS Request Redirect makes peer traffic go.
    fn redirected(&self, source: NodeId, target: NodeId) -> Option<Vec<Hop>> {
        let bridge = *self.topology.ancestors(source).last()?;
        if !matches!(self.topology.kind(bridge), NodeKind::HostBridge(_)) {
            return None;
        }
        let mut hops = self.shortest(source, bridge)?;
        hops.extend(self.shortest(bridge, target)?);
        Some(hops)
    }

    fn is_device(&self, id: NodeId) -> bool {
        matches!(self.topology.kind(id), NodeKind::Gpu(_) | NodeKind::Nic(_))
    }

    fn forwards(&self, id: NodeId) -> bool {
        !matches!(
            self.topology.kind(id),
            NodeKind::Gpu(_) | NodeKind::Nic(_) | NodeKind::HostMemory(_)
        )
    }

    fn shortest(&self, source: NodeId, target: NodeId) -> Option<Vec<Hop>> {
        let (start, goal) = (NodeIndex::new(source.index()), NodeIndex::new(target.index()));
        let (_, nodes) = astar(
            &self.graph,
            start,
            |node| node == goal,
            |edge| {
                let from = self.graph[edge.source()];
                let closed = from != source && !self.forwards(from);
                if closed { CLOSED } else { u64::from(edge.weight().1) }
            },
            |_| 0,
        )?;
        let mut hops = Vec::with_capacity(nodes.len());
        for pair in nodes.windows(2) {
            let (from, to) = (self.graph[pair[0]], self.graph[pair[1]]);
            if from != source && !self.forwards(from) {
                return None;
            }
            let link = self
                .graph
                .edges_connecting(pair[0], pair[1])
                .map(|edge| *edge.weight())
                .min_by_key(|&(link, cost)| (cost, link))?
                .0;
            hops.push(Hop { link, from, to });
        }
        Some(hops)
    }
}
