//! Does every flag and edit that a command takes change its answer, and is the rest refused?

use collsim::workload::edit::KINDS;

use crate::cli::{refused, simulate};

/// A machine that is quick to simulate.
const QUICK: &str = "h200x2-nvlink-pair";

const STEP: [&str; 5] = ["step", "--topo", QUICK, "--model", "kimi-k2.5"];

#[test]
fn a_step_does_or_refuses_every_edit_of_the_calls() {
    let plain = simulate(&[&STEP[..], &["--tp", "2"]].concat());
    assert_eq!(plain.code, 0, "{}", plain.err);
    for kind in KINDS {
        let edit = match kind.name {
            "batch" => "batch=4",
            "drafts" => "drafts=1",
            "dtype" => "dtype=fp8",
            "calls" => "calls=5",
            "beside" => "beside=ring",
            "tp" => "tp=4",
            other => panic!("an edit that nobody tries: {other}"),
        };
        let run = simulate(&[&STEP[..], &["--tp", "2", "--what-if", edit]].concat());
        // The heading names the edit; what stands below it has to differ, too.
        let figures = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        let same = run.code == 0 && figures(&run.out) == figures(&plain.out);
        assert!(!same && (run.code == 0) == run.err.is_empty(), "{edit}: {}{}", run.out, run.err);
    }
    // An edit of the layout is its option.
    let edited = simulate(&[&STEP[..], &["--what-if", "tp=2; batch=4; drafts=0"]].concat());
    let asked = simulate(&[&STEP[..], &["--tp", "2", "--batch", "4", "--drafts", "0"]].concat());
    assert_eq!((edited.code, edited.out), (0, asked.out), "{}", edited.err);
    let step = |more: &[&str], part: &str| refused(&[&STEP[..], more].concat(), &[part]);
    step(&["--tp", "2", "--batch", "8", "--what-if", "batch=4"], "--batch says something else");
    step(&["--tp", "2", "--what-if", "calls=5"], "a model makes its calls by its layers");
    step(&["--what-if", "gpus=0,1"], "2 GPUs are named for TP 8");
}

#[test]
fn ranks_divide_heads_and_experts_wherever_they_are_told() {
    let eight = ["--topo", "rtxpro6000x8"];
    let heads = ["64 attention heads", "ranks must divide them: 2, 4, 8, 16"];
    refused(&[&eight[..], &["--what-if", "tp=3"]].concat(), &heads);
    let target = ["plan", "--target", "verify < 2 ms", "--with", "tp=3"];
    let plan = simulate(&[&target[..], &eight[..], &["--fidelity", "alpha_beta"]].concat());
    assert!(plan.out.contains(heads[0]) || plan.err.contains(heads[0]), "{}", plan.out);
    refused(&["sensitivity", "--topo", "rtxpro6000x8", "--what-if", "tp=3"], &heads);
    let experts = ["256 experts", "ranks must divide them"];
    refused(&["experts", "--topo", "h200x8-nvswitch", "--gpus", "0,1,2"], &experts);
    let apart = ["--tp", "3", "--dp-attention", "all_to_all", "--model", "deepseek-v3"];
    refused(&[&["step"], &eight[..], &apart].concat(), &experts);
}
