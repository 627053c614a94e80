//! How near two GPUs are, in nvidia-smi's words.

use std::fmt;

use super::{GpuIndex, LinkKind, NodeId, NodeKind, Topology};

/// The classes of `nvidia-smi topo -m`, nearest first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathType {
    /// Bonded NVLinks, with their number.
    Nv(u8),
    /// At most one PCIe switch.
    Pix,
    /// Several PCIe switches, no host bridge.
    Pxb,
    /// One host bridge.
    Phb,
    /// Several host bridges of one NUMA node.
    Node,
    /// Across NUMA nodes, most often sockets.
    Sys,
}

impl fmt::Display for PathType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathType::Nv(links) => write!(out, "NV{links}"),
            PathType::Pix => out.write_str("PIX"),
            PathType::Pxb => out.write_str("PXB"),
            PathType::Phb => out.write_str("PHB"),
            PathType::Node => out.write_str("NODE"),
            PathType::Sys => out.write_str("SYS"),
        }
    }
}

impl Topology {
    /// The chain from a node up to its host bridge: the node, its switches, the bridge. PCIe only,
    /// parents by distance to a bridge; empty tail when there is none.
    pub fn ancestors(&self, node: NodeId) -> Vec<NodeId> {
        // Breadth first over PCIe links from the node; GPUs do not forward.
        let mut previous: Vec<Option<NodeId>> = vec![None; self.nodes.len()];
        let mut seen = vec![false; self.nodes.len()];
        let mut frontier = vec![node];
        seen[node.index()] = true;
        while !frontier.is_empty() {
            let mut next = Vec::new();
            for &here in &frontier {
                if matches!(self.kind(here), NodeKind::HostBridge(_)) {
                    let mut chain = vec![here];
                    let mut at = here;
                    while let Some(before) = previous[at.index()] {
                        chain.push(before);
                        at = before;
                    }
                    chain.reverse();
                    return chain;
                }
                if here != node && matches!(self.kind(here), NodeKind::Gpu(_)) {
                    continue;
                }
                for link in &self.links {
                    if !matches!(link.kind, LinkKind::Pcie(_)) {
                        continue;
                    }
                    let other = if link.a == here {
                        link.b
                    } else if link.b == here {
                        link.a
                    } else {
                        continue;
                    };
                    if !seen[other.index()] {
                        seen[other.index()] = true;
                        previous[other.index()] = Some(here);
                        next.push(other);
                    }
                }
            }
            frontier = next;
        }
        vec![node]
    }

    /// Direct NVLinks between two GPUs, or through one NVSwitch (then the smaller bond).
    fn nvlinks_between(&self, a: NodeId, b: NodeId) -> Option<u8> {
        let bond = |x: NodeId, y: NodeId| {
            self.links.iter().find_map(|link| match link.kind {
                LinkKind::Nvlink(nv)
                    if (link.a, link.b) == (x, y) || (link.a, link.b) == (y, x) =>
                {
                    Some(nv.links)
                }
                _ => None,
            })
        };
        if let Some(links) = bond(a, b) {
            return Some(links);
        }
        self.ids_where(|kind| matches!(kind, NodeKind::NvSwitch(_)))
            .into_iter()
            .find_map(|switch| Some(bond(a, switch)?.min(bond(switch, b)?)))
    }

    /// Ranks, in either order, whose GPUs are behind no common switch and have no NVLink: NCCL joins
    /// them through host memory unless told otherwise (`NCCL_P2P_LEVEL` defaults to PXB).
    ///
    /// # Panics
    /// When an index is not that of a GPU.
    pub fn ranks_apart(&self, gpus: &[u32]) -> Vec<(u32, u32)> {
        let ranks = 0..gpus.len();
        let apart = |a: usize, b: usize| {
            let path = self.path_type(gpus[a] as usize, gpus[b] as usize);
            a != b && matches!(path, PathType::Phb | PathType::Node | PathType::Sys)
        };
        let pairs = ranks.clone().flat_map(|a| ranks.clone().map(move |b| (a, b)));
        pairs.filter(|&(a, b)| apart(a, b)).map(|(a, b)| (a as u32, b as u32)).collect()
    }

    /// How near two GPUs are.
    ///
    /// # Panics
    /// When an index is not that of a GPU.
    pub fn path_type(&self, a: GpuIndex, b: GpuIndex) -> PathType {
        let gpus = self.gpus();
        let (a, b) = (gpus[a], gpus[b]);
        if let Some(links) = self.nvlinks_between(a, b) {
            return PathType::Nv(links);
        }
        let (up_a, up_b) = (self.ancestors(a), self.ancestors(b));
        let is_switch = |id: &NodeId| matches!(self.kind(*id), NodeKind::PcieSwitch(_));
        let meeting = up_a[1..].iter().find(|id| up_b[1..].contains(id));
        match meeting {
            Some(common) if is_switch(common) => {
                let before = |chain: &[NodeId]| chain.iter().position(|id| id == common);
                let switches = before(&up_a).unwrap_or(1).max(before(&up_b).unwrap_or(1));
                if switches <= 1 { PathType::Pix } else { PathType::Pxb }
            }
            Some(_) => PathType::Phb,
            None => {
                let node = |chain: &[NodeId]| {
                    let bridge = *chain.last()?;
                    Some((self.socket_of(bridge)?, self.numa_of(bridge)))
                };
                if node(&up_a) == node(&up_b) { PathType::Node } else { PathType::Sys }
            }
        }
    }

    /// NUMA node of a host bridge, where its socket has several.
    fn numa_of(&self, bridge: NodeId) -> Option<u32> {
        match self.kind(bridge) {
            NodeKind::HostBridge(bridge) => bridge.numa,
            _ => None,
        }
    }
}
