//! Does nothing depend on names, numbers or repetition?

use collsim::algorithm::build;
use collsim::engine::{Fidelity, RunOptions, simulate};
use collsim::input::embedded::MACHINES;
use collsim::schedule::Schedule;
use collsim::topology::link::Pcie;
use collsim::topology::{Link, LinkKind, Nic, Node, NodeId, NodeKind};
use collsim::units::Time;

use crate::rig::{Choice, Rig, choices, machines, topology};

/// Two GPUs behind one switch change places; so do the two switches; and both.
const RELABELLINGS: [[u32; 8]; 3] =
    [[3, 2, 1, 0, 4, 5, 6, 7], [4, 5, 6, 7, 0, 1, 2, 3], [7, 5, 4, 6, 1, 0, 3, 2]];

/// Every rank writes to its peers in the order of their numbers, from its own on, so that another
/// numbering lets other writes meet. Kernels that write twice their data to all peers at once feel it
/// by so much, those that read and write by islands a little, sends that share an SM's unit by whose
/// turn it is there (1.7 % seen); all others by no more than the order of ports.
const FEEL_THE_ORDER: [(&str, f64); 3] =
    [("all-pair packets", 0.035), ("islands pull", 0.01), ("all-to-all Simple", 0.02)];

#[test]
fn labels_do_not_matter() {
    let rig = Rig::named("rtxpro6000x8-flat");
    for choice in choices() {
        let build = |gpus: Vec<u32>| -> Schedule {
            build(choice.0, &rig.request(choice, gpus, 43_008)).expect("builds")
        };
        let plain = build(rig.gpus());
        for labels in RELABELLINGS {
            let relabelled = build(labels.to_vec());
            for (fidelity, name) in Fidelity::ALL {
                let (a, b) = (rig.time(&plain, fidelity), rig.time(&relabelled, fidelity));
                let near = match fidelity {
                    Fidelity::AlphaBeta => 1e-9,
                    // Finish times are rounded up to a picosecond at every change of rates.
                    Fidelity::MaxMin => 1e-5,
                    // Packets that arrive at once are taken by the number of their port.
                    Fidelity::Packet => {
                        let felt = FEEL_THE_ORDER.iter().find(|entry| entry.0 == plain.name);
                        felt.map_or(0.005, |entry| entry.1)
                    }
                };
                let apart = (b.as_us() / a.as_us() - 1.0).abs();
                assert!(apart <= near, "{}, {labels:?}, {name}: {a} {b}", plain.name);
            }
        }
    }
}

/// A network adapter that no GPU talks to hangs on one more link.
fn with_bystander(name: &str, at: &str) -> Rig {
    let mut topology = topology(name);
    let nic = NodeId(topology.nodes.len() as u32);
    let kind = NodeKind::Nic(Nic { model: "connectx-7".into() });
    topology.nodes.push(Node { id: "bystander".into(), kind });
    let b = topology.find(at).expect("a node");
    let kind = LinkKind::Pcie(Pcie { generation: 5, width: 16 });
    topology.links.push(Link { a: nic, b, kind });
    Rig::of(topology)
}

#[test]
fn a_link_that_nobody_uses_changes_nothing() {
    for (name, at) in [("rtxpro6000x8-flat", "sw0"), ("rtxpro6000x8", "root1")] {
        let (before, after) = (Rig::named(name), with_bystander(name, at));
        assert_eq!(after.fabric.links.len(), before.fabric.links.len() + 2);
        for choice in choices() {
            let schedule = before.schedule(choice, 14_336);
            for (fidelity, model) in Fidelity::ALL {
                let (old, new) = (before.run(&schedule, fidelity), after.run(&schedule, fidelity));
                assert_eq!(old.call_ends, new.call_ends, "{name}, {}, {model}", schedule.name);
                assert_eq!(old.events, new.events, "{name}, {}, {model}", schedule.name);
            }
        }
    }
}

fn twice(rig: &Rig, choice: Choice) {
    let schedule = rig.schedule(choice, 14_336);
    for (fidelity, model) in Fidelity::ALL {
        let once = || {
            let options = RunOptions { calls: 2, ..RunOptions::default() };
            let outcome = simulate(&rig.fabric, &schedule, fidelity, options).expect("ends");
            format!("{outcome:?}")
        };
        assert!(once() == once(), "{}, {}, {model}", rig.topology.name, schedule.name);
    }
}

#[test]
fn the_same_run_has_the_same_outcome() {
    for name in ["rtxpro6000x8", "v100x8-cube-mesh", "h200x8-nvswitch"] {
        let rig = Rig::named(name);
        rig.choices().into_iter().for_each(|choice| twice(&rig, choice));
    }
}

#[test]
fn there_and_back_take_the_same_time() {
    assert!(machines().count() + 1 >= MACHINES.len(), "all but the single GPU");
    for rig in machines() {
        let n = rig.fabric.gpu_count;
        for a in 0..n {
            for b in 0..a {
                let place = format!("{}, GPUs {a} and {b}", rig.topology.name);
                let near = |there: Option<Time>, back: Option<Time>| {
                    let (there, back) = (there.expect("a path"), back.expect("a path"));
                    assert!(there.as_ns() > 0.0, "{place}");
                    let apart = (there.as_ns() / back.as_ns() - 1.0).abs();
                    assert!(apart <= 0.01, "{place}: {there} there, {back} back");
                };
                let read = |a: usize, b: usize| rig.fabric.read_latency(a, b as u32, 128);
                near(read(a, b), read(b, a));
                near(rig.fabric.flag_latency(a, b), rig.fabric.flag_latency(b, a));
            }
        }
    }
}
