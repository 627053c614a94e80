//! Where the switches of a machine may hang: all wirings where they are few, those near one wiring, and
//! the edits that make them.

use super::super::plan::Plan;
use crate::error::{Error, Result};
use crate::topology::{LinkKind, NodeId, NodeKind, QUADRANTS, Topology};

/// Wirings that are looked at one by one at most, before those that are alike are told apart.
const EXACT_MAX: usize = 2_000;

/// Root ports that an uplink may go to: those of a quadrant.
struct Slot {
    name: String,
    socket: String,
    quadrant: u8,
    /// The file has none there: an edit adds them.
    new: bool,
}

/// Where one switch hangs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Above {
    Slot(usize),
    Switch(usize),
}

/// One switch: where its uplink goes, and its second one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) up: Above,
    pub(super) second: Option<usize>,
}

/// The switches of a machine and where they may hang.
pub(super) struct Space<'a> {
    pub(super) plan: &'a Plan,
    switches: Vec<NodeId>,
    slots: Vec<Slot>,
    /// Where they hang.
    pub(super) now: Vec<Place>,
    /// Switches whose chip has one uplink and at least two devices below: a second one is possible.
    divisible: Vec<bool>,
}

impl Space<'_> {
    pub(super) fn of(plan: &Plan) -> Result<Space<'_>> {
        let topology = &plan.topology;
        let is_switch = |kind: &NodeKind| matches!(kind, NodeKind::PcieSwitch(_));
        let switches = topology.ids_where(is_switch);
        if switches.is_empty() {
            return Err(Error::request(
                format!("{} has no PCIe switch: there is no uplink to move", topology.name),
                "add one by editing the file, or take a machine with switches",
            ));
        }
        let slots = slots(topology);
        let mut now = Vec::new();
        for &id in &switches {
            let above = topology.ancestors(id).get(1).copied();
            let up = above.and_then(|above| match topology.kind(above) {
                NodeKind::HostBridge(bridge) => slots
                    .iter()
                    .position(|slot| {
                        (&slot.socket, slot.quadrant) == (&bridge.socket, bridge.quadrant)
                    })
                    .map(Above::Slot),
                _ => switches.iter().position(|&one| one == above).map(Above::Switch),
            });
            let up = up.ok_or_else(|| {
                Error::request(format!("switch `{}` has no uplink", topology.id(id)), "")
            })?;
            now.push(Place { up, second: None });
        }
        let divisible = switches.iter().map(|&id| divisible(topology, id)).collect();
        Ok(Space { plan, switches, slots, now, divisible })
    }

    fn chip(&self, switch: usize) -> Option<&str> {
        match self.plan.topology.kind(self.switches[switch]) {
            NodeKind::PcieSwitch(switch) => switch.chip.as_deref(),
            _ => None,
        }
    }

    /// What may be above a switch; of root ports that nothing distinguishes yet, the first.
    fn above(&self, switch: usize, begun: &[Place]) -> Vec<Above> {
        let used =
            |slot: usize| begun.iter().any(|p| p.up == Above::Slot(slot) || p.second == Some(slot));
        let mut fresh: Vec<&str> = Vec::new();
        let mut found = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            if used(index) {
                found.push(Above::Slot(index));
            } else if !fresh.contains(&&*slot.socket) {
                fresh.push(&slot.socket);
                found.push(Above::Slot(index));
            }
        }
        let own = self.chip(switch);
        let others = (0..self.switches.len())
            .filter(|&other| other != switch && (own.is_none() || self.chip(other) != own));
        found.extend(others.map(Above::Switch));
        found
    }

    /// Every place of a switch.
    fn places(&self, switch: usize, begun: &[Place]) -> Vec<Place> {
        let mut places = Vec::new();
        for up in self.above(switch, begun) {
            places.push(Place { up, second: None });
            if self.divisible[switch] && matches!(up, Above::Slot(_)) {
                let with = [begun, &[Place { up, second: None }]].concat();
                let slots = self.above(switch, &with);
                places.extend(slots.into_iter().filter_map(|second| match second {
                    Above::Slot(slot) => Some(Place { up, second: Some(slot) }),
                    Above::Switch(_) => None,
                }));
            }
        }
        places
    }

    /// All wirings, if they are few.
    pub(super) fn all(&self) -> Option<Vec<Vec<Place>>> {
        let mut all: Vec<Vec<Place>> = vec![Vec::new()];
        for switch in 0..self.switches.len() {
            let mut longer = Vec::new();
            for begun in &all {
                for place in self.places(switch, begun) {
                    longer.push([&begun[..], &[place]].concat());
                }
                if longer.len() > EXACT_MAX {
                    return None;
                }
            }
            all = longer;
        }
        all.retain(|places| rooted(places));
        Some(all)
    }

    /// Every switch on root ports, as many of them as there are.
    pub(super) fn flat(&self) -> Vec<Place> {
        let slot = |switch: usize| Above::Slot(switch % self.slots.len());
        (0..self.switches.len()).map(|switch| Place { up: slot(switch), second: None }).collect()
    }

    /// Wirings that differ in one switch.
    pub(super) fn near(&self, here: &[Place]) -> Vec<Vec<Place>> {
        let mut near = Vec::new();
        for switch in 0..here.len() {
            for place in self.places(switch, here) {
                let mut other = here.to_vec();
                other[switch] = place;
                if other != here && rooted(&other) {
                    near.push(other);
                }
            }
        }
        near
    }

    /// What makes this wiring of the machine as it is: new root ports, then moves from the root ports
    /// downwards, so that no switch hangs below itself in between, then second uplinks.
    pub(super) fn edits(&self, places: &[Place]) -> Vec<String> {
        let name = |switch: usize| self.plan.topology.id(self.switches[switch]);
        let changed = |switch: &usize| places[*switch].up != self.now[*switch].up;
        let needed = |slot: usize| {
            let up = (0..places.len()).filter(changed).any(|s| places[s].up == Above::Slot(slot));
            up || places.iter().any(|place| place.second == Some(slot))
        };
        let mut edits: Vec<String> = Vec::new();
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.new && needed(index) {
                edits.push(format!("root:{}={},{}", slot.name, slot.socket, slot.quadrant));
            }
        }
        let mut moves: Vec<usize> = (0..places.len()).filter(changed).collect();
        moves.sort_by_key(|&switch| depth(places, switch));
        for switch in moves {
            let above = match places[switch].up {
                Above::Slot(slot) => &self.slots[slot].name,
                Above::Switch(above) => name(above),
            };
            edits.push(format!("move:{}={above}", name(switch)));
        }
        for (switch, place) in places.iter().enumerate() {
            if let Some(slot) = place.second {
                edits.push(format!("partition:{}={}", name(switch), self.slots[slot].name));
            }
        }
        edits
    }
}

