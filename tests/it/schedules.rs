//! Every algorithm of the table, for many rank counts and sizes: proved, run to its end by every
//! network model, and never below its bound.

use collsim::algorithm::{BarrierKind, Implementation, Request, build};
use collsim::engine::{Fidelity, RunOptions, simulate};
use collsim::schedule::Schedule;
use collsim::schedule::proof::prove;
use collsim::topology::{Link, Node, NodeId};
use collsim::units::Time;

use crate::rig::{Choice, Rig, choices, topology};

/// Around one warp, one block, one element a rank; not powers of two.
const SIZES: [u64; 8] = [16, 48, 512, 528, 8192, 14_336, 43_008, 65_552];

fn check(rig: &Rig, choice: Choice, n: u32, bytes: u64, implementation: Implementation) {
    let request = Request {
        kernel: rig.kernel(implementation),
        ..rig.request(choice, (0..n).collect(), bytes)
    };
    let place = || format!("{} {:?} {implementation:?} n={n} {bytes}", choice.0.name, choice.1);
    let schedule = build(choice.0, &request).expect("builds");
    prove(&schedule).unwrap_or_else(|flaw| panic!("{}: {flaw}", place()));
    if n % 5 == 3 || n == 8 {
        for (fidelity, name) in Fidelity::ALL {
            ends(rig, &schedule, fidelity, &format!("{} {name}", place()));
        }
    }
}

fn ends(rig: &Rig, schedule: &Schedule, fidelity: Fidelity, place: &str) {
    let options = RunOptions { calls: 2, ..RunOptions::default() };
    let outcome = simulate(&rig.fabric, schedule, fidelity, options)
        .unwrap_or_else(|error| panic!("{place}: {error}"));
    // A link that sends longer than the run lasts has been given more than it can carry;
    // alpha_beta shares nothing.
    for (link, used) in rig.fabric.links.iter().zip(&outcome.links) {
        let within = used.busy <= outcome.ended + Time::from_ns(1.0);
        assert!(within || fidelity == Fidelity::AlphaBeta, "{place} {}: {used:?}", link.label);
    }
    let gpus: Vec<usize> = (0..schedule.rank_count()).collect();
    if let Some(collective) = schedule.collective {
        let bound = rig.fabric.bound(collective, &gpus, schedule.bytes);
        assert!(outcome.call_time(0) >= bound.time, "{place}");
    }
}

#[test]
fn all_are_proved_and_end() {
    let rig = Rig::named("rtxpro6000x16-flat");
    for choice in choices() {
        for n in 2..=16_u32 {
            for bytes in SIZES {
                for &implementation in choice.0.implementations {
                    if implementation.barrier() == BarrierKind::Flags {
                        check(&rig, choice, n, bytes, implementation);
                    }
                }
            }
        }
    }
}

/// Kernels that wait by atomics on the peers' memory: proved where NVLink carries these, refused
/// elsewhere.
#[test]
fn atomics_need_nvlink() {
    let (nvlink, pcie) = (Rig::named("h200x8-nvswitch"), Rig::named("rtxpro6000x8"));
    for choice in choices() {
        for &implementation in choice.0.implementations {
            if implementation.barrier() == BarrierKind::Flags {
                continue;
            }
            for n in 2..=8 {
                for bytes in SIZES {
                    check(&nvlink, choice, n, bytes, implementation);
                }
            }
            if choice.0.name == "one_shot_push" {
                // It pushes, and waits for nobody.
                continue;
            }
            let request = Request {
                kernel: pcie.kernel(implementation),
                ..pcie.request(choice, pcie.gpus(), 4096)
            };
            let refusal = build(choice.0, &request).expect_err("PCIe carries no such atomics");
            assert!(refusal.to_string().contains("PCIe"), "{refusal}");
        }
    }
}

/// An NVSwitch domain of 16 GPUs like that of eight H200.
pub(crate) fn sixteen() -> Rig {
    let mut machine = topology("h200x8-nvswitch");
    let switch = machine.links[0].b;
    let (gpu, kind) = (machine.nodes[0].kind.clone(), machine.links[0].kind);
    for number in 8..16 {
        machine.nodes.push(Node { id: format!("gpu{number}"), kind: gpu.clone() });
        let a = NodeId(machine.nodes.len() as u32 - 1);
        machine.links.push(Link { a, b: switch, kind });
    }
    Rig::of(machine)
}

#[test]
fn what_needs_a_switch_is_proved_and_ends() {
    let rig = sixteen();
    let needy = rig.choices().into_iter().filter(|choice| choice.0.is_in_switch());
    let mut count = 0;
    for choice in needy {
        for n in 2..=16_u32 {
            for bytes in SIZES {
                for &implementation in choice.0.implementations {
                    check(&rig, choice, n, bytes, implementation);
                    count += 1;
                }
            }
        }
    }
    // NCCL's three collectives, then one, two, three and one implementation of the others'.
    assert_eq!(count, (3 + 2 + 3 + 1) * 15 * SIZES.len());
}
