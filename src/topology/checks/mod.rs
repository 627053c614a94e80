//! Whether a topology can be a machine: all that is wrong with it, each with its place in the file.
//!
//! Pure functions of a [`Topology`]. What needs measured constants (which models are known, how
//! many lanes a switch has) takes them from the caller.

mod links;
mod reach;
pub mod settings;
mod tree;

use std::collections::BTreeMap;

use super::{LinkKind, NodeKind, PcieSwitch, QUADRANTS, Topology};
use crate::error::Problem;
use crate::suggestion::did_you_mean;

/// Most nodes of a topology.
pub const NODES_MAX: usize = 1024;
/// Most links of a topology.
pub const LINKS_MAX: usize = 16 * NODES_MAX;
/// Longest name, in characters.
pub const NAME_MAX: usize = 60;

/// All that is wrong, without what needs the calibration. Paths are those of the JSON form.
pub fn check(topology: &Topology) -> Vec<Problem> {
    let mut problems = check_parts(topology);
    if too_large(topology).is_none() {
        problems.extend(tree::check(topology));
        problems.extend(reach::check(topology));
    }
    problems
}

/// What is wrong with single nodes, links and regimes, without looking at how they hang together.
pub fn check_parts(topology: &Topology) -> Vec<Problem> {
    if let Some(problem) = too_large(topology) {
        return vec![problem];
    }
    let mut problems = Vec::new();
    problems.extend(name_fault(&topology.name).map(|fault| Problem::new(fault, "name")));
    problems.extend(settings::check(topology));
    if topology.gpus().is_empty() {
        problems.push(
            Problem::new("there is no GPU", "nodes")
                .help("add one, such as `\"gpu0\": {\"gpu\": {\"model\": \"h200\"}}`"),
        );
    }
    problems.extend(nodes(topology));
    problems.extend(links::check(topology));
    problems.extend(regimes(topology));
    problems
}

fn too_large(topology: &Topology) -> Option<Problem> {
    let (nodes, links) = (topology.nodes.len(), topology.links.len());
    if nodes > NODES_MAX {
        let message = format!("{nodes} nodes are too many: the limit is {NODES_MAX}");
        Some(Problem::new(message, "nodes").help("describe one machine or one NVLink domain"))
    } else if links > LINKS_MAX {
        let message = format!("{links} links are too many: the limit is {LINKS_MAX}");
        Some(Problem::new(message, "links").help("write parallel NVLinks as one bond"))
    } else {
        None
    }
}

/// What is wrong with the name of a machine, a node or a regime.
pub fn name_fault(name: &str) -> Option<String> {
    let length = name.chars().count();
    if name.trim().is_empty() {
        Some("the name is empty".to_owned())
    } else if length > NAME_MAX {
        Some(format!("the name has {length} characters: the limit is {NAME_MAX}"))
    } else if name.chars().any(char::is_control) {
        Some("the name holds control characters".to_owned())
    } else {
        None
    }
}

fn nodes(topology: &Topology) -> Vec<Problem> {
    let mut problems = Vec::new();
    for node in &topology.nodes {
        let path = format!("nodes.{}", node.id);
        if let Some(fault) = name_fault(&node.id) {
            problems.push(Problem::new(fault, &path));
        }
        match &node.kind {
            NodeKind::HostBridge(bridge) => {
                let at = format!("{path}.host_bridge");
                problems.extend(socket_fault(topology, &node.id, &bridge.socket, &at));
                if bridge.quadrant >= QUADRANTS {
                    let message = format!("quadrant {} does not exist: 0 to 3", bridge.quadrant);
                    problems.push(Problem::new(message, format!("{at}.quadrant")));
                }
            }
            NodeKind::HostMemory(memory) => {
                let at = format!("{path}.host_memory");
                problems.extend(socket_fault(topology, &node.id, &memory.socket, &at));
            }
            NodeKind::PcieSwitch(switch) => {
                let at = format!("{path}.pcie_switch");
                problems.extend(chip_fault(topology, &node.id, switch, &at));
            }
            _ => {}
        }
    }
    problems
}

/// Virtual switches of one chip are of one model.
fn chip_fault(topology: &Topology, node: &str, switch: &PcieSwitch, path: &str) -> Option<Problem> {
    let chip = switch.chip.as_deref()?;
    if let Some(fault) = name_fault(chip) {
        return Some(Problem::new(fault, format!("{path}.chip")));
    }
    let first = topology.nodes.iter().find_map(|other| match &other.kind {
        NodeKind::PcieSwitch(first) if first.chip.as_deref() == Some(chip) => Some((other, first)),
        _ => None,
    });
    let (other, first) = first?;
    (first.model != switch.model).then(|| {
        let message = format!(
            "`{}` and `{node}` are virtual switches of one chip `{chip}`, but of two models",
            other.id
        );
        Problem::new(message, format!("{path}.model"))
            .help("give them different chips, or one model")
    })
}

