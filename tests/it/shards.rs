//! Files of a sweep's rows: what they lack is said, two runs do not write into one, and what stands in a
//! file that is not ours stays.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::grids::{Folder, done, grid, refused};

#[test]
fn what_is_missing_of_a_sweep_is_said_by_every_command_that_tells_its_rows() {
    let folder = Folder::new("unfinished");
    let plan = folder.plan("plan.json", &grid(4));
    let (out, csv) = (folder.file("rows.jsonl"), folder.file("rows.csv"));
    done(&["sweep", "run", &plan, "--out", &out, "-j", "1"]);
    let tell: [&[&str]; 4] = [
        &["sweep", "csv", &out, "--out", &csv],
        &["sweep", "pareto", &out],
        &["sweep", "cheapest", &out, "--bytes", "1024", "--most-us", "1000"],
        &["sweep", "effects", &out],
    ];
    for command in tell {
        assert_eq!(done(command).err, "", "{command:?}");
    }
    let whole = fs::read_to_string(&out).expect("written");
    let some: String = whole.lines().take(1 + 20).map(|line| line.to_owned() + "\n").collect();
    fs::write(&out, &some).expect("ours");
    for command in tell {
        let told = done(command).err;
        assert!(told.contains("has 20 of the sweep's 32 cases: the others are not told"), "{told}");
    }
    // A run that goes on, or was stopped: its rows are in another file.
    fs::rename(&out, format!("{out}.part")).expect("ours");
    for command in tell {
        refused(command, "20 of 32 cases");
        refused(command, "is not finished");
    }
    done(&["sweep", "run", &plan, "--out", &out]);
    let shard = folder.file("shard.jsonl");
    done(&["sweep", "run", &plan, "--out", &shard, "--shard", "1/4"]);
    let told = done(&["sweep", "effects", &shard]).err;
    assert!(told.contains("has 8 of the sweep's 32 cases, shard 1/4"), "{told}");
}

#[test]
fn a_second_run_does_not_write_into_the_file_of_the_first() {
    let folder = Folder::new("locked");
    let plan = folder.plan("plan.json", &grid(4));
    let (rows, out) = (folder.file("rows.jsonl"), folder.file("out.jsonl"));
    done(&["sweep", "run", &plan, "--out", &rows]);
    let part = fs::File::create(format!("{out}.part")).expect("ours");
    part.lock().expect("a lock");
    let writers: [&[&str]; 3] = [
        &["sweep", "run", &plan, "--out", &out],
        &["sweep", "merge", "--out", &out, &rows],
        &["sweep", "csv", &rows, "--out", &out],
    ];
    for command in writers {
        refused(command, "another run is writing");
        assert!(part.metadata().is_ok_and(|meta| meta.len() == 0), "{command:?}");
    }
    drop(part);
    for command in writers {
        done(command);
        fs::remove_file(&out).expect("written");
    }
}

/// Nothing that stands where rows are to be written is cut away, unless they would be the same.
#[test]
fn what_stands_in_a_part_file_stays() {
    let folder = Folder::new("stands");
    let plan = folder.plan("plan.part", &grid(2));
    let [s0, s1, m] = ["s0", "s1", "m"].map(|name| folder.file(name));
    for (out, shard) in [(&s0, "0/2"), (&s1, "1/2")] {
        done(&["sweep", "run", &plan, "--out", out, "--shard", shard]);
    }
    let part = format!("{m}.part");
    let rows = fs::read_to_string(&s0).expect("written");
    let commands: [&[&str]; 4] = [
        &["sweep", "merge", "--out", &m, &part, &s1],
        &["sweep", "merge", "--out", &m, &s0, &s1],
        &["sweep", "csv", &s0, "--out", &m],
        &["sweep", "run", &plan, "--out", &m],
    ];
    // A finished shard, one that was stopped, and a file of somebody else with and without its last newline.
    for there in [&rows, &rows[..rows.len() / 2], "mine\n", "mine"] {
        for command in commands {
            fs::write(&part, there).expect("ours");
            assert_eq!(crate::cli::simulate(command).code, 2, "{command:?} over {there}");
            assert_eq!(fs::read_to_string(&part).expect("there"), there, "{command:?}");
            assert!(!std::path::Path::new(&m).exists());
        }
    }
    fs::write(&part, "mine").expect("ours");
    refused(commands[1], "holds something else");
    refused(commands[3], "holds something else");
    // The plan itself stands where the rows would.
    let text = fs::read_to_string(&plan).expect("there");
    refused(
        &["sweep", "run", &plan, "--out", plan.trim_end_matches(".part")],
        "named a second time",
    );
    assert_eq!(fs::read_to_string(&plan).expect("there"), text);
    // What a merge had written when it was ended is gone on with.
    fs::remove_file(&part).expect("ours");
    done(commands[1]);
    let merged = fs::read(&m).expect("merged");
    for length in [1, merged.len() / 2, merged.len()] {
        fs::remove_file(&m).expect("ours");
        fs::write(&part, &merged[..length]).expect("ours");
        done(commands[1]);
        assert_eq!(fs::read(&m).expect("merged"), merged);
    }
}

