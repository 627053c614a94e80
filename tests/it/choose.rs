//! `simulate choose`: does it say what NCCL takes, follow NCCL's variables, and write files that its
//! own readers take back?

use collsim::algorithm::Protocol;
use collsim::algorithm::nccl::{Algorithm, Collective};
use collsim::selection::nccl::{Version, plugin};
use serde_json::Value;

use crate::bless::same_as_file;
use crate::cli::simulate;

/// Two AMD sockets and GPUs of compute capability 12.0: NCCL's search for rings fails.
const FAILS: &str = "rtxpro6000x8";
const SIZE: &str = "14336";

fn json(arguments: &[&str]) -> Value {
    let run = simulate(&[&["choose", "--json", "--sizes", SIZE], arguments].concat());
    assert_eq!(run.code, 0, "{arguments:?}\n{}", run.err);
    serde_json::from_str(&run.out).expect("JSON")
}

/// Algorithm and protocol that NCCL takes.
fn taken(answer: &Value) -> (String, String) {
    let plan = &answer["sizes"][0]["plan"];
    let word = |name: &str| plan[name].as_str().expect("a word").to_owned();
    (word("algorithm"), word("protocol"))
}

#[test]
fn the_failed_search_is_told_and_cured() {
    let ill = json(&["--topo", FAILS]);
    assert_eq!(ill["search_fails"], true);
    assert_eq!(taken(&ill), ("ring".into(), "Simple".into()));
    let cured = json(&["--topo", FAILS, "--cured"]);
    assert_eq!(cured["search_fails"], false);
    assert_eq!(taken(&cured).1, "LL");
    let us = |answer: &Value| {
        let size = &answer["sizes"][0];
        let row = size["taken"].as_u64().expect("an index") as usize;
        size["candidates"][row]["simulated"]["time_us"]["value"].as_f64().expect("simulated")
    };
    assert!(us(&cured) < 0.7 * us(&ill), "{} {}", us(&cured), us(&ill));
}

/// What the wires allow, what the best algorithm gives and what NCCL's choice gives, at the sizes of a
/// decode step, of two verify steps and of prefill: one command, as people see it.
#[test]
fn the_three_numbers_stand_in_one_table() {
    let sizes = "14336,43008,57344,458752,32M";
    let run = simulate(&["choose", "--topo", FAILS, "--sizes", sizes]);
    assert_eq!(run.code, 0, "{}", run.err);
    same_as_file("tests/data/three_numbers.txt", &run.out);
    // They are the sizes of its own accord.
    let rows = |text: &str| text.lines().filter(|line| line.starts_with("43008 ")).count();
    assert_eq!(rows(&run.out), 2, "{}", run.out);
}

#[test]
fn variables_change_the_choice() {
    let quick = ["--topo", "h200x2-nvlink-pair"];
    let with = |variables: &str| json(&[&quick[..], &["--nccl-env", variables]].concat());
    assert_eq!(taken(&with("NCCL_PROTO=Simple")).1, "Simple");
    assert_eq!(taken(&with("NCCL_ALGO=Tree NCCL_PROTO=LL")), ("tree".into(), "LL".into()));
    // Without P2P every hop goes through host memory.
    let by_host = with("NCCL_P2P_DISABLE=1");
    let hop = &by_host["ring_hops"][0][0];
    assert!(hop["transport"]["shm"].is_object(), "{hop}");
    assert_eq!(by_host["channels"], 4);
    assert_eq!(with("NCCL_MAX_NCHANNELS=2")["channels"], 2);
}

/// What stands for NCCL's choice, in words: its title, or why nothing does.
fn told(arguments: &[&str]) -> String {
    let run = simulate(&[&["choose", "--sizes", "16M"], arguments].concat());
    assert_eq!(run.code, 0, "{arguments:?}\n{}", run.err);
    run.out
}

#[test]
fn every_transport_is_told_hop_by_hop_and_timed_or_refused() {
    let pair = ["--topo", "h200x2-nvlink-pair", "--nccl-env"];
    let with = |variables| told(&[&pair[..], &[variables]].concat());
    let known = [
        ("NCCL_P2P_USE_CUDA_MEMCPY=1", "via P2P/CUMEM/CE", "Ring Simple, copy engine"),
        ("NCCL_P2P_DISABLE=1 NCCL_NVLS_ENABLE=0", "via SHM/direct/direct", "Ring Simple, SHM "),
        (
            "NCCL_P2P_DISABLE=1 NCCL_NVLS_ENABLE=0 NCCL_SHM_USE_CUDA_MEMCPY=1",
            "via SHM/CE/direct",
            "Ring Simple, SHM, copy engine",
        ),
        (
            "NCCL_P2P_DISABLE=1 NCCL_NVLS_ENABLE=0 NCCL_SHM_USE_CUDA_MEMCPY=1 \
             NCCL_SHM_MEMCPY_MODE=3",
            "via SHM/CE/CE",
            "Ring Simple, SHM, copy engine",
        ),
        // NVLS has no hops: nothing of it goes through host memory.
        ("NCCL_P2P_DISABLE=1 NCCL_ALGO=NVLS", "via SHM/direct/direct", "NVLS Simple  "),
    ];
    for (variables, hop, title) in known {
        let text = with(variables);
        assert!(text.contains(hop) && text.contains(title), "{variables}\n{text}");
        assert!(!text.contains("not modelled"), "{variables}\n{text}");
    }
    // Nothing is left where no NIC is; where there are NICs, no schedule stands for them, and why.
    let none = "NCCL_P2P_DISABLE=1 NCCL_NVLS_ENABLE=0 NCCL_SHM_DISABLE=1";
    let failing = with(none);
    assert!(failing.contains("rank 0 has no way to rank 1: NCCL would fail"), "{failing}");
}

