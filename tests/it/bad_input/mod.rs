//! Is every wrong topology refused with a sentence, a place and an advice, and never a panic?

mod encodings;
mod figures;
mod meaning;
mod outputs;
mod text;
mod wrong_kind;

use collsim::error::{Error, Problem};
use collsim::input::render;
use collsim::input::topology_json::parse;

/// A machine of two GPUs below one switch; each test breaks it.
const GOOD: &str = r#"{
  "schema_version": 1,
  "name": "two",
  "nodes": {
    "gpu0": {"gpu": {"model": "h200"}},
    "gpu1": {"gpu": {"model": "h200"}},
    "sw0": {"pcie_switch": {"model": "pm50100"}},
    "root0": {"host_bridge": {"socket": "cpu0", "quadrant": 0}},
    "cpu0": {"socket": {"model": "epyc-turin"}},
    "mem0": {"host_memory": {"socket": "cpu0"}}
  },
  "links": [
    {"a": "gpu0", "b": "sw0", "kind": {"pcie": {"generation": 5, "width": 16}}},
    {"a": "gpu1", "b": "sw0", "kind": {"pcie": {"generation": 5, "width": 16}}},
    {"a": "sw0", "b": "root0", "kind": {"pcie": {"generation": 5, "width": 16}}}
  ]
}
"#;

/// GOOD with its one occurrence of `from` replaced.
fn broken(from: &str, to: &str) -> String {
    assert_eq!(GOOD.matches(from).count(), 1, "{from}");
    GOOD.replace(from, to)
}

/// The picture of what is wrong with a text.
fn picture(text: &str) -> String {
    let error = parse("two.json", text).expect_err("a fault");
    render(&error, false)
}

#[track_caller]
fn refused(text: &str, place: &str, message: &str, help: &str) {
    let picture = picture(text);
    for part in [place, message, help] {
        assert!(picture.contains(part), "no `{part}` in:\n{picture}");
    }
}

fn problems(error: &Error) -> &[Problem] {
    match error {
        Error::Input { problems, .. } => problems,
        other => panic!("{other:?}"),
    }
}

fn pcie(a: &str, b: &str) -> String {
    format!(r#"{{"a": "{a}", "b": "{b}", "kind": {{"pcie": {{"generation": 5, "width": 8}}}}}}"#)
}

/// GOOD with more nodes and links.
fn extended(nodes: &str, links: &[String]) -> String {
    let last = r#""mem0": {"host_memory": {"socket": "cpu0"}}"#;
    let text = broken(last, &format!("{last}{nodes}"));
    let more: String = links.iter().map(|link| format!(",\n    {link}")).collect();
    text.replace("\n  ]\n}", &format!("{more}\n  ]\n}}"))
}
