//! Schedules in GOAL.

use collsim::engine::Fidelity;
use collsim::input::plans::parse_plan;
use collsim::prediction::plan::{plan_us, prove_plan};

use super::{machine, ranks, refused};
use crate::cli::simulate;

/// There and back: rank 1 computes between, and each has a stream beside it.
const PING: &str = "\
num_ranks 2
/* there
   and back */
rank 0 {
  out: send 14336b to 1 tag 7
  back: recv 14336b from 1 tag 7 cpu 1
  back requires out
  side: calc 100
  side irequires back // begun when `out` has ended
}
rank 1 {
  in: recv 14336b from 0 tag 7
  work: calc 5000
  answer: send 14336b to 0 tag 7
  work requires in
  answer requires work
}
";

fn us(text: &str) -> f64 {
    let pair = machine("h200x2-nvlink-pair");
    let plan = parse_plan("ping.goal", text, None)
        .unwrap_or_else(|error| panic!("{}", collsim::input::render(&error, false)));
    assert_eq!((plan.name.as_str(), plan.ranks()), ("ping", 2));
    prove_plan(&plan, &pair, &ranks(2)).unwrap_or_else(|error| panic!("{error}"));
    plan_us(&plan, &pair, &ranks(2), plan.round_up(1), Fidelity::Packet).expect("a time")
}

#[test]
fn messages_and_computing_take_their_time() {
    let both = us(PING);
    let quick = us(&PING.replace("calc 5000", "calc 0"));
    assert!((both - quick - 5.0).abs() < 0.2, "{both} less {quick}");
    // A message takes at least the link's time: 14,336 B at under 400 GB/s, twice.
    assert!(quick > 2.0 * 14_336.0 / 400e3, "{quick}");
    let large = us(&PING.replace("14336b", "1434624b"));
    assert!(large > both + 2.0, "{large}");
    // Without the dependency the answer does not wait for the computing.
    let beside = us(&PING.replace("  answer requires work\n", ""));
    assert!(beside < both - 1.0, "{beside} against {both}");
}

#[test]
fn messages_of_one_tag_belong_together_in_their_order() {
    let text = "num_ranks 2\nrank 0 {\nsend 32b to 1\nsend 64b to 1\n}\nrank 1 {\nrecv 32b from 0\nrecv 64b from 0\n}\n";
    assert!(us(&text.replace("num", "\n\nnum")) > 0.0);
    refused(
        &text.replace("recv 64b", "recv 48b"),
        &["64 B are sent where 48 B are received", "plan:4:1"],
    );
    refused(
        &text.replace("recv 64b from 0\n", ""),
        &["rank 0 to 1, tag 0: 2 messages are sent, 1 received", "plan:4:1"],
    );
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place() {
    refused(&PING.replace("num_ranks 2", "num_ranks 1"), &["expected `num_ranks N`", "plan:1:1"]);
    refused(&PING.replace("to 1 tag", "to 2 tag"), &["rank 2 of ranks 0 to 1", "plan:5:23"]);
    refused(&PING.replace("from 1", "from -1"), &["rank -1", "depends on who is first"]);
    refused(&PING.replace("from 1 tag 7", "from 1 tag -1"), &["any tag"]);
    refused(&PING.replace("back requires out", "back requires oute"), &["the label `oute`"]);
    refused(&PING.replace("calc 5000", "calk 5000"), &["`calk 5000` is no statement", "plan:13:3"]);
    let long = format!("calc {}", 1u64 << 49);
    let sum = PING.replace("calc 100\n", &format!("{long}\n")).replace("calc 5000", &long);
    assert!(us(&PING.replace("calc 5000", &long)) > 5e11);
    let more = sum.replace("  answer requires", "  more: calc 1\n  answer requires");
    refused(&more, &["the file computes 1125899906842625 ns up to here", "plan:16:14", "13 days"]);
    refused(&PING.replace("rank 1 {", "rank 0 {"), &["a message to itself"]);
    refused(PING.trim_end().trim_end_matches('}'), &["rank 1 has no end", "is the file whole?"]);
    refused(
        &PING.replace("work requires in", "work requires answer"),
        &["it requires itself in a circle"],
    );
}

#[test]
fn two_that_wait_for_each_other_are_refused() {
    let pair = machine("h200x2-nvlink-pair");
    let side = |own: u32| {
        format!(
            "rank {own} {{\na: recv 16b from {0}\nb: send 16b to {0}\nb requires a\n}}\n",
            1 - own
        )
    };
    let plan =
        parse_plan("x", &format!("num_ranks 2\n{}{}", side(0), side(1)), None).expect("read");
    let flaw = prove_plan(&plan, &pair, &ranks(2)).expect_err("a circle").to_string();
    assert!(flaw.contains("blocks wait for each other"), "{flaw}");
}

#[test]
fn the_program_says_what_is_proved() {
    let path = std::env::temp_dir().join(format!("collsim-goal-{}.goal", std::process::id()));
    std::fs::write(&path, PING).expect("written");
    let path = path.to_string_lossy().into_owned();
    let run = simulate(&["schedule", &path, "--topo", "h200x2-nvlink-pair"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("messages of 2 ranks"), "{}", run.out);
    assert!(run.out.contains("the file tells no data"), "{}", run.out);
    let run = simulate(&["schedule", &path, "--topo", "h200x2-nvlink-pair", "--format", "msccl"]);
    assert!(run.code == 2 && run.err.contains("this is no XML"), "{}", run.err);
    let run = simulate(&["schedule", &path, "--topo", "h200x2-nvlink-pair", "--format", "gaol"]);
    assert!(run.code == 2 && run.err.contains("did you mean `goal`?"), "{}", run.err);
    std::fs::remove_file(path).expect("gone");
}
