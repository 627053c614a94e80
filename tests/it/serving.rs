//! Which implementation a serving engine takes, and what it says of those it refuses: every rule of
//! `calibration/serving.json` refuses something here.

use std::collections::BTreeSet;
use std::fmt::Write;

use collsim::algorithm;
use collsim::fabric::{Calibration, DeviceClass};
use collsim::selection::gpu::Capability;
use collsim::selection::serving::{Dispatch, Facts, Needs, Query, Rule, Rules, Version};

use collsim::workload::Collective;

use crate::bless::same_as_file;
use crate::rig::topology;

/// Algorithms that the rules name and no schedule replays.
const NOT_REPLAYED: [&str; 1] = ["quick_reduce"];

/// Kernels that the rules name and `calibration/libraries.json` does not know.
const NO_KERNEL: [&str; 1] = ["quick_reduce"];

fn rules() -> Rules {
    Rules::embedded().expect("embedded")
}

fn facts(machine: &str, gpus: u32) -> Facts {
    let calibration = Calibration::embedded().expect("embedded");
    let gpus: Vec<u32> = (0..gpus).collect();
    Facts::of(&topology(machine), &calibration, &gpus).expect("known GPUs")
}

/// `vllm 0.11 VLLM_X=1`: an engine, perhaps a version, perhaps settings.
fn ask(engine: &str, facts: &Facts, bytes: u64, dtype: &str) -> Dispatch {
    let mut words = engine.split(' ');
    let name = words.next().expect("an engine");
    let rest: Vec<&str> = words.collect();
    let version = rest.first().copied().filter(|word| Version::parse(word).is_ok());
    let settings: Vec<String> =
        rest.iter().skip(version.iter().count()).map(|&word| word.to_owned()).collect();
    let query = Query { engine: name, version, settings: &settings, bytes, dtype };
    rules().dispatch(&query, facts).expect("an answer")
}

