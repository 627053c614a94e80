//! Do edits do what they say, leave the original alone, and refuse what cannot be?

use collsim::fabric::{Calibration, hardware};
use collsim::input::embedded::MACHINES;
use collsim::input::load_scenario;
use collsim::prediction::Choice;
use collsim::sweep::plan::{Plan, kinds, parse_edits};
use collsim::topology::{LinkKind, checks};

use crate::cli::simulate;
use crate::rig::{Rig, topology};

fn plan(machine: &str) -> Plan {
    let scenario = load_scenario("kimi-k25-tp8").expect("built in");
    Plan { topology: topology(machine), scenario, choice: Choice::default() }
}

/// The machine with edits, or why not.
fn edited(machine: &str, edits: &[&str]) -> Result<Plan, String> {
    let calibration = Calibration::embedded().expect("embedded");
    let texts: Vec<String> = edits.iter().map(|&edit| edit.to_owned()).collect();
    let before = plan(machine);
    let result = parse_edits(&texts).and_then(|edits| before.edited(&edits, &calibration));
    assert_eq!(before, plan(machine), "the plan stays as it is");
    result.map(|(plan, _)| plan).map_err(|error| match error {
        collsim::error::Error::Request { message, help } => format!("{message}; {help}"),
        other => other.to_string(),
    })
}

#[track_caller]
fn refused(machine: &str, edits: &[&str], part: &str) {
    match edited(machine, edits) {
        Ok(_) => panic!("{edits:?} was done"),
        Err(message) => assert!(message.contains(part), "no `{part}` in {message}"),
    }
}

/// Edits that can be done, by the name of their kind: every kind has one.
const DONE: &[(&str, &str, &[&str])] = &[
    ("link", "rtxpro6000x8", &["link:gpus=gen4", "link:uplinks=x8", "link:cpu0-cpu1=xgmi3@32"]),
    ("move", "rtxpro6000x8-direct", &["switch:sw0=pm50100@root0", "move:gpu1=sw0"]),
    ("gpu", "rtxpro6000x8", &["gpu:gpu8=rtx-pro-6000@vs0,gen4x8", "gpu:gpu7=none"]),
    ("switch", "rtxpro6000x8-flat", &["switch:sw1=none"]),
    ("partition", "rtxpro6000x8-flat", &["root:root2=cpu0", "partition:sw1=root2"]),
    ("nic", "rtxpro6000x8", &["nic:nic0=connectx-7@vs0"]),
    ("root", "rtxpro6000x8-flat", &["root:root2=cpu0,3", "move:sw1=root2"]),
    ("socket", "rtxpro6000x16-turin-flat", &["socket:cpu1=epyc-turin,xgmi4@32"]),
    ("bridge", "a100-pcie-x4", &["bridge:gpu0-gpu1=nv12"]),
    ("p2p", "rtx4090x8-rome", &["p2p=off"]),
    ("acs", "rtxpro6000x8", &["acs=on"]),
    ("iommu", "rtxpro6000x8", &["iommu=on"]),
    ("mps", "rtxpro6000x8", &["mps=128"]),
    ("mrrs", "rtxpro6000x8", &["mrrs=512"]),
    ("nps", "rtxpro6000x8", &["nps=4"]),
    ("batch", "rtxpro6000x8", &["batch=16"]),
    ("drafts", "rtxpro6000x8", &["drafts=3"]),
    ("dtype", "rtxpro6000x8", &["dtype=fp8"]),
    ("calls", "rtxpro6000x8", &["calls=61"]),
    ("beside", "rtxpro6000x8", &["beside:0-3=h2d+d2h", "beside:4,5=ring"]),
    ("tp", "rtxpro6000x8", &["tp=4"]),
    ("algorithm", "rtxpro6000x8", &["algorithm=ring"]),
    ("protocol", "rtxpro6000x8", &["protocol=LL"]),
    ("channels", "rtxpro6000x8", &["channels=8"]),
    ("ring", "rtxpro6000x8", &["ring=0,1,2,3,7,6,5,4"]),
    ("islands", "rtxpro6000x8", &["islands=0,2,4,6/1,3,5,7"]),
    ("gpus", "rtxpro6000x8", &["gpus=0,4"]),
];

