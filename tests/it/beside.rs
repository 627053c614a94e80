//! Does traffic beside the calls slow them as measured, by kind, and nothing that it does not touch?

use collsim::engine::{Fidelity, RunOptions, simulate as run};
use collsim::fabric::Calibration;
use collsim::measurement::{Run, library, read_machine};
use collsim::prediction::{CaseOptions, Choice, Machine};
use collsim::schedule::Op;
use collsim::schedule::build::Builder;
use collsim::topology::{Nic, NodeKind, Topology};
use collsim::validation::experiment;
use collsim::validation::predict::{Call, collectives};
use collsim::workload::{Beside, Collective, Traffic};

use crate::cli::simulate;
use crate::rig::{Rig, edited, topology};

fn beside(traffic: Traffic, gpus: &[u32]) -> Beside {
    Beside { traffic, gpus: gpus.to_vec() }
}

/// Traffic that network adapters make.
const NICS: [Traffic; 4] = [Traffic::NicIn, Traffic::NicOut, Traffic::RdmaIn, Traffic::RdmaOut];

/// A ring LL call on some GPUs, us.
fn ring_us(machine: &str, gpus: &[u32], beside: Vec<Beside>) -> Result<f64, String> {
    ring_on(topology(machine), gpus, 14_336, beside)
}

fn ring_on(
    topology: Topology,
    gpus: &[u32],
    bytes: u64,
    beside: Vec<Beside>,
) -> Result<f64, String> {
    let calibration = Calibration::embedded().expect("embedded");
    let machine = Machine::new(topology, &calibration, true, false).expect("compiles");
    let choice = Choice { algorithms: vec!["ring".to_owned()], ..Choice::default() };
    let cases = choice.cases(Collective::AllReduce, &machine, gpus).expect("a ring");
    let options = CaseOptions { beside, ..CaseOptions::of(gpus.to_vec(), Fidelity::Packet) };
    cases[0].nominal_us(&machine, bytes, &options).map_err(|error| error.to_string())
}

/// `h200-two-host-links/interference.csv`: rows and what is predicted for them, us.
fn rows() -> Vec<(String, f64, f64)> {
    let calibration = Calibration::embedded().expect("embedded");
    let topology = topology("h200x2-nvlink-pair");
    let options = collsim::fabric::CompileOptions { regimes: true };
    let machine = experiment::Machine::new(&topology, &calibration, options).expect("compiles");
    let folder = library::MACHINES.iter().find(|m| m.name == "h200-two-host-links");
    let record = read_machine(folder.expect("listed")).expect("reads");
    let rows = record.observations.iter().filter(|o| o.experiment.starts_with("NCCL beside"));
    rows.map(|row| {
        let Run::Collective(call) = &row.run else { panic!("{} is no call", row.id) };
        let run = collsim::validation::predict::told(&machine, call).expect("known GPUs");
        let call: Call = (run, 0.0);
        let us = collectives(&machine, vec![call]).expect("it ends")[0];
        let name = row.id.split_once(' ').expect("a text").1.to_owned();
        (name, row.measured, us)
    })
    .collect()
}

#[test]
fn copies_beside_slow_calls_as_measured() {
    let rows = rows();
    assert_eq!(rows.len(), 12);
    for (name, measured, predicted) in &rows {
        let error = predicted / measured - 1.0;
        // Known misses (`measured/tolerances.json`): both ways on all GPUs, and by a hair copies to one GPU
        // beside a long call.
        let most = match name.as_str() {
            name if name.contains("both_all") => 0.4,
            "h2d_gpu0 458752 B" => 0.26,
            _ => 0.25,
        };
        assert!(error.abs() <= most, "{name}: {predicted:.1} us, measured {measured}: {error:+.2}");
    }
    // The order within each size is the measured one.
    for size in ["14336 B", "458752 B"] {
        let of_size = rows.iter().filter(|row| row.0.ends_with(size));
        let mut order: Vec<&(String, f64, f64)> = of_size.collect();
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        assert!(order.windows(2).all(|pair| pair[0].2 < pair[1].2), "{order:?}");
    }
}

/// A machine's dependent reads of host memory beside traffic, ns.
fn read_ns(machine: &str, traffic: &[Beside]) -> f64 {
    let calibration = Calibration::embedded().expect("embedded");
    let topology = topology(machine);
    let options = collsim::fabric::CompileOptions::default();
    let machine = experiment::Machine::new(&topology, &calibration, options).expect("compiles");
    machine.read_latency_beside_ns(0, machine.host(0), traffic).expect("it ends")
}

