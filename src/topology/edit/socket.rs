//! `socket`: a second CPU with its memory and root ports.

use super::link::Wanted;
use super::{Edit, Kind, node, remove};
use crate::error::Result;
use crate::topology::link::{Upi, Xgmi};
use crate::topology::{
    HostBridge, HostMemory, Link, LinkKind, Node, NodeId, NodeKind, Socket, Topology,
};

pub(super) const KIND: Kind<Topology> = Kind {
    name: "socket",
    form: "socket:NAME=MODEL,xgmi4@32 | MODEL,upi3@16 | none",
    what: "a socket more with memory NAME.mem and root ports NAME.root0 to NAME.root7, or one less",
    apply,
};

/// Root ports of x16 that a socket offers: 128 lanes.
const ROOTS: u8 = 8;

fn apply(topology: &mut Topology, edit: &Edit) -> Result<String> {
    let form = || format!("write {}", KIND.form);
    if edit.to == "none" {
        return take(topology, edit);
    }
    let Some((model, link)) = edit.to.split_once(',') else {
        return Err(edit.refused("how is it joined to the other socket?", form()));
    };
    if edit.of.is_empty() || topology.find(&edit.of).is_some() {
        let reason = format!("a new socket needs a name of its own, not `{}`", edit.of);
        return Err(edit.refused(reason, form()));
    }
    let others = topology.sockets();
    let Some(&first) = others.first() else {
        return Err(edit.refused("there is no first socket to join it to", ""));
    };
    if let NodeKind::Socket(other) = topology.kind(first)
        && other.model != model
    {
        let reason =
            format!("`{}` is an {}: a board takes equal CPUs", topology.id(first), other.model);
        return Err(edit.refused(reason, ""));
    }
    if model.starts_with("threadripper") {
        return Err(edit.refused("a Threadripper PRO runs alone on its board", "use an EPYC"));
    }
    let kind = match Wanted::parse(edit, link)? {
        Wanted::Xgmi { links, gt_per_s } if model.starts_with("epyc") => {
            LinkKind::Xgmi(Xgmi { links, gt_per_s, measured_gb_per_s: None })
        }
        Wanted::Upi { links, gt_per_s } if model.starts_with("xeon") => {
            LinkKind::Upi(Upi { links, gt_per_s, measured_gb_per_s: None })
        }
        _ => return Err(edit.refused("EPYC is joined by xGMI, Xeon by UPI", form())),
    };
    if let Some(fault) = kind.fault() {
        return Err(edit.refused(fault, ""));
    }
    let name = &edit.of;
    let socket = NodeId(topology.nodes.len() as u32);
    let add = |id: String, kind: NodeKind| Node { id, kind };
    topology.nodes.push(add(name.clone(), NodeKind::Socket(Socket { model: model.to_owned() })));
    let memory = NodeKind::HostMemory(HostMemory { socket: name.clone() });
    topology.nodes.push(add(format!("{name}.mem"), memory));
    for root in 0..ROOTS {
        let bridge = HostBridge { socket: name.clone(), quadrant: root % 4, numa: None };
        topology.nodes.push(add(format!("{name}.root{root}"), NodeKind::HostBridge(bridge)));
    }
    for other in others {
        topology.links.push(Link { a: other, b: socket, kind });
    }
    Ok(format!("socket {name} more, joined by {}, with {ROOTS} root ports", kind.label()))
}

/// One less, with its memory and root ports. What hangs on these has to be moved before.
fn take(topology: &mut Topology, edit: &Edit) -> Result<String> {
    let id = node(topology, edit, &edit.of)?;
    if !matches!(topology.kind(id), NodeKind::Socket(_)) {
        return Err(edit.refused(format!("it is a {}", topology.kind(id).word()), ""));
    }
    if topology.sockets().len() == 1 {
        return Err(edit.refused("it is the only socket", ""));
    }
    let own = |topology: &Topology| {
        let parts = topology.ids_where(|kind| match kind {
            NodeKind::HostBridge(bridge) => bridge.socket == edit.of,
            NodeKind::HostMemory(memory) => memory.socket == edit.of,
            _ => false,
        });
        parts.into_iter().map(|id| topology.id(id).to_owned()).collect::<Vec<String>>()
    };
    let parts = own(topology);
    for link in topology.links.iter().filter(|link| matches!(link.kind, LinkKind::Pcie(_))) {
        let (a, b) = (topology.id(link.a).to_owned(), topology.id(link.b).to_owned());
        if let Some((part, device)) = [(&a, &b), (&b, &a)].into_iter().find(|p| parts.contains(p.0))
        {
            let reason = format!("`{device}` hangs on `{part}` of it");
            return Err(edit.refused(reason, format!("move it first: move:{device}=..")));
        }
    }
    for name in parts.iter().chain([&edit.of]) {
        if let Some(id) = topology.find(name) {
            remove(topology, id);
        }
    }
    Ok(format!("socket {} less, with {}", edit.of, parts.join(", ")))
}
