//! Do simulated steps follow measured ones, call by call, when their ranks come as they came?

use collsim::fabric::{Calibration, CompileOptions};
use collsim::input::{folder, load_topology};
use collsim::validation::experiment::Machine;
use collsim::validation::replay::{Replayed, replay};

use crate::cli::simulate;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/measured/h200x2-probe");
const TOPOLOGY: &str = "h200x2-nvlink-pair";

fn replays(wanted: &[&str]) -> Vec<Replayed> {
    let calibration = Calibration::embedded().expect("embedded");
    let topology = load_topology(TOPOLOGY).expect("built in");
    let machine =
        Machine::new(&topology, &calibration, CompileOptions::default()).expect("a machine");
    let traces = folder::traces(FOLDER).unwrap_or_else(|error| panic!("{error}"));
    let chosen = traces.iter().filter(|trace| wanted.contains(&trace.name.as_str()));
    chosen.map(|trace| replay(&machine, trace).unwrap_or_else(|error| panic!("{error}"))).collect()
}

#[test]
fn steps_with_late_ranks_are_followed_call_by_call() {
    let names = ["ring_ll peer 14336 late", "one_stage_pull peer 14336 late"];
    let replays = replays(&names);
    assert_eq!(replays.len(), names.len());
    for step in replays {
        assert_eq!(step.calls.len(), 122);
        let (name, error) = (&step.name, step.call_error);
        assert!(error < 0.12, "{name}: median error of a call {error:.3}");
        assert!(step.step_error().abs() < 0.08, "{name}: step {:+.3}", step.step_error());
        let waiting = step.waiting_predicted - step.waiting_measured;
        assert!(waiting.abs() < 0.10, "{name}: waiting {waiting:+.3}");
        assert!(step.waiting_measured > 0.2, "{name}: the ranks were late on purpose");
    }
}

#[test]
fn the_program_prints_the_traces_of_a_folder() {
    let only = "ring_ll host 14336 even";
    let run = simulate(&["replay", FOLDER, "--topo", TOPOLOGY, "--only", only]);
    assert!(run.code == 0 && run.out.contains(only), "{}{}", run.out, run.err);
    let file = std::env::temp_dir().join(format!("collsim-replay-{}.svg", std::process::id()));
    let path = file.to_str().expect("UTF-8");
    let drawn = simulate(&["replay", FOLDER, "--topo", TOPOLOGY, "--only", only, "--plot", path]);
    let svg = std::fs::read_to_string(&file).expect("drawn");
    std::fs::remove_file(&file).expect("ours");
    assert!(drawn.code == 0 && svg.contains("rank 1 simulated"), "{}", drawn.err);
    let none = simulate(&["replay", FOLDER, "--topo", TOPOLOGY, "--only", "no such"]);
    assert!(none.code == 2 && none.err.contains("no trace is left"), "{}", none.err);
    let missing = simulate(&["replay", "/nowhere", "--topo", TOPOLOGY]);
    assert!(missing.code == 2 && missing.err.contains("traces.csv"), "{}", missing.err);
}