/// Engine with settings, machine, GPUs, bytes, and which implementation runs which algorithm.
const CHOSEN: &[(&str, &str, u32, u64, &str, &str)] = &[
    // Eight PCIe GPUs: NCCL, whatever the size, until somebody asks for a kernel made for PCIe.
    ("vllm", "rtxpro6000x8", 8, 14_336, "nccl", "ring"),
    ("vllm", "rtxpro6000x8", 8, 32 << 20, "nccl", "ring"),
    ("sglang", "rtxpro6000x8", 8, 14_336, "nccl", "ring"),
    ("tensorrt_llm", "rtxpro6000x8", 8, 14_336, "nccl", "ring"),
    ("vllm VLLM_ENABLE_PCIE_ALLREDUCE=1", "rtxpro6000x8", 8, 57_344, "custom", "one_shot_pull"),
    ("vllm VLLM_ENABLE_PCIE_ALLREDUCE=1", "rtxpro6000x8", 8, 57_360, "nccl", "ring"),
    (
        "vllm VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC=1",
        "rtxpro6000x8",
        8,
        14_336,
        "flashinfer_pcie_ipc",
        "one_shot_push",
    ),
    (
        "vllm VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC=1",
        "rtxpro6000x8",
        8,
        43_008,
        "flashinfer_pcie_ipc",
        "staged_ring",
    ),
    (
        "sglang SGLANG_ENABLE_PCIE_IPC_ALLREDUCE=1",
        "rtxpro6000x8",
        8,
        14_336,
        "flashinfer_pcie_ipc",
        "one_shot_push",
    ),
    (
        "sglang --enable-pcie-oneshot-allreduce",
        "rtxpro6000x8",
        8,
        43_008,
        "pcie_oneshot",
        "one_shot_push",
    ),
    ("sglang --enable-mscclpp", "rtxpro6000x8", 8, 14_336, "mscclpp", "two_shot_push"),
    // Two PCIe GPUs may read each other.
    ("vllm", "rtx6000ada-x2-pcie", 2, 14_336, "custom", "one_shot_pull"),
    ("sglang", "rtx6000ada-x2-pcie", 2, 8 << 20, "custom", "one_shot_pull"),
    // NVSwitch boards. Custom all-reduce: one-shot below 256 KB on 8 GPUs; its limit is 256 KB there
    // too, and torch symmetric memory takes the rest below 64 MB.
    ("vllm 0.11", "h100x8-nvswitch", 8, 14_336, "custom", "one_shot_pull"),
    ("vllm 0.11", "h100x8-nvswitch", 8, 262_128, "custom", "one_shot_pull"),
    ("vllm 0.11", "h100x8-nvswitch", 8, 262_144, "torch_symmetric_memory", "nvls"),
    ("vllm 0.11", "h100x8-nvswitch", 8, 64 << 20, "nccl", "ring"),
    (
        "vllm 0.11 VLLM_ALLREDUCE_USE_SYMM_MEM=0",
        "h100x8-nvswitch",
        8,
        262_144,
        "custom",
        "two_shot_pull",
    ),
    ("vllm", "h100x8-nvswitch", 8, 14_336, "flashinfer", "one_shot_push"),
    (
        "vllm 0.11 VLLM_USE_NCCL_SYMM_MEM=1",
        "h100x8-nvswitch",
        8,
        1 << 20,
        "nccl_symmetric_memory",
        "nvls",
    ),
    ("vllm", "a100x8-nvswitch", 8, 14_336, "custom", "one_shot_pull"),
    ("vllm", "a100x8-nvswitch", 8, 1 << 20, "custom", "two_shot_pull"),
    // SGLang's second kernel: pushes up to 128 KB on 8 Hopper GPUs, 384 KB on 4, 256 KB on 8 B200.
    ("sglang", "h200x8-nvswitch", 8, 128 << 10, "custom_v2", "one_shot_push"),
    ("sglang", "h200x8-nvswitch", 8, (128 << 10) + 16, "custom_v2", "two_shot_pull_push"),
    ("sglang", "h200x8-nvswitch", 4, 384 << 10, "custom_v2", "one_shot_push"),
    ("sglang", "b200x8-nvswitch", 8, 256 << 10, "custom_v2", "one_shot_push"),
    ("sglang", "b200x8-nvswitch", 8, 1 << 20, "custom_v2", "two_shot_push"),
    (
        "sglang SGLANG_OPT_USE_CUSTOM_ALL_REDUCE_V2=0",
        "h200x8-nvswitch",
        8,
        14_336,
        "custom",
        "one_shot_pull",
    ),
    ("sglang --enable-mscclpp", "h200x8-nvswitch", 8, 14_336, "mscclpp", "nvls_packet"),
    (
        "sglang --disable-custom-all-reduce --enable-torch-symm-mem",
        "h200x8-nvswitch",
        8,
        1 << 20,
        "torch_symmetric_memory",
        "nvls",
    ),
    ("tensorrt_llm", "h100x8-nvswitch", 8, 499_984, "one_shot", "one_shot_push"),
    ("tensorrt_llm", "h100x8-nvswitch", 8, 500_000, "two_shot", "two_shot_pull_push"),
    ("tensorrt_llm allreduce_strategy=NCCL", "h100x8-nvswitch", 8, 14_336, "nccl", "ring"),
    ("mscclpp", "h100x8-nvswitch", 8, 14_336, "nvls_packet", "nvls_packet"),
    ("mscclpp", "rtxpro6000x8-flat", 8, 14_336, "allpair_packet", "allpair_packet"),
    ("mscclpp", "rtxpro6000x8-flat", 8, 43_008, "packet", "two_shot_push"),
];

#[test]
fn engines_take_what_their_rules_leave() {
    for &(engine, machine, gpus, bytes, name, algorithm) in CHOSEN {
        let dispatch = ask(engine, &facts(machine, gpus), bytes, "bf16");
        let place = format!("{engine} {machine} {gpus} {bytes}");
        let chosen = dispatch.chosen.unwrap_or_else(|| panic!("{place}: none"));
        let verdict = &dispatch.candidates[chosen];
        assert_eq!(
            (verdict.name.as_str(), verdict.algorithm.as_str()),
            (name, algorithm),
            "{place}"
        );
    }
}

