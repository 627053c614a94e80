//! Every reader of machines and logs on texts that are damaged: cut, joined, with lines or words
//! that are lost, doubled, swapped or replaced. No panic, no hang, no topology that does not check.

use collsim::input::formats::FORMATS;
use collsim::input::found::Devices;
use collsim::input::found::build::{Stated, build};
use collsim::input::found::merge::merge;
use collsim::input::traces::{Import, TRACES, import, read_from};
use collsim::measurement::logs::read_log;
use collsim::topology::checks;
use proptest::prelude::*;

use super::lists::QUERY;
use super::matrix::NEW;
use super::merged::SYSTEM;
use super::tree::{HWLOC, TREE, lspci};
use crate::traces::NCCL;

/// Sound texts, one of each kind.
fn seeds() -> Vec<String> {
    let log = "# nThread 1 nGpus 2 warmup iters: 1 iters: 20\n#  Rank  0 Group  0 Pid 1 on a device  0 [0x1b] H200\n\
               #  size count type redop root time algbw busbw #wrong\n  1024 256 float sum -1 10.0 0.1 0.1 0 12.0 0.1 0.1 0\n";
    let p2p = "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D  0  1\n  0 900.0 50.1\n  1 50.2 900.0\n";
    let graph = "<graphs version=\"1\"><graph id=\"0\"><channel><gpu dev=\"0\"/><gpu dev=\"0x1\"/></channel></graph></graphs>";
    let links = "GPU 0: NVIDIA H200 (UUID: GPU-1)\n\t Link 0: Remote Device 00000000:02:00.0: Link 1\n\t Link 1: 25 GB/s\n";
    let kernel = "{\"traceEvents\": [\n{\"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum_bf16_RING_LL()\", \
                  \"ts\": 5.5, \"dur\": 3, \"args\": {\"In msg nelems\": 8, \"dtype\": \"Float\"}}\n]}\n";
    let nsys =
        "Start (ns),Duration (ns),Device,Name\n1,2,H200 (0),ncclDevKernel_AllReduce_Sum_f32()\n";
    let inspector =
        "{\"header\": {\"rank\": 0}, \"coll_perf\": {\"coll\": \"AllReduce\", \"coll_sn\": 1}}\n";
    let mut all = vec![lspci()];
    let texts =
        [NEW, TREE, HWLOC, QUERY, SYSTEM, log, p2p, graph, links, kernel, nsys, inspector, NCCL];
    all.extend(texts.iter().map(|text| (*text).to_owned()));
    all
}

/// One damage: what, where (of 1), and what to put there.
type Damage = (u8, f64, f64, String);

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let word = prop_oneof![
        Just(String::new()),
        Just("-1".to_owned()),
        Just("99999999999999999999".to_owned()),
        Just("1e308".to_owned()),
        Just("NaN".to_owned()),
        Just("N/A".to_owned()),
        Just("<".to_owned()),
        Just("[ff-00]".to_owned()),
        Just("ffff:ff:1f.7".to_owned()),
        Just("\u{1b}[".to_owned()),
        "[ -~é\u{2028}]{0,12}",
    ];
    prop::collection::vec((0_u8..6, 0.0..1.0, 0.0..1.0, word), 1..6)
}

/// A place in a text, between two characters.
fn at(text: &str, share: f64) -> usize {
    let mut at = (text.len() as f64 * share) as usize;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn damaged(text: &str, damages: &[Damage]) -> String {
    let mut text = text.to_owned();
    for (what, one, two, word) in damages {
        let (a, b) = (at(&text, one.min(*two)), at(&text, one.max(*two)));
        let mut lines: Vec<&str> = text.lines().collect();
        let (x, y) = ((lines.len() as f64 * one) as usize, (lines.len() as f64 * two) as usize);
        text = match what {
            0 => text[..b].to_owned(),
            1 => {
                let end = at(&text, ((a + word.len()) as f64 / text.len().max(1) as f64).min(1.0));
                format!("{}{word}{}", &text[..a], &text[end.max(a)..])
            }
            2 => format!("{}{word}{}", &text[..a], &text[a..]),
            3 if !lines.is_empty() => {
                lines.remove(x.min(lines.len() - 1));
                lines.join("\n")
            }
            4 if !lines.is_empty() => {
                let last = lines.len() - 1;
                lines.swap(x.min(last), y.min(last));
                lines.join("\n")
            }
            5 if !lines.is_empty() => {
                let line = lines[x.min(lines.len() - 1)];
                lines.insert(y.min(lines.len()), line);
                lines.join("\n")
            }
            _ => text,
        };
    }
    text
}

/// Reads a text by every reader, whatever it looks like, and builds what was found.
fn read_by_all(text: &str) {
    let devices = Devices::embedded().expect("a table");
    for format in FORMATS {
        let _ = (format.sniff)(text);
        let Ok(found) = (format.read)("damaged", text) else { continue };
        let Ok(merged) = merge(vec![found]) else { continue };
        let Ok(topology) = build(merged, &devices, &Stated::default(), "damaged") else { continue };
        // What is wrong is told, not left to the simulator.
        let _ = checks::check(&topology);
    }
    let _ = read_log("damaged", text, "x");
    for format in TRACES {
        let Ok(trace) = read_from("damaged", text.as_bytes(), Some(format), &|_| ()) else {
            continue;
        };
        let stated = Import { bytes: Some(64), ranks: Some(2), ..Import::default() };
        let _ = import(vec![trace], &stated);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_texts_are_read_or_refused(seed in 0_usize..14, damages in damages()) {
        let seeds = seeds();
        let text = damaged(&seeds[seed % seeds.len()], &damages);
        read_by_all(&text);
    }

    #[test]
    fn joined_texts_are_read_or_refused(one in 0_usize..14, two in 0_usize..14, cut in 0.0..1.0_f64) {
        let seeds = seeds();
        let (one, two) = (&seeds[one], &seeds[two]);
        read_by_all(&format!("{}{two}", &one[..at(one, cut)]));
    }
}

#[test]
fn texts_without_end_are_read_in_time() {
    // Each repeated to 256 KiB: a reader that is quadratic would take minutes.
    for seed in seeds() {
        let many = seed.repeat((1 << 18) / seed.len() + 1);
        read_by_all(&many);
    }
}
