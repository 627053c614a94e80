//! Logs of benchmarks: all versions, cut off, interleaved and prefixed, yield what they hold.

mod nccl_tests;
mod pairs;

use collsim::input::render;
use collsim::measurement::logs::{Log, read_log};
use collsim::measurement::{NcclCall, Run};

#[track_caller]
pub(crate) fn log(file: &str, text: &str) -> Log {
    read_log(file, text, "h200x2-nvlink-pair")
        .unwrap_or_else(|error| panic!("{}", render(&error, false)))
}

/// Calls with their times, us.
pub(crate) fn calls(log: &Log) -> Vec<(&NcclCall, f64)> {
    let each = log.record.observations.iter().filter_map(|observation| match &observation.run {
        Run::Nccl(call) => Some((call, observation.measured)),
        _ => None,
    });
    each.collect()
}

/// Bytes and times, us.
pub(crate) fn times(log: &Log) -> Vec<(u64, f64)> {
    calls(log).into_iter().map(|(call, time)| (call.bytes, time)).collect()
}

/// Reasons why rows have no run, each once.
pub(crate) fn reasons(log: &Log) -> Vec<&str> {
    let mut all: Vec<&str> = log.record.skipped.iter().map(|row| row.reason.as_str()).collect();
    all.dedup();
    all
}

#[track_caller]
pub(crate) fn refused(text: &str, parts: &[&str]) {
    let error = read_log("run.log", text, "h200x2-nvlink-pair").expect_err("nothing in it");
    let told = render(&error, false);
    for part in parts {
        assert!(told.contains(part), "no `{part}` in\n{told}");
    }
}

#[test]
fn what_is_no_log_is_told() {
    refused("hello\nworld\n", &["run.log:1:1", "no benchmark that I know", "nvbandwidth"]);
    refused(
        "# nThread 1 nGpus 8\n#  size count\n",
        &["looks like nccl-tests", "no row of figures"],
    );
}