#[test]
fn every_kind_of_edit_can_be_done_and_makes_a_machine() {
    let calibration = Calibration::embedded().expect("embedded");
    let names: Vec<&str> = kinds().iter().map(|kind| kind.0).collect();
    let tried: Vec<&str> = DONE.iter().map(|entry| entry.0).collect();
    assert_eq!(names, tried, "an edit that nobody tries");
    for &(name, machine, edits) in DONE {
        let after = edited(machine, edits).unwrap_or_else(|error| panic!("{edits:?}: {error}"));
        assert_ne!(after, plan(machine), "{name} changed nothing");
        assert_eq!(checks::check(&after.topology), [], "{name}");
        assert_eq!(hardware::faults(&after.topology, &calibration), [], "{name}");
        Rig::of(after.topology);
    }
}

#[test]
fn a_second_socket_takes_half_of_the_gpus() {
    let edits = ["socket:cpu1=epyc-turin,xgmi4@32", "move:sw3=cpu1.root0"];
    let apart = |plan: &Plan| plan.topology.path_type(0, 15).to_string();
    let before = plan("rtxpro6000x16-turin-flat");
    let after = edited("rtxpro6000x16-turin-flat", &edits).expect("fine");
    assert_eq!((apart(&before), apart(&after)), ("NODE".to_owned(), "SYS".to_owned()));
    refused("rtxpro6000x8-flat", &["socket:cpu1=threadripper-pro-7000,xgmi4@32"], "runs alone");
    refused("rtxpro6000x8", &["socket:cpu2=xeon-skylake,upi3@16"], "a board takes equal CPUs");
    refused("rtxpro6000x8", &["socket:cpu2=epyc-turin,upi3@16"], "EPYC is joined by xGMI");
}

#[test]
fn a_socket_and_an_uplink_can_be_taken_away() {
    let moved = ["move:vs2=root0", "move:vs3=root1", "socket:cpu1=none"];
    let one = edited("rtxpro6000x8", &moved).expect("fine").topology;
    assert_eq!((one.sockets().len(), one.path_type(0, 7).to_string()), (1, "NODE".to_owned()));
    assert!(one.find("mem1").is_none() && one.find("root2").is_none());
    refused("rtxpro6000x8", &["socket:cpu1=none"], "`vs2` hangs on `root2` of it");
    refused("rtxpro6000x8-flat", &["socket:cpu0=none"], "it is the only socket");
    // There and back again.
    let there = ["root:root2=cpu0", "partition:sw1=root2", "partition:sw1.2=none"];
    let back = edited("rtxpro6000x8-flat", &there).expect("fine").topology;
    let pix = |topology: &collsim::topology::Topology| topology.path_type(4, 7).to_string();
    assert_eq!((pix(&back), back.find("sw1.2")), ("PIX".to_owned(), None));
    let joined = edited("rtxpro6000x8", &["partition:vs1=none"]).expect("fine").topology;
    assert_eq!(joined.path_type(0, 3).to_string(), "PIX");
    refused("rtxpro6000x8-flat", &["partition:sw1=none"], "no virtual switch of a chip");
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let wide = ["gpu:gpu8=rtx-pro-6000@sw0", "gpu:gpu9=rtx-pro-6000@sw0"];
    refused("rtxpro6000x8-flat", &wide, "lanes");
    refused("rtxpro6000x8", &["bridge:gpu0-gpu1=nv4"], "has no NVLink (rtx-pro-6000)");
    refused("h200x2-nvlink-pair", &["link:gpu0-nvsw=nv36"], "has 18 NVLinks");
    refused("rtx4090x8-rome", &["link:gpus=gen5"], "a port of rtx-4090 runs Gen4 at most");
    refused("rtxpro6000x8", &["link:gpu0=gen7x16"], "PCIe generation 7 does not exist");
    refused("rtxpro6000x8", &["link:gpu0=x32"], "x32 does not exist");
    refused("rtxpro6000x8", &["link:gpu0=nv4"], "is Gen5 x16");
    refused("rtxpro6000x8", &["link:gpuO=x8"], "did you mean `gpu0`?");
    refused("rtxpro6000x8", &["move:gpu0=cpu0"], "nothing hangs below a socket");
    refused("rtxpro6000x8", &["move:gpu0=vs0"], "it hangs there already");
    refused("rtxpro6000x8-hierarchy", &["move:cpu0=rootA"], "no part that is plugged in");
    refused("rtxpro6000x8", &["gpu:gpu8=rtx-pro-7000@vs0"], "no GPU model the calibration knows");
    refused("rtxpro6000x8", &["gpu:vs0=none"], "it is a PCIe switch");
    refused("rtxpro6000x8", &["p2p=maybe"], "neither on nor off");
    refused("rtxpro6000x8", &["p2p=on", "p2p=off"], "two edits of one thing");
    refused("rtxpro6000x8", &["mps=300"], "PCIe knows 128");
    refused("rtxpro6000x8", &["nps=3"], "1, 2 or 4 NUMA nodes");
    refused("rtxpro6000x8", &["tp=16"], "has 8 GPUs");
    refused("rtxpro6000x8", &["tp=4", "gpus=0,1"], "`tp=4`: 4 ranks, and 2 GPUs are named");
    refused("rtxpro6000x8", &["gpus=0,1,2,3", "tp=2"], "`tp=2`: 2 ranks, and 4 GPUs are named");
    refused("rtxpro6000x8", &["batch=0"], "no number from 1");
    refused("rtxpro6000x8", &["dtype=int3"], "no type `int3`");
    refused("rtxpro6000x8", &["calls:prefill=3"], "no step `prefill`");
    refused("rtxpro6000x8", &["wdith=8"], "no edit `wdith`");
    refused("rtxpro6000x8", &["node:host1=rtxpro6000x8"], "one machine is modelled");
    refused("rtxpro6000x8", &["pp=2"], "`simulate step --model NAME` has --pp");
    refused("rtxpro6000x8", &["nic:nic0=connectx-6@vs0"], "a port of connectx-6 runs Gen4");
    refused("rtxpro6000x8", &["faster"], "there is no `=`");
    refused("h200x2-nvlink-pair", &["nic:gpu0=connectx-7@root0"], "already");
    refused("rtxpro6000x8", &["islands=0-3|4-7"], "`0-3|4-7` is no island");
    refused("rtxpro6000x8", &["root:root4=cpu0,4"], "`4` is no quadrant");
    refused("rtxpro6000x8", &["root:root4=vs0"], "root ports belong to a socket");
    refused("rtxpro6000x8", &["root:root3=cpu0"], "a node `root3` already");
    refused("rtxpro6000x8-direct", &["partition:gpu0=root1"], "only a PCIe switch is cut");
    refused("rtxpro6000x8-flat", &["partition:sw1=gpu0"], "no uplink of `sw1` ends at `gpu0`");
    refused("rtxpro6000x8-flat", &["partition:sw1=sw1"], "no uplink of `sw1` ends at `sw1`");
}

