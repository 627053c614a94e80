//! Is what the README shows what the two commands print? `COLLSIM_BLESS=1` rewrites it.

use std::path::Path;

use crate::bless::{file_text, same_as_file};
use crate::cli::simulate;

#[test]
fn the_readme_shows_what_its_two_commands_print() {
    let screen = simulate(&["--topo", "rtxpro6000x8.json"]).out;
    // Of the tests' output, the lines that stay the same from run to run.
    let passed = |folder| {
        format!("test result: ok. {} passed; 0 failed; 0 ignored; ...\n", tests_below(folder))
    };
    let tests = format!("...\n{}...\n{}", passed("src"), passed("tests"));
    let text = file_text("README.md");
    let text = with_output(&text, "$ cargo run --release -- --topo rtxpro6000x8.json\n", &screen);
    same_as_file("README.md", &with_output(&text, "$ cargo test\n", &tests));
}

/// The text with the output of one command in its block.
fn with_output(text: &str, command: &str, output: &str) -> String {
    let (before, rest) = text.split_once(command).expect("the command is in the README");
    let (_, after) = rest.split_once("```").expect("the block ends");
    format!("{before}{command}{output}```{after}")
}

fn tests_below(folder: &str) -> usize {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut folders = vec![root];
    let mut tests = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(path).expect("readable");
                // What needs a feature stands last in its file, and `cargo test` alone leaves it out.
                let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(feature"));
                tests += lines.filter(|line| line.trim() == "#[test]").count();
            }
        }
    }
    tests
}
