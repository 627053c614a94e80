//! Does every flag and edit that a command takes change its answer, and is the rest refused?

use collsim::workload::edit::KINDS;

use crate::cli::{refused, simulate};

/// A machine that is quick to simulate.
const QUICK: &str = "h200x2-nvlink-pair";

const STEP: [&str; 5] = ["step", "--topo", QUICK, "--model", "kimi-k2.5"];

#[test]
fn a_step_does_or_refuses_every_edit_of_the_calls() {
    // One algorithm is quick.
    let only = "algorithm=ring";
    let plain = simulate(&[&STEP[..], &["--tp", "2", "--what-if", only]].concat());
    assert_eq!(plain.code, 0, "{}", plain.err);
    for kind in KINDS {
        let edit = match kind.name {
            "batch" => "batch=4",
            "drafts" => "drafts=1",
            "dtype" => "dtype=fp8",
            "calls" => "calls=5",
            "beside" => "beside=ring",
            "tp" => "tp=4",
            other => panic!("an edit that nobody tries: {other}"),
        };
        let run =
            simulate(&[&STEP[..], &["--tp", "2", "--what-if", only, "--what-if", edit]].concat());
        // The heading names the edit; what stands below it has to differ, too.
        let figures = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        let same = run.code == 0 && figures(&run.out) == figures(&plain.out);
        assert!(!same && (run.code == 0) == run.err.is_empty(), "{edit}: {}{}", run.out, run.err);
    }
    // An edit of the layout is its option.
    let edited =
        simulate(&[&STEP[..], &["--what-if", "tp=2; batch=4; drafts=0; algorithm=ring"]].concat());
    let asked = ["--tp", "2", "--batch", "4", "--drafts", "0", "--what-if", only];
    let asked = simulate(&[&STEP[..], &asked].concat());
    assert_eq!((edited.code, edited.out), (0, asked.out), "{}", edited.err);
    let step = |more: &[&str], part: &str| refused(&[&STEP[..], more].concat(), &[part]);
    step(&["--tp", "2", "--batch", "8", "--what-if", "batch=4"], "--batch says something else");
    step(&["--tp", "2", "--what-if", "calls=5"], "a model makes its calls by its layers");
    step(&["--what-if", "gpus=0,1"], "2 GPUs are named for TP 8");
}

#[test]
fn ranks_divide_heads_and_experts_wherever_they_are_told() {
    let eight = ["--topo", "rtxpro6000x8"];
    let heads = ["64 attention heads", "ranks must divide them: 2, 4, 8, 16"];
    refused(&[&eight[..], &["--what-if", "tp=3"]].concat(), &heads);
    let target = ["plan", "--target", "verify < 2 ms", "--with", "tp=3"];
    let plan = simulate(&[&target[..], &eight[..], &["--fidelity", "alpha_beta"]].concat());
    assert!(plan.out.contains(heads[0]) || plan.err.contains(heads[0]), "{}", plan.out);
    refused(&["sensitivity", "--topo", "rtxpro6000x8", "--what-if", "tp=3"], &heads);
    let experts = ["256 experts", "ranks must divide them"];
    refused(&["experts", "--topo", "h200x8-nvswitch", "--gpus", "0,1,2"], &experts);
    let apart = ["--tp", "3", "--dp-attention", "all_to_all", "--model", "deepseek-v3"];
    refused(&[&["step"], &eight[..], &apart].concat(), &experts);
}

