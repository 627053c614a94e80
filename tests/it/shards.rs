//! Files of a sweep's rows: what they lack is said, and two runs do not write into one.

use std::fs;

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