fn socket_fault(topology: &Topology, node: &str, socket: &str, path: &str) -> Option<Problem> {
    let path = format!("{path}.socket");
    match topology.find(socket).map(|id| topology.kind(id)) {
        Some(NodeKind::Socket(_)) => None,
        Some(other) => {
            let message = format!("`{node}` names `{socket}`, which is a {}", other.word());
            Some(Problem::new(message, path).help("name a socket"))
        }
        None => {
            let sockets = topology.sockets();
            let names = sockets.iter().map(|&id| topology.id(id));
            let message = format!("`{node}` names socket `{socket}`, which is not in `nodes`");
            Some(Problem::new(message, path).help(did_you_mean(socket, names)))
        }
    }
}

fn regimes(topology: &Topology) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for (index, regime) in topology.regimes.iter().enumerate() {
        let path = |key: &str| format!("regimes[{index}].{key}");
        if let Some(fault) = name_fault(&regime.name) {
            problems.push(Problem::new(fault, path("name")));
        }
        if names.contains(&regime.name.as_str()) {
            let message = format!("two regimes are called `{}`", regime.name);
            problems.push(Problem::new(message, path("name")));
        }
        names.push(&regime.name);
        let cap = regime.cap_gb_per_s;
        if !(0.001..=1000.0).contains(&cap) {
            let message = format!("a cap of {cap:?} GB/s is not plausible: 0.001 to 1000");
            problems.push(Problem::new(message, path("cap_gb_per_s")));
        }
        if regime.source.trim().is_empty() {
            let problem = Problem::new("a regime without a source", path("source"));
            problems.push(problem.help("say who measured it, and where"));
        }
    }
    problems
}

/// Models that the calibration does not know. `known` lists the model names of a kind of node:
/// `gpu`, `pcie_switch`, `socket`, `nv_switch` or `nic`.
pub fn models(topology: &Topology, known: &dyn Fn(&str) -> Vec<String>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for node in &topology.nodes {
        let Some((kind, model)) = node.kind.model() else {
            continue;
        };
        let names = known(kind);
        if names.iter().any(|name| name == model) {
            continue;
        }
        let word = node.kind.word();
        let message = format!("`{}` is no {word} model the calibration knows", shortened(model));
        let guess = did_you_mean(model, names.iter().map(String::as_str));
        let space = if guess.is_empty() { "" } else { " " };
        let help = format!("{guess}{space}known: {}", names.join(", "));
        problems.push(Problem::new(message, format!("nodes.{}.{kind}.model", node.id)).help(help));
    }
    problems
}

/// Switch chips whose links use more lanes than the chip has. `lanes` tells the lanes of a model;
/// virtual switches of one chip share them.
pub fn lanes(topology: &Topology, lanes: impl Fn(&str) -> Option<u32>) -> Vec<Problem> {
    let mut used = vec![0; topology.nodes.len()];
    for link in &topology.links {
        if let LinkKind::Pcie(pcie) = link.kind {
            used[link.a.index()] += u32::from(pcie.width);
            used[link.b.index()] += u32::from(pcie.width);
        }
    }
    // Chip -> its first node, its model, lanes in use.
    let mut chips: BTreeMap<(bool, &str), (usize, &str, u32)> = BTreeMap::new();
    for (index, node) in topology.nodes.iter().enumerate() {
        if let NodeKind::PcieSwitch(switch) = &node.kind {
            let chip = switch.chip.as_deref();
            let key = (chip.is_some(), chip.unwrap_or(&node.id));
            let entry = chips.entry(key).or_insert((index, &switch.model, 0));
            entry.2 += used[index];
        }
    }
    let mut problems = Vec::new();
    for ((is_chip, name), (first, model, used)) in chips {
        let Some(limit) = lanes(model) else { continue };
        if used <= limit {
            continue;
        }
        let what = if is_chip { "chip" } else { "switch" };
        let message = format!("{what} `{name}` has {limit} lanes ({model}), its links use {used}");
        let path = format!("nodes.{}", topology.nodes[first].id);
        problems.push(
            Problem::new(message, path)
                .help("narrow a link, move one to another switch, or use a larger switch"),
        );
    }
    problems
}

/// A text of the user, cut to a length that a message can hold.
fn shortened(text: &str) -> String {
    let mut cut: String = text.chars().take(NAME_MAX).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    cut
}

impl NodeKind {
    /// What people call such a node.
    pub fn word(&self) -> &'static str {
        match self {
            NodeKind::Gpu(_) => "GPU",
            NodeKind::PcieSwitch(_) => "PCIe switch",
            NodeKind::Socket(_) => "socket",
            NodeKind::HostBridge(_) => "host bridge",
            NodeKind::HostMemory(_) => "host memory",
            NodeKind::NvSwitch(_) => "NVSwitch",
            NodeKind::Nic(_) => "NIC",
        }
    }

    /// The kind's key in the JSON form and the model name, for kinds that have a model.
    pub fn model(&self) -> Option<(&'static str, &str)> {
        match self {
            NodeKind::Gpu(gpu) => Some(("gpu", &gpu.model)),
            NodeKind::PcieSwitch(switch) => Some(("pcie_switch", &switch.model)),
            NodeKind::Socket(socket) => Some(("socket", &socket.model)),
            NodeKind::NvSwitch(switch) => Some(("nv_switch", &switch.model)),
            NodeKind::Nic(nic) => Some(("nic", &nic.model)),
            NodeKind::HostBridge(_) | NodeKind::HostMemory(_) => None,
        }
    }
}
