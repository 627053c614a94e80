//! Where nothing can be written is said before the work, by every command that writes.

use clap::{Command, CommandFactory};
use collsim::cli::Arguments;

use crate::cli::simulate;

/// Whether a flag names a file that is written.
fn writes(flag: &str) -> bool {
    ["out", "plot", "trace"].contains(&flag) || flag.starts_with("write-")
}

/// Command lines without the file at their end: a flag that names one, after all that the command wants.
fn lines(command: &Command, before: &[String], found: &mut Vec<Vec<String>>) {
    let mut wanted = before.to_vec();
    for argument in command.get_arguments().filter(|argument| argument.is_required_set()) {
        let own = argument.get_long().filter(|flag| writes(flag));
        if own.is_none() {
            wanted.extend(argument.get_long().map(|flag| format!("--{flag}")));
            // A number to those that read one, to all others a file that is not there.
            wanted.push("1".to_owned());
        }
    }
    for flag in command.get_arguments().filter_map(clap::Arg::get_long).filter(|flag| writes(flag))
    {
        found.push([&wanted[..], &[format!("--{flag}")]].concat());
    }
    for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
        lines(part, &[before, &[part.get_name().to_owned()]].concat(), found);
    }
}

#[test]
fn every_command_says_before_the_work_that_it_cannot_write() {
    let mut found = Vec::new();
    let mut program = Arguments::command();
    program.build();
    lines(&program, &[], &mut found);
    assert!(found.len() >= 15, "{found:?}");
    for line in found {
        let mut line: Vec<&str> = line.iter().map(String::as_str).collect();
        for (place, part) in [
            ("/no/such/place/x", "cannot write /no/such/place/x: No such file or directory"),
            ("/proc/x", "cannot write /proc/x"),
            ("/", "cannot write /: it is a directory"),
        ] {
            line.push(place);
            let run = simulate(&line);
            assert_eq!((run.code, run.out.as_str()), (2, ""), "{line:?}: {}", run.err);
            // The files that are read are not there either: that would be told by the work.
            assert!(run.err.contains(part), "{line:?}: no `{part}` in\n{}", run.err);
            line.pop();
        }
    }
}

#[test]
fn the_trial_leaves_nothing_behind() {
    let folder = std::env::temp_dir().join(format!("collsim-trial-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("x.json");
    let run =
        simulate(&["topo", "convert", "no-such-machine", "-o", file.to_str().expect("UTF-8")]);
    assert!(run.code == 2 && run.err.contains("no-such-machine"), "{}", run.err);
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0);
    std::fs::remove_dir_all(folder).expect("ours");
}
