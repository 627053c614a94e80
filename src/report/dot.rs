//! A machine in DOT, the language of Graphviz.

use std::fmt::Write;

use crate::topology::{LinkKind, Node, NodeKind, Topology};

/// Shape of a node, and its words.
fn look(kind: &NodeKind) -> (&'static str, &str) {
    match kind {
        NodeKind::Gpu(gpu) => ("box", &gpu.model),
        NodeKind::PcieSwitch(switch) => ("ellipse", &switch.model),
        NodeKind::NvSwitch(switch) => ("ellipse", &switch.model),
        NodeKind::Nic(nic) => ("house", &nic.model),
        NodeKind::Socket(socket) => ("box3d", &socket.model),
        NodeKind::HostBridge(_) => ("diamond", "host bridge"),
        NodeKind::HostMemory(_) => ("cylinder", "memory"),
    }
}

/// The machine as an undirected graph. What a socket holds without a link is joined to it by a dotted
/// line; links say their kind.
pub fn dot(topology: &Topology) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let mut out = format!("graph {} {{\n", quoted(&topology.name));
    for Node { id: name, kind } in &topology.nodes {
        let (shape, words) = look(kind);
        let label = if words.is_empty() { name.clone() } else { format!("{name}\\n{words}") };
        let label = label.replace('"', "\\\"");
        let _ = writeln!(out, "  {} [shape={shape}, label=\"{label}\"];", quoted(name));
    }
    for Node { id: name, kind } in &topology.nodes {
        let socket = match kind {
            NodeKind::HostBridge(bridge) => &bridge.socket,
            NodeKind::HostMemory(memory) => &memory.socket,
            _ => continue,
        };
        let _ = writeln!(out, "  {} -- {} [style=dotted];", quoted(socket), quoted(name));
    }
    for link in &topology.links {
        let [a, b] = [link.a, link.b].map(|end| quoted(topology.id(end)));
        let style = if matches!(link.kind, LinkKind::Nvlink(_)) { ", style=bold" } else { "" };
        let _ = writeln!(out, "  {a} -- {b} [label={}{style}];", quoted(&link.kind.label()));
    }
    out + "}\n"
}
