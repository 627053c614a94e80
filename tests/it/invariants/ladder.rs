//! Do the network models agree where they must: exactly or nearly where nothing is shared, and in
//! order where something is?

use collsim::algorithm::probe::{chase, ping_pong};
use collsim::algorithm::streams::{
    Stream, all_pairs_reads, all_pairs_writes, staggered_reads, streams,
};
use collsim::engine::Fidelity;
use collsim::schedule::build::Builder;
use collsim::schedule::{Action, Lines, Op, Schedule};

use crate::rig::{Rig, machines};

/// Packets and message-level models may differ by this where nothing is shared.
const NEAR: f64 = 0.01;

/// Time by alpha-beta, max-min and packets, us.
fn times(rig: &Rig, schedule: &Schedule) -> [f64; 3] {
    Fidelity::ALL.map(|(fidelity, _)| rig.time(schedule, fidelity).as_us())
}

#[track_caller]
fn agree(rig: &Rig, schedule: &Schedule, what: &str) {
    let [alone, fair, packet] = times(rig, schedule);
    let place = format!("{}, {what}: {alone} {fair} {packet}", rig.topology.name);
    assert!(alone == fair, "{place}");
    assert!((packet / alone - 1.0).abs() <= NEAR, "{place}");
}

/// A near and a far GPU of GPU 0.
fn peers(rig: &Rig) -> [u32; 2] {
    [1, rig.fabric.gpu_count as u32 - 1]
}

#[test]
fn idle_trips_agree() {
    for rig in machines() {
        for peer in peers(&rig) {
            agree(&rig, &chase(&[(0, peer)], 4, 20), "chase");
            agree(&rig, &chase(&[(0, peer)], 128, 20), "chase of lines");
            agree(&rig, &ping_pong([0, peer], [0, peer], 10, false), "ping-pong");
            agree(&rig, &ping_pong([0, peer], [0, peer], 10, true), "fenced ping-pong");
        }
    }
}

/// Each of two ranks stores one warp's line into the other's memory and polls its own.
fn ring_step(gpus: [u32; 2], lines: Lines) -> Schedule {
    let mut builder = Builder::new("a ring step", &gpus, 1, 32);
    let data = lines.data_bytes(512) as u32;
    let messages = [0, 1].map(|from: u32| {
        let to = 1 - from;
        builder.message(from, to, gpus[to as usize], data, lines)
    });
    for rank in [0, 1] {
        let (offset, bytes, data) = (0, 512, 0);
        let (to, from) = (messages[rank as usize], messages[1 - rank as usize]);
        builder.push(rank, 0, Op::Send { message: to, offset, bytes, data });
        let action = Action::Set;
        builder.push(rank, 0, Op::Poll { message: from, offset, bytes, data, action });
    }
    builder.finish(512, None)
}

#[test]
fn one_ring_step_of_two_agrees() {
    for rig in machines() {
        for peer in peers(&rig) {
            for lines in [Lines::Plain, Lines::Ll, Lines::Ll128] {
                agree(&rig, &ring_step([0, peer], lines), &format!("{lines:?}"));
            }
        }
    }
}

#[test]
fn one_big_copy_agrees() {
    for rig in machines() {
        for peer in peers(&rig) {
            let bytes = 8 << 20;
            agree(&rig, &streams(&[Stream::write(0, peer, bytes)]), "write");
            agree(&rig, &streams(&[Stream::read(peer, 0, bytes)]), "read");
        }
    }
}

/// Sharing only costs: packets are never faster than pipes that share nothing.
#[test]
fn packets_do_not_beat_pipes_of_their_own() {
    for rig in machines() {
        let gpus = rig.gpus();
        let n = gpus.len();
        let bytes = 1 << 20;
        let patterns = [
            staggered_reads(&gpus, 1, bytes),
            staggered_reads(&gpus, n / 2, bytes),
            all_pairs_reads(&gpus, bytes / n as u32),
            all_pairs_writes(&gpus, bytes / n as u32),
        ];
        for (number, pattern) in patterns.iter().enumerate() {
            let schedule = streams(pattern);
            let [alone, fair, packet] = times(&rig, &schedule);
            let place = format!("{}, pattern {number}: {alone} {fair} {packet}", rig.topology.name);
            assert!(packet >= alone * (1.0 - NEAR), "{place}");
            assert!(fair >= alone * (1.0 - 1e-9), "{place}");
        }
    }
}
