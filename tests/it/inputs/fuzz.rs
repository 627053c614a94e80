//! Every reader of machines and logs on texts that are damaged: cut, joined, with lines or words
//! that are lost, doubled, swapped or replaced. No panic, no hang, no topology that does not check.

use collsim::input::formats::{FORMATS, Format};
use collsim::input::found::Devices;
use collsim::input::found::build::{Stated, build};
use collsim::input::found::merge::merge;
use collsim::input::plans::{PLANS, parse_plan};
use collsim::input::traces::{Import, TRACES, TraceFormat, import, read_from, read_trace};
use collsim::measurement::logs::{LOGS, read_log};
use collsim::topology::checks;
use proptest::prelude::*;

/// Sound texts, one of each kind and more, and those that once broke a reader: the seeds of the fuzz
/// targets too.
const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fuzz/seeds");

fn files() -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(SEEDS).expect("a folder").map(|entry| entry.expect("one").path());
    let mut files: Vec<_> = files.collect();
    files.sort();
    files
}

fn seeds() -> Vec<String> {
    let texts = files().into_iter().map(|file| std::fs::read(file).expect("readable"));
    texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

#[test]
fn every_format_has_a_seed_that_it_recognises_and_reads() {
    let seeds = seeds();
    let mut missing = Vec::new();
    let mut has = |name: &str, reads: &dyn Fn(&str) -> bool| {
        if !seeds.iter().any(|text| reads(text)) {
            missing.push(name.to_owned());
        }
    };
    for format in FORMATS {
        has(format.name, &|text| (format.sniff)(text) && (format.read)("x", text).is_ok());
    }
    for format in PLANS {
        has(format.name, &|text| {
            (format.sniff)(text) && parse_plan("x", text, Some(format)).is_ok()
        });
    }
    let read_as: Vec<String> = files()
        .iter()
        .filter_map(|file| read_trace(file.to_str()?, None, &|_| ()).ok())
        .flat_map(|trace| trace.sources)
        .collect();
    // Databases are read by builds with the feature alone.
    let without =
        |format: &TraceFormat| format.name == "nsys-sqlite" && cfg!(not(feature = "sqlite"));
    for format in TRACES {
        has(format.name, &|text| {
            let read = || read_as.iter().any(|source| source.contains(format.title));
            (format.sniff)(text) && (without(format) || read())
        });
    }
    for format in LOGS {
        has(format.title, &|text| {
            (format.sniff)(text)
                && read_log("x", text, "y").is_ok_and(|log| log.titles == [format.title])
        });
    }
    assert!(missing.is_empty(), "no seed in {SEEDS} for {missing:?}");
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

/// Reads a text as a machine and builds what was found.
fn read_machine(format: &Format, text: &str) {
    let devices = Devices::embedded().expect("a table");
    let Ok(found) = (format.read)("damaged", text) else { return };
    let Ok(merged) = merge(vec![found]) else { return };
    let Ok(topology) = build(merged, &devices, &Stated::default(), "damaged") else { return };
    // What is wrong is told, not left to the simulator.
    let _ = checks::check(&topology);
}

/// Reads a text by every reader, whatever it looks like, and builds what was found.
fn read_by_all(text: &str) {
    for format in FORMATS {
        let _ = (format.sniff)(text);
        read_machine(format, text);
    }
    let _ = read_log("damaged", text, "x");
    for format in PLANS {
        let _ = parse_plan("damaged", text, Some(format));
    }
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
    fn damaged_texts_are_read_or_refused(seed in 0_usize..1000, damages in damages()) {
        let seeds = seeds();
        let text = damaged(&seeds[seed % seeds.len()], &damages);
        read_by_all(&text);
    }

    #[test]
    fn joined_texts_are_read_or_refused(one in 0_usize..1000, two in 0_usize..1000, cut in 0.0..1.0_f64) {
        let seeds = seeds();
        let (one, two) = (&seeds[one % seeds.len()], &seeds[two % seeds.len()]);
        read_by_all(&format!("{}{two}", &one[..at(one, cut)]));
    }
}

#[test]
fn texts_without_end_are_read_in_time() {
    // A reader that is quadratic would take minutes for what it reads as its own.
    for seed in seeds() {
        let repeated = |size: usize| seed.repeat(size / seed.len() + 1);
        let large = repeated(1 << 18);
        if let Some(format) = FORMATS.iter().find(|format| (format.sniff)(&seed)) {
            read_machine(format, &large);
        } else {
            let _ = read_log("large", &large, "x");
            let _ = read_from("large", large.as_bytes(), None, &|_| ());
            let _ = parse_plan("large", &large, None);
        }
        read_by_all(&repeated(1 << 13));
    }
}

#[test]
fn more_than_a_machine_has_is_refused() {
    let mut text = "index, name, pci.bus_id, pcie.link.gen.current\n".to_owned();
    (0..2000).for_each(|gpu| text.push_str(&format!("{gpu}, NVIDIA H200, , 5\n")));
    let format = FORMATS.iter().find(|format| (format.sniff)(&text)).expect("a list of GPUs");
    let found = (format.read)("many", &text).expect("read");
    let told = merge(vec![found]).expect_err("too many").to_string();
    assert!(told.contains("2000 GPUs, more than any machine has"), "{told}");
}
