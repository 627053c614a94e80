//! Files that cannot be read, texts that are no JSON, JSON of another shape.

use collsim::input::topology_json::parse;
use collsim::input::{load_topology, render};
use proptest::prelude::*;

use super::{GOOD, broken, problems, refused};

#[test]
fn an_unknown_key() {
    let text = broken(r#""name": "two","#, r#""nmae": "two","#);
    refused(&text, "two.json:3:3", "unknown key `nmae`", "did you mean `name`?");
    let text = broken(r#""socket": "cpu0", "quadrant""#, r#""socket": "cpu0", "qadrant""#);
    refused(&text, "two.json:8:49", "unknown key `qadrant`", "`quadrant`?");
}

#[test]
fn an_unknown_kind_of_node() {
    let text = broken(r#""pcie_switch""#, r#""pci_switch""#);
    refused(&text, "two.json:7:13", "unknown kind `pci_switch`", "did you mean `pcie_switch`?");
}

#[test]
fn a_text_for_a_number() {
    let text = GOOD.replacen(r#""generation": 5"#, r#""generation": "five""#, 1);
    let message = "invalid type: string \"five\", expected an integer from 0 to 255";
    refused(&text, "two.json:13:63", message, "^^^^^^");
}

#[test]
fn a_node_twice() {
    let text = broken(r#""gpu1": {"gpu""#, r#""gpu0": {"gpu""#);
    refused(&text, "two.json:6:5", "node `gpu0` is defined twice", "its own name");
}

#[test]
fn another_version() {
    let text = broken(r#""schema_version": 1"#, r#""schema_version": 2"#);
    refused(&text, "two.json:2:21", "schema version 2 is not known", "reads version 1");
}

#[test]
fn text_cut_off_anywhere_is_an_error_with_a_place() {
    let end = GOOD.trim_end().len();
    for cut in 1..end {
        let error = parse("two.json", &GOOD[..cut]).expect_err("cut off");
        assert!(render(&error, false).contains("two.json:"), "{cut}");
    }
    refused(&GOOD[..400], "two.json:13:35", "not valid JSON: EOF", "was it cut off");
    refused(" \n", "two.json", "the file is empty", "starts with");
}

#[test]
fn what_is_no_json() {
    refused("<machine version=\"1\">", "two.json:1:1", "not valid JSON", "looks like XML");
    let other = "this looks like NCCL system file, not a topology";
    refused("<system version=\"1\">", "two.json:1:1", other, "`simulate --topo FILE` reads it");
    refused("\u{0}\u{1}\u{1b}[31m", "two.json:1:1", "not valid JSON", "");
    refused("[1, 2]", "two.json:1:1", "invalid type", "expected an object in braces");
    refused(&"[".repeat(1 << 20), "two.json:1:", "", "");
    let deep = format!("{{\"nodes\": {{\"x\": {}", "{\"gpu\": ".repeat(1 << 18));
    refused(&deep, "two.json:1:", "", "");
    let deep = format!("{{\"$schema\": {}", "[".repeat(1 << 20));
    refused(&deep, "two.json:1:", "", "");
    refused(&format!("{GOOD}{GOOD}"), "two.json:18:1", "trailing characters", "");
}

#[test]
fn shapes_that_are_not_ours() {
    let cpu = r#"{"socket": {"model": "epyc-turin"}}"#;
    let one_key = "expected an object with one key that says the kind";
    let such_as = "such as `{\"gpu\"";
    refused(&broken(cpu, r#""socket""#), "two.json:9:13", one_key, such_as);
    refused(&broken(cpu, "{}"), "two.json:9:14", one_key, such_as);
    refused(&broken(cpu, "null"), "two.json:9:13", one_key, such_as);
    let two_kinds = r#"{"socket": {"model": "epyc-turin"}, "gpu": {"model": "h200"}}"#;
    refused(&broken(cpu, two_kinds), "two.json:9:46", one_key, such_as);
    let message = "invalid type: string \"epyc-turin\", expected an object in braces";
    refused(&broken(cpu, r#"{"socket": "epyc-turin"}"#), "two.json:9:24", message, "");
    refused(&broken(cpu, r#"{"socket": {}}"#), "two.json:9:24", "the key `model` is missing", "");

    let name = r#""name": "two","#;
    refused(&broken(name, ""), "two.json:1:1", "the key `name` is missing", "");
    let twice = broken(name, r#""name": "two", "name": "three","#);
    refused(&twice, "two.json:3:18", "the key `name` is given twice", "");
    let number = broken(name, r#""name": "two", "settings": {"acs_redirect": 1},"#);
    refused(&number, "two.json:3:47", "integer `1`, expected true or false", "");
    let colon = broken(r#""cpu0": {"#, r#""cpu0" {"#);
    refused(&colon, "two.json:9:12", "not valid JSON: expected `:`", "");
    let comma = broken(r#""mem0": {"host_memory": {"socket": "cpu0"}}"#, "");
    refused(&comma, "two.json:11:3", "trailing comma", "no comma after the last element");
    let links = GOOD.replace("\"links\": [", "\"links\": {\"a\": [").replace("]\n}", "]}\n}");
    refused(&links, "two.json:12:12", "an object, expected a list in square brackets", "");
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, String)>> {
    let pieces = prop_oneof![
        "[{}\\[\\]\",:\\\\0-9eE.\n -]{0,4}",
        "\\PC{0,3}",
        Just("\"gpu0\"".to_owned()),
        Just("\"sw0\"".to_owned()),
        Just("999999999999".to_owned()),
        Just("null".to_owned()),
    ];
    prop::collection::vec((0..GOOD.len(), 0..12_usize, pieces), 1..4)
}

proptest! {
    #[test]
    fn no_edit_makes_it_panic(edits in edits()) {
        let mut text = GOOD.to_owned();
        for (at, length, piece) in edits {
            let floor = |at: usize| (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            let (start, end) = (floor(at), floor(at + length));
            text.replace_range(start..end, &piece);
        }
        if let Err(error) = parse("two.json", &text) {
            let picture = render(&error, false);
            prop_assert!(picture.starts_with("error: "), "{}", picture);
            for problem in problems(&error) {
                prop_assert!(problem.message.is_empty() || problem.span.is_some() || text.trim().is_empty());
            }
        }
    }
}

#[test]
fn files_that_cannot_be_read() {
    let folder = std::env::temp_dir().join(format!("collsim-bad-input-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("folder");
    let told = |name: &str, content: Option<&[u8]>| {
        let file = folder.join(name);
        if let Some(content) = content {
            std::fs::write(&file, content).expect("writable");
        }
        let error = load_topology(&file.to_string_lossy()).expect_err("a fault");
        render(&error, false)
    };
    let large = told("large.json", Some(&vec![b' '; 50 << 20]));
    assert!(large.contains("it is too large: 50.0 MiB, the limit is 4.0 MiB"), "{large}");
    assert!(large.contains("a topology of 1000 GPUs is under 1 MiB"), "{large}");
    let binary = told("binary.json", Some(b"\x7fELF\x02\xff\xfe\x00"));
    assert!(binary.contains("it is not UTF-8 text: byte 5 (line 1)"), "{binary}");
    let missing = told("rtxpro6000x8-falt.json", None);
    assert!(missing.contains("no such file"), "{missing}");
    assert!(missing.contains("did you mean `rtxpro6000x8-flat`?"), "{missing}");
    let directory = told("", None);
    assert!(directory.contains("it is a directory"), "{directory}");
    std::fs::remove_dir_all(&folder).expect("removable");
}
