//! Traces of what ran become scenarios: calls with sizes and types as they were, steps, waiting.

mod kineto;
mod logs;
mod nsys;
mod show;
mod times;

use collsim::error::{Error, Result};
use collsim::input::render;
use collsim::input::traces::{Import, Trace, import, read_from};
use collsim::workload::{Arrival, Scenario};

use crate::cli::simulate;

/// Two processes of one host, lines interleaved.
pub(crate) const NCCL: &str = "\
box:101:120 [0] NCCL INFO NCCL_P2P_LEVEL set by environment to SYS
NCCL version 2.27.7+cuda12.9
box:101:120 [0] NCCL INFO ncclCommInitRank comm 0xaa rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x1 - Init COMPLETE
box:102:121 [1] NCCL INFO ncclCommInitRank comm 0xbb rank 1 nranks 2 cudaDev 1 nvmlDev 1 busId 43000 commId 0x1 - Init COMPLETE
box:101:120 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
box:102:121 [1] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via SHM/direct/direct
box:101:120 [0] NCCL INFO 2 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer
box:101:101 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f count 7168 datatype 9 op 0 root 0 comm 0xaa [nranks=2] stream 0x55
box:101:101 [0] NCCL INFO AllReduce: 14336 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}
box:102:102 [1] NCCL INFO AllReduce: opCount 0 sendbuff 0x7f recvbuff 0x7f count 7168 datatype 9 op 0 root 0 comm 0xbb [nranks=2] stream 0x55
box:101:101 [0] NCCL INFO AllGather: opCount 1 sendbuff 0x7f recvbuff 0x7f count 100 datatype 7 op 0 root 0 comm 0xaa stream 0x55
box:102:102 [1] NCCL INFO AllGather: opCount 1 sendbuff 0x7f recvbuff 0x7f count 100 datatype 7 op 0 root 0 comm 0xbb stream 0x55
box:101:101 [0] NCCL INFO AllReduce: opCount 2 sendbuff 0x7f recvbuff 0x7f count 71
";

#[track_caller]
pub(crate) fn trace(text: &str) -> Trace {
    read(text.as_bytes()).unwrap_or_else(|error| panic!("{}", render(&error, false)))
}

pub(crate) fn read(bytes: &[u8]) -> Result<Trace> {
    read_from("sample", bytes, None, &|_| ())
}

pub(crate) fn stated() -> Import {
    Import { name: "sample".to_owned(), ..Import::default() }
}

#[track_caller]
pub(crate) fn scenario(traces: Vec<Trace>, stated: &Import) -> (Scenario, Vec<String>) {
    let (scenario, notes) = import(traces, stated).unwrap_or_else(|error| panic!("{error}"));
    // What is written must be read again.
    let text = serde_json::to_string(&scenario).expect("JSON");
    let again = collsim::input::scenario_json::parse("written", &text);
    assert_eq!(again.unwrap_or_else(|error| panic!("{error}")), scenario);
    (scenario, notes)
}

/// Steps as `name x calls`.
pub(crate) fn steps(scenario: &Scenario) -> Vec<String> {
    scenario.steps.iter().map(|step| format!("{} x {}", step.name, step.calls)).collect()
}

pub(crate) fn listed(scenario: &Scenario) -> &[Vec<f64>] {
    match &scenario.steps[0].arrival {
        Some(Arrival::ListedUs(listed)) => listed,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn holds(notes: &[String], part: &str) {
    assert!(notes.iter().any(|note| note.contains(part)), "no `{part}` in {notes:#?}");
}

#[track_caller]
pub(crate) fn refused(result: Result<Trace>, parts: &[&str]) {
    let error = result.expect_err("no trace");
    assert!(matches!(error, Error::Read { .. }), "{error:?}");
    let told = render(&error, false);
    for part in parts {
        assert!(told.contains(part), "no `{part}` in\n{told}");
    }
}

#[test]
fn the_program_imports_and_takes_a_trace_as_a_scenario() {
    let folder = std::env::temp_dir().join(format!("collsim-traces-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let log = folder.join("run.log");
    std::fs::write(&log, NCCL).expect("written");
    let log = log.to_string_lossy().into_owned();
    let run = simulate(&["import", &log]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(
        run.out.contains("\"tensor_parallel\": 2") && run.out.contains("\"name\": \"run\""),
        "{}",
        run.out
    );
    assert!(run.err.contains("note: 1 hops via P2P/CUMEM"), "{}", run.err);
    let run =
        simulate(&["--topo", "h200x2-nvlink-pair", "--scenario", &log, "--fidelity", "alpha_beta"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("14,336 B"), "{}", run.out);
    let run = simulate(&["import", "--format", "kinto", &log]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("did you mean `kineto`?"), "{}", run.err);
    std::fs::remove_dir_all(folder).expect("gone");
}

#[test]
fn what_is_no_trace() {
    refused(read(b"dear all\n"), &["starts with `dear all`", "a log of NCCL"]);
    refused(read(b"<system version=\"1\"/>"), &["it is NCCL system file", "simulate --topo"]);
    refused(read(b"\x1f\x8bnot gzip"), &["sample"]);
    refused(read(b" \n"), &["it is empty", "did what wrote it end"]);
}