/// Command lines with a flag that another one leaves without effect, and what is told.
const IGNORED: &[(&str, &str)] = &[
    ("--topo QUICK --assume gpu=h200 --assume gpu=b200", "state two things of one"),
    ("choose --topo QUICK --nccl-env NCCL_ALGO=Ring --nccl-env NCCL_ALGO=Tree", "is set twice"),
    (
        "plan --topo QUICK --target verify~<~2~ms --compute-ms 5 --with nps=2",
        "--compute-ms is of tok/s",
    ),
    ("--topo QUICK -b 1K -e 2K --calls 3", "--calls is for steps"),
    ("--topo QUICK --what-if nps=2 -b 1K --calls 3", "--calls is for steps"),
    ("--topo QUICK --stop-after fabric --explain", "--explain changes nothing"),
    ("--topo QUICK --stop-after topology --algo ring", "--algo changes nothing"),
    ("--topo QUICK --stop-after schedule -b 1K -e 2K", "-e changes nothing"),
    ("--topo QUICK --seed 3", "add --explain or --json"),
    ("--topo QUICK --gpus ,", "is no GPU"),
    ("--topo QUICK --gpus 0,,1", "is no GPU"),
    ("plot time --topo QUICK --seed 3", "--seed is for a prediction"),
    ("plot time --topo QUICK --calls 3", "--calls changes nothing"),
    ("plot step --topo QUICK -b 1K", "-b changes nothing"),
    ("plot machine --topo QUICK --fidelity max_min", "--fidelity changes nothing"),
    ("step --topo QUICK --tp 2 --model kimi-k2.5 --batches 4", "add --compute-ms"),
    ("step --topo QUICK --tp 2 --model kimi-k2.5 --accepted 2", "add --compute-ms"),
    ("--topo QUICK --what-if calls=5;calls:decode=7", "two edits of one thing"),
];

/// Command lines with a figure or a name that nobody can mean, and what is told.
const ABSURD: &[(&str, &str)] = &[
    ("--topo QUICK --beside 1,1=ring", "GPU 1 is named twice"),
    ("--topo QUICK --what-if nic:n0=nope@root0", "is no adapter model the calibration knows"),
    ("--topo QUICK --what-if nic:n0=connectx7@root0", "did you mean `connectx-7`?"),
    ("step --topo QUICK --tp 2 --model kimi-k2.5 --compute-ms 1e300", "up to 1e9"),
    ("step --topo QUICK --tp 2 --model kimi-k2.5 --busbw 1e300", "rates are 1e-6 to 1e6 GB/s"),
    ("step --topo QUICK --tp 2 --model kimi-k2.5 --batches 0 --compute-ms 9", "1..=65536"),
    ("plan --topo QUICK --target verify~<~1e300~ms --with nps=2", "up to 1e9"),
    ("plan --topo QUICK --target verify~<~-1~ms --with nps=2", "a number above 0"),
    ("choose --topo QUICK --engine vllm@0.9.9", "they were read in 0.11 to 0.33"),
    // What looks like a flag is told as the value that it is.
    ("--topo QUICK --calls -1", "-1 is not in 1..=1000000"),
    ("step --topo QUICK --model kimi-k2.5 --compute-ms -1.5", "`-1.5` is no number above 0"),
    ("sweep cheapest rows.jsonl --bytes 8 --most-us -3", "`-3` is no time"),
    ("--topo QUICK --what-if batch=0", "such as batch=1"),
    ("--topo rtxpro6000x8 --what-if bridge:gpu0-gpu1=nv4", "GPUs with NVLink: "),
    ("--topo rtxpro6000x8 --assume gpu=l40s", "the nearest of these, or"),
];

#[test]
fn what_has_no_effect_and_what_nobody_means_is_refused() {
    for (line, part) in IGNORED.iter().chain(ABSURD) {
        let words = line.replace("QUICK", QUICK);
        let words: Vec<String> = words.split(' ').map(|word| word.replace('~', " ")).collect();
        refused(&words.iter().map(String::as_str).collect::<Vec<_>>(), &[part]);
    }
    // Once is not twice, and a seed is for what draws.
    for line in ["--assume gpu=h200 --assume gpu=h200", "--seed 3 --json", "--seed 3 --explain"] {
        let words: Vec<&str> = ["--topo", QUICK].into_iter().chain(line.split(' ')).collect();
        assert_eq!(simulate(&words).code, 0, "{line}");
    }
}

