//! Do edits change what was measured to change, by as much?
//!
//! Sign always right; size within 15 % where bandwidth changes.

use collsim::algorithm::streams::{Stream, streams};
use collsim::engine::{Fidelity, RunOptions, simulate};
use collsim::fabric::Calibration;
use collsim::prediction::{CaseOptions, Choice, Machine};
use collsim::topology::Topology;

use crate::rig::{Rig, edited, topology};

/// Both directions between two GPUs by copy engines, GB/s in all.
fn both_ways(topology: Topology, a: u32, b: u32) -> f64 {
    let bytes = 4 << 20;
    let schedule = streams(&[Stream::write(a, b, bytes), Stream::write(b, a, bytes)]);
    let fabric = Rig::of(topology).fabric;
    let outcome = simulate(&fabric, &schedule, Fidelity::Packet, RunOptions::default());
    2.0 * f64::from(bytes) / outcome.expect("it ends").ended.as_ns()
}

#[track_caller]
fn near(predicted: f64, measured: f64, share: f64) {
    let error = predicted / measured - 1.0;
    assert!(error.abs() <= share, "{predicted:.3} predicted, {measured} measured: {error:+.3}");
}

/// `asus-esc8000a-e13p-2xpex890xx-8gpu`: two GPUs of one virtual switch, 103 GB/s both ways with ACS off,
/// 50 with ACS on: what passes between them goes up the one uplink and down again.
#[test]
fn acs_halves_what_two_gpus_of_a_switch_exchange() {
    near(both_ways(topology("rtxpro6000x8"), 0, 1), 103.0, 0.15);
    near(both_ways(edited("rtxpro6000x8", "acs=on"), 0, 1), 50.0, 0.15);
}

/// `4090x8-epyc7542-2s`: all-reduce of 64 MB by NCCL on 8 GPUs, 5,705 us with P2P unlocked, 7,907 us
/// without.
#[test]
fn p2p_unlocked_makes_large_calls_faster_by_what_was_measured() {
    let calibration = Calibration::embedded().expect("embedded");
    let us = |topology: Topology| {
        let machine = Machine::new(topology, &calibration, true, false).expect("compiles");
        let gpus: Vec<u32> = (0..8).collect();
        let choice = Choice { algorithms: vec!["ring".to_owned()], ..Choice::default() };
        let collective = collsim::workload::Collective::AllReduce;
        let cases = choice.cases(collective, &machine, &gpus).expect("a ring");
        let options = CaseOptions::of(gpus, Fidelity::Packet);
        cases[0].nominal_us(&machine, 64 << 20, &options).expect("it ends")
    };
    let with = us(topology("rtx4090x8-rome"));
    let without = us(edited("rtx4090x8-rome", "p2p=off"));
    near(without / with, 7_907.0 / 5_705.0, 0.15);
}

/// A link that nobody uses changes nothing; half of a link that a large call needs takes time.
#[test]
fn narrower_links_are_never_faster_and_unused_ones_do_not_matter() {
    let whole = both_ways(topology("rtxpro6000x8"), 0, 1);
    let unused = both_ways(edited("rtxpro6000x8", "link:gpu7=gen3x1; link:vs3=x4"), 0, 1);
    assert_eq!(whole.to_bits(), unused.to_bits());
    // Gen4 is half of Gen5, lane for lane, but for the copy engine's own limit.
    near(both_ways(edited("rtxpro6000x8", "link:gpus=gen4"), 0, 1), 52.0, 0.15);
    near(both_ways(edited("rtxpro6000x8", "link:gpu0=x8"), 0, 1), 52.0, 0.15);
    // Measured with ACS off and on over one uplink of Gen5: half of it with an uplink of eight lanes.
    let narrow = both_ways(edited("rtxpro6000x8", "acs=on; link:vs0=x8"), 0, 1);
    let wide = both_ways(edited("rtxpro6000x8", "acs=on"), 0, 1);
    near(narrow / wide, 0.5, 0.15);
}
