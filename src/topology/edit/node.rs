//! `gpu`, `switch`, `nic`: a device or switch more, or one less.

use super::link::Wanted;
use super::{Edit, Kind, hang, holds_devices, node, remove, unused, uplink};
use crate::error::Result;
use crate::topology::{Gpu, LinkKind, Nic, Node, NodeId, NodeKind, PcieSwitch, Topology};

pub(super) const GPU: Kind<Topology> = Kind {
    name: "gpu",
    form: "gpu:NAME=MODEL@ABOVE[,gen5x16] | none",
    what: "a GPU more below a switch or host bridge, or one less",
    apply: |topology, edit| apply(topology, edit, |model| NodeKind::Gpu(Gpu { model })),
};

pub(super) const SWITCH: Kind<Topology> = Kind {
    name: "switch",
    form: "switch:NAME=MODEL@ABOVE[,gen5x16] | none",
    what: "a PCIe switch more; one less: what hung below it hangs above it",
    apply: |topology, edit| {
        apply(topology, edit, |model| NodeKind::PcieSwitch(PcieSwitch { model, chip: None }))
    },
};

pub(super) const NIC: Kind<Topology> = Kind {
    name: "nic",
    form: "nic:NAME=MODEL@ABOVE[,gen5x16] | none",
    what: "a network adapter more, or one less",
    apply: |topology, edit| apply(topology, edit, |model| NodeKind::Nic(Nic { model })),
};

fn apply(
    topology: &mut Topology,
    edit: &Edit,
    kind: impl Fn(String) -> NodeKind,
) -> Result<String> {
    if edit.of.is_empty() {
        return Err(edit.refused("it has no name", format!("write {}:NAME=..", edit.name)));
    }
    if edit.to == "none" {
        return take(topology, edit, &kind(String::new()));
    }
    let Some((model, place)) = edit.to.split_once('@') else {
        let help = format!("write {}:{}=MODEL@ABOVE", edit.name, edit.of);
        return Err(edit.refused("where does it hang?", help));
    };
    let (above, link) = match place.split_once(',') {
        Some((above, link)) => (above, Wanted::parse(edit, link)?),
        None => (place, Wanted::Pcie { generation: None, width: None }),
    };
    unused(topology, edit, &edit.of)?;
    let above = node(topology, edit, above)?;
    if !holds_devices(topology.kind(above)) {
        let reason = format!("nothing hangs below a {}", topology.kind(above).word());
        return Err(edit.refused(reason, "name a switch or a host bridge"));
    }
    let Some(link) = link.new_pcie() else {
        return Err(edit.refused("it hangs on PCIe", "write gen5x16 after the comma"));
    };
    if let Some(fault) = link.fault() {
        return Err(edit.refused(fault, ""));
    }
    let below = NodeId(topology.nodes.len() as u32);
    topology.nodes.push(Node { id: edit.of.clone(), kind: kind(model.to_owned()) });
    hang(topology, below, above, link);
    let word = topology.kind(below).word();
    Ok(format!("{word} {} more, below {} by {}", edit.of, topology.id(above), link.label()))
}

/// One less. What hung below a switch hangs above it then, by the links it has.
fn take(topology: &mut Topology, edit: &Edit, kind: &NodeKind) -> Result<String> {
    let id = node(topology, edit, &edit.of)?;
    let found = topology.kind(id);
    if found.word() != kind.word() {
        return Err(edit.refused(format!("it is a {}", found.word()), ""));
    }
    let word = found.word();
    let mut told = format!("{word} {} less", edit.of);
    if let NodeKind::PcieSwitch(_) = found {
        let up = uplink(topology, id);
        let Some(up) = up else {
            return Err(edit.refused("it has no uplink, so what is below would be cut off", ""));
        };
        let above =
            if topology.links[up].a == id { topology.links[up].b } else { topology.links[up].a };
        for (index, link) in topology.links.iter_mut().enumerate() {
            let below = index != up && matches!(link.kind, LinkKind::Pcie(_));
            if below && link.b == id {
                link.b = above;
            } else if below && link.a == id {
                link.a = above;
            }
        }
        told = format!("{told}, what hung below it hangs on {}", topology.id(above));
    }
    remove(topology, id);
    Ok(told)
}
