//! Do traces hold what Perfetto and Chrome ask of them, and what the engine counts?

use std::collections::{BTreeMap, BTreeSet};

use collsim::algorithm::{Protocol, find};
use collsim::engine::{Outcome, RunOptions, record};
use collsim::input::traces::read_from;
use collsim::report::trace::protobuf::{COUNTER, Event, File, SLICE_BEGIN, SLICE_END};
use collsim::report::trace::{Trace, chrome, perfetto};
use collsim::schedule::Collective;
use collsim::units::Time;
use prost::Message;
use serde_json::Value;

use crate::cli::simulate;
use crate::rig::Rig;

/// Calls of an algorithm, recorded.
fn recorded(machine: &str, name: &str, protocol: Protocol) -> (Rig, Outcome, Trace) {
    let rig = Rig::named(machine);
    let algorithm = find(Collective::AllReduce, name).expect("known");
    let schedule = rig.schedule((algorithm, protocol), 14_336);
    let options = RunOptions { calls: 6, ..RunOptions::default() };
    let (outcome, timeline) = record(&rig.fabric, &schedule, options).expect("it ends");
    let trace = Trace::of(&rig.fabric, &schedule, &outcome, &timeline);
    (rig, outcome, trace)
}

fn traces() -> Vec<(Rig, Outcome, Trace)> {
    vec![
        recorded("rtxpro6000x8", "ring", Protocol::Ll),
        recorded("rtxpro6000x8-flat", "one_shot_pull", Protocol::Simple),
        recorded("h100x8-nvswitch", "nvls", Protocol::Simple),
    ]
}

/// Mean over a run of a curve that stays at each value until the next.
fn mean(points: &[(Time, f64)], end: Time) -> f64 {
    let until = points.iter().skip(1).map(|point| point.0).chain([end]);
    let areas = points.iter().zip(until).map(|(&(from, value), to)| value * (to - from).as_ns());
    areas.sum::<f64>() / end.as_ns()
}

#[test]
fn boxes_of_a_track_do_not_overlap_and_add_up() {
    for (rig, outcome, trace) in traces() {
        for track in trace.processes.iter().flat_map(|process| &process.tracks) {
            for pair in track.slices.windows(2) {
                assert!(pair[0].end <= pair[1].start, "{}: {pair:?}", track.name);
            }
        }
        let links = trace.processes.last().expect("links");
        let mut seen = 0;
        for (link, used) in outcome.links.iter().enumerate() {
            let label = &rig.fabric.links[link].label;
            let track = links.tracks.iter().find(|track| track.name == *label);
            let figure = |name: &str| -> f64 {
                let slices = track.iter().flat_map(|track| &track.slices);
                let figures = slices.flat_map(|slice| &slice.figures);
                figures.filter(|figure| figure.0 == name).map(|figure| figure.1).sum()
            };
            assert!((figure("busy_ns") - used.busy.as_ns()).abs() < 1e-6, "{label}");
            assert_eq!(figure("payload_bytes"), used.payload_bytes as f64, "{label}");
            let curve = links.counters.iter().find(|one| one.name == format!("{label} sends"));
            if let Some(curve) = curve {
                let share = used.busy.as_ns() / outcome.ended.as_ns();
                let mean = mean(&curve.points, outcome.ended) / 100.0;
                assert!((mean - share).abs() < 0.005, "{label}: {mean} of {share}");
            }
            seen += usize::from(track.is_some());
        }
        assert_eq!(seen, links.tracks.len());
        for (rank, process) in trace.processes.iter().take(outcome.blocks.len()).enumerate() {
            let calls = &process.tracks[0].slices;
            assert_eq!(calls.len(), 6, "{}", process.name);
            assert_eq!(calls.last().expect("six").end, outcome.call_ends[5][rank]);
        }
    }
}

/// What the trace event format asks: phases with their fields, flows that begin and end once.
#[test]
fn chrome_traces_keep_the_format() {
    for (_, _, trace) in traces() {
        let json: Value = serde_json::from_str(&chrome(&trace)).expect("JSON");
        let events = json["traceEvents"].as_array().expect("events");
        let mut flows: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        let mut ends: BTreeMap<(u64, u64), f64> = BTreeMap::new();
        for event in events {
            let number = |name: &str| event[name].as_f64().unwrap_or_else(|| panic!("{event}"));
            let whole = |name: &str| event[name].as_u64().unwrap_or_else(|| panic!("{event}"));
            whole("pid");
            assert!(event["name"].is_string(), "{event}");
            match event["ph"].as_str().expect("a phase") {
                "M" => assert!(event["args"]["name"].is_string(), "{event}"),
                "X" => {
                    let end = ends.entry((whole("pid"), whole("tid"))).or_default();
                    assert!(number("ts") >= *end - 1e-6, "{event}");
                    *end = number("ts") + number("dur");
                    assert!(number("dur") > 0.0, "{event}");
                }
                "C" => assert!(event["args"].as_object().is_some_and(|a| a.len() == 1), "{event}"),
                "s" => flows.entry(whole("id")).or_default().0 += 1,
                "f" => {
                    assert_eq!(event["bp"], "e");
                    flows.entry(whole("id")).or_default().1 += 1;
                }
                other => panic!("phase {other}"),
            }
        }
        assert!(!flows.is_empty() && flows.values().all(|ends| *ends == (1, 1)));
    }
}