#[test]
fn reads_wait_behind_what_a_copy_engine_has_asked_for() {
    let [h2d, d2h] = [Traffic::H2d, Traffic::D2h].map(|traffic| beside(traffic, &[]));
    let alone = read_ns("h200-host-link", &[]);
    // `measured/h200-probe-3` and `h200x2-probe-2`, `beside`: 1.2 us alone, 3.4 beside copies from the
    // host, 1.6 beside copies to it, 5.2 beside both of two GPUs, which the memory cannot feed.
    let near = |ns: f64, measured: f64, most: f64| {
        assert!((ns / measured - 1.0).abs() < most, "{ns} ns, measured {measured}");
    };
    near(alone, 1200.0, 0.06);
    near(read_ns("h200-host-link", std::slice::from_ref(&h2d)), 3400.0, 0.06);
    near(read_ns("h200-host-link", std::slice::from_ref(&d2h)), 1630.0, 0.22);
    let both_gpus = [Traffic::H2d, Traffic::D2h].map(|traffic| beside(traffic, &[0, 1]));
    near(read_ns("h200x2-nvlink-pair", &both_gpus), 5200.0, 0.06);
}

/// A fence of the system beside traffic, ns.
fn fence_ns(traffic: &[Beside]) -> f64 {
    let rig = Rig::named("h200-host-link");
    let ended = |fences: u32| {
        let mut builder = Builder::new("fences", &[0], 1, 32);
        (0..fences).for_each(|_| builder.push(0, 0, Op::Fence));
        let mut schedule = builder.finish(0, None);
        collsim::prediction::beside::add(&mut schedule, &rig.fabric, &[0], traffic)
            .expect("copies");
        let options = RunOptions::default();
        run(&rig.fabric, &schedule, Fidelity::Packet, options).expect("ends").ended.as_ns()
    };
    // The difference of two lengths leaves out how the copies begin.
    (ended(100) - ended(40)) / 60.0
}

#[test]
fn a_fence_waits_for_reads_under_way_and_not_for_writes_of_others() {
    let alone = fence_ns(&[]);
    let model = Rig::named("h200-host-link").fabric.gpus[0].fence;
    assert!((alone - model.as_ns()).abs() < 1e-6, "{alone}");
    // `measured/h200-probe-3`, `beside=fences`: 514 ns alone, 563 beside copies to the host, 3,496 beside
    // copies from it.
    let to_host = fence_ns(&[beside(Traffic::D2h, &[])]);
    assert!((to_host / 563.0 - 1.0).abs() < 0.1, "{to_host}");
    let from_host = fence_ns(&[beside(Traffic::H2d, &[])]);
    assert!((from_host / 3496.0 - 1.0).abs() < 0.1, "{from_host}");
}

#[test]
fn traffic_elsewhere_changes_nothing_and_traffic_on_the_way_costs() {
    let machine = "rtxpro6000x8";
    let us = |beside: Vec<Beside>| ring_us(machine, &[0, 1], beside).expect("it ends");
    let alone = us(Vec::new());
    // GPUs 4 to 7 hang on the other socket; beside traffic the mean of more calls is taken.
    let elsewhere = us(vec![beside(Traffic::Ring, &[4, 5])]);
    assert!((elsewhere / alone - 1.0).abs() < 0.02, "{alone} alone, {elsewhere} beside");
    for traffic in Traffic::ALL.map(|entry| entry.0).into_iter().filter(|one| !NICS.contains(one)) {
        let gpus = [0, 1];
        let slower = us(vec![beside(traffic, &gpus)]);
        // An engine that leaves its link some room delays small calls hardly.
        let least = if traffic == Traffic::Peer { 1.0 } else { 1.03 };
        assert!(slower > least * alone, "{}: {alone} alone, {slower} beside", traffic.name());
    }
    let both = us(vec![beside(Traffic::D2h, &[0]), beside(Traffic::H2d, &[0])]);
    assert_eq!(
        both.to_bits(),
        us(vec![beside(Traffic::D2h, &[0]), beside(Traffic::H2d, &[0])]).to_bits()
    );
}