/// Questions that make every rule refuse once, beside those of [`CHOSEN`].
const ASKED: &[(&str, &str, u32, u64, &str)] = &[
    ("vllm", "rtxpro6000x8", 8, 14_336, "bf16"),
    ("vllm 0.11", "rtxpro6000x8", 8, 14_336, "bf16"),
    ("vllm 0.11 VLLM_USE_NCCL_SYMM_MEM=1", "h100x8-nvswitch", 8, 14_336, "bf16"),
    ("vllm VLLM_USE_NCCL_SYMM_MEM=1", "h100x8-nvswitch", 8, 65_536, "bf16"),
    ("vllm VLLM_USE_NCCL_SYMM_MEM=1", "rtxpro6000x8", 3, 14_330, "fp16"),
    ("vllm VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC=1", "rtxpro6000x8", 3, 14_330, "bf16"),
    ("vllm VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC=1", "rtxpro6000x8", 8, 112, "bf16"),
    ("vllm VLLM_ALLREDUCE_USE_FLASHINFER=0", "h100x8-nvswitch", 6, 128 << 20, "bf16"),
    ("vllm VLLM_ALLREDUCE_USE_SYMM_MEM=0", "h100x8-nvswitch", 8, 128 << 20, "bf16"),
    ("vllm --disable-custom-all-reduce", "h100x8-nvswitch", 8, 14_336, "bf16"),
    ("vllm VLLM_ENABLE_PCIE_ALLREDUCE=1", "rtxpro6000x8", 8, 1 << 20, "bf16"),
    ("sglang", "rtxpro6000x8", 3, 14_330, "bf16"),
    ("sglang SGLANG_ENABLE_PCIE_IPC_ALLREDUCE=1", "rtxpro6000x8", 8, 112, "fp16"),
    ("sglang --enable-pcie-oneshot-allreduce", "rtxpro6000x8", 8, 1 << 20, "bf16"),
    ("sglang --enable-mscclpp", "rtxpro6000x8", 8, 4 << 20, "bf16"),
    (
        "sglang --enable-mscclpp SGLANG_ENABLE_PCIE_IPC_ALLREDUCE=1",
        "rtxpro6000x8",
        8,
        14_336,
        "bf16",
    ),
    ("sglang --enable-symm-mem --enable-mscclpp", "h200x8-nvswitch", 8, 14_336, "bf16"),
    ("sglang --enable-torch-symm-mem", "h200x8-nvswitch", 8, 256 << 20, "fp16"),
    ("sglang --disable-custom-all-reduce", "h200x8-nvswitch", 8, 32 << 20, "bf16"),
    ("tensorrt_llm allreduce_strategy=ONESHOT", "h100x8-nvswitch", 8, 16 << 20, "bf16"),
    ("tensorrt_llm allreduce_strategy=TWOSHOT", "h100x8-nvswitch", 8, 16 << 20, "bf16"),
    ("flashinfer", "rtxpro6000x8", 3, 10, "fp32"),
    ("flashinfer", "h100x8-nvswitch", 8, 4 << 20, "bf16"),
    ("tensorrt_llm", "rtx6000ada-x2-pcie", 2, 14_336, "bf16"),
    ("torch", "rtxpro6000x8", 8, 14_336, "bf16"),
    ("mscclpp", "rtxpro6000x8", 8, 4 << 20, "bf16"),
    ("mscclpp", "h100x8-nvswitch", 8, 128 << 10, "bf16"),
    ("nccl NCCL_NVLS_ENABLE=0", "rtxpro6000x8", 8, 14_336, "bf16"),
];

/// The reasons of an answer, as text that names a rule.
fn reasons(dispatch: &Dispatch, engine: &str) -> Vec<String> {
    let each = dispatch.candidates.iter().flat_map(|verdict| {
        verdict.refusals.iter().map(move |one| (verdict.name.clone(), one.clone()))
    });
    each.map(|(name, one)| {
        format!("{engine} {name}: {} | {} | {}", one.why, one.rule_of, one.lifted_by)
    })
    .collect()
}

