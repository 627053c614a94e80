//! Do sweeps end with the same bytes however they are stopped and shared out, and do steps, plans and
//! places say what holds?

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::cli::{Run, simulate};

/// A folder of one test's own, gone at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("collsim-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("UTF-8").to_owned()
    }

    pub(crate) fn plan(&self, name: &str, plan: &Value) -> String {
        let file = self.file(name);
        fs::write(&file, plan.to_string()).expect("writable");
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover in the temporary folder harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// 2 lists x 2 lists of edits x `sizes` sizes x 2 implementations.
pub(crate) fn grid(sizes: usize) -> Value {
    serde_json::json!({
        "schema_version": 1,
        "machines": ["h200x2-nvlink-pair"],
        "edits": [["", "nps=2"], ["", "link:gpu0-nvsw=nv9"]],
        "scenario": "kimi-k25-tp8",
        "sizes": (1..=sizes).map(|n| 1024 * n).collect::<Vec<_>>(),
        "algorithms": ["ring:LL", "one_shot_pull"],
        "network_model": "alpha_beta",
    })
}

#[track_caller]
pub(crate) fn done(arguments: &[&str]) -> Run {
    let run = simulate(arguments);
    assert_eq!(run.code, 0, "{arguments:?}\n{}", run.err);
    run
}

#[track_caller]
pub(crate) fn refused(arguments: &[&str], part: &str) {
    let run = simulate(arguments);
    assert_eq!(run.code, 2, "{arguments:?}\n{}", run.out);
    assert!(run.err.contains(part), "no `{part}` in\n{}", run.err);
}

/// A sweep that runs while the test goes on.
fn started(plan: &str, out: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_simulate"))
        .args(["sweep", "run", plan, "--out", out])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// The rows of a finished sweep, its header left out.
fn rows(out: &str) -> Vec<Value> {
    let text = fs::read_to_string(out).expect("finished");
    text.lines().skip(1).map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn a_sweep_ends_with_the_same_bytes_wherever_it_was_stopped() {
    let folder = Folder::new("stopped");
    let plan = folder.plan("plan.json", &grid(8));
    let (whole, out) = (folder.file("whole.jsonl"), folder.file("out.jsonl"));
    done(&["sweep", "run", &plan, "--out", &whole]);
    let bytes = fs::read(&whole).expect("written");
    assert_eq!(bytes.iter().filter(|&&byte| byte == b'\n').count(), 1 + 64);
    // What a kill leaves: the file up to some byte. Twenty of them, the first in the header.
    for cut in 1..=20 {
        fs::write(format!("{out}.part"), &bytes[..bytes.len() * cut * cut / 420]).expect("ours");
        done(&["sweep", "run", &plan, "--out", &out, "-j", if cut % 2 == 0 { "1" } else { "2" }]);
        assert!(fs::read(&out).expect("finished") == bytes, "stopped at {cut}");
        fs::remove_file(&out).expect("ours");
    }
    let again = done(&["sweep", "run", &plan, "--out", &whole]);
    assert!(again.out.contains("finished before"), "{}", again.out);
}

#[test]
fn a_killed_sweep_goes_on() {
    let folder = Folder::new("killed");
    let plan = folder.plan("plan.json", &grid(100));
    let (whole, out) = (folder.file("whole.jsonl"), folder.file("out.jsonl"));
    done(&["sweep", "run", &plan, "--out", &whole]);
    for wait_ms in [30, 60, 90, 150, 250] {
        let mut run = started(&plan, &out);
        std::thread::sleep(Duration::from_millis(wait_ms));
        // It may have ended before.
        let _ = run.kill();
        run.wait().expect("it ended");
    }
    done(&["sweep", "run", &plan, "--out", &out]);
    assert!(fs::read(&out).expect("finished") == fs::read(&whole).expect("finished"));
}

#[test]
fn shards_merge_to_the_bytes_of_one_run() {
    let folder = Folder::new("shards");
    let plan = folder.plan("plan.json", &grid(5));
    let whole = folder.file("whole.jsonl");
    done(&["sweep", "run", &plan, "--out", &whole]);
    let parts: Vec<String> = (0..3).map(|index| folder.file(&format!("part{index}"))).collect();
    for (index, part) in parts.iter().enumerate() {
        done(&["sweep", "run", &plan, "--out", part, "--shard", &format!("{index}/3")]);
    }
    let merged = folder.file("merged.jsonl");
    refused(&["sweep", "merge", "--out", &merged, &parts[0], &parts[2]], "shard 1/3 is missing");
    done(&["sweep", "merge", "--out", &merged, &parts[2], &parts[0], &parts[1]]);
    assert!(fs::read(&merged).expect("merged") == fs::read(&whole).expect("finished"));
    let status = done(&["sweep", "status", &parts[1]]);
    assert!(status.out.contains("of 13 cases, shard 1/3"), "{}", status.out);
}

#[test]
fn a_case_that_fails_is_a_row_and_the_rest_goes_on() {
    let folder = Folder::new("fails");
    let mut grid = grid(1);
    grid["edits"] = serde_json::json!([["", "bridge:gpu0-gpu1=nv36"]]);
    grid["algorithms"] = serde_json::json!(["ring:LL", "rnig"]);
    let (plan, out) = (folder.plan("plan.json", &grid), folder.file("out.jsonl"));
    done(&["sweep", "run", &plan, "--out", &out]);
    let rows = rows(&out);
    assert_eq!(rows.len(), 4);
    assert!(rows[0]["us"].as_f64().is_some_and(|us| us > 1.0), "{}", rows[0]);
    assert!(rows[1]["error"].as_str().is_some_and(|error| error.contains("rnig")), "{}", rows[1]);
    assert!(rows[2]["error"].as_str().is_some_and(|e| e.contains("18 NVLinks")), "{}", rows[2]);
}

#[test]
fn the_plan_in_the_docs_is_one() {
    let text = crate::bless::file_text("docs/what-if.md");
    let (_, rest) = text.split_once("```json\n").expect("a plan");
    let plan: Value =
        serde_json::from_str(rest.split_once("```").expect("its end").0).expect("JSON");
    let folder = Folder::new("docs");
    let run = done(&["sweep", "plan", &folder.plan("plan.json", &plan)]);
    // 2 machines x 2 x 3 lists of edits x 3 sizes x 2 implementations.
    assert!(run.out.ends_with(": 72 cases\n"), "{}", run.out);
}

#[test]
fn absurd_sweeps_are_refused() {
    let folder = Folder::new("absurd");
    let with = |key: &str, value: Value| {
        let mut grid = grid(2);
        grid[key] = value;
        folder.plan(&format!("{key}.json"), &grid)
    };
    let many: Vec<String> = (0..1000).map(|n| format!("calls={}", n + 1)).collect();
    let huge = with("edits", serde_json::json!([many.clone(), many.clone(), many]));
    refused(&["sweep", "plan", &huge], "the grid has 4,000,000,000 cases, more than 10,000,000");
    refused(&["sweep", "plan", &with("algorithms", serde_json::json!([]))], "has no case");
    refused(&["sweep", "plan", &with("network_model", "exact".into())], "known: alpha_beta");
    let slip = with("sizs", 3.into());
    refused(&["sweep", "plan", &slip], "unknown key `sizs`");
    refused(&["sweep", "plan", &slip], &format!("--> {slip}:1:"));
    refused(&["sweep", "plan", &slip], "did you mean `sizes`?");
    let later = with("schema_version", 2.into());
    refused(&["sweep", "plan", &later], "schema version 2 is not known");
    refused(&["sweep", "plan", &later], &format!("--> {later}:1:"));
    let plan = folder.plan("plan.json", &grid(2));
    refused(&["sweep", "run", &plan, "--out", "/no/such/folder/rows"], "cannot write /no/such/");
    let out = folder.file("other.jsonl");
    fs::write(&out, "mine\n").expect("writable");
    refused(&["sweep", "run", &plan, "--out", &out], "not of this plan");
    assert_eq!(fs::read_to_string(&out).expect("there"), "mine\n");
    refused(&["sweep", "run", &plan, "--out", &out, "--shard", "4/4"], "is no shard");
    refused(&["sweep", "status", &out], "no file of a sweep's rows");
    // A device gives zeros without end, and takes nothing.
    for command in [&["run", &plan][..], &["csv", &out], &["merge"]] {
        let command = [&["sweep"], command, &["--out", "/dev/full"]].concat();
        let command =
            if command[1] == "merge" { [&command[..], &[&out]].concat() } else { command };
        refused(&command, "/dev/full is no ordinary file");
    }
    let seeds = with("seeds", serde_json::json!([1, 2]));
    refused(&["sweep", "plan", &seeds], "seeds draw arrivals");
    let contrary = with("edits", serde_json::json!([["acs=on; acs=off"]]));
    refused(&["sweep", "plan", &contrary], "two edits of one thing");
}

#[test]
fn a_folder_that_takes_no_file_is_told_and_nothing_is_left() {
    let folder = Folder::new("taken");
    let plan = folder.plan("plan.json", &grid(1));
    // A folder stands where the part file should be.
    let out = folder.file("rows.jsonl");
    fs::create_dir(format!("{out}.part")).expect("ours");
    refused(&["sweep", "run", &plan, "--out", &out], "is no ordinary file");
    assert!(!PathBuf::from(&out).exists());
}

#[test]
fn an_interrupted_sweep_says_so_and_goes_on() {
    let folder = Folder::new("interrupted");
    let plan = folder.plan("plan.json", &grid(80));
    let (whole, out) = (folder.file("whole.jsonl"), folder.file("out.jsonl"));
    done(&["sweep", "run", &plan, "--out", &whole]);
    let mut stopped = 0;
    for wait_ms in [50, 100, 200, 400] {
        let run = started(&plan, &out);
        std::thread::sleep(Duration::from_millis(wait_ms));
        let asked = Command::new("kill").args(["-INT", &run.id().to_string()]).status();
        assert!(asked.is_ok());
        let ended = run.wait_with_output().expect("it ended");
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        // One that came before the handler stood, or after the end, tells nothing.
        if ended.status.code() == Some(130) {
            assert!(told.contains("the same command goes on"), "{told}");
            assert!(told.contains("waiting for the end of the cases"), "{told}");
            stopped += 1;
        }
    }
    done(&["sweep", "run", &plan, "--out", &out]);
    assert!(fs::read(&out).expect("finished") == fs::read(&whole).expect("finished"));
    assert!(stopped > 0 || cfg!(not(debug_assertions)), "no run was long enough to stop");
}

#[test]
fn rows_become_a_table_a_front_and_effects() {
    let folder = Folder::new("rows");
    let plan = folder.plan("plan.json", &grid(2));
    let (out, csv) = (folder.file("rows.jsonl"), folder.file("rows.csv"));
    done(&["sweep", "run", &plan, "--out", &out]);
    done(&["sweep", "csv", &out, "--out", &csv]);
    let text = fs::read_to_string(&csv).expect("written");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 16);
    assert!(lines[0].starts_with("case,machine,edits,algorithm,seed,bytes,us,"), "{}", lines[0]);
    assert!(
        lines[16].contains("\"nps=2; link:gpu0-nvsw=nv9\"") || lines[16].contains("nps=2; link")
    );
    let tags = ["--price", "nps=2 = 0", "--price", "link:gpu0-nvsw=nv9 = 10"];
    let front = done(&[&["sweep", "pareto", &out][..], &tags[..]].concat());
    // Half of a GPU's links costs and gains nothing, and NPS changes no time.
    assert!(!front.out.contains("nv9"), "{}", front.out);
    refused(&["sweep", "pareto", &out, "--price", "nps=2 = 0"], "has no price");
    let effects = done(&["sweep", "effects", &out]);
    assert!(effects.out.contains("nps=2") && effects.out.contains("+0 %"), "{}", effects.out);
    let cheapest = ["sweep", "cheapest", &out, "--bytes", "1024", "--most-us", "1000"];
    assert!(done(&cheapest).out.contains("as it is"));
    let never = done(&["sweep", "cheapest", &out, "--bytes", "1024", "--most-us", "0.01"]);
    assert!(never.out.contains("no build does"), "{}", never.out);
    refused(&["sweep", "cheapest", &out, "--bytes", "3", "--most-us", "9"], "no row is of 3 bytes");
}

#[test]
fn seeds_are_an_axis_of_drawn_arrivals() {
    let folder = Folder::new("seeds");
    let scenario = serde_json::json!({
        "schema_version": 1, "name": "drawn", "tensor_parallel": 2,
        "steps": [{"name": "decode", "calls": 8, "bytes": 14336, "arrival":
            {"drawn": {"seed": 1, "distribution": {"exponential": {"mean_us": 40.0}}}}}],
    });
    let mut grid = grid(2);
    grid["scenario"] = folder.plan("drawn.json", &scenario).into();
    grid["edits"] = serde_json::json!([]);
    grid["seeds"] = serde_json::json!([1, 2]);
    let (plan, out) = (folder.plan("plan.json", &grid), folder.file("rows.jsonl"));
    done(&["sweep", "run", &plan, "--out", &out]);
    let rows = rows(&out);
    // 2 sizes x 2 seeds x 2 implementations.
    assert_eq!(rows.len(), 8);
    assert_eq!((&rows[0]["seed"], &rows[2]["seed"]), (&1.into(), &2.into()));
    assert_eq!(rows[0]["us"], rows[2]["us"], "the call itself is not drawn");
    assert_ne!(rows[0]["waiting_us"], rows[2]["waiting_us"], "the waiting is");
}

#[test]
fn what_matters_most_is_told_first() {
    let common = ["sensitivity", "--topo", "h200x2-nvlink-pair", "--fidelity", "max_min"];
    let run = done(&[&common[..], &["--json"]].concat());
    let value: Value = serde_json::from_str(&run.out).expect("JSON");
    let effects = value["effects"].as_array().expect("a list");
    let change = |at: usize| effects[at]["change"].as_f64().expect("a change").abs();
    assert!(effects.len() > 50 && change(0) > 0.002, "{}", effects[0]);
    assert!((1..effects.len()).all(|at| change(at) <= change(at - 1)));
    assert!(effects.iter().any(|one| one["moved"].get("link").is_some()));
    refused(&[&common[..], &["--step", "prefil"]].concat(), "there is no step `prefil`");
}

/// One-stage in place of the ring, as reported with the question that started this: 89.5 became 38.3.
#[test]
fn one_stage_for_ring_costs_what_was_measured() {
    let with = |tok_per_s: &str| {
        let run = done(&[
            "step",
            "--topo",
            "rtxpro6000x8",
            "--model",
            "kimi-k2.5",
            "--drafts",
            "0",
            "--measured-tok-s",
            tok_per_s,
            "--json",
        ]);
        let value: Value = serde_json::from_str(&run.out).expect("JSON");
        let rows = value["rows"].as_array().expect("rows");
        let at = rows.iter().position(|row| row["algorithm"] == "one_shot_pull").expect("a row");
        value["tokens"][at]["decode_tok_per_s"]["value"].as_f64().expect("a rate")
    };
    let rate = with("89.5");
    assert!((rate / 38.3 - 1.0).abs() < 0.15, "{rate} tok/s");
}

#[test]
fn steps_say_what_they_take_for_granted_and_refuse_what_cannot_be() {
    let step = ["step", "--topo", "h200x2-nvlink-pair", "--model", "llama-70b", "--tp", "2"];
    let with = |more: &[&'static str]| [&step[..], more].concat();
    let bare = done(&with(&["--busbw", "100"]));
    assert!(bare.out.contains("no tokens a second"), "{}", bare.out);
    assert!(bare.out.contains("161 all-reduce of 16,384 B"), "{}", bare.out);
    assert!(!bare.out.contains("tok/s ("), "no rate without compute: {}", bare.out);
    let told = done(&with(&["--compute-ms", "20", "--accepted", "2.5"]));
    assert!(told.out.contains("draft passes take no compute"), "{}", told.out);
    refused(&with(&["--accepted", "5", "--compute-ms", "20"]), "cannot be accepted");
    refused(&with(&["--measured-tok-s", "1000000"]), "its calls alone take");
    refused(&with(&["--dp-attention", "gather"]), "data-parallel attention is not known");
    refused(
        &["step", "--topo", "rtxpro6000x8", "--model", "kimi-k2.5", "--tp", "3"],
        "64 attention",
    );
    refused(
        &["step", "--topo", "rtxpro6000x8", "--model", "kimi-k3000"],
        "did you mean `kimi-k3`?",
    );
    refused(&with(&["--replicas", "2"]), "wants 4 GPUs");
}

#[test]
fn the_cheapest_edits_that_meet_a_target_are_found() {
    let plan = ["plan", "--topo", "h200x2-nvlink-pair", "--fidelity", "alpha_beta"];
    let with = |more: &[&'static str]| [&plan[..], more].concat();
    let as_it_is = done(&with(&["--target", "verify < 100 ms", "--with", "calls=61"]));
    assert!(as_it_is.out.contains("met as it is"), "{}", as_it_is.out);
    let offers = ["--with", "calls=61 = 500", "--with", "calls=10 = 900", "--with", "nps=2 = 5"];
    let run = done(&with(&[&["--target", "verify < 0.1 ms"], &offers[..]].concat()));
    assert!(run.out.contains("met by calls=10"), "{}", run.out);
    let never = done(&with(&["--target", "verify < 0.001 ms", "--with", "calls=61"]));
    assert!(never.out.contains("not met by any"), "{}", never.out);
    refused(&with(&["--target", "verify < fast", "--with", "nps=2"]), "is no target");
    refused(&with(&["--target", "decode > 90 tok/s", "--with", "nps=2"]), "need --compute-ms");
}

#[test]
fn the_best_place_is_no_slower_than_the_own_one() {
    let place = ["place", "--topo", "rtx4090x8-rome", "--ranks", "3", "--bytes", "64K", "--json"];
    let value: Value = serde_json::from_str(&done(&place).out).expect("JSON");
    let us = |which: &str| value["ring"][which]["us"].as_f64().expect("a time");
    assert!(us("best") <= us("own") && us("best") < us("worst"), "{}", value["ring"]);
    // Of 8 GPUs 3 can be chosen 56 ways, each with two rings.
    assert_eq!(value["ring"]["tried"], 112);
    assert_eq!(value["fastest"].as_array().map(Vec::len), Some(11));
    refused(&["place", "--topo", "rtx4090x8-rome", "--ranks", "9"], "9 ranks have no place");
}

#[test]
fn a_list_of_edits_with_a_fault_is_shown_where_it_is() {
    let folder = Folder::new("edit-list");
    let file = folder.file("edits.json");
    let refused_at = |text: &str, place: &str, shown: &str| {
        fs::write(&file, text).expect("writable");
        let edits = format!("@{file}");
        let arguments = ["--topo", "rtxpro6000x8", "--what-if", &edits];
        refused(&arguments, &format!("edits.json:{place}"));
        refused(&arguments, shown);
        refused(&arguments, "a list of edits is such as [\"p2p=off\"");
    };
    refused_at("[\n \"tp=4\",\n 5\n]\n", "3:", " 5");
    refused_at("{\"a\": 1}", "1:", "{\"a\": 1}");
    refused_at("[\"tp=4\"", "1:", "[\"tp=4\"");
}
