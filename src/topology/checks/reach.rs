//! Whether each GPU can reach anything at all.

use crate::error::Problem;
use crate::topology::{NodeId, NodeKind, Topology};

pub(super) fn check(topology: &Topology) -> Vec<Problem> {
    let gpus = topology.gpus();
    if gpus.len() < 2 {
        return Vec::new();
    }
    let neighbours = neighbours(topology);
    let mut problems = Vec::new();
    for gpu in gpus {
        let name = topology.id(gpu);
        let path = format!("nodes.{name}");
        if neighbours[gpu.index()].is_empty() {
            let problem = Problem::new(format!("GPU `{name}` has no link"), path);
            problems.push(problem.help(format!(
                "add one to `links`, such as `{{\"a\": \"{name}\", \"b\": ..., \"kind\": {{\"pcie\": \
                 {{\"generation\": 5, \"width\": 16}}}}}}`"
            )));
        } else if !reaches_anything(topology, &neighbours, gpu) {
            let message = format!("no path from GPU `{name}` to any other GPU or to host memory");
            let help = "link what it hangs on to a host bridge, a switch or another GPU";
            problems.push(Problem::new(message, path).help(help));
        }
    }
    problems
}

/// Where each node leads in one step, by links and inside chips.
fn neighbours(topology: &Topology) -> Vec<Vec<NodeId>> {
    let mut neighbours = vec![Vec::new(); topology.nodes.len()];
    let mut join = |a: NodeId, b: NodeId| {
        neighbours[a.index()].push(b);
        neighbours[b.index()].push(a);
    };
    for link in &topology.links {
        join(link.a, link.b);
    }
    let mut chips: Vec<(&str, NodeId)> = Vec::new();
    for (index, node) in topology.nodes.iter().enumerate() {
        let here = NodeId(index as u32);
        match &node.kind {
            NodeKind::HostBridge(_) | NodeKind::HostMemory(_) => {
                if let Some(socket) = topology.socket_of(here) {
                    join(here, socket);
                }
            }
            NodeKind::PcieSwitch(switch) => {
                let Some(chip) = switch.chip.as_deref() else {
                    continue;
                };
                match chips.iter().find(|(name, _)| *name == chip) {
                    Some(&(_, first)) => join(first, here),
                    None => chips.push((chip, here)),
                }
            }
            _ => {}
        }
    }
    neighbours
}

fn reaches_anything(topology: &Topology, neighbours: &[Vec<NodeId>], gpu: NodeId) -> bool {
    let mut seen = vec![false; topology.nodes.len()];
    let mut waiting = vec![gpu];
    seen[gpu.index()] = true;
    while let Some(here) = waiting.pop() {
        for &other in &neighbours[here.index()] {
            if seen[other.index()] {
                continue;
            }
            seen[other.index()] = true;
            match topology.kind(other) {
                NodeKind::Gpu(_) | NodeKind::HostMemory(_) => return true,
                // A NIC passes on to its PCIe side only what came for it.
                NodeKind::Nic(_) => {}
                _ => waiting.push(other),
            }
        }
    }
    false
}