#[test]
fn every_rule_refuses_something() {
    let mut seen = BTreeSet::new();
    let mut note = |engine: &str, facts: &Facts, bytes, dtype| {
        let name = engine.split(' ').next().expect("an engine");
        seen.extend(reasons(&ask(engine, facts, bytes, dtype), name));
    };
    for &(engine, machine, gpus, bytes, ..) in CHOSEN {
        note(engine, &facts(machine, gpus), bytes, "bf16");
    }
    for &(engine, machine, gpus, bytes, dtype) in ASKED {
        note(engine, &facts(machine, gpus), bytes, dtype);
        // Old GPUs without peer access are on no built-in machine.
        let capability = Capability { major: 6, minor: 0 };
        let old = Facts { capability, peer_access: false, ..facts(machine, gpus) };
        note(engine, &old, bytes, dtype);
    }
    for engine in rules().engines {
        for candidate in &engine.candidates {
            for rule in &candidate.rules {
                let Rule { why, rule_of, lifted_by, .. } = rule;
                let told =
                    format!("{} {}: {why} | {rule_of} | {lifted_by}", engine.name, candidate.name);
                assert!(seen.contains(&told), "never refuses: {told}");
            }
        }
    }
}

#[test]
fn rules_name_what_there_is() {
    for engine in rules().engines {
        let name = &engine.name;
        let settings: BTreeSet<&str> = engine.settings.iter().map(|s| s.name.as_str()).collect();
        let mut used = BTreeSet::new();
        for (index, candidate) in engine.candidates.iter().enumerate() {
            let rules = &candidate.rules;
            let conditions = rules.iter().flat_map(|rule| rule.when.iter().chain([&rule.needs]));
            for needs in conditions.chain(candidate.runs.iter().flat_map(|run| &run.when)) {
                match needs {
                    Needs::SettingOn(one)
                    | Needs::SettingOff(one)
                    | Needs::SettingChoice(one, _) => {
                        used.insert(one.as_str());
                    }
                    Needs::OtherRefused(others) => {
                        for other in others {
                            let at = engine.candidates.iter().position(|one| one.name == *other);
                            assert!(at.is_some_and(|at| at != index), "{name}: {other}");
                        }
                    }
                    _ => {}
                }
            }
            for rule in rules {
                used.extend(rule.lifted_by_setting.as_deref());
                let told = [&rule.why, &rule.rule_of, &rule.lifted_by, &rule.source];
                assert!(told.iter().all(|text| !text.is_empty()), "{name} {}", candidate.name);
            }
            for run in &candidate.runs {
                let calibration = Calibration::embedded().expect("embedded");
                let library = calibration.knows(DeviceClass::Library, &run.implementation);
                let known = library || NO_KERNEL.contains(&run.implementation.as_str());
                assert!(known, "{name} {}: {}", candidate.name, run.implementation);
                let replayed = algorithm::find(Collective::AllReduce, &run.algorithm).is_ok();
                let known = replayed || NOT_REPLAYED.contains(&run.algorithm.as_str());
                assert!(known, "{name} {}: {}", candidate.name, run.algorithm);
            }
            assert!(candidate.runs.last().is_some_and(|run| run.when.is_empty()));
        }
        assert_eq!(used, settings, "{name}: settings named and used");
        let last = engine.candidates.last().expect("candidates");
        // Whoever tries in order ends with what always works.
        assert!(!engine.ordered || last.rules.is_empty(), "{name}");
        assert!(engine.oldest <= engine.version, "{name}");
    }
}

