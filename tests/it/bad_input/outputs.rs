//! Where nothing can be written is said before the work, by every command that writes.

use clap::{Command, CommandFactory};
use collsim::cli::Arguments;

use crate::cli::simulate;
use crate::grids::{Folder, done, grid, refused};

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

fn every(command: &Command, see: &mut dyn FnMut(&Command)) {
    see(command);
    command.get_subcommands().for_each(|part| every(part, see));
}

#[test]
fn every_command_with_out_has_its_short_form() {
    let mut seen = 0;
    every(&Arguments::command(), &mut |command| {
        for argument in command.get_arguments().filter(|one| one.get_long() == Some("out")) {
            assert_eq!(argument.get_short(), Some('o'), "{}", command.get_name());
            seen += 1;
        }
    });
    assert!(seen > 10, "{seen}");
}

/// A link to what is not there yet is followed like any other.
#[cfg(unix)]
#[test]
fn links_are_followed_to_what_is_not_there_too() {
    let folder = Folder::new("links");
    let [link, target, round] = ["link", "target", "round"].map(|name| folder.file(name));
    std::os::unix::fs::symlink("target", &link).expect("ours");
    std::os::unix::fs::symlink("round", &round).expect("ours");
    let plan = folder.plan("plan.json", &grid(1));
    let rows = folder.file("rows");
    done(&["sweep", "run", &plan, "-o", &rows]);
    let commands: [&[&str]; 4] = [
        &["topo", "convert", "h200x2-nvlink-pair", "-o", &link],
        &["sweep", "run", &plan, "-o", &link],
        &["sweep", "csv", &rows, "-o", &link],
        &["sweep", "merge", "-o", &link, &rows],
    ];
    for command in commands {
        done(command);
        let first = std::fs::read(&target).expect("the link's target was made");
        assert!(std::fs::symlink_metadata(&link).is_ok_and(|found| found.is_symlink()));
        // Once more over what is there.
        done(command);
        assert_eq!(std::fs::read(&target).expect("there"), first, "{command:?}");
        std::fs::remove_file(&target).expect("ours");
    }
    refused(&["topo", "convert", "h200x2-nvlink-pair", "-o", &round], "leads back to itself");
}

#[test]
fn no_file_of_a_folder_that_is_read_is_written_over() {
    let folder = Folder::new("read");
    let md = folder.file("md");
    let [sys, proc] = ["sys", "proc"].map(|part| format!("{md}/{part}"));
    for folder in [&sys, &proc] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let files = [format!("{md}/observations.csv"), format!("{proc}/cpuinfo")];
    for file in &files {
        std::fs::write(file, "mine").expect("ours");
    }
    let refusals: [&[&str]; 5] = [
        &["check", "--measured", &md, "--plot", &files[0]],
        &["calibrate", "--measured", &md, "--out", &files[0]],
        &["replay", &md, "--plot", &files[0]],
        &["here", "--root", &md, "-o", &files[1]],
        &[
            "choose",
            "--nccl-env",
            &format!("A=b NCCL_GRAPH_FILE={}", files[0]),
            "--write-graph",
            &files[0],
        ],
    ];
    for command in refusals {
        let named = if command[0] == "choose" { "named a second time" } else { "which is read" };
        refused(command, named);
        assert_eq!(std::fs::read_to_string(&files[0]).expect("there"), "mine");
    }
    // A new file may stand beside what was measured: what is missing here is the machine.
    let out = format!("{md}/new.csv");
    refused(&["check", "--measured", &md, "--plot", &out], "which machine was");
}

#[test]
fn a_machine_is_written_as_its_ending_says() {
    let folder = Folder::new("endings");
    for (name, start) in
        [("m", "{"), ("m.json", "{"), ("m.svg", "<svg"), ("m.dot", "graph"), ("m.txt", "H200")]
    {
        let file = folder.file(name);
        done(&["topo", "convert", "h200x2-nvlink-pair", "-o", &file]);
        let text = std::fs::read_to_string(&file).expect("written");
        assert!(text.to_lowercase().starts_with(&start.to_lowercase()), "{name}: {text:.80}");
    }
    let file = folder.file("m.png");
    refused(&["topo", "convert", "h200x2-nvlink-pair", "-o", &file], "known: .txt, .json");
}
