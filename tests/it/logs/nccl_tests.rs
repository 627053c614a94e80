//! nccl-tests, text and JSON.

use collsim::measurement::Launches;
use collsim::schedule::Collective;

use super::{calls, log, reasons, refused, times};

/// The header lines of version 2.17 for two GPUs of one process.
const DEVICES: &str = "\
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 1024 maxBytes 4096 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   4711 on     node1 device  0 [0000:1b:00] NVIDIA H200
#  Rank  1 Group  0 Pid   4711 on     node1 device  3 [0000:43:00] NVIDIA H200
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
";

const ROWS: &str = "\
        1024           256     float     sum      -1    10.00    0.10    0.10      0    12.00    0.09    0.09      0
        2048           512     float     sum      -1    11.00    0.19    0.19      0    11.00    0.19    0.19      0
        4096          1024     float     sum      -1    1e+01    0.41    0.41    N/A    10.00    0.41    0.41    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.215
";

fn whole() -> String {
    format!("# nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902\n{DEVICES}{ROWS}")
}

#[test]
fn a_whole_log() {
    let log = log("run.log", &whole());
    // Of the two halves of a row, the median.
    assert_eq!(times(&log), [(1024, 11.0), (2048, 11.0), (4096, 10.0)]);
    let (call, _) = calls(&log)[0];
    assert_eq!((call.collective, call.gpus.as_slice()), (Collective::AllReduce, &[0, 3][..]));
    assert_eq!(
        (call.version.as_str(), call.launches, call.first_of),
        ("22902", Launches::InTurn(None), None)
    );
    assert_eq!(log.warnings, [""; 0]);
    assert_eq!(log.record.observations[0].id, "run.log:12 2 GPUs 1024 B float");
    assert_eq!(log.record.observations[0].rows, 2);
}

#[test]
fn prefixes_of_launchers_and_colors() {
    let plain = times(&log("run.log", &whole()));
    for prefix in [
        "[1,0]<stdout>:",
        "[1,0]<stdout>: ",
        "worker-0 | ",
        "node7: ",
        "2026-03-01T10:00:00Z \u{1b}[32m",
    ] {
        let text: String = whole().lines().map(|line| format!("{prefix}{line}\r\n")).collect();
        assert_eq!(times(&log("run.log", &text)), plain, "{prefix}");
    }
}

#[test]
fn lines_of_nccl_between_the_rows() {
    let noise = "node1:4711:4720 [0] NCCL INFO NCCL_P2P_LEVEL set by environment to SYS.\n\
                 NCCL version 2.27.7+cuda12.9\n";
    let text = format!(
        "{DEVICES}{noise}{}",
        ROWS.replace(
            '\n',
            "\nnode1:4711:4720 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[3] via P2P/CUMEM\n"
        )
    );
    let log = log("run.log", &text);
    assert_eq!(times(&log).len(), 3);
    let (call, _) = calls(&log)[0];
    assert_eq!((call.version.as_str(), call.settings.as_str()), ("2.27.7", "NCCL_P2P_LEVEL=SYS"));
    assert!(log.facts.contains(&"NCCL_P2P_LEVEL=SYS".to_owned()));
}

#[test]
fn a_log_cut_off_anywhere_yields_the_rows_before() {
    let text = whole();
    let second = text.find("        2048").expect("a row");
    let cut = log("run.log", &text[..second + 60]);
    assert_eq!(times(&cut), [(1024, 11.0)]);
    assert!(cut.warnings[0].contains("run.log:13: the row is cut off"), "{:?}", cut.warnings);
    // Cut within the second half: the first stands.
    let half = log("run.log", &text[..second + 100]);
    assert_eq!(times(&half), [(1024, 11.0), (2048, 11.0)]);
    for end in 0..text.len() {
        if let Ok(log) = collsim::measurement::logs::read_log("run.log", &text[..end], "x") {
            assert!(times(&log).len() <= 3);
        }
    }
}

#[test]
fn old_versions_have_other_columns() {
    // 2.0: no root, `error` in place of `#wrong`, no group.
    let old = "\
# nThread 1 nGpus 4 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#   Rank  0 Pid     77 on      box device  0 [0x00] TITAN
#   Rank  1 Pid     77 on      box device  1 [0x01] TITAN
#   Rank  2 Pid     77 on      box device  2 [0x02] TITAN
#   Rank  3 Pid     77 on      box device  3 [0x03] TITAN
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
     1048576        262144   float     sum    100.0   10.49   15.73  4e-07    102.0   10.28   15.42  4e-07
";
    let read = log("run.log", old);
    assert_eq!(times(&read), [(1_048_576, 101.0)]);
    assert_eq!(calls(&read)[0].0.collective, Collective::AllReduce);
    assert!(read.warnings.iter().any(|what| what.contains("taken as all-reduce")));
    assert!(read.warnings.iter().any(|what| what.contains("does not say NCCL's version")));
    // 1.0: milliseconds, bytes and N.
    let oldest = "\
#  bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
  1048576        262144   float     sum    0.100   10.49   10.49    0e+00    0.102   10.28   10.28    0e+00
";
    let read = log("all_reduce_2gpus.txt", oldest);
    assert_eq!(reasons(&read), ["the log does not say how many GPUs took part"]);
    let with_devices = format!("# nThread 1 nGpus 2\n{oldest}");
    assert_eq!(times(&log("all_reduce.txt", &with_devices)), [(1_048_576, 101.0)]);
}