#[test]
fn the_first_edit_that_breaks_the_machine_is_named() {
    let edits = ["acs=on", "link:gpu0=gen4", "bridge:gpu2-gpu3=nv4", "iommu=on"];
    refused("rtxpro6000x8", &edits, "`bridge:gpu2-gpu3=nv4`: ");
}

#[test]
fn machines_that_come_with_the_program_can_be_built() {
    let calibration = Calibration::embedded().expect("embedded");
    for machine in MACHINES {
        assert_eq!(hardware::faults(&topology(machine.name), &calibration), [], "{}", machine.name);
    }
}

#[test]
fn an_edit_and_its_opposite_change_nothing() {
    let there = edited("rtxpro6000x8", &["link:gpus=gen4"]).expect("fine").topology;
    let gen4 = |kind: &LinkKind| matches!(kind, LinkKind::Pcie(link) if link.generation == 4);
    assert_eq!(there.links.iter().filter(|link| gen4(&link.kind)).count(), 8);
    let back = ["link:gpus=gen4", "link:gpu0,gpu1,gpu2,gpu3,gpu4,gpu5,gpu6,gpu7=gen5"];
    assert_eq!(edited("rtxpro6000x8", &back), Ok(plan("rtxpro6000x8")));
}

#[test]
fn a_comparison_says_before_after_and_difference() {
    let quick = ["--topo", "h200x2-nvlink-pair", "--algo", "ring", "--fidelity", "max_min"];
    let run = |more: &[&str]| simulate(&[&quick[..], more].concat());
    let same = run(&["--what-if", "nps=1"]);
    assert!(same.out.contains("+0 %"), "{}{}", same.out, same.err);
    let half = run(&["--what-if", "link:gpu0-nvsw=nv9; link:gpu1-nvsw=nv9", "-b", "64M", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&half.out).expect("JSON");
    let change = value["steps"][0]["rows"][0]["change"]["value"].as_f64().expect("a change");
    assert!(change > 0.5, "half of the wires: {change}");
    let refused = run(&["--what-if", "p2p=on", "--explain"]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    for none in ["", ";;"] {
        let run = run(&["--what-if", none]);
        assert!(run.code == 2 && run.err.contains("--what-if names no edit"), "{}", run.err);
    }
    let list = simulate(&["edits"]);
    assert!(kinds().iter().all(|kind| list.out.contains(kind.1)), "{}", list.out);
}
