//! Do switches that copy and sum cost what their parts say, and are they refused where there is none?

use collsim::algorithm::{Implementation, build};
use collsim::engine::Fidelity;
use collsim::fabric::MulticastGroup;
use collsim::schedule::build::{Builder, Part};
use collsim::schedule::{Lines, Op, Role, Schedule};
use collsim::units::Time;

use crate::rig::Rig;

/// Times are sums of integers of picoseconds, each rounded once.
const ROUNDING: u64 = 3;

#[track_caller]
fn near(found: Time, expected: Time, what: &str) {
    let apart = found.as_ps().abs_diff(expected.as_ps());
    assert!(apart <= ROUNDING, "{what}: {found} is not {expected}");
}

fn group(rig: &Rig) -> MulticastGroup<'_> {
    rig.fabric.multicast(&rig.gpus()).expect("an NVSwitch 3")
}

/// One warp of rank 0 loads a line summed over all GPUs.
fn one_sum(rig: &Rig, bytes: u32) -> Schedule {
    let gpus = rig.gpus();
    let mut builder = Builder::new("one sum", &gpus, 1, 32);
    let group = builder.multicast_group(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let buffers = builder.buffers(Role::Input, u64::from(bytes), |rank| gpus[rank as usize]);
    builder.load_reduce((0, 0), group, buffers[0], Part { offset: 0, bytes });
    builder.push(0, 0, Op::WaitLoads);
    builder.finish(u64::from(bytes), None)
}

#[test]
fn one_sum_takes_the_sum_of_its_parts() {
    for name in ["h100x8-nvswitch", "h200x8-nvswitch", "b200x8-nvswitch"] {
        let rig = Rig::named(name);
        let group = group(&rig);
        let gpu = &rig.fabric.gpus[0];
        let [up, down] = [group.ports[0].up, group.ports[0].down].map(|link| {
            let link = &rig.fabric.links[link as usize];
            (link, link.serialization(u64::from(128 + link.completion_overhead)))
        });
        // The request goes up and down, each member reads, its data go up, are summed, and the sum
        // goes down. Links of one rate forward while they receive, so each way is sent once.
        let request = up.0.latency + down.0.latency + up.0.serialization(u64::from(up.0.request));
        let unit = Time::from_ps(128 * group.switch.reduce_fs_per_byte / 1000);
        let data = up.0.latency + unit + group.switch.reduce_latency + down.0.latency + down.1;
        let idle = gpu.load_request + request + gpu.completer + data + gpu.load_return;
        let schedule = one_sum(&rig, 128);
        near(rig.time(&schedule, Fidelity::Packet), idle, name);
        // The message-level models leave out the request's own 0.05 ns and the unit's 0.2 ns.
        let [alone, fair] = [Fidelity::AlphaBeta, Fidelity::MaxMin];
        assert_eq!(rig.time(&schedule, alone), rig.time(&schedule, fair), "{name}");
        let apart = rig.time(&schedule, alone).as_us() / idle.as_us() - 1.0;
        assert!(apart.abs() <= 0.001, "{name}: {apart}");
    }
}

#[test]
fn a_multicast_flag_reaches_all_at_once() {
    let rig = Rig::named("h200x8-nvswitch");
    let gpus = rig.gpus();
    let mut builder = Builder::new("a flag to all", &gpus, 1, 32);
    let group = builder.multicast_group(&[0, 1, 2, 3, 4, 5, 6, 7]);
    let flags: Vec<u32> =
        (0..8).map(|to| builder.message(0, to, gpus[to as usize], 4, Lines::Plain)).collect();
    builder.push(0, 0, Op::FlagAll { group, base: flags[0] });
    for rank in 0..8 {
        let message = flags[rank as usize];
        builder.push(rank, 0, Op::PollFlag { message, acquire: false });
    }
    let schedule = builder.finish(4, None);
    let idle = rig.fabric.flag_latency(0, 1).expect("a way");
    for (fidelity, model) in Fidelity::ALL {
        let outcome = rig.run(&schedule, fidelity);
        let first = outcome.blocks[0][0].ended;
        for rank in &outcome.blocks {
            // All within the 0.1 ns that a flag is on a wire.
            assert!(rank[0].ended.as_ps().abs_diff(first.as_ps()) <= 100, "{model}");
        }
        // A flag of 4 bytes with its header takes less than a nanosecond more than latencies.
        let more = outcome.ended.as_ps() - idle.as_ps();
        assert!(more <= 1_000, "{model}: {} against {idle}", outcome.ended);
    }
}

#[test]
fn a_remote_atomic_is_a_round_trip() {
    let rig = Rig::named("h200x2-nvlink-pair");
    let gpus = rig.gpus();
    let mut builder = Builder::new("atomics", &gpus, 1, 32);
    let base = builder.barrier_flags(&[0, 1], |rank| gpus[rank as usize]);
    builder.push(0, 0, Op::AtomicPeers { base, index: 0, count: 2 });
    let schedule = builder.finish(4, None);
    let gpu = &rig.fabric.gpus[0];
    let way = |from, to| rig.fabric.path_latency(from, to).expect("a way");
    let last = &rig.fabric.links[rig.fabric.path(0, 1).expect("a way")[0] as usize];
    // A request with an operand of one flit, a read and its change, four bytes back.
    let request = way(0, 1) + last.serialization(u64::from(last.request + 16));
    let answer = way(1, 0) + last.serialization(u64::from(last.completion_overhead + 4));
    let change = gpu.completer + gpu.atomic;
    let idle = gpu.load_request + request + change + answer + gpu.load_return;
    near(rig.time(&schedule, Fidelity::Packet), idle, "packets");
    for fidelity in [Fidelity::AlphaBeta, Fidelity::MaxMin] {
        let apart = rig.time(&schedule, fidelity).as_us() / idle.as_us() - 1.0;
        assert!(apart.abs() <= 0.001, "{}: {apart}", fidelity.name());
    }
}

#[test]
fn switches_without_multicast_and_buses_are_refused() {
    for (name, reason) in [
        ("rtxpro6000x8", "are not joined by an NVSwitch"),
        ("v100x8-cube-mesh", "are not joined by an NVSwitch"),
        ("a100x8-nvswitch", "has no multicast"),
    ] {
        let rig = Rig::named(name);
        for algorithm in collsim::algorithm::ALGORITHMS {
            if algorithm.is_in_switch() {
                let request = rig.request((algorithm, algorithm.protocols[0]), rig.gpus(), 4096);
                let error = build(algorithm, &request).expect_err("refused").to_string();
                assert!(error.contains(reason), "{name}, {}: {error}", algorithm.name);
            }
        }
    }
    let alone = Rig::named("h200x8-nvswitch").fabric.multicast(&[3]).expect_err("one GPU");
    assert!(alone.to_string().contains("two GPUs"), "{alone}");
}

/// A switch that adds slowly, or holds few sums, is what limits a call.
#[test]
fn reduction_units_and_their_buffers_limit() {
    let rig = Rig::named("h200x8-nvswitch");
    let choice = rig.choices().into_iter().find(|choice| choice.0.name == "nvls_two_shot");
    let request = rig.request(choice.expect("there"), rig.gpus(), 1 << 20);
    let schedule = build(choice.expect("there").0, &request).expect("builds");
    let mut narrow = Rig::named("h200x8-nvswitch");
    // 10 GB/s a port: 1 MiB of each GPU takes 104.9 us to be added.
    narrow.fabric.multicast_switches[0].reduce_fs_per_byte = 100_000;
    let slow = narrow.time(&schedule, Fidelity::Packet).as_us();
    assert!((104.9..115.0).contains(&slow), "{slow}");
    let fair = narrow.time(&schedule, Fidelity::MaxMin).as_us();
    assert!((104.9..115.0).contains(&fair), "{fair}");
    let mut small = Rig::named("h200x8-nvswitch");
    // One sum a port at a time: 1,024 of 128 B, each a switch's round trip to the members of at
    // least two links and the completer.
    small.fabric.multicast_switches[0].reduce_buffer = 128;
    let link = &rig.fabric.links[group(&rig).ports[0].up as usize];
    let least = (link.latency * 2 + rig.fabric.gpus[0].completer).as_us() * 1024.0;
    let held = small.time(&schedule, Fidelity::Packet).as_us();
    assert!(held > 0.8 * least, "{held} against {least}");
}

/// Bus bandwidth of NCCL's NVLS on 5 to 8 H200 at large sizes, GB/s (`measured`:
/// h200sxm-x8-mleng): a flit more a multicast packet was fitted to these four, the growth with the
/// number of GPUs was not.
#[test]
fn nvls_grows_with_the_gpus_as_measured() {
    let rig = Rig::named("h200x8-nvswitch");
    let choice = rig.choices().into_iter().find(|choice| choice.0.name == "nvls");
    for (n, measured) in [(5_u32, 414.2), (6, 435.6), (7, 460.0), (8, 473.1)] {
        let time = |bytes: u64| {
            let request = collsim::algorithm::Request {
                kernel: rig.kernel(Implementation::Nccl),
                ..rig.request(choice.expect("there"), (0..n).collect(), bytes)
            };
            let schedule = build(choice.expect("there").0, &request).expect("builds");
            rig.time(&schedule, Fidelity::MaxMin).as_us()
        };
        let slope = (time(96 << 20) - time(64 << 20)) / f64::from(32 << 20);
        let bus = 2.0 * f64::from(n - 1) / f64::from(n) / slope / 1e3;
        assert!((bus / measured - 1.0).abs() <= 0.03, "{n} GPUs: {bus} against {measured}");
    }
}
