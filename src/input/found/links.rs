//! What a PCIe link is, from what its two ends say, and what had to be assumed of it.

use super::build::Stated;
use super::{Found, Kind, LinkFact};
use crate::topology::Assumption;
use crate::topology::link::Pcie;

/// Remarks on links, those of equal words together.
#[derive(Default)]
pub(super) struct Notes {
    entries: Vec<Entry>,
}

struct Entry {
    nodes: Vec<String>,
    what: String,
    effect: String,
    loud: bool,
}

impl Notes {
    /// Notes something of a node.
    pub(super) fn add(&mut self, node: &str, what: String, effect: &str) {
        self.note(node, what, effect, false);
    }

    /// Notes something of a node that the whole answer hangs on.
    pub(super) fn warn(&mut self, node: &str, what: String, effect: &str) {
        self.note(node, what, effect, true);
    }

    fn note(&mut self, node: &str, what: String, effect: &str, loud: bool) {
        match self.entries.iter_mut().find(|entry| entry.what == what && entry.effect == effect) {
            Some(entry) => entry.nodes.push(node.to_owned()),
            None => {
                let (nodes, effect) = (vec![node.to_owned()], effect.to_owned());
                self.entries.push(Entry { nodes, what, effect, loud });
            }
        }
    }

    /// Moves all into the remarks.
    pub(super) fn finish(self, found: &mut Found) {
        for Entry { nodes, what, effect, loud } in self.entries {
            let what = format!("{}: {what}", list(&nodes));
            found.add(Assumption { what, effect, loud });
        }
    }
}

/// Names, of many only the first.
pub(super) fn list(names: &[String]) -> String {
    const SHOWN: usize = 4;
    if names.len() <= SHOWN {
        return names.join(", ");
    }
    format!("{} and {} more", names[..SHOWN - 1].join(", "), names.len() - SHOWN + 1)
}

/// What a link could be where nothing is said of it.
#[derive(Copy, Clone)]
pub(super) struct Unsaid {
    /// Generation of the device at its end.
    pub(super) generation: u8,
    /// Lanes.
    pub(super) width: u8,
}

/// Lowest generation that an idle GPU does not fall back to.
const NOT_IDLE: u8 = 3;

/// The link up of a function.
pub(super) fn link(
    found: &Found,
    function: usize,
    node: &str,
    unsaid: Unsaid,
    stated: &Stated,
    notes: &mut Notes,
) -> Pcie {
    let ends = Ends::of(found, function, node, notes);
    let mut rate = ends.generation(found.functions[function].kind, unsaid);
    let mut width = ends.width(unsaid);
    if let Some((generation, lanes)) = stated.pcie {
        if ends.trained.generation.is_none() && ends.able.generation.is_none() {
            rate = (generation, None);
        }
        if ends.trained.width.is_none() && ends.able.width.is_none() {
            width = (lanes, None);
        }
    }
    for (what, effect) in [rate.1, width.1].into_iter().flatten() {
        notes.add(node, what, effect);
    }
    Pcie { generation: rate.0, width: width.0 }
}

/// What both ends of a link say together.
struct Ends {
    trained: LinkFact,
    able: LinkFact,
}

type Note = Option<(String, &'static str)>;

impl Ends {
    fn of(found: &Found, function: usize, node: &str, notes: &mut Notes) -> Ends {
        let own = &found.functions[function];
        let port = match own.parent {
            super::Parent::Below(parent) => Some(&found.functions[parent]),
            _ => None,
        };
        // A port of a whole switch speaks of the switch's own link up.
        let port = port.filter(|port| matches!(port.kind, Kind::RootPort | Kind::Downstream));
        let low = |a: Option<u8>, b: Option<u8>| a.into_iter().chain(b).min();
        let at_port = port.map_or(LinkFact::default(), |port| port.able);
        let able = LinkFact {
            generation: low(own.able.generation, at_port.generation),
            width: low(own.able.width, at_port.width),
        };
        let of_port = port.map_or(LinkFact::default(), |port| port.trained);
        let mut trained = if own.trained.is_empty() { of_port } else { own.trained };
        let placeholder = LinkFact { generation: Some(1), width: Some(1) };
        if trained == placeholder
            && able.width.is_none_or(|width| width != 1 || own.kind != Kind::Nic)
        {
            let what = "2.5 GT/s x1 is what bridges without a wire say: taken as nothing said";
            notes.add(
                node,
                what.to_owned(),
                "a real x1 link would be slower by a factor of 30 to 250",
            );
            trained = of_port;
            if trained == placeholder {
                trained = LinkFact::default();
            }
            let able = if able == placeholder { LinkFact::default() } else { able };
            return Ends { trained, able };
        }
        Ends { trained, able }
    }

    fn generation(&self, kind: Kind, unsaid: Unsaid) -> (u8, Note) {
        match (self.trained.generation, self.able.generation) {
            (Some(now), able) => {
                let most = able.unwrap_or(if kind == Kind::Gpu { unsaid.generation } else { now });
                if kind == Kind::Gpu && now < NOT_IDLE && most >= NOT_IDLE {
                    let what = format!("idle link trained down to Gen{now}: taken as Gen{most}");
                    return (
                        most,
                        Some((
                            what,
                            "if it stays there under load, all its traffic is slower; read it under load",
                        )),
                    );
                }
                let slow = able.filter(|able| now < *able).map(|able| {
                    let what = format!("trained to Gen{now}, both ends could do Gen{able}");
                    (what, "kept as trained: half the rate for each generation; check riser, slot and BIOS")
                });
                (now, slow)
            }
            (None, Some(able)) => {
                let what =
                    format!("its rate now is not said: taken as Gen{able}, what both ends can do");
                (able, Some((what, "a lower generation halves the rate of all that crosses it")))
            }
            (None, None) => {
                let taken = unsaid.generation;
                let what = format!("its rate is not said: taken as Gen{taken}");
                (taken, Some((what, "a generation lower halves the rate of all that crosses it")))
            }
        }
    }

    fn width(&self, unsaid: Unsaid) -> (u8, Note) {
        match (self.trained.width, self.able.width) {
            (Some(now), Some(able)) if now < able => {
                let what = format!("trained to x{now}, both ends could do x{able}");
                (
                    now,
                    Some((
                        what,
                        "kept as trained: the rate falls with the lanes; reseat the card, check bifurcation",
                    )),
                )
            }
            (Some(now), _) => (now, None),
            (None, Some(able)) => {
                let what =
                    format!("its width now is not said: taken as x{able}, what both ends have");
                (able, Some((what, "half the lanes halve the rate")))
            }
            (None, None) => {
                let taken = unsaid.width;
                let what = format!("its width is not said: taken as x{taken}");
                (taken, Some((what, "half the lanes halve the rate of all that crosses it")))
            }
        }
    }
}