#[test]
fn a_line_without_an_end_is_told() {
    let folder = Folder::new("endless");
    let plan = folder.plan("plan.json", &grid(1));
    let (rows, long, out) = (folder.file("rows"), folder.file("long"), folder.file("out"));
    done(&["sweep", "run", &plan, "--out", &rows]);
    let head = fs::read_to_string(&rows).expect("written");
    let head = head.lines().next().expect("a header").to_owned() + "\n";
    for (before, place) in [("", "its first line"), (head.as_str(), "line 2")] {
        fs::write(&long, before).expect("ours");
        let file = fs::OpenOptions::new().write(true).open(&long).expect("ours");
        // A hole: it takes no room.
        file.set_len(40 << 20).expect("room");
        for command in [&["csv", &long, "--out", &out][..], &["pareto", &long], &["effects", &long]]
        {
            refused(&[&["sweep"], command].concat(), "has more than 16 MiB without an end");
        }
        if before.is_empty() {
            refused(&["sweep", "status", &long], &format!("{place} has more than 16 MiB"));
            refused(&["sweep", "run", &plan, "--out", &long], "has more than 16 MiB");
        } else {
            refused(&["sweep", "pareto", &long], &format!("{place}: no row of a sweep"));
        }
    }
    // Behind our own header it is a row that was damaged.
    fs::rename(&long, format!("{out}.part")).expect("ours");
    done(&["sweep", "run", &plan, "--out", &out]);
    assert_eq!(fs::read(&out).expect("finished"), fs::read(&rows).expect("finished"));
}

#[test]
fn what_is_no_file_of_rows_is_told_by_what_was_expected() {
    let folder = Folder::new("none");
    let (binary, missing) = (folder.file("binary"), folder.file("missing"));
    fs::write(&binary, b"\x7fELF\xff\xfe\0\0\n\xff").expect("ours");
    let told = crate::cli::simulate(&["sweep", "status", &binary]).err;
    assert!(told.contains("is no file of a sweep's rows: its first line"), "{told}");
    assert!(told.contains("`simulate sweep run` wrote") && !told.contains("goes on"), "{told}");
    refused(&["sweep", "effects", &binary], "is no file of a sweep's rows");
    refused(&["sweep", "status", &missing], "missing.part is there");
}

#[cfg(unix)]
#[test]
fn a_second_ctrl_c_ends_at_once() {
    let folder = Folder::new("twice");
    let mut plan = grid(1);
    plan["sizes"] = serde_json::json!([256 << 20]);
    plan["network_model"] = "packet".into();
    let (plan, out) = (folder.plan("plan.json", &plan), folder.file("out.jsonl"));
    let run = Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["sweep", "run", &plan, "--out", &out, "-j", "1"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let part = format!("{out}.part");
    while fs::metadata(&part).map_or(0, |found| found.len()) == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(200));
        let asked = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
        assert!(asked.is_ok());
    }
    let ended = run.wait_with_output().expect("it ended");
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.code() == Some(130) && told.contains("Ctrl-C again"), "{told}");
    assert!(fs::read_to_string(&part).expect("kept").ends_with('\n'));
}
