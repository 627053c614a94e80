//! Do the searches for places find what is better, and can each thing found be made by the edits told?

use collsim::engine::Fidelity;
use collsim::fabric::Calibration;
use collsim::input::load_scenario;
use collsim::prediction::{CaseOptions, Choice, Machine};
use collsim::sweep::grouping::{groups, islands};
use collsim::sweep::plan::{Plan, Terms, parse_edits};
use collsim::sweep::wiring::{Family, wirings};
use collsim::workload::Collective;

use crate::cli::simulate;
use crate::rig::topology;

const BYTES: u64 = 14_336;
const PACKETS: Terms = Terms { regimes: true, ranges: false, fidelity: Fidelity::Packet };

/// A machine with edits and a TP of all its GPUs.
fn plan(machine: &str, edits: &[&str], calibration: &Calibration) -> Plan {
    let scenario = load_scenario("kimi-k25-tp8").expect("built in");
    let plan = Plan { topology: topology(machine), scenario, choice: Choice::default() };
    let edits: Vec<String> = edits.iter().map(|&edit| edit.to_owned()).collect();
    let edits = parse_edits(&edits).expect("edits");
    let mut plan = plan.edited(&edits, calibration).expect("can be").0;
    plan.scenario.tensor_parallel = plan.topology.gpus().len() as u32;
    plan
}

/// Two switches of two GPUs each on one socket.
const FOUR: &[&str] = &["gpu:gpu2=none", "gpu:gpu3=none", "gpu:gpu6=none", "gpu:gpu7=none"];

#[test]
fn every_wiring_told_is_made_by_its_edits() {
    let calibration = Calibration::embedded().expect("embedded");
    let plan = plan("rtxpro6000x8-flat", FOUR, &calibration);
    let found = wirings(&plan, BYTES, &calibration, true).expect("two switches");
    assert!(found.exact && found.tried > found.best.len(), "{}", found.tried);
    assert!(found.now.edits.is_empty() && found.now.family == Family::Flat);
    for family in [Family::Hierarchy, Family::TwoUplinks] {
        assert!(found.best.iter().any(|one| one.family == family), "{family:?}");
    }
    for one in found.best.iter().chain([&found.now]) {
        let edits = parse_edits(&one.edits).expect("edits");
        let (edited, _) = plan.edited(&edits, &calibration).expect("can be");
        let prepared = edited.prepared(&calibration, PACKETS).expect("compiles");
        let (case, us) = prepared.fastest(BYTES).expect("it ends").expect("a case");
        assert_eq!(
            (case.title_at(BYTES, &prepared.options), us.to_bits()),
            (one.by.clone(), one.time_us.value.to_bits())
        );
        let against = one.time_us.value / found.now.time_us.value - 1.0;
        assert!((one.change.value - against).abs() < 1e-9 && one.change.low <= one.change.high);
    }
    // Two switches of which one hangs below the other: a step fewer between their GPUs.
    let edits = |family| &found.best.iter().find(|one| one.family == family).expect("some").edits;
    assert_eq!(*edits(Family::Hierarchy), ["move:sw1=sw0"]);
}

#[test]
fn what_has_no_lanes_is_counted_with_the_reason() {
    let calibration = Calibration::embedded().expect("embedded");
    // Five devices of x16 and an uplink: a second one has no lanes left.
    let plan =
        plan("rtxpro6000x8-flat", &["move:gpu4=sw0", "link:gpu5,gpu6,gpu7=x4"], &calibration);
    let found = wirings(&plan, BYTES, &calibration, true).expect("two switches");
    assert!(found.refused > 0, "{found:?}");
    assert!(found.reason.as_ref().is_some_and(|why| why.contains("100 lanes")), "{found:?}");
}

#[test]
fn islands_told_are_made_by_the_edit_and_are_those_of_the_paths_at_first() {
    let calibration = Calibration::embedded().expect("embedded");
    let plan = plan("rtxpro6000x8", &[], &calibration);
    let machine = Machine::new(plan.topology.clone(), &calibration, true, false).expect("compiles");
    let gpus: Vec<u32> = (0..8).collect();
    let found = islands(&machine, &gpus, BYTES).expect("it ends").expect("two sockets");
    // 105 ways into four pairs, 35 into two fours, among them their own.
    assert!(found.exact && found.tried == 140, "{}", found.tried);
    assert_eq!(found.own.groups, [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert!(found.best.us <= found.own.us && found.own.us < found.worst.us);
    for one in [&found.best, &found.worst] {
        let text: Vec<String> = one
            .groups
            .iter()
            .map(|ranks| ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(","))
            .collect();
        let edit = parse_edits(&[format!("islands={}", text.join("/"))]).expect("an edit");
        let choice = plan.edited(&edit, &calibration).expect("can be").0.choice;
        let cases = choice.cases(Collective::AllReduce, &machine, &gpus).expect("cases");
        let options = choice.within(CaseOptions::of(gpus.clone(), Fidelity::Packet));
        let times = cases
            .iter()
            .filter(|case| case.algorithm.is_by_islands())
            .map(|case| case.nominal_us(&machine, BYTES, &options).expect("it ends").to_bits());
        assert!(times.collect::<Vec<u64>>().contains(&one.us.to_bits()), "{one:?}");
    }
}

#[test]
fn groups_keep_to_their_socket() {
    let calibration = Calibration::embedded().expect("embedded");
    let machine =
        Machine::new(topology("rtxpro6000x8"), &calibration, true, false).expect("compiles");
    let found = groups(&machine, 4, BYTES).expect("two groups");
    assert!(found.exact && found.tried == 35, "{}", found.tried);
    assert_eq!(found.best.groups, [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert!(found.best.us < 0.8 * found.worst.us, "{found:?}");
    assert!(groups(&machine, 3, BYTES).is_err() && groups(&machine, 8, BYTES).is_err());
}

#[test]
fn what_has_no_place_is_refused() {
    let refused = |arguments: &[&str], part: &str| {
        let run = simulate(&[&["place", "--topo"], arguments].concat());
        assert!(run.code == 2 && run.err.contains(part), "{arguments:?}: {}", run.err);
    };
    refused(&["rtxpro6000x8-direct", "--wiring"], "has no PCIe switch");
    refused(&["rtxpro6000x8-flat", "--ranks", "9"], "9 ranks have no place");
    refused(&["rtxpro6000x8-flat", "--ranks", "1", "--wiring"], "1 ranks have no place");
    refused(&["rtxpro6000x8-flat", "--bytes", "some"], "some");
    refused(&["rtxpro6000x8-flat", "--bytes", "0"], "0 bytes are out of range");
    refused(&["rtxpro6000x8-flat", "--bytes", "2000G", "--wiring"], "is too large");
    let none = ["--topo", "rtxpro6000x8", "--what-if", "islands=0-3/4-6", "--algo", "island_push"];
    let run = simulate(&none);
    assert!(run.code == 2 && run.err.contains("islands name every rank once"), "{}", run.err);
}
