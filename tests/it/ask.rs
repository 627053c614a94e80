//! Are the answers to the classic questions in `docs/what-if.md` those of the program, and do they
//! agree with what was measured, or say why not?

use std::fmt::Write;

use collsim::fabric::Calibration;
use collsim::input::load_scenario;
use collsim::input::questions::QUESTIONS;
use collsim::report::ask::{measured, page};
use collsim::report::table::TableFormat;
use collsim::sweep::ask::{Answered, Ask};
use collsim::sweep::measured::{MeasuredChanges, Predicted};
use rayon::prelude::*;

use crate::bless::{blessing, file_text, same_as_file};
use crate::cli::simulate;
use crate::rig::topology;

const FILE: &str = "docs/what-if.md";
const CHANGES: &str = "## Measured changes\n";
const HEADING: &str = "## Classic questions\n";

fn answered(name: &str, text: &str) -> (Ask, Answered) {
    let ask: Ask = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let calibration = Calibration::embedded().expect("embedded");
    let scenario = load_scenario(&ask.scenario).expect("built in");
    let answer = ask.answer(&scenario, |machine| Ok(topology(machine)), &calibration);
    let answer = answer.unwrap_or_else(|error| panic!("{name}: {error}"));
    (ask, answer)
}

/// What follows the hand-written part: measured changes, and an answer to every question.
fn written(changes: &[Predicted], all: &[(Ask, Answered)]) -> String {
    let mut out = format!(
        "{CHANGES}\nWritten by the program from `measured/what-if.json`; `simulate ask --measured` prints it. The error is that \
         of the\nratio of after to before; up to 15 % where rates change and 30 % where latencies do, with the sign right, it is ok.\n\n"
    );
    out.push_str(&measured(changes, TableFormat::Markdown));
    let _ = write!(
        out,
        "\n{HEADING}\nWritten by the program from `scenarios/questions/`; `simulate ask NAME` answers one, `simulate ask FILE`\none \
         of yours. us/call and ms/step are of the fastest implementation of each side.\n"
    );
    for (ask, answer) in all {
        let _ = write!(out, "\n### {}\n\n`simulate ask {}`\n\n", ask.question, ask.name);
        out.push_str(&page(ask, answer, TableFormat::Markdown));
    }
    out
}

#[test]
fn the_answers_in_the_docs_are_the_programs_and_agree_with_what_was_measured() {
    let all: Vec<(Ask, Answered)> =
        QUESTIONS.par_iter().map(|(name, text)| answered(name, text)).collect();
    let changes = MeasuredChanges::embedded().expect("sound");
    let calibration = Calibration::embedded().expect("embedded");
    let changes = changes.predicted(|name| Ok(topology(name)), load_scenario, &calibration);
    let changes = changes.expect("all can be run");
    let kept = file_text(FILE);
    let by_hand = kept.split_once(CHANGES).map_or(kept.as_str(), |parts| parts.0);
    let separator = if blessing() && !kept.contains(CHANGES) { "\n" } else { "" };
    same_as_file(FILE, &format!("{by_hand}{separator}{}", written(&changes, &all)));
    for one in &changes {
        // A reason stands where one is needed and nowhere else.
        assert!(one.holds() != one.change.unexplained.is_some(), "{one:?}");
    }
    assert!(changes.iter().filter(|one| one.holds()).count() >= 28, "{}", changes.len());
    let held: Vec<_> =
        all.iter().flat_map(|(ask, answer)| answer.held.iter().map(move |h| (ask, h))).collect();
    assert!(held.len() >= 10, "{}", held.len());
    for (ask, one) in held {
        let error = one.predicted.map(|predicted| (predicted / one.measured - 1.0).abs());
        let near = one.sign && error.is_some_and(|error| error <= 0.3);
        assert!(near || one.unexplained.is_some(), "{}: {one:?}", ask.name);
    }
}

#[test]
fn questions_are_listed_and_refused_when_they_are_none() {
    let list = simulate(&["ask"]);
    assert_eq!(list.code, 0, "{}", list.err);
    assert!(QUESTIONS.iter().all(|(name, _)| list.out.contains(name)), "{}", list.out);
    let run = simulate(&["ask", "x8-slot"]);
    assert!(run.code == 2 && run.err.contains("did you mean `x8-slots`?"), "{}", run.err);
    let file = std::env::temp_dir().join(format!("collsim-ask-{}.json", std::process::id()));
    let name = file.to_str().expect("UTF-8");
    let text = QUESTIONS[1].1;
    for (with, part) in [
        (text.replace("\"sides\"", "\"side\""), "unknown key `side`"),
        (text.replace("\"sides\"", "\"side\""), "did you mean `sides`?"),
        (text.replace("\"sides\"", "\"side\""), &format!("--> {name}:8:")),
        (text.replace("_version\": 1", "_version\": 2"), "schema version 2 is not known"),
        (text.replace("_version\": 1", "_version\": 2"), &format!("--> {name}:3:")),
        (text.replace("kimi-k25-tp8", "kimi-k25-tp9"), "no built-in scenario"),
        (text.replace("link:gpus=x8", "link:gpus=x7"), "x7 does not exist"),
    ] {
        std::fs::write(&file, with).expect("writable");
        let run = simulate(&["ask", name]);
        assert!(run.code == 2 && run.err.contains(part), "no `{part}` in {}{}", run.out, run.err);
    }
    std::fs::remove_file(&file).expect("ours");
}
