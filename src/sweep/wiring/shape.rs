//! What a machine is but for names: two machines of one shape differ in the names of their parts only.

use crate::topology::{LinkKind, NodeId, NodeKind, QUADRANTS, Topology};

/// Chips whose names are exchanged to see whether two machines are alike; with more, names count.
const CHIPS_MAX: usize = 4;

/// A text that is the same for machines that are alike but for the names of sockets, quadrants, root
/// ports, switches, chips and devices. Links other than PCIe and settings are not in it: it tells
/// wirings of one machine apart.
pub(super) fn shape(topology: &Topology) -> String {
    let mut chips: Vec<&str> = Vec::new();
    for node in &topology.nodes {
        if let NodeKind::PcieSwitch(switch) = &node.kind
            && let Some(chip) = switch.chip.as_deref()
            && !chips.contains(&chip)
        {
            chips.push(chip);
        }
    }
    let below = below(topology);
    let mut orders = vec![chips.clone()];
    if chips.len() <= CHIPS_MAX {
        orders = permutations(&chips);
    }
    let texts = orders.iter().map(|chips| Shape { topology, below: &below, chips }.text());
    texts.min().unwrap_or_default()
}

/// What hangs below each node by PCIe, with the link.
fn below(topology: &Topology) -> Vec<Vec<(NodeId, LinkKind)>> {
    let mut below = vec![Vec::new(); topology.nodes.len()];
    for id in (0..topology.nodes.len() as u32).map(NodeId) {
        if let Some(&above) = topology.ancestors(id).get(1)
            && let Some(link) = topology.links.iter().find(|link| {
                matches!(link.kind, LinkKind::Pcie(_))
                    && [(link.a, link.b), (link.b, link.a)].contains(&(id, above))
            })
        {
            below[above.index()].push((id, link.kind));
        }
    }
    below
}

fn permutations<'a>(of: &[&'a str]) -> Vec<Vec<&'a str>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let first = |at: usize| {
        let mut rest = of.to_vec();
        let first = rest.remove(at);
        permutations(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
    };
    (0..of.len()).flat_map(first).collect()
}

struct Shape<'a> {
    topology: &'a Topology,
    below: &'a [Vec<(NodeId, LinkKind)>],
    /// In the order in which they are counted.
    chips: &'a [&'a str],
}

impl Shape<'_> {
    /// Sockets hold quadrants, quadrants hold what hangs on their root ports.
    fn text(&self) -> String {
        let mut sockets = Vec::new();
        for socket in self.topology.sockets() {
            let joined = |quadrant: u8| {
                let bridges = self.topology.bridges_in(self.topology.id(socket), quadrant);
                let mut below: Vec<String> =
                    bridges.into_iter().flat_map(|bridge| self.children(bridge)).collect();
                below.sort();
                below.concat()
            };
            let mut quadrants: Vec<String> = (0..QUADRANTS).map(joined).collect();
            quadrants.sort();
            sockets.push(quadrants.join("|"));
        }
        sockets.sort();
        sockets.join("#")
    }

    fn children(&self, id: NodeId) -> Vec<String> {
        let mut texts: Vec<String> = self.below[id.index()]
            .iter()
            .map(|&(child, link)| {
                let kind = self.topology.kind(child);
                let model = kind.model().map_or("", |model| model.1);
                let chip = match kind {
                    NodeKind::PcieSwitch(switch) => {
                        let chip = switch.chip.as_deref();
                        chip.and_then(|chip| self.chips.iter().position(|one| *one == chip))
                    }
                    _ => None,
                };
                let chip = chip.map_or(String::new(), |chip| format!(" {chip}"));
                format!(
                    "{} {model}{chip} {}({})",
                    kind.word(),
                    link.label(),
                    self.children(child).concat()
                )
            })
            .collect();
        texts.sort();
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::edit::{Edit, KINDS};

    fn machine(edits: &[&str]) -> Topology {
        let machine = crate::input::embedded::find("rtxpro6000x8").expect("built in");
        let mut topology = crate::input::topology_json::parse("it", machine.text).expect("sound");
        for text in edits {
            let edit = Edit::parse(text).expect("an edit");
            let kind = KINDS.iter().find(|kind| kind.name == edit.name).expect("known");
            (kind.apply)(&mut topology, &edit).expect("can be");
        }
        topology
    }

    #[test]
    fn names_do_not_matter_and_places_do() {
        let own = shape(&machine(&[]));
        // The chips change sockets; two virtual switches of a chip change root ports.
        let swapped = ["move:vs0=root2", "move:vs1=root3", "move:vs2=root0", "move:vs3=root1"];
        assert_eq!(shape(&machine(&swapped)), own);
        assert_eq!(shape(&machine(&["move:vs0=root1", "move:vs1=root0"])), own);
        assert_ne!(shape(&machine(&["move:vs0=root1"])), own);
        assert_ne!(shape(&machine(&["move:vs1=root2", "move:vs2=root1"])), own);
        assert_ne!(shape(&machine(&["link:vs0=x8"])), own);
    }
}