#[test]
fn written_files_are_read_back() {
    let folder = std::env::temp_dir().join(format!("collsim-choose-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let place = |name: &str| folder.join(name).to_str().expect("UTF-8").to_owned();
    let (graph, topo, tuner) = (place("graph.xml"), place("topo.xml"), place("tuner.csv"));
    let files = ["--write-graph", &graph, "--write-topo", &topo, "--write-tuner", &tuner];
    json(&[&["--topo", FAILS][..], &files].concat());
    // Either file cures the search.
    for variable in [format!("NCCL_GRAPH_FILE={graph}"), format!("NCCL_TOPO_FILE={topo}")] {
        let cured = json(&["--topo", FAILS, "--nccl-env", &variable]);
        assert_eq!(cured["search_fails"], false, "{variable}");
        assert_eq!(taken(&cured).1, "LL", "{variable}");
    }
    let text = std::fs::read_to_string(&tuner).expect("written");
    let rules = plugin::read("tuner.csv", &text).expect("sound");
    let rule = rules
        .iter()
        .find(|rule| rule.fits(Collective::AllReduce, 14_336, 1, 8))
        .expect("a rule for the size");
    assert_ne!((rule.algorithm, rule.protocol), (Algorithm::Ring, Protocol::Simple));
    // Every other call has a rule too, or it would be given one channel.
    for (collective, name) in Collective::ALL {
        let covered = rules.iter().any(|rule| rule.fits(collective, 1 << 20, 1, 8));
        assert!(covered, "{name}");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_version_newer_than_any_known_is_told() {
    let page = |version| {
        let arguments = ["choose", "--topo", "h200x2-nvlink-pair", "--sizes", SIZE];
        simulate(&[&arguments[..], &["--nccl", version]].concat()).out
    };
    let known = Version::NEWEST;
    assert!(page("9.9").contains(&format!("taken as NCCL {known}")));
    assert!(!page(&known.to_string()).contains("taken as NCCL"));
}

#[test]
fn slips_are_refused() {
    let refused = |arguments: &[&str], part: &str| {
        let run = simulate(&[&["choose"], arguments].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}\n{}", run.err);
        assert!(run.err.contains(part), "no `{part}` in\n{}", run.err);
    };
    let pair = "h200x2-nvlink-pair";
    refused(&[], "which machine?");
    refused(&["--topo", pair, "--nccl", "two"], "no version of NCCL");
    refused(&["--topo", pair, "--nccl-env", "NCCL_PROT=LL"], "did you mean `NCCL_PROTO`?");
    refused(&["--topo", pair, "--nccl-env", "NCCL_TOPO_FILE=/nowhere.xml"], "no such file");
    refused(&["--topo", pair, "--collective", "all_to_all"], "grouped sends and receives");
    refused(&["--topo", pair, "--cured"], "nothing to cure");
    refused(&["--topo", pair, "--sizes", "0"], "0 bytes");
    refused(&["--topo", pair, "--numa-per-socket", "3"], "NUMA nodes");
    refused(&["--topo", "h200-host-link"], "one GPU");
    refused(&["--topo", pair, "--gpus", "1"], "");
}

#[test]
fn variables_that_help_are_told_and_no_others() {
    let told = |machine: &str, more: &[&str]| -> Vec<(String, f64)> {
        let arguments = ["choose", "--json", "--sizes", "14336", "--topo", machine];
        let run = simulate(&[&arguments, more].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        let page: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        let rows = page["environments"].as_array().expect("a list");
        let us = |row: &serde_json::Value| row["sizes"][0]["time_us"]["value"].as_f64();
        let name = |row: &serde_json::Value| row["variables"].as_str().expect("text").to_owned();
        rows.iter().map(|row| (name(row), us(row).expect("a time"))).collect()
    };
    // The search fails there, and pairs across root ports are staged in host memory: both are mended.
    let rows = told("rtxpro6000x8", &[]);
    let best = "NCCL_P2P_LEVEL=SYS NCCL_ALGO=Ring NCCL_PROTO=LL";
    assert_eq!(rows.iter().map(|row| row.0.as_str()).collect::<Vec<&str>>(), ["", best]);
    assert!(rows[1].1 < 0.5 * rows[0].1, "{rows:?}");
    // It is the row of the first screen, which says the same.
    let screen = simulate(&["--topo", "rtxpro6000x8"]).out;
    assert!(screen.contains(&format!("NCCL takes ring LL with {best}")), "{screen}");
    let own = simulate(&["--topo", "rtxpro6000x8", "--json"]).out;
    assert!(own.contains("\"staged\": true"), "says why");
    // With them set nothing is left to gain, nor where the driver lets no GPU address another.
    assert_eq!(told("rtxpro6000x8", &["--nccl-env", best]), []);
    let disabled = told("rtxpro6000x8", &["--nccl-env", "NCCL_P2P_DISABLE=1"]);
    assert!(disabled.iter().all(|row| !row.0.contains("NCCL_P2P_LEVEL")), "{disabled:?}");
    // A made-up bus id is told as such.
    let folder = std::env::temp_dir().join(format!("collsim-bus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("topo.xml");
    let file = file.to_str().expect("UTF-8");
    let arguments = ["choose", "--topo", "rtxpro6000x8", "--sizes", "1K", "--write-topo", file];
    let run = simulate(&arguments);
    assert!(run.err.contains("its bus ids are made up"), "{}", run.err);
    std::fs::remove_dir_all(&folder).expect("it is ours");
}