/// What TrackEvent asks: described tracks, balanced boxes, names before their use, paired flows.
#[test]
fn perfetto_traces_keep_the_format() {
    for (_, _, trace) in traces() {
        let file = File::decode(perfetto(&trace).as_slice()).expect("protobuf");
        let (mut tracks, mut counters) = (BTreeSet::new(), BTreeSet::new());
        let (mut names, mut open) = (BTreeSet::new(), BTreeMap::<u64, u32>::new());
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let mut flows: BTreeMap<u64, (u32, u32)> = BTreeMap::new();
        for packet in &file.packet {
            assert_eq!(packet.trusted_packet_sequence_id, Some(1));
            if let Some(track) = &packet.track_descriptor {
                let uuid = track.uuid.expect("a number");
                assert!(tracks.insert(uuid), "track {uuid} twice");
                assert!(track.parent_uuid.is_none_or(|parent| tracks.contains(&parent)));
                counters.extend(track.counter.is_some().then_some(uuid));
            }
            let interned = packet.interned_data.iter().flat_map(|data| &data.event_names);
            names.extend(interned.map(|name| name.iid.expect("a number")));
            let Some(event) = &packet.track_event else { continue };
            let Event { r#type, track_uuid, name_iid, .. } = event;
            let track = track_uuid.expect("a track");
            assert!(tracks.contains(&track));
            let time = packet.timestamp.expect("a time");
            let before = last.insert(track, time).unwrap_or_default();
            assert!(before <= time, "track {track} goes back");
            match r#type.expect("a type") {
                SLICE_BEGIN => {
                    assert!(names.contains(&name_iid.expect("a name")));
                    *open.entry(track).or_default() += 1;
                    assert_eq!(open[&track], 1, "boxes overlap on track {track}");
                }
                SLICE_END => *open.get_mut(&track).expect("begun") -= 1,
                COUNTER => {
                    assert!(counters.contains(&track) && event.double_counter_value.is_some());
                }
                other => panic!("type {other}"),
            }
            event.flow_ids.iter().for_each(|id| flows.entry(*id).or_default().0 += 1);
            event.terminating_flow_ids.iter().for_each(|id| flows.entry(*id).or_default().1 += 1);
        }
        assert!(open.values().all(|count| *count == 0));
        assert!(!flows.is_empty() && flows.values().all(|ends| *ends == (1, 1)));
        assert_eq!(file.packet[0].sequence_flags, Some(3));
    }
}

/// A verify step of 122 calls, in both forms.
#[test]
fn the_trace_of_a_step_is_small_and_the_same_every_time() {
    let file = |ending: &str| {
        let name = format!("collsim-trace-{}{ending}", std::process::id());
        std::env::temp_dir().join(name).to_str().expect("UTF-8").to_owned()
    };
    for ending in [".json", ".pftrace"] {
        let path = file(ending);
        let draw = || {
            let run = simulate(&["--topo", "rtxpro6000x8", "--algo", "ring", "--trace", &path]);
            assert!(run.code == 0 && run.out.contains("ring LL"), "{}", run.err);
            let bytes = std::fs::read(&path).expect("written");
            std::fs::remove_file(&path).expect("ours");
            bytes
        };
        let bytes = draw();
        assert!((10_000..5_000_000).contains(&bytes.len()), "{ending}: {} bytes", bytes.len());
        assert!(bytes == draw(), "{ending}");
    }
    let run = simulate(&["--topo", "rtxpro6000x8", "--trace", "/tmp/x.txt"]);
    assert!(run.code == 2 && run.err.contains(".pftrace"), "{}", run.err);
    let arguments = ["--topo", "rtxpro6000x8", "--trace", "/tmp/x.json", "--fidelity", "max_min"];
    let run = simulate(&arguments);
    assert!(run.code == 2 && run.err.contains("records packets"), "{}", run.err);
}

#[test]
fn what_was_recorded_is_read_again_as_calls() {
    for (rig, _, trace) in traces() {
        let text = chrome(&trace);
        let read = read_from("t.json", text.as_bytes(), None, &|_| ()).expect("a trace");
        assert!(read.sources[0].contains("a trace that collsim recorded"), "{:?}", read.sources);
        let ranks = rig.gpus().len();
        assert_eq!((read.ranks, read.calls.len()), (Some(ranks as u32), 6 * ranks));
        for (index, call) in read.calls.iter().enumerate() {
            let slice = &trace.processes[index / 6].tracks[0].slices[index % 6];
            assert_eq!((call.rank, call.bytes), ((index / 6) as u64, Some(14_336)));
            assert_eq!(call.collective, Collective::AllReduce);
            let [start, stay] = [slice.start, slice.end - slice.start].map(Time::as_us);
            let near =
                |told: Option<f64>, us: f64| told.is_some_and(|told| (told - us).abs() < 1e-9);
            assert!(near(call.start_us, start) && near(call.duration_us, stay), "{call:?}");
        }
    }
}