#[test]
fn adapters_cost_calls_where_their_traffic_goes_and_nowhere_else() {
    let us = |nic: &str, beside: Vec<Beside>| {
        let machine = edited("rtxpro6000x8", &format!("nic:nic0={nic}"));
        ring_on(machine, &[0, 1, 2, 3], 64 << 10, beside).expect("it ends")
    };
    let own = topology("rtxpro6000x8");
    let alone = ring_on(own, &[0, 1, 2, 3], 64 << 10, Vec::new()).expect("it ends");
    // An adapter that does nothing is not there.
    assert_eq!(alone.to_bits(), us("connectx-7@vs0", Vec::new()).to_bits());
    for traffic in NICS {
        let near = us("connectx-7@vs0", vec![beside(traffic, &[])]);
        if matches!(traffic, Traffic::NicIn | Traffic::NicOut) {
            // Host memory is not on the way of these GPUs' calls; beside traffic the mean of more
            // calls is taken.
            assert!((near / alone - 1.0).abs() < 0.02, "{alone} alone, {near} beside");
            continue;
        }
        assert!(near > 1.1 * alone, "{}: {alone} alone, {near} beside", traffic.name());
        // Half of the rate costs less.
        let half = us("connectx-6@vs0,gen4", vec![beside(traffic, &[])]);
        assert!(half < near, "{}: {half} at 200 Gbit/s, {near} at 400", traffic.name());
        // To GPUs of the other socket nothing passes here.
        let far = us("connectx-7@vs2", vec![beside(traffic, &[4, 5])]);
        assert!((far / alone - 1.0).abs() < 0.02, "{alone} alone, {far} beside");
    }
    // Calls by host memory meet an adapter that writes there by the same quadrant.
    let by_host = |edits: &str, beside: Vec<Beside>| {
        ring_on(edited("rtxpro6000x8", edits), &[0, 1], 14_336, beside).expect("it ends")
    };
    let quiet = by_host("p2p=off; nic:nic0=connectx-7@root0", Vec::new());
    let loud = by_host("p2p=off; nic:nic0=connectx-7@root0", vec![beside(Traffic::NicIn, &[])]);
    assert!(loud > 1.03 * quiet, "{quiet} alone, {loud} beside");
}

#[test]
fn traffic_that_cannot_be_is_refused() {
    let refused = |gpus: &[u32], one: Beside, part: &str| {
        let error = ring_us("rtxpro6000x8", gpus, vec![one]).expect_err("refused");
        assert!(error.contains(part), "no `{part}` in {error}");
    };
    refused(&[0, 1], beside(Traffic::D2h, &[8]), "there is no GPU 8");
    let all: Vec<u32> = (0..8).collect();
    refused(&all, beside(Traffic::Ring, &[]), "needs two GPUs");
    refused(&all, beside(Traffic::NicIn, &[]), "has no network adapter");
    let nic = |edits: &str, traffic: Traffic, part: &str| {
        let machine = edited("rtxpro6000x8", edits);
        let error =
            ring_on(machine, &[0, 1], 14_336, vec![beside(traffic, &[])]).expect_err("refused");
        assert!(error.contains(part), "no `{part}` in {error}");
    };
    // A file may hold an adapter of any model, as long as nothing is asked of it.
    let mut other = edited("rtxpro6000x8", "nic:nic0=connectx-7@vs0");
    let adapter = other.nodes.iter_mut().find(|node| node.id == "nic0").expect("added");
    adapter.kind = NodeKind::Nic(Nic { model: "mlx9".to_owned() });
    let error = ring_on(other, &[0, 1], 14_336, vec![beside(Traffic::NicOut, &[])]);
    assert!(error.expect_err("refused").contains("nothing is known of adapter `nic0`"));
    nic("nic:nic0=connectx-7@vs0; p2p=off", Traffic::RdmaIn, "take nothing from other devices");
    for (words, part) in [
        ("d2x", "there is no traffic `d2x`"),
        ("9-2=d2h", "is no range of GPUs"),
        ("0=none", "it is of the whole"),
    ] {
        let run = simulate(&["--topo", "rtxpro6000x8", "--beside", words]);
        assert_eq!(run.code, 2, "{words}");
        assert!(run.err.contains(part), "no `{part}` in\n{}", run.err);
    }
}

#[test]
fn the_flag_and_the_edit_are_one() {
    let common = ["--topo", "h200x2-nvlink-pair", "--algo", "ring", "-b", "64K", "--json"];
    let value = |more: &[&str]| -> serde_json::Value {
        let run = simulate(&[&common[..], more].concat());
        assert_eq!(run.code, 0, "{}", run.err);
        serde_json::from_str(&run.out).expect("JSON")
    };
    let edit = value(&["--what-if", "beside:0,1=ring"]);
    let row = &edit["steps"][0]["rows"][0];
    let change = row["change"]["value"].as_f64().expect("a change");
    assert!(change > 0.02, "{row}");
    let with = &value(&["--beside", "0,1=ring"])["predictions"][0]["time_us"]["value"];
    assert_eq!(*with, row["after"]["time_us"]["value"]);
}