#[test]
fn wrong_settings_are_told() {
    let facts = facts("rtxpro6000x8", 8);
    let wrong = |engine, version, setting: &str| {
        let settings = [setting.to_owned()];
        let settings: &[String] = if setting.is_empty() { &[] } else { &settings };
        let query = Query { engine, version, settings, bytes: 14_336, dtype: "bf16" };
        let error = rules().dispatch(&query, &facts).expect_err("wrong");
        match &error {
            collsim::error::Error::Request { message, help } => format!("{message}; {help}"),
            other => panic!("{other}"),
        }
    };
    let table: [(&str, Option<&str>, &str, &str); 9] = [
        ("vlm", None, "", "there is no engine `vlm`; did you mean `vllm`?"),
        ("vllm", Some("eleven"), "", "`eleven` is no version"),
        (
            "vllm",
            None,
            "VLLM_ALLREDUCE_USE_SYM_MEM=1",
            "did you mean `VLLM_ALLREDUCE_USE_SYMM_MEM`?",
        ),
        ("vllm", None, "VLLM_ALLREDUCE_USE_SYMM_MEM=2", "is on or off, not `2`"),
        ("vllm", None, "VLLM_ALLREDUCE_USE_SYMM_MEM", "is on or off, not ``"),
        ("vllm", Some("0.11"), "VLLM_ALLREDUCE_USE_FLASHINFER=1", "vLLM 0.11 has no"),
        ("sglang", None, "--enable-msccl", "did you mean `--enable-mscclpp`?"),
        ("sglang", None, "--flashinfer-allreduce-fusion-backend trtlm", "did you mean `trtllm`?"),
        ("torch", None, "X=1", "it has none that change the choice"),
    ];
    for (engine, version, setting, part) in table {
        let told = wrong(engine, version, setting);
        assert!(told.contains(part), "no `{part}` in {told}");
    }
    let twice = ["--enable-mscclpp".to_owned(), "--enable-mscclpp".to_owned()];
    let query =
        Query { engine: "sglang", version: None, settings: &twice, bytes: 16, dtype: "bf16" };
    let error = rules().dispatch(&query, &facts).expect_err("twice");
    assert_eq!(error.to_string(), "--enable-mscclpp is set twice");
}

#[test]
fn versions_are_compared_part_by_part() {
    let version = |text: &str| Version::parse(text).expect("a version");
    assert!(version("0.9.2") < version("0.11") && version("0.11.0") == version("v0.11"));
    assert!(version("0.11.1") > version("0.11") && version("1") > version("0.99.9"));
    assert_eq!(version("0.33.0").to_string(), "0.33");
    let dispatch = ask("vllm 0.40", &facts("rtxpro6000x8", 8), 14_336, "bf16");
    assert_eq!(dispatch.notes, ["vLLM 0.40 was not read: the rules of 0.33 are taken, unchecked"]);
}

/// Machine, GPUs, engine and candidate whose refusals a person reads.
const READ: &[(&str, u32, &str, &str)] = &[
    ("rtxpro6000x8", 8, "vllm", "custom"),
    ("rtxpro6000x8", 8, "sglang", "custom"),
    ("rtxpro6000x8", 8, "sglang", "custom_v2"),
    ("rtxpro6000x8", 8, "vllm", "torch_symmetric_memory"),
    ("rtxpro6000x8", 8, "vllm", "flashinfer"),
    ("rtxpro6000x8", 8, "sglang --flashinfer-allreduce-fusion-backend=auto", "flashinfer"),
    ("rtxpro6000x8", 8, "nccl", "ring_ll128"),
    ("v100x8-cube-mesh", 8, "nccl", "ring_ll128"),
    ("rtxpro6000x8", 8, "nccl", "nvls"),
    ("rtxpro6000x8", 8, "nccl", "symmetric"),
    ("a100x8-nvswitch", 8, "nccl", "nvls"),
    ("rtxpro6000x8", 8, "torch", "one_shot"),
    ("v100x8-cube-mesh", 8, "vllm", "custom"),
    ("rtxpro6000x8", 8, "vllm VLLM_ENABLE_PCIE_ALLREDUCE=1", "custom"),
];

#[test]
fn refusals_read_as_a_person_would_want_them() {
    let mut text = String::new();
    for &(machine, gpus, engine, name) in READ {
        let dispatch = ask(engine, &facts(machine, gpus), 14_336, "bf16");
        let verdict = dispatch.candidates.iter().find(|one| one.name == name).expect("offered");
        let _ = writeln!(text, "# {engine}, {machine}, {gpus} GPUs, 14,336 B");
        let _ = writeln!(text, "{}", verdict.at_length());
    }
    same_as_file("tests/data/refusals.txt", &text);
}