#[test]
fn pictures_of_pairs_and_errors_refuse_what_is_of_calls() {
    let flags = ["--algo ring", "--proto LL", "--blocks 3", "--calls 7", "--gpus 1,0", "-b 64K"];
    for kind in ["peers", "errors"] {
        for flag in flags {
            let words: Vec<&str> = flag.split(' ').collect();
            let told = format!("{} changes nothing of the picture `{kind}`", words[0]);
            refused(&[&["plot", kind, "--topo", QUICK], &words[..]].concat(), &[&told]);
        }
    }
}

#[test]
fn a_newer_engine_is_told_whose_rules_were_taken() {
    let run = simulate(&["choose", "--topo", QUICK, "--engine", "vllm@9", "-b", "8K"]);
    let told = "vLLM 9.0 was not read: the rules of 0.33 are taken, unchecked";
    assert!(run.code == 0 && run.out.contains(told), "{}{}", run.out, run.err);
}

/// Files in a folder of their own, which is gone at the end.
fn with_file(name: &str, text: &str, with: impl Fn(&str)) {
    let folder = std::env::temp_dir().join(format!("collsim-flags-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(name);
    std::fs::write(&file, text).expect("written");
    with(&file.to_string_lossy());
    std::fs::remove_dir_all(folder).expect("gone");
}

#[test]
fn files_with_what_nobody_means_are_refused() {
    let scenario = |beside: &str| {
        format!(
            "{{\"schema_version\": 1, \"name\": \"s\", \"tensor_parallel\": 2, \"steps\": [{{\"name\": \"decode\", \
             \"calls\": 2, \"bytes\": 14336}}], \"beside\": [{beside}]}}"
        )
    };
    let twice = scenario("{\"traffic\": \"ring\", \"gpus\": [1, 1]}");
    let many = scenario(&["{\"traffic\": \"d2h\"}"; 65].join(", "));
    for (text, part) in [(twice, "GPU 1 is named twice"), (many, "64 at most")] {
        with_file("s.json", &text, |file| {
            refused(&["--topo", QUICK, "--scenario", file], &[part, "s.json:1:"]);
        });
    }
    let ring = include_str!("../fuzz/seeds/ring.msccl.xml");
    for (from, to, part) in [
        ("nchannels=\"1\"", "nchannels=\"4294967295\"", "1 to 64"),
        ("i_chunks=\"3\"", "i_chunks=\"-3\"", "no number that i_chunks can be"),
    ] {
        assert!(ring.contains(from), "{ring}");
        let once = ring.replacen(from, to, 1);
        with_file("ring.xml", &once, |file| refused(&["schedule", file, "--topo", QUICK], &[part]));
    }
    with_file("ring.xml", ring, |file| {
        let told = |sizes: &str, part: &str| {
            refused(&["schedule", file, "--topo", "a100-pcie-x4", "--sizes", sizes], &[part]);
        };
        told("0", "1 byte to 1024G a call");
        told("1024G", "more than one schedule moves");
    });
    let goal = include_str!("../fuzz/seeds/pair.goal");
    with_file("pair.goal", goal, |file| {
        refused(&["schedule", file, "--topo", QUICK, "--sizes", "4M"], &["drop --sizes"]);
    });
    let row = "{\"case\":0,\"algorithm\":\"ring\",\"bytes\":8,\"us\":-5}";
    let error = serde_json::from_str::<collsim::sweep::rows::Row>(row).expect_err("no time");
    assert!(error.to_string().contains("-5 us is no time"), "{error}");
    let log = "INFO vllm: Initializing a V1 LLM engine, tensor_parallel_size=8\n";
    with_file("vllm.log", log, |file| {
        refused(&["check", "--from", file, "--topo", QUICK], &["`simulate trace show FILE`"]);
    });
    let kernels = include_str!("../fuzz/seeds/kernels.nsys.csv");
    with_file("nsys.csv", kernels, |file| {
        refused(&["--topo", QUICK, "--scenario", file], &["`simulate import", "-o FILE.json"]);
    });
}
