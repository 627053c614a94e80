//! Texts as other machines save them: a byte order mark changes nothing, UTF-16 is named, whatever is
//! read.

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
            format!("schedule FILE --topo {QUICK}")
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

#[test]
fn a_mark_before_a_text_changes_nothing_and_utf_16_is_named() {
    let file = std::env::temp_dir().join(format!("collsim-marked-{}", std::process::id()));
    let name = file.to_str().expect("UTF-8");
    let all: Vec<Reads> = recognised().into_iter().chain(own()).collect();
    assert!(all.len() > 25, "{}", all.len());
    for one in all {
        let plain = run(&one, name, one.text.as_bytes());
        let marked = run(&one, name, &[b"\xef\xbb\xbf", one.text.as_bytes()].concat());
        assert_eq!(
            (marked.code, &marked.out, &marked.err),
            (plain.code, &plain.out, &plain.err),
            "{:?}",
            one.command
        );
        let wide = |word: u16| word.to_le_bytes();
        let text: Vec<u8> = one.text.encode_utf16().flat_map(wide).collect();
        for bytes in [[&b"\xff\xfe"[..], &text].concat(), text] {
            let told = run(&one, name, &bytes);
            let named = told.err.contains("it is UTF-16 text") && told.err.contains("iconv");
            assert!(told.code == 2 && named, "{:?}: {}{}", one.command, told.out, told.err);
        }
    }
    std::fs::remove_file(&file).expect("ours");
}
