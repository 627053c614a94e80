//! Several files of one machine -> one: facts fill each other's gaps, contradictions are told.

use super::{Card, Found, Function, LinkFact, Tree};
use crate::error::{Error, Result};

/// Joins what several files say. The tree is that of the file which shows most of it; of two facts
/// that contradict each other the one of that file stands, and a remark tells of it.
///
/// # Errors
/// [`Error::Request`] when two files name the GPUs of different machines, or when there is none.
pub fn merge(mut all: Vec<Found>) -> Result<Found> {
    for found in &all {
        small(found)?;
    }
    // A stable order: among equals the first named stands.
    all.sort_by_key(|found| std::cmp::Reverse(found.tree));
    let mut all = all.into_iter();
    let Some(mut base) = all.next() else {
        return Err(Error::request("no file describes the machine", "name one with --topo"));
    };
    for other in all {
        same_machine(&base, &other)?;
        fold(&mut base, other);
    }
    apply_cards(&mut base);
    Ok(base)
}

/// GPUs, NICs and links of a GPU of any machine are fewer.
const CARDS_MAX: usize = 1024;
/// Functions of a PCI tree of any machine are fewer.
const FUNCTIONS_MAX: usize = 1 << 14;

/// A file of one machine names what one machine can have.
fn small(found: &Found) -> Result<()> {
    let matrix = found.matrix.as_ref().map_or(0, |matrix| matrix.gpus().len());
    let counts = [
        (found.cards.len(), CARDS_MAX, "GPUs"),
        (found.nvlinks.len(), CARDS_MAX, "GPUs with links"),
        (found.numa.len(), CARDS_MAX, "NUMA nodes"),
        (matrix, CARDS_MAX, "GPUs in a matrix"),
        (found.functions.len(), FUNCTIONS_MAX, "PCI functions"),
    ];
    match counts.iter().find(|(count, most, _)| count > most) {
        Some((count, most, what)) => Err(Error::request(
            format!("{}: {count} {what}, more than any machine has", found.sources.join(", ")),
            format!("at most {most}: is it the output of one run on one machine?"),
        )),
        None => Ok(()),
    }
}

/// Two trees must share a GPU.
fn same_machine(base: &Found, other: &Found) -> Result<()> {
    let places = |found: &Found| {
        let mut places: Vec<_> =
            found.gpus().iter().map(|&at| found.functions[at].address).collect();
        places.extend(found.cards.iter().filter_map(|card| card.address));
        places
    };
    let (one, two) = (places(base), places(other));
    if one.is_empty() || two.is_empty() || one.iter().any(|place| two.contains(place)) {
        return Ok(());
    }
    Err(Error::request(
        format!(
            "{} and {} are of different machines: the first has a GPU at {}, the other at {}, and \
             none in common",
            base.sources.join(", "),
            other.sources.join(", "),
            one[0],
            two[0]
        ),
        "name files of one machine",
    ))
}

fn fold(base: &mut Found, other: Found) {
    let told_by = other.sources.join(", ");
    base.sources.extend(other.sources);
    for remark in other.remarks {
        base.remark(remark.what, remark.effect);
    }
    let mut conflicts = Conflicts { told_by: &told_by, list: Vec::new() };
    if base.functions.is_empty() {
        (base.functions, base.tree) = (other.functions, other.tree);
    } else {
        for function in other.functions {
            let place = function.address;
            match base.functions.iter_mut().find(|own| own.address == place) {
                Some(own) => fill(own, function, &mut conflicts),
                None if function.kind == super::Kind::Gpu => conflicts.list.push((
                    format!("a GPU at {place} that the others lack"),
                    "it is left out".to_owned(),
                )),
                None => {}
            }
        }
    }
    for numa in other.numa {
        match base.numa.iter_mut().find(|own| own.number == numa.number) {
            Some(own) => {
                conflicts.fill(
                    &format!("socket of NUMA node {}", numa.number),
                    &mut own.package,
                    numa.package,
                );
                own.cpu = own.cpu.take().or(numa.cpu);
            }
            None => base.numa.push(numa),
        }
    }
    if other.matrix.is_some() && base.matrix.is_some() && base.matrix != other.matrix {
        let effect = "the first one named was taken".to_owned();
        conflicts.list.push(("another matrix".to_owned(), effect));
    }
    base.matrix = base.matrix.take().or(other.matrix);
    if base.nvlinks.is_empty() {
        base.nvlinks = other.nvlinks;
    }
    base.cards.extend(other.cards);
    conflicts.fill("number of sockets", &mut base.sockets, other.sockets);
    base.cpu = base.cpu.take().or(other.cpu);
    conflicts.fill("P2P", &mut base.peer_to_peer, other.peer_to_peer);
    conflicts.fill("IOMMU", &mut base.iommu, other.iommu);
    base.ring = base.ring.take().or(other.ring);
    for (what, effect) in conflicts.list {
        base.conflict(format!("{told_by} has {what}"), effect);
    }
}

