//! Does a barrier over PCIe have to go through host memory, and what would it explain?

use collsim::algorithm::Flags;
use collsim::algorithm::barrier::{FlagPlace, barrier};
use collsim::algorithm::one_shot_pull;
use collsim::algorithm::{Protocol, Request, build};
use collsim::engine::{Fidelity, RunOptions, simulate};

use crate::cli::simulate as run;
use crate::rig::Rig;

/// Eight GPUs, three wirings: root ports and sockets between most pairs.
const WIRINGS: [&str; 3] = ["rtxpro6000x8", "rtxpro6000x8-flat", "rtxpro6000x8-hierarchy"];

fn barrier_us(rig: &Rig, gpus: &[u32], place: FlagPlace) -> f64 {
    let schedule = barrier(&rig.fabric, gpus, 1, place).expect("has host memory");
    let options = RunOptions { calls: 8, ..RunOptions::default() };
    let outcome = simulate(&rig.fabric, &schedule, Fidelity::Packet, options).expect("ends");
    outcome.mean_call_time().as_us()
}

#[test]
fn two_gpus_meet_after_one_flag() {
    let rig = Rig::named("rtxpro6000x8-flat");
    let model = &rig.fabric.gpus[0];
    // A block barrier, a lane's store and its way out, the path, visibility, detection, and a block
    // barrier. The path is what a read of a flag takes less its ends, halved: both ways are alike.
    let read = rig.fabric.read_latency(0, 1, 32).expect("a path");
    let path = (read - model.load_request - model.load_return).as_us();
    let least =
        (model.block_barrier * 2 + model.store_pipeline + model.write_visible + model.poll_detect)
            .as_us();
    let us = barrier_us(&rig, &[0, 1], FlagPlace::Waiting);
    assert!(least < us && us < least + path, "{least} {us} {path}");
}

#[test]
fn peers_hold_flags_and_host_memory_is_slower() {
    for name in WIRINGS {
        let rig = Rig::named(name);
        let gpus = rig.gpus();
        let [waiting, arrived, host] =
            FlagPlace::ALL.map(|(place, _)| barrier_us(&rig, &gpus, place));
        // No flag crosses more than two root ports and a link between sockets: measured 1.06-1.08 us
        // one way, 0.63-0.73 behind one switch.
        assert!(0.6 < waiting && waiting < 1.3, "{name}: {waiting}");
        assert!(arrived < 1.3 * waiting, "{name}: {arrived} {waiting}");
        assert!(1.6 * waiting < host && host < 3.0 * waiting, "{name}: {host} {waiting}");
    }
}

#[test]
fn host_flags_cost_a_one_stage_call_its_two_barriers() {
    let rig = Rig::named("rtxpro6000x8-hierarchy");
    let gpus = rig.gpus();
    let time = |flags| {
        let choice = (&one_shot_pull::ALGORITHM, Protocol::Simple);
        let request = Request { flags, ..rig.request(choice, gpus.clone(), 14_336) };
        let schedule = build(choice.0, &request).expect("builds");
        rig.time(&schedule, Fidelity::Packet).as_us()
    };
    let more = time(Flags::Host) - time(Flags::Peer);
    let each =
        barrier_us(&rig, &gpus, FlagPlace::Host) - barrier_us(&rig, &gpus, FlagPlace::Waiting);
    assert!(0.5 * each < more && more < 3.0 * each, "{more} {each}");
}

#[test]
fn flags_are_asked_for_on_the_command_line() {
    let refused = run(&["--topo", "rtxpro6000x8-direct", "--flags", "hots"]);
    assert!(refused.code == 2 && refused.err.contains("peer, host"), "{}", refused.err);
    let json = |flags: &str| {
        let arguments = [
            "--topo",
            "rtxpro6000x8-direct",
            "--algo",
            "one_shot_pull",
            "--json",
            "--flags",
            flags,
        ];
        let value: serde_json::Value = serde_json::from_str(&run(&arguments).out).expect("JSON");
        assert_eq!(value["inputs"]["flags"], flags);
        assert!(value["barrier"]["host_us"].as_f64() > value["barrier"]["waiting_us"].as_f64());
        value["predictions"][0]["time_us"]["value"].as_f64().expect("a number")
    };
    let (peer, host) = (json("peer"), json("host"));
    assert!(peer + 1.0 < host && host < peer + 4.0, "{peer} {host}");
}
