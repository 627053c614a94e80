//! Does every command that predicts take constants of the user's own, and does none of them ignore them?

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use collsim::fabric::Calibration;

use crate::bless::file_text;
use crate::cli::simulate;
use crate::inputs::Root;
use crate::plans::ring;

/// A machine that is quick to simulate.
const QUICK: &str = "h200x2-nvlink-pair";
const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/measured/h200x2-probe");

/// A command that predicts, and what else it is given; `OUT` stands for a file that it writes.
type Line<'a> = (&'a str, Vec<&'a str>);

/// Commands that predict nothing: they refuse the flag.
const OTHERS: [&str; 14] = [
    "edits",
    "import",
    "scenarios",
    "sweep cheapest",
    "sweep csv",
    "sweep effects",
    "sweep merge",
    "sweep pareto",
    "sweep plan",
    "sweep status",
    "topo check",
    "topo convert",
    "trace show",
    "topo list",
];

fn lines<'a>(plan: &'a str, question: &'a str, schedule: &'a str, root: &'a str) -> Vec<Line<'a>> {
    let flags = &["--machine", "h200-one-link", "--experiment", "flag"][..];
    let topo = |more: &[&'a str]| [&["--topo", QUICK], more].concat();
    vec![
        ("", topo(&["-b", "1K"])),
        ("", topo(&["-b", "1K", "--json"])),
        ("", topo(&["-b", "1K", "--what-if", "nps=2"])),
        ("ask", vec![question]),
        ("calibrate", [&["--fit", "gpu/h200/fence"], flags].concat()),
        ("check", [&["--format", "csv"], flags].concat()),
        ("choose", topo(&["--sizes", "14336"])),
        ("choose", topo(&["--sizes", "14336", "--engine", "vllm"])),
        ("compare", vec![QUICK, QUICK, "-b", "1K"]),
        ("constants", vec!["h200"]),
        ("experts", topo(&["--tokens", "1"])),
        ("here", vec!["--root", root]),
        ("memory", topo(&[])),
        ("place", topo(&["--bytes", "16"])),
        ("plan", topo(&["--target", "decode < 0.01 ms", "--with", "nps=2"])),
        ("plot", [&["step"], &topo(&[])[..]].concat()),
        ("plot", [&["peers"], &topo(&[])[..]].concat()),
        ("replay", [&[TRACES, "--only", "ring_ll host 14336 even"], &topo(&[])[..]].concat()),
        ("report", topo(&["-b", "1K", "--algo", "ring"])),
        ("schedule", [&[schedule], &topo(&[])[..]].concat()),
        ("sensitivity", topo(&["--fidelity", "alpha_beta"])),
        ("step", topo(&["--model", "llama-70b", "--tp", "2"])),
        ("sweep run", vec![plan, "--out", "OUT"]),
        ("topo show", vec![QUICK]),
    ]
}

/// Names of all commands, those below others with the name of the upper one before.
fn commands(above: &[&str]) -> Vec<String> {
    let run = simulate(&[above, &["--help"]].concat());
    let list = run.out.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let mut found = Vec::new();
    for line in list.take_while(|line| line.starts_with("  ")) {
        let Some(name) = line.split_whitespace().next().filter(|name| *name != "help") else {
            continue;
        };
        let below = commands(&[above, &[name]].concat());
        match below.is_empty() {
            true => found.push([above, &[name]].concat().join(" ")),
            false => found.extend(below),
        }
    }
    found
}

/// A folder of one test's own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn file(&self, name: &str, text: &str) -> String {
        let file = self.0.join(name);
        fs::write(&file, text).expect("writable");
        file.to_str().expect("UTF-8").to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn folder() -> Folder {
    let path = std::env::temp_dir().join(format!("collsim-constants-{}", std::process::id()));
    fs::create_dir_all(&path).expect("a folder");
    Folder(path)
}

/// Every latency half as long again, and less memory.
fn slower() -> String {
    let calibration = Calibration::embedded().expect("embedded");
    let mut rows = Vec::new();
    for (class, device, name, constant) in calibration.iter() {
        let by = match constant.unit.as_str() {
            "ns" => 1.5,
            "GiB" => 0.75,
            _ => continue,
        };
        let value = constant.value * by;
        rows.push(serde_json::json!({
            "name": format!("{}/{device}/{name}", class.word()),
            "constant": {"value": value, "unit": constant.unit, "source": "a test",
                         "confidence": "estimated"},
        }));
    }
    serde_json::json!({"schema_version": 1, "constants": rows}).to_string()
}

/// What a line says, and writes.
fn said(folder: &Folder, (command, rest): &Line<'_>, more: &[&str]) -> String {
    let out = folder.0.join("out").to_str().expect("UTF-8").to_owned();
    let words = command.split_whitespace().chain(rest.iter().copied()).chain(more.iter().copied());
    let words: Vec<&str> = words.map(|word| if word == "OUT" { &out } else { word }).collect();
    let run = simulate(&words);
    // A check whose constants are wrong is outside its tolerance.
    assert!(run.code == 0 || *command == "check" && run.code == 1, "{words:?}: {}", run.err);
    let written = fs::read_to_string(&out).unwrap_or_default();
    let _ = fs::remove_file(&out);
    run.out + &written
}

#[test]
fn commands_that_predict_use_the_constants_that_they_are_given() {
    let folder = folder();
    let own = folder.file("own.json", &slower());
    let plan = serde_json::json!({
        "schema_version": 1, "machines": [QUICK], "scenario": "kimi-k25-tp8", "sizes": [1024],
        "algorithms": ["ring:LL"], "network_model": "alpha_beta",
    });
    let plan = folder.file("plan.json", &plan.to_string());
    let schedule = folder.file("ring.xml", &ring(2, "LL"));
    let root = Root::four("constants", |_, _| {});
    let side = |edits: &str| serde_json::json!({"name": edits, "machine": QUICK, "edits": edits});
    let question = serde_json::json!({
        "schema_version": 1, "name": "q", "question": "?", "scenario": "kimi-k25-tp8",
        "sizes": [1024], "network_model": "alpha_beta", "sides": [side("nps=1"), side("nps=2")],
    });
    let question = folder.file("question.json", &question.to_string());
    let lines = lines(&plan, &question, &schedule, root.path());
    let mut wrong = String::new();
    for line in &lines {
        let name = format!("{} {}", line.0, line.1.join(" "));
        if said(&folder, line, &[]) == said(&folder, line, &["--calibration", &own]) {
            let _ = writeln!(wrong, "{name}: says the same with other constants");
        }
        let words: Vec<&str> = line.0.split_whitespace().chain(line.1.iter().copied()).collect();
        let run = simulate(&[&words[..], &["--calibration", "/nowhere/own.json"]].concat());
        if run.code != 2 || !run.err.contains("/nowhere/own.json") {
            let _ = writeln!(wrong, "{name}: a file that is not there: {} {}", run.code, run.err);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    let mut known: Vec<&str> = lines.iter().map(|line| line.0).chain(OTHERS).collect();
    known.sort_unstable();
    known.dedup();
    let mut all = [vec![String::new()], commands(&[])].concat();
    all.sort_unstable();
    assert_eq!(known, all, "every command is in one of the two lists");
}

#[test]
fn commands_that_predict_nothing_refuse_constants() {
    for command in OTHERS {
        let words: Vec<&str> = command.split_whitespace().collect();
        let run = simulate(&[&words[..], &["--calibration", "own.json"]].concat());
        let told = run.err.contains("unexpected argument '--calibration'");
        assert!(run.code == 2 && told, "{command}: {} {}", run.code, run.err);
    }
    for name in ["list", "gallery"] {
        let run = simulate(&["plot", name, "--calibration", "own.json"]);
        assert!(run.code == 2 && run.err.contains("own machines and constants"), "{}", run.err);
    }
}

/// What is written of the inputs names the constants that were used.
#[test]
fn the_hash_is_of_the_constants_used() {
    let folder = Folder(std::env::temp_dir().join(format!("collsim-hash-{}", std::process::id())));
    fs::create_dir_all(&folder.0).expect("a folder");
    let own = folder.file("own.json", &slower());
    let hash = |more: &[&str]| {
        let run = simulate(&[&["--topo", QUICK, "-b", "1K", "--json"], more].concat());
        let value: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        value["inputs"]["calibration_fnv1a"].as_str().expect("a hash").to_owned()
    };
    assert_ne!(hash(&[]), hash(&["--calibration", &own]));
}

/// Commands get constants from one place, so that a new one cannot forget the flag.
#[test]
fn constants_are_loaded_in_one_place() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli");
    for entry in fs::read_dir(folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let text = file_text(&format!("src/cli/{name}"));
        let loads = text.contains("Calibration::embedded") || text.contains("calibration_json::l");
        assert!(!loads || name == "load.rs", "src/cli/{name}: load::calibration gives constants");
    }
}
