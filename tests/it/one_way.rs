//! Is what can be asked in two ways answered in one? NCCL's choice in a step and by itself, sends and
//! receives, calls with and without a declared regime, what is best and of which rows.

use collsim::algorithm::{Settled, Transport};
use collsim::engine::Fidelity;
use collsim::fabric::Calibration;
use collsim::input::load_scenario;
use collsim::prediction::nccl::{newest, settled, taken};
use collsim::prediction::{Case, CaseOptions, Choice, Machine};
use collsim::report::assumptions;
use collsim::sweep::compare::Side;
use collsim::sweep::plan::{Plan, parse_edits};
use collsim::sweep::step::Steps;
use collsim::workload::model::{Layout, Pass, find};
use collsim::workload::{Collective, ElementType};

use crate::cli::simulate;
use crate::rig::topology;

fn calibration() -> Calibration {
    Calibration::embedded().expect("embedded")
}

fn machine(name: &str, regimes: bool) -> Machine {
    Machine::new(topology(name), &calibration(), regimes, false).expect("compiles")
}

fn cases(machine: &Machine, gpus: &[u32]) -> Vec<Case> {
    Choice::default().cases(Collective::AllReduce, machine, gpus).expect("some")
}

#[test]
fn without_a_regime_is_what_no_regimes_says() {
    let (with, without) = (machine("rtxpro6000x8", true), machine("rtxpro6000x8", false));
    let gpus: Vec<u32> = (0..8).collect();
    let options = CaseOptions::of(gpus.clone(), Fidelity::Packet);
    let mut struck = 0;
    for case in cases(&with, &gpus).iter().filter(|case| case.algorithm.name != "ring") {
        let told = case.predict(&with, 4096, &options).expect("it ends");
        let Some(bare) = told.without_regimes_us else { continue };
        struck += 1;
        let asked = case.predict(&without, 4096, &options).expect("it ends").time_us;
        assert_eq!(bare.value.to_bits(), asked.value.to_bits(), "{}: {bare:?}", case.title);
    }
    assert!(struck > 1, "{struck} kernels meet a regime");
}

fn side(machine: &str, edits: &str) -> Side {
    let calibration = calibration();
    let scenario = collsim::workload::Scenario {
        tensor_parallel: 2,
        model: None,
        ..load_scenario("kimi-k25-tp8").expect("")
    };
    let plan = Plan { topology: topology(machine), scenario, choice: Choice::default() };
    let edits = parse_edits(&[edits.to_owned()]).expect("edits");
    let (plan, _) = plan.edited(&edits, &calibration).expect("can be");
    Side::of("pair", plan, &calibration, true, Fidelity::Packet).expect("two GPUs")
}

#[test]
fn a_step_by_nccl_is_what_nccl_takes_call_by_call() {
    let model = find("kimi-k2.5").expect("known");
    let layout = Layout {
        tensor: 2,
        pipeline: 1,
        data_attention: None,
        batch: 1,
        drafts: 0,
        dtype: ElementType::from_name("bf16").expect("a type"),
    };
    // With P2P off NCCL goes through host memory, in a step as by itself.
    let known = [("h200x2-nvlink-pair", "", ""), ("rtx6000ada-x2-pcie", "p2p=off", "SHM")];
    for (machine, edits, carried) in known {
        let side = side(machine, edits);
        let steps = Steps { side: &side, model: &model, layout: layout.clone() };
        let setup = newest(&side.machine, &side.options.gpus).expect("NCCL starts");
        let mut ms = 0.0;
        for group in steps.calls(Pass::Decode).expect("calls") {
            let (collective, bytes) = (group.step.collective, group.step.bytes);
            let taken = taken(&setup, collective, bytes, &side.options).expect("a choice");
            let (case, options) = taken.case.expect("a schedule");
            assert!(case.title.contains(carried), "{edits}: {}", case.title);
            let us = case.predict(&side.machine, bytes, &options).expect("it ends").time_us.value;
            ms += us * f64::from(group.step.calls) / 1e3;
        }
        let told = steps.by_nccl(Pass::Decode).expect("times").ms.value;
        assert!((told / ms - 1.0).abs() < 1e-9, "{edits}: {told} {ms}");
        let rows = steps.rows(&[Pass::Decode]).expect("rows");
        assert_eq!(
            (rows[0].algorithm, rows[0].passes[0].ms.value.to_bits()),
            ("nccl", told.to_bits())
        );
    }
}

#[test]
fn sends_and_receives_are_shared_out_as_nccl_starts() {
    let machine = machine("h200x2-nvlink-pair", true);
    let plain = CaseOptions::of(vec![0, 1], Fidelity::Packet);
    let setup = newest(&machine, &[0, 1]).expect("NCCL starts");
    let options = settled(&machine, Collective::AllToAll, plain.clone());
    assert_eq!(options.settled, Some(Settled::Sends(setup.p2p())));
    assert_eq!(options.transport, Some(Transport::Peer));
    // The protocol is that of NCCL's parts, not a threshold of ours.
    let all = Choice::default().cases(Collective::AllToAll, &machine, &[0, 1]).expect("one");
    for bytes in [1024, 65_536, 1 << 20] {
        let wanted = setup.p2p().parts(bytes / 2, false).1;
        assert_eq!(all[0].protocol_at(bytes, &options), wanted, "{bytes}");
    }
    // What the caller lays down stays, and other collectives have nothing of it.
    let told = CaseOptions { blocks: Some(2), ..plain.clone() };
    assert_eq!(settled(&machine, Collective::AllToAll, told).settled, None);
    assert_eq!(settled(&machine, Collective::AllReduce, plain).settled, None);
}

#[test]
fn a_change_of_protocol_and_the_rows_of_the_best_are_told() {
    let folder = std::env::temp_dir().join(format!("collsim-one-way-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("large.json");
    let text = r#"{"schema_version": 1, "name": "large", "title": "large", "sources": [],
        "tensor_parallel": 2, "steps": [{"name": "prefill", "calls": 1, "bytes": 131072,
        "collective": "all_reduce", "dtype": "bf16"}]}"#;
    std::fs::write(&file, text).expect("written");
    let place = file.to_str().expect("UTF-8");
    let screen = |more: &[&str]| {
        let own = ["--topo", "h200x2-nvlink-pair", "--scenario", place];
        let run = simulate(&[&own[..], more].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        run.out
    };
    let text = screen(&[]);
    assert!(text.contains("note: ring LL from 64 KiB a rank on is Simple"), "{text}");
    assert!(text.contains("best of these   prefill"), "{text}");
    let all = screen(&["--all"]);
    assert!(all.contains("best here   prefill"), "{all}");
    let lines = screen(&["--proto", "LL"]);
    assert!(!lines.contains("a rank on is") && lines.contains("ring LL (NCCL)"), "{lines}");
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn regimes_of_machines_of_the_same_gpus_are_told() {
    let mut own = topology("rtxpro6000x8-flat");
    assert!(!assumptions::text(&own).contains("no declared regime"), "measured to have none");
    "mine".clone_into(&mut own.name);
    let text = assumptions::text(&own);
    assert!(
        text.contains("no declared regime, where rtxpro6000x8 of the same GPUs has: "),
        "{text}"
    );
}
