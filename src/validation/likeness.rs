//! Which copies of a machine are the same question: pairs of GPUs that reach each other in the same
//! way take the same time, and matrices of all pairs hold dozens of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::experiment::Machine;
use crate::algorithm::streams::{Stream, streams};
use crate::fabric::{EndpointId, Fabric};

/// More copies at once share ports, whose order of service depends on where a cable is plugged in.
const COPIES_MAX: usize = 2;

/// Numbers in the order in which things are first met.
#[derive(Default)]
struct Met(BTreeMap<u32, usize>);

impl Met {
    /// The number of a thing, and whether it is new.
    fn meet(&mut self, id: u32) -> (usize, bool) {
        let next = self.0.len();
        let number = *self.0.entry(id).or_insert(next);
        (number, number == next)
    }
}

/// What is the same for copies that end at the same times: every link, node and memory that they
/// touch, with all that is known of it, under numbers of its own. `None` where a place in the machine
/// may matter beside that: many copies at once, or a declared regime that they meet.
pub(super) fn of_copies(machine: &Machine<'_>, copies: &[Stream]) -> Option<String> {
    let fabric = &machine.fabric;
    let slowed = || fabric.slowed_links(&streams(copies).flows());
    if copies.len() > COPIES_MAX || (!fabric.regimes.is_empty() && !slowed().is_empty()) {
        return None;
    }
    let (mut out, mut ends) = (String::new(), Met::default());
    let (mut links, mut nodes) = (Met::default(), Met::default());
    for copy in copies {
        let Stream { from, to, engine, bytes, kernel } = *copy;
        // Writing to a text does not fail.
        let _ = write!(out, "{bytes} {kernel}");
        for end in [from, to, engine] {
            let (number, new) = ends.meet(end);
            let _ = write!(out, " @{number}");
            if new {
                out.push_str(&endpoint(fabric, end));
            }
        }
        for (a, b) in [(from, to), (to, from), (engine, from), (from, engine), (engine, to)] {
            let _ = write!(out, " | {}", fabric.split(a, b));
            for &link in fabric.path(a, b)? {
                let (number, new) = links.meet(link);
                let _ = write!(out, " #{number}");
                if new {
                    out.push_str(&wire(fabric, link, &mut nodes));
                }
            }
        }
        out.push('\n');
    }
    Some(out)
}

fn endpoint(fabric: &Fabric, end: EndpointId) -> String {
    match fabric.gpus.get(end as usize) {
        Some(gpu) => format!("{gpu:?}"),
        None => format!("{:?}", fabric.memories.get(end as usize - fabric.first_memory())),
    }
}

fn wire(fabric: &Fabric, link: u32, nodes: &mut Met) -> String {
    let wire = &fabric.links[link as usize];
    let end = |nodes: &mut Met, node: u32| {
        (nodes.meet(node).0, fabric.crossbars.get(node as usize).copied())
    };
    let (from, to) = (end(nodes, wire.from), end(nodes, wire.to));
    format!(
        "{from:?}{to:?} {} {:?} {} {} {} {} {:?} {:?}",
        wire.fs_per_byte,
        wire.latency,
        wire.write_overhead,
        wire.request,
        wire.completion_overhead,
        wire.dllp,
        wire.buffer,
        wire.class
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Calibration, CompileOptions};
    use crate::input;

    /// Copies one way and both ways between all pairs of a machine, by their likeness.
    fn by_likeness(machine: &Machine<'_>) -> BTreeMap<String, Vec<Vec<Stream>>> {
        let count = machine.fabric.gpu_count as u32;
        let mut found: BTreeMap<String, Vec<Vec<Stream>>> = BTreeMap::new();
        for (a, b) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))) {
            let write = Stream::write(a, b, 1 << 16);
            let both = vec![write, Stream::read(b, a, 1 << 16)];
            for copies in [vec![write], both] {
                if let Some(likeness) = of_copies(machine, &copies).filter(|_| a != b) {
                    found.entry(likeness).or_default().push(copies);
                }
            }
        }
        found
    }

    /// Few questions stand for all pairs, and the pairs of one question take the same time.
    #[test]
    fn copies_that_are_alike_end_at_the_same_times() {
        let calibration = Calibration::embedded().expect("embedded");
        for name in ["rtxpro6000x8-hierarchy", "rtxpro6000x8-direct", "rtx4090x8-rome"] {
            let topology = input::load_topology(name).expect("built in");
            let machine = Machine::new(&topology, &calibration, CompileOptions { regimes: true });
            let machine = machine.expect("compiles");
            let kinds = by_likeness(&machine);
            let all: usize = kinds.values().map(Vec::len).sum();
            assert!(all == 112 && kinds.len() <= 14, "{name}: {} of {all}", kinds.len());
            for alike in kinds.values() {
                let ends = |copies: &[Stream]| machine.run_streams(copies).expect("runs").call_ends;
                let first = ends(&alike[0]);
                for other in [alike.len() / 2, alike.len() - 1] {
                    assert_eq!(ends(&alike[other]), first, "{name}: {:?}", alike[other]);
                }
            }
        }
    }
}
