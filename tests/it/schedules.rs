//! Every algorithm of the table, for many rank counts and sizes: proved, run to its end by every
//! network model, and never below its bound.

use collsim::algorithm::{ALGORITHMS, Implementation, Kernel, Request, Transport, build};
use collsim::engine::{Fidelity, RunOptions, simulate};
use collsim::fabric::{Calibration, CompileOptions, Fabric};
use collsim::schedule::Collective;
use collsim::schedule::proof::prove;
use collsim::units::Time;

fn fabric(name: &str) -> (Fabric, Calibration, String) {
    let topology = collsim::input::load_topology(name).expect("an embedded machine");
    let calibration = Calibration::embedded().expect("embedded calibration");
    let fabric = Fabric::compile(&topology, &calibration, CompileOptions::default())
        .expect("embedded machines compile");
    (fabric, calibration, topology.gpu_models()[0].to_string())
}

fn cases() -> Vec<u64> {
    // Around one warp, one block, one element a rank; not powers of two.
    [16, 48, 512, 528, 8192, 14_336, 43_008, 65_552].to_vec()
}

#[test]
fn all_are_proved_and_end() {
    let (fabric, calibration, model) = fabric("rtxpro6000x16-flat");
    for algorithm in ALGORITHMS {
        for n in 2..=16_u32 {
            for bytes in cases() {
                let bytes = match algorithm.collective {
                    Collective::AllToAll => bytes.div_ceil(16 * u64::from(n)) * 16 * u64::from(n),
                    _ => bytes,
                };
                for &protocol in algorithm.protocols {
                    for implementation in [Implementation::Nccl, Implementation::Probe] {
                        let request = Request {
                            fabric: &fabric,
                            gpus: (0..n).collect(),
                            bytes,
                            protocol,
                            kernel: Kernel::of(implementation, &calibration, &model)
                                .expect("known"),
                            transport: Transport::Peer,
                            blocks: None,
                        };
                        let place = format!(
                            "{} {protocol:?} {implementation:?} n={n} {bytes}",
                            algorithm.name
                        );
                        let schedule = build(algorithm, &request).expect("builds");
                        prove(&schedule).unwrap_or_else(|flaw| panic!("{place}: {flaw}"));
                        if n % 5 == 3 || n == 8 {
                            for (fidelity, name) in Fidelity::ALL {
                                let outcome = simulate(
                                    &fabric,
                                    &schedule,
                                    fidelity,
                                    RunOptions { calls: 2, ..RunOptions::default() },
                                )
                                .unwrap_or_else(|error| panic!("{place} {name}: {error}"));
                                let gpus: Vec<usize> = (0..n as usize).collect();
                                // A link that sends longer than the run lasts has been given
                                // more than it can carry; alpha_beta shares nothing.
                                for (link, used) in fabric.links.iter().zip(&outcome.links) {
                                    let most = outcome.ended + Time::from_ns(1.0);
                                    let within =
                                        used.busy <= most || fidelity == Fidelity::AlphaBeta;
                                    assert!(within, "{place} {name} {}: {used:?}", link.label);
                                }
                                if algorithm.collective == Collective::AllReduce {
                                    let bound = fabric.all_reduce_bound(&gpus, bytes);
                                    assert!(outcome.call_time(0) >= bound.time, "{place} {name}");
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
