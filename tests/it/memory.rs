//! Where does the memory of a GPU go, and do a kernel's buffers explain a KV cache that shrank?

use crate::bless::same_as_file;
use crate::cli::simulate;

#[track_caller]
fn refused(arguments: &[&str], part: &str) {
    let run = simulate(&[&["memory"], arguments].concat());
    assert!(run.code == 2 && run.out.is_empty(), "{arguments:?}: {}", run.out);
    assert!(run.err.contains(part), "no `{part}` in {}", run.err);
}

/// The program with words parted by blanks.
fn memory(words: &str) -> crate::cli::Run {
    let arguments: Vec<&str> = std::iter::once("memory").chain(words.split(' ')).collect();
    simulate(&arguments)
}

#[test]
fn the_share_of_memory_explains_the_lost_cache() {
    // As reported: 10.42 GiB before, 0.90 GiB with the custom all-reduce, batch limit 128.
    let run = memory("--topo rtxpro6000x8 --kv 10.42,0.90 --graph-batch 128 --fraction 0.55");
    assert_eq!(run.code, 0, "{}", run.err);
    same_as_file("tests/data/memory.txt", &run.out);
    // 24 MiB x 0.55 of 9.52 GiB.
    assert!(run.out.contains("0.01 GiB  by buffers beside NCCL's, 0.1 % of it"), "{}", run.out);
    assert!(run.out.contains("0.101 less explains it"), "{}", run.out);
}

#[test]
fn json_adds_up() {
    for engine in ["sglang", "vllm"] {
        let with = "--with custom_v2,flashinfer,flashinfer_pcie_ipc,mscclpp --json";
        let machine = "--topo h200x8-nvswitch --scenario deepseek-v3-tp8";
        let run = memory(&format!("{machine} --engine {engine} {with}"));
        let value: serde_json::Value = serde_json::from_str(&run.out).expect("JSON");
        let budget = |key: &str| value["budget"][key].as_f64().expect("a number");
        let parts = value["buffers"].as_array().expect("a list").iter();
        let parts = parts.flat_map(|one| one["parts"].as_array().expect("a list"));
        let bytes: f64 = parts.map(|part| part["bytes"].as_f64().expect("bytes")).sum();
        assert!((bytes / f64::from(1 << 30) - budget("buffers")).abs() < 1e-9);
        // Everything is somewhere: context, buffers, weights, activations, graphs, cache, rest.
        let used = ["context", "buffers", "weights", "activations", "graphs"].map(budget);
        let rest = ["kv_cache", "spare"].map(|key| value[key].as_f64().expect("a number"));
        let sum = used.iter().chain(&rest).sum::<f64>();
        assert!((sum - budget("total")).abs() < 1e-9, "{engine}: {sum}");
    }
}

#[test]
fn slips_are_refused() {
    let table: [(&[&str], &str); 11] = [
        (&["--scenario", "glm-5-tp8"], "with --weights GIB"),
        (&["--engine", "vlm"], "did you mean `vllm`?"),
        (&["--with", "custom_v3"], "did you mean `custom_v2`?"),
        (&["--with", "custom,custom"], "`custom` is named twice"),
        (&["--fraction", "1.5"], "is no share"),
        (&["--fraction", "NaN"], "is no share"),
        (&["--weights=-1"], "no GiB"),
        (&["--kv", "10.42"], "before and after"),
        (&["--kv", "0.9,10.42"], "must have shrunk"),
        (&["--nccl", "two"], "is no version of NCCL"),
        (&["--graph-batch", "0"], "--graph-batch"),
    ];
    for (more, part) in table {
        refused(&[&["--topo", "rtxpro6000x8"], more].concat(), part);
    }
    refused(&[], "which machine?");
    refused(&["--topo", "rtxpro600x8"], "did you mean `rtxpro6000x8`?");
}

#[test]
fn what_does_not_fit_is_told() {
    let run = memory("--topo rtx4090x8-rome");
    assert!(run.out.contains("the model does not fit"), "{}", run.out);
    let run = memory("--topo h200x2-nvlink-pair --weights 40");
    assert!(run.out.contains("wants 8 GPUs; this machine has 2"), "{}", run.out);
    let run = memory("--topo h200-host-link --weights 40 --with mscclpp");
    assert!(run.code == 0 && run.out.contains("-0.00 GiB  buffers of NCCL"), "{}", run.out);
    let run = memory("--topo rtxpro6000x8 --fraction 0.99");
    assert!(run.out.contains("do not fit beside this share"), "{}", run.out);
}