/// Switches between a switch and its root ports; `None` where it hangs below itself.
fn depth(places: &[Place], switch: usize) -> Option<usize> {
    let mut at = switch;
    for depth in 0..places.len() {
        match places[at].up {
            Above::Slot(_) => return Some(depth),
            Above::Switch(above) => at = above,
        }
    }
    None
}

/// Whether every switch has a way up.
fn rooted(places: &[Place]) -> bool {
    (0..places.len()).all(|switch| depth(places, switch).is_some())
}

/// A chip with one uplink and two devices or more.
fn divisible(topology: &Topology, id: NodeId) -> bool {
    let ends = topology
        .links
        .iter()
        .filter(|link| matches!(link.kind, LinkKind::Pcie(_)) && (link.a == id || link.b == id));
    topology.chip_of(id).len() <= 1 && ends.count() >= 3
}

/// Root ports by socket and quadrant: the first host bridge there, or a new one where the file has
/// none.
fn slots(topology: &Topology) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    let sockets = topology.sockets();
    let quadrants = sockets.iter().flat_map(|&socket| (0..QUADRANTS).map(move |q| (socket, q)));
    for (socket, quadrant) in quadrants {
        let socket = topology.id(socket);
        let there = topology.bridges_in(socket, quadrant);
        let found = there.first().map(|&id| topology.id(id).to_owned());
        let new = found.is_none();
        let name = found.unwrap_or_else(|| format!("{socket}.q{quadrant}"));
        slots.push(Slot { name, socket: socket.to_owned(), quadrant, new });
    }
    // Those that the file has come first, so that the fewest edits are found.
    slots.sort_by_key(|slot| slot.new);
    slots
}
