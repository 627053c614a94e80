//! Does a recorded timeline agree with what the engine counts, and leave the run as it is?

use collsim::algorithm::Protocol;
use collsim::algorithm::find;
use collsim::engine::{Fidelity, Outcome, RunOptions, Timeline, record, simulate};
use collsim::schedule::Collective;
use collsim::units::Time;

use crate::rig::Rig;

const MACHINES: [&str; 3] = ["rtxpro6000x8", "rtxpro6000x16-flat", "h100x8-nvswitch"];

/// Some calls that write, read, poll by flags and by lines, and sum in a switch.
fn runs() -> Vec<(String, Rig, Outcome, Timeline)> {
    let mut all = Vec::new();
    for machine in MACHINES {
        let mut calls = vec![("ring", Protocol::Ll), ("one_shot_pull", Protocol::Simple)];
        calls.push(("two_shot_push", Protocol::Simple));
        if machine.contains("nvswitch") {
            calls.push(("nvls", Protocol::Simple));
        }
        for (name, protocol) in calls {
            let rig = Rig::named(machine);
            let algorithm = find(Collective::AllReduce, name).expect("known");
            let schedule = rig.schedule((algorithm, protocol), 14_336);
            let options = RunOptions { calls: 2, ..RunOptions::default() };
            let plain = simulate(&rig.fabric, &schedule, Fidelity::Packet, options.clone())
                .expect("it ends");
            let (outcome, timeline) = record(&rig.fabric, &schedule, options).expect("it ends");
            assert_eq!(outcome.call_ends, plain.call_ends, "{machine} {name}");
            assert_eq!(outcome.events, plain.events, "{machine} {name}");
            assert_eq!(outcome.links, plain.links, "{machine} {name}");
            all.push((format!("{machine} {name}"), rig, outcome, timeline));
        }
    }
    all
}

#[test]
fn a_timeline_adds_up_to_what_the_engine_counts() {
    for (name, rig, outcome, timeline) in runs() {
        for (link, used) in outcome.links.iter().enumerate() {
            let intervals = &timeline.links[link];
            let sum = |of: &dyn Fn(usize) -> u64| (0..intervals.len()).map(of).sum::<u64>();
            let label = format!("{name} {}", rig.fabric.links[link].label);
            assert_eq!(sum(&|i| intervals[i].busy.as_ps()), used.busy.as_ps(), "{label}");
            assert_eq!(sum(&|i| intervals[i].payload), used.payload_bytes, "{label}");
            assert_eq!(sum(&|i| intervals[i].waiting.as_ps()), used.queued.as_ps(), "{label}");
            for interval in intervals {
                assert!(interval.busy <= timeline.interval, "{label} sends more than all the time");
            }
        }
    }
}

#[test]
fn operations_of_a_block_follow_each_other_to_the_end_of_its_calls() {
    for (name, _, outcome, timeline) in runs() {
        for track in &timeline.blocks {
            let operations = &track.operations;
            assert!(!operations.is_empty(), "{name}");
            for pair in operations.windows(2) {
                assert!(pair[0].end <= pair[1].start, "{name} {pair:?}");
                let order = |one: usize| (pair[one].call, pair[one].position);
                assert!(order(0) < order(1), "{name} {pair:?}");
            }
            let end = operations.iter().map(|operation| operation.end).max();
            let last = outcome.call_ends.last().expect("a call")[track.rank as usize];
            assert!(end.expect("some") <= last, "{name}");
        }
        assert!(timeline.ended > Time::ZERO && timeline.interval_count() <= 4096, "{name}");
    }
}
