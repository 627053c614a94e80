//! Texts as other machines save them: a byte order mark and UTF-16 change nothing, whatever is read.

use std::path::{Path, PathBuf};

use collsim::input::formats;
use collsim::input::plans;
use collsim::input::questions::QUESTIONS;
use collsim::input::traces;
use collsim::measurement::logs;

use crate::cli::{Run, simulate};

const QUICK: &str = "h200x2-nvlink-pair";

/// A text and the command that reads it, the file's name to be put where `FILE` stands.
struct Reads {
    text: String,
    command: Vec<String>,
}

fn reads(text: &str, command: &str) -> Reads {
    let command = command.split(' ').map(str::to_owned).collect();
    Reads { text: text.to_owned(), command }
}

/// A text of every kind that is recognised by its content: the seeds of the readers.
fn recognised() -> Vec<Reads> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds");
    let files =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("one").path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let bytes = std::fs::read(&file).expect("readable");
        let Some(text) = String::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else {
            continue;
        };
        let command = if formats::recognise(&text).is_some() {
            "topo convert FILE".to_owned()
        } else if plans::recognise(&text).is_some() {
            format!("schedule FILE --topo {QUICK} --fidelity alpha_beta")
        } else if !logs::recognise(&text).is_empty() {
            format!("check --measured FILE --topo {QUICK} --json")
        } else if traces::recognise(&text).is_some() {
            "trace show FILE".to_owned()
        } else {
            continue;
        };
        all.push(reads(&text, &command));
    }
    all
}

/// Forms of our own, each by the command that takes it.
fn own() -> Vec<Reads> {
    let seed = |name: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds");
        std::fs::read_to_string(folder.join(name)).expect("readable")
    };
    let short = format!("--topo {QUICK} --algo ring --fidelity alpha_beta");
    let plan = seed("sweep.json").replace("\"x\"", "\"kimi-k25-tp8\"");
    let question = QUESTIONS.iter().find(|entry| entry.0 == "switch-or-socket").expect("there").1;
    vec![
        reads(&seed("topology.json"), "topo check FILE"),
        reads(&seed("scenario.json"), &format!("{short} --scenario FILE")),
        reads(&seed("calibration.json"), &format!("{short} --calibration FILE")),
        reads(&plan, "sweep plan FILE"),
        reads(
            &question.replace("\"sizes\"", "\"network_model\": \"alpha_beta\", \"sizes\""),
            "ask FILE",
        ),
        reads("[\"nps=2\"]", &format!("{short} -b 8K --what-if @FILE")),
    ]
}

fn run(one: &Reads, file: &str, bytes: &[u8]) -> Run {
    std::fs::write(file, bytes).expect("written");
    let command: Vec<String> = one.command.iter().map(|word| word.replace("FILE", file)).collect();
    simulate(&command.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Tests that share the texts: one alone would take long.
const SHARES: usize = 3;

fn mark_and_utf_16_change_nothing(share: usize) {
    let file = std::env::temp_dir().join(format!("collsim-marked-{share}-{}", std::process::id()));
    let name = file.to_str().expect("UTF-8");
    let all: Vec<Reads> = recognised().into_iter().chain(own()).collect();
    assert!(all.len() > 25, "{}", all.len());
    for (turn, one) in all.into_iter().enumerate().filter(|(turn, _)| turn % SHARES == share) {
        let plain = run(&one, name, one.text.as_bytes());
        let marked = run(&one, name, &[b"\xef\xbb\xbf", one.text.as_bytes()].concat());
        assert_eq!(
            (marked.code, &marked.out, &marked.err),
            (plain.code, &plain.out, &plain.err),
            "{:?}",
            one.command
        );
        let wide = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            one.text.encode_utf16().flat_map(bytes).collect()
        };
        let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
        let marked = [[&b"\xff\xfe"[..], &little].concat(), [&b"\xfe\xff"[..], &big].concat()];
        // One form a text: each is read by the same few ways, and there are many texts.
        let bytes = match turn / SHARES % 4 {
            0 => &little,
            1 => &big,
            other => &marked[other - 2],
        };
        let told = run(&one, name, bytes);
        let same = (told.code, &told.out, &told.err) == (plain.code, &plain.out, &plain.err);
        assert!(same, "{:?} in form {}: {}{}", one.command, turn / SHARES % 4, told.out, told.err);
    }
    std::fs::remove_file(&file).expect("ours");
}

#[test]
fn a_mark_and_utf_16_change_nothing_in_a_third_of_the_texts() {
    mark_and_utf_16_change_nothing(0);
}

#[test]
fn a_mark_and_utf_16_change_nothing_in_another_third() {
    mark_and_utf_16_change_nothing(1);
}

#[test]
fn a_mark_and_utf_16_change_nothing_in_the_last_third() {
    mark_and_utf_16_change_nothing(2);
}
