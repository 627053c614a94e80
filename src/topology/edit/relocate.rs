//! `move`: a device or switch hangs elsewhere.

use super::{Edit, Kind, holds_devices, node, uplink};
use crate::error::Result;
use crate::topology::{NodeKind, Topology};

pub(super) const KIND: Kind<Topology> = Kind {
    name: "move",
    form: "move:NODE=NODE",
    what: "a GPU, NIC or switch hangs below another switch or host bridge, by the link it has",
    apply,
};

fn apply(topology: &mut Topology, edit: &Edit) -> Result<String> {
    let below = node(topology, edit, &edit.of)?;
    let above = node(topology, edit, &edit.to)?;
    let word = topology.kind(below).word();
    let moves = matches!(
        topology.kind(below),
        NodeKind::Gpu(_) | NodeKind::Nic(_) | NodeKind::PcieSwitch(_)
    );
    if !moves {
        return Err(edit.refused(format!("a {word} is no part that is plugged in"), ""));
    }
    if !holds_devices(topology.kind(above)) {
        let reason = format!("nothing hangs below a {}", topology.kind(above).word());
        let roots: Vec<&str> =
            topology.ids_where(holds_devices).into_iter().map(|id| topology.id(id)).collect();
        return Err(
            edit.refused(reason, format!("switches and host bridges: {}", roots.join(", ")))
        );
    }
    if topology.ancestors(above).contains(&below) {
        return Err(edit.refused(format!("`{}` hangs below it", edit.to), ""));
    }
    let Some(link) = uplink(topology, below) else {
        return Err(edit.refused("it has no PCIe link", "give it one in the topology file"));
    };
    let link = &mut topology.links[link];
    let before = if link.a == below { link.b } else { link.a };
    if before == above {
        return Err(edit.refused("it hangs there already", ""));
    }
    if link.a == below {
        link.b = above;
    } else {
        link.a = above;
    }
    let label = link.kind.label();
    Ok(format!("{} from {} to {}, {label}", edit.of, topology.id(before), edit.to))
}
