//! Single links: values that do not exist, ends that such a link cannot join, links given twice.

use std::collections::BTreeSet;

use crate::error::Problem;
use crate::topology::link::{Network, NvLink, Pcie};
use crate::topology::{Link, LinkKind, NodeKind, Topology};

pub(super) fn check(topology: &Topology) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, link) in topology.links.iter().enumerate() {
        let path = format!("links[{index}]");
        if let Some(fault) = link.kind.fault() {
            let at = format!("{path}.kind.{}", faulty_value(&link.kind));
            problems.push(Problem::new(fault, at));
        }
        if link.a == link.b {
            let message = format!("a link from `{}` to itself", topology.id(link.a));
            problems.push(Problem::new(message, format!("{path}.b")));
            continue;
        }
        problems.extend(end_fault(topology, link, &path));
        let ends = (link.a.min(link.b), link.a.max(link.b), word(&link.kind));
        if !seen.insert(ends) {
            let (a, b) = (topology.id(link.a), topology.id(link.b));
            let message = format!("`{a}` and `{b}` are joined by {} twice", ends.2);
            let help = "remove it, or widen the first; parallel links are written as one";
            problems.push(Problem::new(message, path).help(help));
        }
    }
    problems
}

/// What people call a kind of link.
fn word(kind: &LinkKind) -> &'static str {
    match kind {
        LinkKind::Pcie(_) => "PCIe",
        LinkKind::Nvlink(_) => "NVLink",
        LinkKind::Xgmi(_) => "xGMI",
        LinkKind::Upi(_) => "UPI",
        LinkKind::Network(_) => "network",
    }
}

/// The value of an impossible link that is to blame: the one whose replacement mends it.
fn faulty_value(kind: &LinkKind) -> &'static str {
    match *kind {
        LinkKind::Pcie(link) => {
            if (Pcie { width: 1, ..link }).fault().is_some() {
                "pcie.generation"
            } else {
                "pcie.width"
            }
        }
        LinkKind::Nvlink(link) => {
            if (NvLink { links: 1, ..link }).fault().is_some() {
                "nvlink.generation"
            } else {
                "nvlink.links"
            }
        }
        LinkKind::Xgmi(link) => match (link.links, link.gt_per_s) {
            (1..=8, rate) if !(1.0..=64.0).contains(&rate) => "xgmi.gt_per_s",
            (1..=8, _) => "xgmi.measured_gb_per_s",
            _ => "xgmi.links",
        },
        LinkKind::Upi(link) => match (link.links, link.gt_per_s) {
            (1..=8, rate) if !(1.0..=64.0).contains(&rate) => "upi.gt_per_s",
            (1..=8, _) => "upi.measured_gb_per_s",
            _ => "upi.links",
        },
        LinkKind::Network(Network { .. }) => "network.gbit_per_s",
    }
}

/// An end that such a link cannot have.
fn end_fault(topology: &Topology, link: &Link, path: &str) -> Option<Problem> {
    let (a, b) = (topology.kind(link.a), topology.kind(link.b));
    let help = match &link.kind {
        LinkKind::Pcie(_) => return pcie_fault(topology, link, path),
        LinkKind::Nvlink(_) => {
            let gpus = [a, b].map(|kind| matches!(kind, NodeKind::Gpu(_)));
            let switches = [a, b].map(|kind| matches!(kind, NodeKind::NvSwitch(_)));
            let fine = gpus[0] && (gpus[1] || switches[1]) || gpus[1] && switches[0];
            (!fine).then_some("NVLink joins two GPUs, or a GPU and an NVSwitch")
        }
        LinkKind::Xgmi(_) | LinkKind::Upi(_) => {
            let fine = matches!((a, b), (NodeKind::Socket(_), NodeKind::Socket(_)));
            (!fine).then_some("xGMI and UPI join two sockets")
        }
        LinkKind::Network(_) => {
            let fine = matches!((a, b), (NodeKind::Nic(_), NodeKind::Nic(_)));
            (!fine).then_some("a network cable joins two NICs; the NIC itself hangs on PCIe")
        }
    }?;
    Some(cannot_join(topology, link, path).help(help))
}

fn cannot_join(topology: &Topology, link: &Link, path: &str) -> Problem {
    let told = |id| format!("{} `{}`", topology.kind(id).word(), topology.id(id));
    let message = format!("{} cannot join {} and {}", word(&link.kind), told(link.a), told(link.b));
    Problem::new(message, path)
}

/// PCIe runs from an endpoint or switch up to a switch or host bridge.
fn pcie_fault(topology: &Topology, link: &Link, path: &str) -> Option<Problem> {
    for (id, key) in [(link.a, "a"), (link.b, "b")] {
        let help = match topology.kind(id) {
            NodeKind::Socket(_) | NodeKind::HostMemory(_) => {
                "PCIe ends at a root port: add a `host_bridge` node of this socket and link to it"
            }
            NodeKind::NvSwitch(_) => "an NVSwitch is reached by NVLink",
            _ => continue,
        };
        let path = format!("{path}.{key}");
        return Some(cannot_join(topology, link, &path).help(help));
    }
    let leaf = |kind: &NodeKind| matches!(kind, NodeKind::Gpu(_) | NodeKind::Nic(_));
    let (a, b) = (topology.kind(link.a), topology.kind(link.b));
    let both_roots = matches!((a, b), (NodeKind::HostBridge(_), NodeKind::HostBridge(_)));
    if leaf(a) && leaf(b) {
        let help = "endpoints meet at a PCIe switch or a host bridge, or by NVLink";
        Some(cannot_join(topology, link, path).help(help))
    } else if both_roots {
        let help = "host bridges of one socket are joined inside it, sockets by xGMI or UPI";
        Some(cannot_join(topology, link, path).help(help))
    } else {
        None
    }
}
