//! `simulate trace show`: what is in a trace, told to people and programs.

use std::path::{Path, PathBuf};

use collsim::input::traces::{Trace, in_order, recognise, summary};
use collsim::report::calls::{every_call, page};
use serde_json::Value;

use super::kineto::rank;
use super::{NCCL, trace};
use crate::cli::{simulate, simulate_with};

fn shown(traces: Vec<Trace>) -> String {
    page(&summary(traces))
}

#[test]
fn two_ranks_of_a_profile() {
    // Twelve calls of 14,336 B: rank 0 stays 30 us in each, rank 1 comes 8 us later and stays 22 us.
    // Pauses of rank 0: nine of 10 us and two of 4,850; of rank 1 each 8 us more. A tenth lies above
    // 4850 + 0.43 x 8 (of 22 values the 20.43rd). From 0 to the end at 2 x 5000 + 3 x 40 + 30 us.
    let told = shown(vec![trace(&rank(0, 0.0)), trace(&rank(1, 8.0))]);
    let expected = "\
sample (a trace of the torch profiler)
sample (a trace of the torch profiler)
24 calls of 2 ranks, 10.2 ms

collective   bytes  type      ranks  calls of a rank  us/call (80 %)  moving  waiting    pause before  of all  by
all-reduce  14,336  BFloat16      2               12    26.0 (22-30)    22.0     4.00  18.0 (10-4853)   100 %  \
ncclDevKernel_AllReduce_Sum_bf16_RING_LL
left out: 2 kernels that are no collectives
";
    let [told, expected] = [told.as_str(), expected].map(|text| {
        let rows: Vec<String> =
            text.lines().map(|row| row.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        rows.join("\n")
    });
    assert_eq!(told, expected);
}

#[test]
fn what_a_trace_cannot_tell_is_said() {
    let one = shown(vec![trace(&rank(0, 0.0))]);
    assert!(one.contains("not told: waiting apart from moving: that takes a trace of every rank"));
    assert!(one.contains("12 calls of 1 of 2 ranks"), "{one}");
    let twice = shown(vec![trace(&rank(0, 0.0)), trace(&rank(0, 0.0))]);
    assert!(twice.contains("warning: sample (a trace of the torch profiler) has calls of rank 0"));
    // The second rank lacks a step: nobody knows which calls belong together.
    let cut = rank(1, 0.0);
    let cut = trace(&cut[..cut.rfind("{\"ph\"").expect("the last call")]);
    let uneven = shown(vec![trace(&rank(0, 0.0)), cut]);
    assert!(uneven.contains("11 to 12") && !uneven.contains("moving  "), "{uneven}");
    assert!(uneven.contains("warning: the trace breaks off at line"), "{uneven}");
    let log = shown(vec![trace(NCCL)]);
    for part in ["bf16", "the size of 1 of 3 calls", "the time of 3 of 3", "says: NCCL 2.27.7"] {
        assert!(log.contains(part), "no `{part}` in\n{log}");
    }
    assert!(!log.contains("us/call"), "a column without a figure\n{log}");
}

#[test]
fn groups_that_were_traced_together_are_not_taken_for_one() {
    // Four ranks in two groups of two: the third and fourth call of a kind are of other calls.
    let all = (0..4).map(|number| trace(&rank(number, f64::from(number))));
    let all = summary(all.collect());
    assert_eq!((all.seen.len(), all.kinds[0].ranks), (4, Some(2)));
    assert_eq!(all.kinds[0].moving_us, None);
    assert!(page(&all).contains("48 calls of 4 ranks in groups of 2"));
}

#[test]
fn every_call_is_listed_rank_by_rank() {
    let calls = in_order(vec![trace(&rank(1, 8.0)), trace(&rank(0, 0.0))]);
    let told = every_call(&calls);
    let rows: Vec<Vec<&str>> = told.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 25);
    assert_eq!(rows[2][..5], ["0", "1", "40.000", "30.000", "all-reduce"]);
    assert_eq!(rows[13][..4], ["1", "0", "8.000", "22.000"]);
}

/// The seeds of the readers of traces: a file of every kind.
fn seeds() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds");
    let files =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
    let is_trace = |file: &PathBuf| {
        let bytes = std::fs::read(file).expect("readable");
        let format = recognise(&String::from_utf8_lossy(&bytes));
        // Databases are no pipes, and read by builds with the feature alone: `super::nsys`.
        format.is_some_and(|format| format.name != "nsys-sqlite")
    };
    files.filter(is_trace).collect()
}

#[test]
fn every_kind_of_trace_is_shown_by_the_program_from_a_file_and_a_pipe() {
    let seeds = seeds();
    assert!(seeds.len() + 1 >= collsim::input::traces::TRACES.len());
    for file in seeds {
        let name = file.to_str().expect("UTF-8");
        let run = simulate(&["trace", "show", name]);
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{name}");
        assert!(run.out.starts_with(name) && run.out.contains("collective"), "{}", run.out);
        let piped =
            simulate_with(&["trace", "show", "-"], &std::fs::read(&file).expect("readable"));
        assert_eq!(piped.code, 0, "{}", piped.err);
        assert_eq!(piped.out, run.out.replacen(name, "standard input", 1));
        for more in [&["--json"][..], &["--json", "--calls"]] {
            let run = simulate(&[&["trace", "show", name], more].concat());
            let value: Value = serde_json::from_str(&run.out).expect("JSON");
            assert_eq!(value["schema_version"], 1, "{name}");
        }
    }
}

#[test]
fn steps_of_the_probe_keep_their_clocks_apart() {
    let text = "algorithm,carrier,size_bytes,skew,call,rank,gpu,ready_ns,end_ns\n\
        ring_ll,peer,512,even,0,0,0,0,4000\nring_ll,peer,512,even,0,1,1,1000,4000\n\
        ring_ll,peer,512,late,0,0,0,0,9000\nring_ll,peer,512,late,0,1,1,6000,9000\n";
    let read = trace(text);
    assert!(read.apart && read.calls.len() == 4);
    let all = summary(vec![read]);
    assert_eq!((all.span_us, all.kinds.len()), (None, 2));
    let [even, late] = [0, 1].map(|at| (all.kinds[at].moving_us, all.kinds[at].waiting_us));
    assert_eq!(even, (Some(3.0), Some(0.5)));
    assert_eq!(late, (Some(3.0), Some(3.0)));
    let wrong = text.replace("6000,9000", "9001,9000");
    super::refused(super::read(wrong.as_bytes()), &["ends before its rank has come"]);
    let wrong = text.replace("6000", "soon");
    super::refused(super::read(wrong.as_bytes()), &["line 5: ready_ns: invalid float"]);
}
