//! A file that was given to the wrong command: every kind by every reader says what it looks like and
//! which command reads it.

use std::path::Path;

use collsim::input::kinds::kind;
use collsim::input::questions::QUESTIONS;

use crate::cli::simulate;

const QUICK: &str = "h200x2-nvlink-pair";

fn seed(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds");
    std::fs::read_to_string(folder.join(name)).expect("readable")
}

/// A text of each kind: what it is called, and the readers below that take it.
fn texts() -> Vec<(&'static str, String, &'static [usize])> {
    vec![
        ("nvidia-smi topo -m", seed("matrix.txt"), &[0]),
        ("a log of NCCL", seed("calls.nccl.log"), &[1, 2, 5]),
        ("MSCCL's XML", seed("ring.msccl.xml"), &[3]),
        ("nccl-tests", seed("nccl-tests.txt"), &[4]),
        ("a topology", seed("topology.json"), &[0]),
        ("a scenario", seed("scenario.json"), &[5]),
        ("a plan of a sweep", seed("sweep.json"), &[6]),
        ("a question", QUESTIONS[0].1.to_owned(), &[7]),
        ("a calibration", seed("calibration.json"), &[8]),
    ]
}

/// The readers, with `FILE` where the file stands.
fn readers() -> [String; 9] {
    let short = format!("--topo {QUICK} --algo ring --fidelity alpha_beta");
    [
        "topo check FILE".to_owned(),
        "import FILE".to_owned(),
        "trace show FILE".to_owned(),
        format!("schedule FILE --topo {QUICK}"),
        format!("check --measured FILE --topo {QUICK}"),
        format!("{short} --scenario FILE"),
        "sweep plan FILE".to_owned(),
        "ask FILE".to_owned(),
        format!("{short} --calibration FILE"),
    ]
}

#[test]
fn every_kind_by_every_reader() {
    let file = std::env::temp_dir().join(format!("collsim-kind-{}", std::process::id()));
    let name = file.to_str().expect("UTF-8");
    for (title, text, takers) in texts() {
        let known = kind(&text).expect("known");
        assert_eq!(known.title, title);
        std::fs::write(&file, &text).expect("written");
        for (reader, line) in readers().iter().enumerate().filter(|one| !takers.contains(&one.0)) {
            let words: Vec<String> =
                line.split(' ').map(|word| word.replace("FILE", name)).collect();
            let run = simulate(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(
                (run.code, run.out.as_str()),
                (2, ""),
                "{reader} {line}: {title}: {}",
                run.err
            );
            for part in [title, name, &format!("{} reads it", known.command)] {
                assert!(run.err.contains(part), "{line}: no `{part}` in\n{}", run.err);
            }
        }
    }
    std::fs::remove_file(&file).expect("ours");
}

#[test]
fn a_broken_form_of_ours_is_told_as_what_it_is() {
    // Words of a log in it, and a key misspelt by which it is known.
    let file = std::env::temp_dir().join(format!("collsim-own-{}.json", std::process::id()));
    let text =
        super::broken("\"nodes\"", "\"nods\"").replace("\"two\"", "\"nccl-tests nThread 1\"");
    std::fs::write(&file, text).expect("written");
    let run = simulate(&["topo", "check", file.to_str().expect("UTF-8")]);
    assert!(run.err.contains("unknown key `nods`"), "{}", run.err);
    std::fs::remove_file(&file).expect("ours");
}

#[test]
fn what_cannot_be_read_is_told_alike_by_every_reader_of_a_file() {
    let there = std::env::temp_dir();
    let folder = there.to_str().expect("UTF-8");
    // Machines, scenarios, questions and measurements have names or folders besides.
    for line in [1, 2, 3, 6, 8].map(|reader| readers()[reader].clone()) {
        for (name, part) in [("/no/such/file", "no such file"), (folder, "it is a directory")] {
            let words: Vec<String> =
                line.split(' ').map(|word| word.replace("FILE", name)).collect();
            let run = simulate(&words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!((run.code, run.out.as_str()), (2, ""), "{line}: {}", run.err);
            assert!(
                run.err.contains(&format!("cannot read {name}: {part}")),
                "{line}: {}",
                run.err
            );
        }
    }
    let run = simulate(&["topo", "show", "-", "-"]);
    assert!(run.code == 2 && run.err.contains("standard input is named twice"), "{}", run.err);
}
