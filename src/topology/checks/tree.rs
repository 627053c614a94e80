//! PCIe is a tree below each root port: one uplink a device, no way round in a circle.

use crate::error::Problem;
use crate::topology::{LinkKind, NodeId, NodeKind, Topology};

pub(super) fn check(topology: &Topology) -> Vec<Problem> {
    let graph = Pcie::new(topology);
    let mut problems = endpoints_with_two_uplinks(topology, &graph);
    let circles = circles(topology, &graph);
    // Which way is up cannot be told in a circle.
    if circles.is_empty() {
        problems.extend(switches_above(topology, &graph));
    }
    problems.extend(circles);
    problems
}

/// PCIe neighbours of each node: link number and the other end.
struct Pcie {
    neighbours: Vec<Vec<(usize, NodeId)>>,
}

impl Pcie {
    fn new(topology: &Topology) -> Pcie {
        let mut neighbours = vec![Vec::new(); topology.nodes.len()];
        for (index, link) in topology.links.iter().enumerate() {
            if matches!(link.kind, LinkKind::Pcie(_)) && link.a != link.b {
                neighbours[link.a.index()].push((index, link.b));
                neighbours[link.b.index()].push((index, link.a));
            }
        }
        Pcie { neighbours }
    }
}

fn endpoints_with_two_uplinks(topology: &Topology, graph: &Pcie) -> Vec<Problem> {
    let mut problems = Vec::new();
    for gpu in topology.gpus() {
        let links = &graph.neighbours[gpu.index()];
        let mut others: Vec<NodeId> = links.iter().map(|&(_, other)| other).collect();
        others.dedup();
        if others.len() < 2 {
            continue;
        }
        let message = format!(
            "GPU `{}` has two PCIe uplinks, to `{}` and to `{}`",
            topology.id(gpu),
            topology.id(others[0]),
            topology.id(others[1])
        );
        let second = links.iter().find(|(_, other)| *other == others[1]);
        let number = second.map_or(0, |(number, _)| *number);
        let problem = Problem::new(message, format!("links[{number}]"));
        problems.push(problem.help("a GPU has one PCIe port: remove one of the links"));
    }
    problems
}

fn is_switch(topology: &Topology, id: NodeId) -> bool {
    matches!(topology.kind(id), NodeKind::PcieSwitch(_))
}

/// The chip a virtual switch belongs to.
fn chip(topology: &Topology, id: NodeId) -> Option<&str> {
    match topology.kind(id) {
        NodeKind::PcieSwitch(switch) => switch.chip.as_deref(),
        _ => None,
    }
}

/// Links between switches that close a circle, each with the circle's names.
fn circles(topology: &Topology, graph: &Pcie) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut accepted = vec![false; topology.links.len()];
    for (index, link) in topology.links.iter().enumerate() {
        let between = is_switch(topology, link.a) && is_switch(topology, link.b);
        if !between || !matches!(link.kind, LinkKind::Pcie(_)) || link.a == link.b {
            continue;
        }
        let one_chip = chip(topology, link.a).filter(|&a| chip(topology, link.b) == Some(a));
        if let Some(chip) = one_chip {
            let message = format!(
                "`{}` and `{}` are virtual switches of one chip `{chip}`, joined inside it",
                topology.id(link.a),
                topology.id(link.b)
            );
            let help = "remove the link, or give the two nodes different chips";
            problems.push(Problem::new(message, format!("links[{index}]")).help(help));
            continue;
        }
        match way(topology, graph, &accepted, link.a, link.b) {
            // A link given twice is told elsewhere.
            Some(way) if way.len() > 2 => {
                let names: Vec<String> =
                    way.iter().map(|&id| format!("`{}`", topology.id(id))).collect();
                let message = format!(
                    "PCIe switches form a circle: {}, `{}`",
                    names.join(", "),
                    topology.id(link.a)
                );
                let help = "PCIe is a tree: each switch has one uplink, towards the host bridge";
                problems.push(Problem::new(message, format!("links[{index}]")).help(help));
            }
            Some(_) => {}
            None => accepted[index] = true,
        }
    }
    problems
}

/// The way between two switches over accepted links between switches.
fn way(
    topology: &Topology,
    graph: &Pcie,
    accepted: &[bool],
    from: NodeId,
    to: NodeId,
) -> Option<Vec<NodeId>> {
    let mut previous: Vec<Option<NodeId>> = vec![None; topology.nodes.len()];
    let mut waiting = vec![from];
    while let Some(here) = waiting.pop() {
        if here == to {
            let mut way = vec![to];
            let mut at = to;
            while at != from {
                at = previous[at.index()]?;
                way.push(at);
            }
            way.reverse();
            return Some(way);
        }
        for &(link, other) in &graph.neighbours[here.index()] {
            if accepted[link] && other != from && previous[other.index()].is_none() {
                previous[other.index()] = Some(here);
                waiting.push(other);
            }
        }
    }
    None
}

/// Every switch has exactly one way up to a host bridge. Without circles the ways up of a switch
/// are the host bridges of its tree.
fn switches_above(topology: &Topology, graph: &Pcie) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen = vec![false; topology.nodes.len()];
    for start in topology.ids_where(|kind| matches!(kind, NodeKind::PcieSwitch(_))) {
        if seen[start.index()] {
            continue;
        }
        // One tree of switches, and the links of it that end at host bridges.
        let mut roots: Vec<(usize, NodeId, NodeId)> = Vec::new();
        let mut waiting = vec![start];
        seen[start.index()] = true;
        while let Some(here) = waiting.pop() {
            for &(link, other) in &graph.neighbours[here.index()] {
                let kind = topology.kind(other);
                if matches!(kind, NodeKind::HostBridge(_)) {
                    roots.push((link, here, other));
                } else if is_switch(topology, other) && !seen[other.index()] {
                    seen[other.index()] = true;
                    waiting.push(other);
                }
            }
        }
        roots.sort_unstable();
        match roots.as_slice() {
            [] => {
                let message = format!("no host bridge above PCIe switch `{}`", topology.id(start));
                let help = "link the switch, or the switch above it, to a `host_bridge` node";
                let path = format!("nodes.{}", topology.id(start));
                problems.push(Problem::new(message, path).help(help));
            }
            [_] => {}
            [(_, switch, bridge), rest @ ..] => {
                problems.extend(
                    rest.iter().map(|second| two_uplinks(topology, (*switch, *bridge), *second)),
                );
            }
        }
    }
    problems
}

fn two_uplinks(
    topology: &Topology,
    (switch, bridge): (NodeId, NodeId),
    (link, second_switch, second_bridge): (usize, NodeId, NodeId),
) -> Problem {
    let name = |id| topology.id(id);
    let message = if switch == second_switch {
        format!(
            "PCIe switch `{}` has two uplinks, to `{}` and to `{}`",
            name(switch),
            name(bridge),
            name(second_bridge)
        )
    } else {
        format!(
            "PCIe switches `{}` and `{}` are one tree and have two uplinks, to `{}` and to `{}`",
            name(switch),
            name(second_switch),
            name(bridge),
            name(second_bridge)
        )
    };
    Problem::new(message, format!("links[{link}]")).help(
        "a chip with several uplinks is partitioned: write one `pcie_switch` node an uplink, with \
         the same `chip`",
    )
}
