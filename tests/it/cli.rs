//! Does the program answer, refuse and end as it should?

use std::io::Write;
use std::process::{Command, Stdio};

use collsim::input::embedded::MACHINES;
use collsim::input::scenario::SCENARIOS;

/// What a run left behind.
pub(crate) struct Run {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

/// Runs the program in an empty place, without colors.
pub(crate) fn simulate(arguments: &[&str]) -> Run {
    simulate_with(arguments, b"")
}

/// The same with a pipe as its standard input.
pub(crate) fn simulate_with(arguments: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(arguments)
        .current_dir(std::env::temp_dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that wants no more closes the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    Run {
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
        code: output.status.code().expect("no signal"),
    }
}

#[track_caller]
pub(crate) fn refused(arguments: &[&str], parts: &[&str]) {
    let run = simulate(arguments);
    assert_eq!(run.code, 2, "{arguments:?}\n{}", run.err);
    assert_eq!(run.out, "", "{arguments:?}");
    for part in parts {
        assert!(run.err.contains(part), "no `{part}` in\n{}", run.err);
    }
}

/// Every answer that has a form for programs is the same with and without colors.
#[test]
fn answers_for_programs_have_no_colors() {
    let answers: &[&[&str]] = &[
        &["--topo", QUICK],
        &["--topo", QUICK, "-b", "1K"],
        &["--topo", QUICK, "--what-if", "p2p=off"],
        &["choose", "--topo", QUICK, "-b", "8K"],
        &["choose", "--topo", QUICK, "--engine", "vllm", "-b", "8K"],
        &["memory", "--topo", QUICK],
        &["step", "--topo", QUICK, "--model", "kimi-k2.5", "--tp", "2"],
        &["place", "--topo", QUICK],
        &["check", "--machine", "wrx90-7955wx-4x", "--experiment", "flag"],
        &["topo", "show", QUICK],
    ];
    for answer in answers {
        let run = simulate(&[answer, &["--json", "--color", "always"][..]].concat());
        assert!(run.code < 2, "{answer:?}: {}", run.err);
        let read: Result<serde_json::Value, _> = serde_json::from_str(&run.out);
        assert!(read.is_ok(), "{answer:?}: {:?}\n{:.200}", read.err(), run.out);
    }
}

/// A machine that is quick to simulate.
const QUICK: &str = "h200x2-nvlink-pair";

#[test]
fn slips_are_refused_with_advice() {
    refused(&[], &["which machine?", "rtxpro6000x8", "--topo"]);
    refused(&["--topo", "rtxpro600x8"], &["did you mean `rtxpro6000x8`?"]);
    refused(&["--topo", QUICK, "--scenario", "kimi"], &["built-in scenarios: kimi-k25-tp8"]);
    refused(&["--topo", QUICK, "--algo", "rnig"], &["did you mean `ring`?"]);
    refused(&["--topo", QUICK, "--proto", "LL129"], &["did you mean `LL128`?"]);
    refused(&["--topo", QUICK, "--algo", "one_shot_pull", "--proto", "LL"], &["it knows Simple"]);
    refused(&["--topo", QUICK, "--gpus", "0,2"], &["no GPU 2", "GPUs 0 to 1"]);
    refused(&["--topo", QUICK, "--gpus", "1,1"], &["named twice"]);
    refused(&["--topo", QUICK, "--gpus", "1"], &["nothing to reduce"]);
    refused(&["--tpo", QUICK], &["--topo"]);
}

#[test]
fn absurd_numbers_are_refused() {
    refused(&["--topo", QUICK, "-b", "1G", "-e", "8"], &["no size from 1G up to 8"]);
    refused(&["--topo", QUICK, "-b", "x32"], &["is no size"]);
    refused(&["--topo", QUICK, "-b", "10T"], &["is no size"]);
    refused(&["--topo", QUICK, "-b", "10240G"], &["too large"]);
    refused(&["--topo", QUICK, "-b", "0"], &["0 bytes"]);
    refused(&["--topo", QUICK, "-b", "8", "-e", "1K", "-f", "1"], &["a factor of 1"]);
    refused(&["--topo", QUICK, "-b", "8", "-e", "1G", "-f", "1.01"], &["more than 200 sizes"]);
    refused(&["--topo", QUICK, "-f", "2"], &["add -b 8 -e 1G"]);
    refused(&["--topo", QUICK, "--calls", "0"], &["--calls"]);
    refused(&["--topo", QUICK, "--blocks", "0"], &["--blocks"]);
    refused(&["--topo", QUICK, "-j", "0"], &["--threads"]);
    refused(&["--topo", QUICK, "--json", "--format", "csv"], &["cannot be used with"]);
    refused(&["--topo", QUICK, "--format", "csv"], &["add -b 8 -e 1G"]);
}

#[test]
fn every_machine_fits_one_screen() {
    for machine in MACHINES {
        let run = simulate(&["--topo", machine.name]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{}", machine.name);
        let rows = run.out.lines().count();
        let columns = run.out.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(rows <= 26 && columns <= 110, "{}: {rows} x {columns}\n{}", machine.name, run.out);
        assert!(!run.out.contains("NaN") && !run.out.contains("inf"), "{}", run.out);
    }
}

#[test]
fn every_scenario_is_answered() {
    for scenario in SCENARIOS {
        let run = simulate(&["--topo", QUICK, "--scenario", scenario.name]);
        assert_eq!(run.code, 0, "{}", run.err);
    }
}

#[test]
fn one_gpu_has_nothing_to_reduce() {
    let run = simulate(&["--topo", "h200-host-link"]);
    assert!(run.code == 0 && run.out.contains("nothing to reduce"), "{}", run.out);
    refused(&["--topo", "h200-host-link", "--json"], &["has one GPU"]);
    refused(&["--topo", "h200-host-link", "-b", "8", "-e", "1M"], &["has one GPU"]);
}

#[test]
fn json_holds_the_screen() {
    let run = simulate(&["--topo", "rtxpro6000x8-direct", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
    for key in ["schema_version", "program", "inputs", "assumptions", "declared_regimes"] {
        assert!(!value[key].is_null(), "{key}");
    }
    let predictions = value["predictions"].as_array().expect("a list");
    assert_eq!(predictions.len() % 2, 0);
    for prediction in predictions {
        let range = &prediction["time_us"];
        let figure = |key: &str| range[key].as_f64().expect("a number");
        assert!(0.0 < figure("low") && figure("low") < figure("value"));
        assert!(figure("value") < figure("high"));
    }
    // The parts of the one-stage call are its time.
    let terms = value["one_stage_sum"]["terms"].as_array().expect("a list");
    let sum: f64 = terms.iter().map(|term| term["us"].as_f64().expect("a number")).sum();
    let pull = predictions
        .iter()
        .rfind(|prediction| prediction["algorithm"] == "one_shot_pull")
        .expect("shown");
    let time = pull["time_us"]["value"].as_f64().expect("a number");
    assert!((sum - time).abs() < 1e-9 * time, "{sum} {time}");
}

#[test]
fn threads_and_repetition_change_nothing() {
    let one = simulate(&["--topo", "rtxpro6000x8-direct", "--json", "-j", "1"]);
    let eight = || simulate(&["--topo", "rtxpro6000x8-direct", "--json", "-j", "8"]);
    assert!(one.out == eight().out && one.out.len() > 1000);
    assert!(one.out == eight().out, "from run to run");
}

#[test]
fn a_sweep_has_the_columns_of_nccl_tests() {
    let run =
        simulate(&["--topo", QUICK, "-b", "8", "-e", "128M", "-f", "4096", "--format", "csv"]);
    let mut lines = run.out.lines();
    assert_eq!(lines.next(), Some("size,count,type,redop,time,low,high,algbw,busbw,algorithm"));
    assert!(lines.next().is_some_and(|line| line.starts_with("8,4,bf16,sum,")));
    assert!(run.out.contains("extrapolated"), "{}", run.out);
}

#[test]
fn stages_are_json() {
    for stage in ["topology", "fabric", "schedule"] {
        let run = simulate(&["--topo", QUICK, "--stop-after", stage]);
        let value: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        assert!(value.is_object(), "{stage}");
    }
}

#[test]
fn subcommands_answer() {
    let list = simulate(&["topo", "list"]);
    assert!(list.out.lines().count() == MACHINES.len(), "{}", list.out);
    let show = simulate(&["topo", "show", "rtxpro6000x8"]);
    assert!(show.out.contains("GPU7") && show.out.contains("SYS"), "{}", show.out);
    assert!(simulate(&["topo", "check", "rtxpro6000x8"]).out.contains("sound"));
    assert!(simulate(&["scenarios"]).out.starts_with("kimi-k25-tp8"));
    assert!(simulate(&["constants", "h200"]).out.contains("poll_detect"));
    refused(&["constants", "h20"], &["did you mean `h200`?"]);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["constants"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else { return };
    let output = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["topo", "list"])
        .stdout(full)
        .output()
        .expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write the answer"));
}

#[test]
fn files_are_written_whole() {
    let file = std::env::temp_dir().join(format!("collsim-{}.txt", std::process::id()));
    let name = file.to_str().expect("UTF-8");
    let run = simulate(&["--topo", QUICK, "--out", name]);
    assert_eq!((run.code, run.out.as_str()), (0, ""));
    let text = std::fs::read_to_string(&file).expect("written");
    assert_eq!(text, simulate(&["--topo", QUICK]).out);
    std::fs::remove_file(&file).expect("ours");
    refused(&["--topo", QUICK, "--out", "/no/such/place/x"], &["cannot write /no/such/place/x"]);
}
