//! Do the files keep the rules of the house: layers that depend one way, short files and functions,
//! a sentence on top, nothing unfinished, nothing that no table lists?

use std::fs;
use std::path::{Path, PathBuf};

use collsim::fabric::Calibration;
use collsim::input::embedded::MACHINES;
use collsim::input::scenario::SCENARIOS;

/// Modules in the order in which they may depend: each on those before it only.
const LAYERS: &[&str] = &[
    "units",
    "error",
    "lines",
    "suggestion",
    "statistics",
    "topology",
    "workload",
    "fabric",
    "schedule",
    "algorithm",
    "selection",
    "engine",
    "prediction",
    "measurement",
    "input",
    "validation",
    "sweep",
    "report",
    "cli",
];

/// No file is longer than this.
const FILE_LINES_MAX: usize = 600;
/// A file should not be longer than this; those that are stand in [`LONG_FILES`].
const FILE_LINES_SOFT: usize = 400;
const LONG_FILES: &[&str] =
    &["src/engine/executor/mod.rs", "src/engine/executor/ops.rs", "src/fabric/compile.rs"];

/// No function's body is longer than this, but for those in [`LONG_FUNCTIONS`].
const FUNCTION_LINES_MAX: usize = 70;
/// File, function, and the lines that it may have: they may shrink, not grow.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[("src/engine/executor/mod.rs", "new", 78)];

/// Words that no file has, split so that this one has none of them.
const FORBIDDEN: &[&str] = &[
    concat!("to", "do!"),
    concat!("unim", "plemented!"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("ut", "ils"),
    concat!("Hash", "Map"),
    concat!("Hash", "Set"),
];

struct Source {
    /// From the root of the repository.
    path: String,
    lines: Vec<String>,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder, sorted by path.
fn files_below(folder: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn from_root(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned()
}

fn sources(folders: &[&str]) -> Vec<Source> {
    let files = folders.iter().flat_map(|folder| files_below(folder));
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("UTF-8");
            let lines = text.lines().map(str::to_owned).collect();
            Source { path: from_root(&path), lines }
        })
        .collect()
}

/// All Rust files.
fn all() -> Vec<Source> {
    sources(&["src", "tests", "examples"])
}

#[track_caller]
fn none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

fn layer_of(path: &str) -> Option<usize> {
    let name = path.strip_prefix("src/")?.split('/').next()?.trim_end_matches(".rs").to_owned();
    LAYERS.iter().position(|layer| **layer == name)
}

/// Names that follow `crate::` in a line of code.
fn crate_paths(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        &rest[..end]
    })
}