#[test]
fn new_columns_are_left_aside() {
    // 2.19 with -I: four more words a half; 2.17.6 with -S: a time at the end.
    let header = "#  size  count  type  redop  root  time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%  time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%\n";
    let text = format!(
        "# nThread 1 nGpus 2 graph: 1\n{header}  1024 256 float sum -1 10.0 0.10 0.10 0 9.0 11.0 11.0 2.5 12.0 0.09 0.09 0 9.0 13.0 13.0 2.5\n"
    );
    assert_eq!(times(&log("all_reduce.txt", &text)), [(1024, 11.0)]);
    let stamped = whole().replace("    0\n", "    0  2026-03-01T10:00:00\n");
    assert_eq!(times(&log("run.log", &stamped)), times(&log("run.log", &whole())));
}

#[test]
fn tests_of_one_half_and_without_reductions() {
    let text = format!(
        "{}        4096           256     float    none      -1    20.00    0.20    0.10      0                                \n",
        DEVICES.replace("all_reduce_perf", "alltoall_perf")
    );
    let read = log("run.log", &text);
    assert_eq!(times(&read), [(4096, 20.0)]);
    assert_eq!(calls(&read)[0].0.collective, Collective::AllToAll);
    let text = text.replace("alltoall_perf", "hypercube_perf");
    assert_eq!(reasons(&log("run.log", &text)), ["no schedule for this test"]);
}

#[test]
fn joined_logs_are_told_apart() {
    let second = whole()
        .replace("all_reduce_perf", "all_gather_perf")
        .replace("float     sum", "float    none");
    let read = log("run.log", &format!("{}{second}", whole()));
    let kinds: Vec<Collective> =
        calls(&read).into_iter().map(|(call, _)| call.collective).collect();
    assert_eq!(kinds, [vec![Collective::AllReduce; 3], vec![Collective::AllGather; 3]].concat());
}

#[test]
fn rows_that_cannot_stand_have_a_reason() {
    let two_hosts = whole().replacen("on     node1 device  3", "on     node2 device  3", 1);
    assert_eq!(reasons(&log("run.log", &two_hosts)), ["several machines are not modelled"]);
    let wrong = whole().replace("0.10      0", "0.10     17");
    let read = log("run.log", &wrong);
    assert_eq!(times(&read)[0], (1024, 12.0));
    assert!(read.warnings[0].contains("the results were wrong"));
    let odd = whole().replace("0.41    0.41    N/A    10.00", "4.10    4.10    N/A    10.00");
    let read = log("run.log", &odd);
    assert!(
        read.warnings[0].contains("4096 B in 10 us are 0.41 GB/s, not 4.1"),
        "{:?}",
        read.warnings
    );
}

#[test]
fn the_json_of_all_versions() {
    let json = r#"{"version": 2, "args": ["./build/all_reduce_perf", "-b", "1K"], "env": ["NCCL_ALGO=Ring"],
      "nccl_version": 22902, "config": {"nthreads": 1, "ngpus": 2, "iterations": 20, "graph": 1,
      "devices": [{"rank": 0, "pid": 1, "hostname": "a", "device": 0}, {"rank": 1, "pid": 2, "hostname": "a", "device": 1}]},
      "results": [
        {"size": 1024, "count": 256, "type": "float", "redop": "sum", "root": "    -1",
         "out_of_place": {"time": 10.0, "alg_bw": 0.1, "bus_bw": 0.1, "nwrong": 0},
         "in_place": {"time": 12.0, "alg_bw": 0.09, "bus_bw": 0.09, "nwrong": "0"}},
        {"size": 2048, "out_of_place": null, "in_place": {"time": 14.0, "alg_bw": 0.15, "bus_bw": 0.15}},
        {"size": 4096, "out_of_place": null, "in_place": null}
      ], "average_bus_bandwidth": {"bandwidth": 0.1}}"#;
    let read = log("run.json", json);
    assert_eq!(times(&read), [(1024, 11.0), (2048, 14.0)]);
    let (call, _) = calls(&read)[0];
    assert_eq!((call.settings.as_str(), call.launches), ("NCCL_ALGO=Ring", Launches::AtOnce));
    assert_eq!(read.warnings, ["result 3: no size or no time: left out"]);
    let cpu = json.replace("\"time\"", "\"cpu_time\"");
    assert_eq!(
        reasons(&log("run.json", &cpu)),
        ["times of the CPU (-C 1) are not those of the call"]
    );
    refused(&json[..json.len() - 20], &["not valid JSON", "only when the test has ended"]);
}