struct Conflicts<'a> {
    told_by: &'a str,
    list: Vec<(String, String)>,
}

impl Conflicts<'_> {
    /// Fills a gap, or notes that another value is said.
    fn fill<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        own: &mut Option<T>,
        other: Option<T>,
    ) {
        match (&own, other) {
            (None, other) => *own = other,
            (Some(own), Some(other)) if *own != other => {
                debug_assert!(!self.told_by.is_empty());
                self.list.push((
                    format!("{what} {other:?}, not {own:?}"),
                    "the file that shows more of the machine was believed".to_owned(),
                ));
            }
            _ => {}
        }
    }

    fn link(&mut self, what: &str, own: &mut LinkFact, other: LinkFact) {
        self.fill(&format!("generation of {what}"), &mut own.generation, other.generation);
        self.fill(&format!("width of {what}"), &mut own.width, other.width);
    }
}

fn fill(own: &mut Function, other: Function, conflicts: &mut Conflicts) {
    let place = own.address;
    conflicts.fill(&format!("ids of {place}"), &mut own.ids, other.ids);
    if own.title.is_empty() {
        own.title = other.title;
    }
    conflicts.fill(&format!("NUMA node of {place}"), &mut own.numa, other.numa);
    conflicts.link(&format!("link of {place}"), &mut own.trained, other.trained);
    conflicts.link(&format!("capability of {place}"), &mut own.able, other.able);
    own.number = own.number.or(other.number);
    own.capability = own.capability.or(other.capability);
    own.redirect = own.redirect.or(other.redirect);
    own.payload = own.payload.or(other.payload);
    own.read_request = own.read_request.or(other.read_request);
    own.tags = own.tags.or(other.tags);
    own.peers.extend(other.peers);
}

/// Facts of lists of GPUs -> the GPUs of the tree, by bus id or by number.
pub(super) fn apply_cards(found: &mut Found) {
    let gpus = found.gpus();
    let mut missing = Vec::new();
    let mut cards = found.cards.clone();
    if found.tree == Tree::None && cards.iter().all(|card| card.number.is_none()) {
        // The order of bus ids is that of nvidia-smi's numbers.
        cards.sort_by_key(|card| card.address);
        (0..).zip(&mut cards).for_each(|(number, card)| card.number = Some(number));
    }
    for card in cards {
        let by_place = gpus.iter().find(|&&at| Some(found.functions[at].address) == card.address);
        let by_number = card.number.and_then(|number| gpus.get(number as usize));
        let at = match card.address {
            Some(_) if found.tree > Tree::None => by_place,
            _ => by_place.or(by_number),
        };
        match at {
            Some(&at) => apply(found, at, card),
            None if !gpus.is_empty() => missing.push(card),
            None => {}
        }
    }
    if !missing.is_empty() {
        let names: Vec<String> = missing
            .iter()
            .map(|card| card.address.map_or_else(|| card.title.clone(), |place| place.to_string()))
            .collect();
        found.conflict(
            format!("GPUs of a list that are not in the tree: {}", names.join(", ")),
            "they are left out",
        );
    }
    if !gpus.is_empty() {
        found.cards.clear();
    }
}

fn apply(found: &mut Found, at: usize, card: Card) {
    let mut conflicts = Conflicts { told_by: "the list of GPUs", list: Vec::new() };
    let function = &mut found.functions[at];
    // The product name says more than the chip's.
    if !card.title.is_empty() {
        function.title = card.title;
    }
    let what = format!("{}", function.address);
    conflicts.link(&format!("link of {what}"), &mut function.trained, card.trained);
    conflicts.link(&format!("capability of {what}"), &mut function.able, card.able);
    for (what, effect) in conflicts.list {
        found.conflict(format!("the list of GPUs has {what}"), effect);
    }
}
