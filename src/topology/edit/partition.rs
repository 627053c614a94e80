//! `partition`: a switch chip cut into two virtual switches, each with an uplink of its own.

use super::link::Wanted;
use super::{Edit, Kind, hang, holds_devices, node, remove, uplink};
use crate::error::Result;
use crate::topology::{LinkKind, Node, NodeId, NodeKind, Topology};

pub(super) const KIND: Kind<Topology> = Kind {
    name: "partition",
    form: "partition:SWITCH=ABOVE[,gen5x16] | none",
    what: "a second uplink: half of what hangs below goes to SWITCH.2, below ABOVE; or one less",
    apply,
};

fn apply(topology: &mut Topology, edit: &Edit) -> Result<String> {
    if edit.to == "none" {
        return join(topology, edit);
    }
    let (above, link) = match edit.to.split_once(',') {
        Some((above, link)) => (above.trim(), Wanted::parse(edit, link)?),
        None => (edit.to.as_str(), Wanted::Pcie { generation: None, width: None }),
    };
    let (id, above) = (node(topology, edit, &edit.of)?, node(topology, edit, above)?);
    let NodeKind::PcieSwitch(before) = topology.kind(id).clone() else {
        let reason = format!("`{}` is a {}", edit.of, topology.kind(id).word());
        return Err(edit.refused(reason, "only a PCIe switch is cut into virtual switches"));
    };
    if !holds_devices(topology.kind(above)) || topology.ancestors(above).contains(&id) {
        let reason = format!("no uplink of `{}` ends at `{}`", edit.of, topology.id(above));
        return Err(edit.refused(reason, "name a host bridge, or a switch that is not below it"));
    }
    let Some(up) = uplink(topology, id) else {
        return Err(edit.refused("it has no uplink yet", ""));
    };
    let name = format!("{}.2", edit.of);
    if topology.find(&name).is_some() {
        return Err(edit.refused(format!("there is a node `{name}` already"), ""));
    }
    let is_below = |&index: &usize| {
        let link = &topology.links[index];
        index != up && (link.a == id || link.b == id) && matches!(link.kind, LinkKind::Pcie(_))
    };
    let below: Vec<usize> = (0..topology.links.len()).filter(is_below).collect();
    if below.len() < 2 {
        return Err(edit.refused("fewer than two devices hang below it", ""));
    }
    let Some(link) = link.new_pcie() else {
        return Err(edit.refused("it hangs on PCIe", "write gen5x16 after the comma"));
    };
    if let Some(fault) = link.fault() {
        return Err(edit.refused(fault, ""));
    }
    let second = NodeId(topology.nodes.len() as u32);
    let mut half = before;
    half.chip.get_or_insert_with(|| edit.of.clone());
    topology.nodes[id.index()].kind = NodeKind::PcieSwitch(half.clone());
    topology.nodes.push(Node { id: name.clone(), kind: NodeKind::PcieSwitch(half) });
    for &index in &below[below.len().div_ceil(2)..] {
        let link = &mut topology.links[index];
        let end = if link.a == id { &mut link.a } else { &mut link.b };
        *end = second;
    }
    hang(topology, second, above, link);
    let moved = below.len() / 2;
    let up = link.label();
    Ok(format!(
        "{name} with {moved} of what hung below {}, by {up} to {}",
        edit.of,
        topology.id(above)
    ))
}

/// An uplink less: what hung below it hangs below another virtual switch of the chip.
fn join(topology: &mut Topology, edit: &Edit) -> Result<String> {
    let id = node(topology, edit, &edit.of)?;
    let mate = topology.chip_of(id).into_iter().find(|&mate| mate != id);
    let (Some(mate), Some(up)) = (mate, uplink(topology, id)) else {
        return Err(edit.refused("it is no virtual switch of a chip with several uplinks", ""));
    };
    for (index, link) in topology.links.iter_mut().enumerate() {
        if index != up && matches!(link.kind, LinkKind::Pcie(_)) {
            for end in [&mut link.a, &mut link.b] {
                if *end == id {
                    *end = mate;
                }
            }
        }
    }
    let told = format!("{} less, what hung below it hangs below {}", edit.of, topology.id(mate));
    remove(topology, id);
    Ok(told)
}
