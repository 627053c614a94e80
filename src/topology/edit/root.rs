//! `root`: root ports of a socket that the file does not have.

use super::{Edit, Kind, node, unused};
use crate::error::Result;
use crate::topology::{HostBridge, Node, NodeKind, QUADRANTS, Topology};

pub(super) const KIND: Kind<Topology> = Kind {
    name: "root",
    form: "root:NAME=SOCKET[,QUADRANT]",
    what: "root ports more, in a quadrant (0 to 3) of a socket; left out: the one with the fewest",
    apply,
};

fn apply(topology: &mut Topology, edit: &Edit) -> Result<String> {
    if edit.of.is_empty() {
        return Err(edit.refused("it has no name", format!("write {}", KIND.form)));
    }
    unused(topology, edit, &edit.of)?;
    let (socket, wanted) = match edit.to.split_once(',') {
        Some((socket, quadrant)) => (socket.trim(), Some(quadrant.trim())),
        None => (edit.to.as_str(), None),
    };
    let id = node(topology, edit, socket)?;
    if !matches!(topology.kind(id), NodeKind::Socket(_)) {
        let reason = format!("`{socket}` is a {}", topology.kind(id).word());
        return Err(edit.refused(reason, "root ports belong to a socket"));
    }
    let quadrant = match wanted {
        Some(digits) => {
            digits.parse().ok().filter(|&quadrant| quadrant < QUADRANTS).ok_or_else(|| {
                edit.refused(format!("`{digits}` is no quadrant"), "a socket has 0 to 3")
            })?
        }
        None => emptiest(topology, socket),
    };
    let bridge = HostBridge { socket: socket.to_owned(), quadrant, numa: None };
    topology.nodes.push(Node { id: edit.of.clone(), kind: NodeKind::HostBridge(bridge) });
    Ok(format!("root ports {} more, in quadrant {quadrant} of {socket}", edit.of))
}

/// The first of the quadrants with the fewest host bridges.
fn emptiest(topology: &Topology, socket: &str) -> u8 {
    let there = |quadrant: &u8| topology.bridges_in(socket, *quadrant).len();
    (0..QUADRANTS).min_by_key(there).unwrap_or(0)
}