#[test]
fn layers_depend_one_way() {
    let mut wrong = Vec::new();
    for source in sources(&["src"]) {
        let Some(own) = layer_of(&source.path) else {
            let known = matches!(source.path.as_str(), "src/lib.rs" | "src/main.rs");
            assert!(known, "{}: not in the order of the layers", source.path);
            continue;
        };
        for (number, line) in source.lines.iter().enumerate() {
            let place = format!("{}:{}", source.path, number + 1);
            if line.contains("use crate::{") {
                wrong.push(format!("{place}: one `use crate::layer` a layer"));
            }
            for name in crate_paths(line) {
                if LAYERS.iter().position(|layer| *layer == name).is_some_and(|at| at > own) {
                    wrong.push(format!("{place}: {} depends on {name}", LAYERS[own]));
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn the_map_lists_the_layers_in_order() {
    let map = fs::read_to_string(root().join("src/lib.rs")).expect("the map");
    let modules: Vec<&str> =
        map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    assert_eq!(modules, LAYERS);
}

#[test]
fn files_are_short_and_say_what_they_are() {
    let (mut wrong, mut long) = (Vec::new(), Vec::new());
    for source in all() {
        let lines = source.lines.len();
        if lines > FILE_LINES_MAX {
            wrong.push(format!("{}: {lines} lines, at most {FILE_LINES_MAX}", source.path));
        }
        if lines > FILE_LINES_SOFT {
            long.push(source.path.clone());
        }
        if !source.lines.first().is_some_and(|line| line.starts_with("//! ")) {
            wrong.push(format!("{}: no `//!` sentence on top", source.path));
        }
    }
    none(&wrong);
    assert_eq!(long, LONG_FILES, "files over {FILE_LINES_SOFT} lines");
}

/// Name and length of the body of every function, by the indentation that rustfmt gives.
fn functions(source: &Source) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (start, line) in source.lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "fn") else { continue };
        let prefix = |word: &&str| word.starts_with("pub") || *word == "const";
        if !words[..at].iter().all(prefix) || at + 1 == words.len() {
            continue;
        }
        let name: String =
            words[at + 1].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let opens = |line: &String| [";", "{", "}"].iter().any(|end| line.ends_with(end));
        let rest = &source.lines[start..];
        let Some(open) = rest.iter().position(opens).filter(|&at| rest[at].ends_with('{')) else {
            continue;
        };
        let close = format!("{}}}", " ".repeat(indent));
        let body = rest[open + 1..].iter().position(|line| *line == close);
        found.push((name, body.expect("rustfmt puts the brace below the function")));
    }
    found
}

#[test]
fn functions_are_short() {
    let mut wrong = Vec::new();
    let mut long = Vec::new();
    for source in all() {
        for (name, lines) in functions(&source) {
            let listed = |entry: &&(&str, &str, usize)| entry.0 == source.path && entry.1 == name;
            let exception = LONG_FUNCTIONS.iter().find(listed);
            let most = exception.map_or(FUNCTION_LINES_MAX, |entry| entry.2);
            if lines > most {
                wrong.push(format!("{}: {name} has {lines} lines, at most {most}", source.path));
            }
            long.extend(exception.filter(|_| lines > FUNCTION_LINES_MAX));
        }
    }
    for exception in LONG_FUNCTIONS {
        if !long.contains(&exception) {
            wrong.push(format!("{exception:?} is short now: take it off the list"));
        }
    }
    none(&wrong);
}

#[test]
fn nothing_is_unfinished_or_out_of_order() {
    let mut wrong = Vec::new();
    for source in all() {
        for (number, line) in source.lines.iter().enumerate() {
            for word in FORBIDDEN {
                if line.contains(word) {
                    wrong.push(format!("{}:{}: {word}", source.path, number + 1));
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn every_exception_from_a_lint_has_a_reason() {
    let mut wrong = Vec::new();
    for source in all() {
        for (number, line) in source.lines.iter().enumerate() {
            let attribute = line.trim_start();
            let excepts = ["#[allow(", "#[expect(", "#![allow(", "#![expect("]
                .iter()
                .any(|start| attribute.starts_with(start));
            if !excepts {
                continue;
            }
            // rustfmt may put the reason on a line of its own.
            let end = source.lines[number..].iter().position(|line| line.trim_end().ends_with(']'));
            let whole = &source.lines[number..=number + end.unwrap_or(0)];
            if !whole.iter().any(|line| line.contains("reason = ")) {
                wrong.push(format!("{}:{}: no reason", source.path, number + 1));
            }
        }
    }
    none(&wrong);
}

#[test]
fn every_module_is_declared() {
    let mut wrong = Vec::new();
    for source in sources(&["src", "tests"]) {
        let path = Path::new(&source.path);
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let folder = path.parent().expect("a folder");
        let roots = ["src/lib.rs", "src/main.rs", "tests/it/main.rs", "tests/fuzz/src/main.rs"];
        if roots.contains(&source.path.as_str()) {
            continue;
        }
        let (name, above) = match stem.as_str() {
            "mod" => (
                folder.file_name().expect("a name").to_string_lossy().into_owned(),
                folder.parent().expect("a folder"),
            ),
            _ => (stem, folder),
        };
        let declares = |file: &str| {
            let text = fs::read_to_string(root().join(above).join(file)).unwrap_or_default();
            text.lines().any(|line| line.trim_start_matches("pub ") == format!("mod {name};"))
        };
        if !["mod.rs", "lib.rs", "main.rs"].iter().any(|file| declares(file)) {
            wrong.push(format!("{}: no module declares it", source.path));
        }
    }
    none(&wrong);
}

/// A file is used when a table lists it or a source file names it.
#[test]
fn every_data_file_is_used() {
    let code: String = all().iter().map(|source| source.lines.join("\n")).collect();
    let tables = [("topologies", MACHINES), ("scenarios", SCENARIOS), ("calibration", &[])];
    let mut wrong = Vec::new();
    for (folder, table) in tables {
        let files: Vec<String> = files_below(folder).iter().map(|path| from_root(path)).collect();
        let listed: Vec<String> =
            table.iter().map(|entry| format!("{folder}/{}", entry.file_name())).collect();
        for file in &files {
            if !listed.contains(file) && !code.contains(&format!("{file}\"")) {
                wrong.push(format!("{file}: nothing uses it"));
            }
        }
        wrong.extend(listed.iter().filter(|f| !files.contains(f)).map(|f| format!("{f}: gone")));
    }
    none(&wrong);
}

#[test]
fn every_constant_is_read() {
    let code: String = sources(&["src"]).iter().map(|source| source.lines.join("\n")).collect();
    let calibration = Calibration::embedded().expect("embedded calibration");
    let unread =
        calibration.iter().filter(|(_, _, name, _)| !code.contains(&format!("\"{name}\"")));
    let wrong: Vec<String> =
        unread.map(|(class, device, name, _)| format!("{class:?} {device}: {name}")).collect();
    none(&wrong);
}
