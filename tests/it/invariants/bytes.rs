//! Do links carry what the schedule says, no more and no less?

use collsim::algorithm::build;
use collsim::engine::Fidelity;
use collsim::fabric::{EndpointId, Fabric};
use collsim::schedule::{Op, Schedule};
use collsim::units::Time;

use crate::rig::{Choice, Rig, choices};

/// Payload that each directed link must carry in one call whose polls are all local.
fn expected(fabric: &Fabric, schedule: &Schedule) -> Vec<u64> {
    let mut payload = vec![0_u64; fabric.links.len()];
    let mut add = |from: EndpointId, to: EndpointId, bytes: u32| {
        for &link in fabric.path(from, to).expect("a path") {
            payload[link as usize] += u64::from(bytes);
        }
    };
    let buffer = |index: u32| schedule.buffers[index as usize].home;
    let message = |index: u32| schedule.messages[index as usize];
    for program in &schedule.ranks {
        for op in program.blocks.iter().flat_map(|block| &block.ops) {
            match *op {
                Op::Load { buffer: from, bytes, .. } => add(buffer(from), program.gpu, bytes),
                Op::Write { buffer: to, bytes, .. } | Op::Move { to, bytes, .. } => {
                    add(program.gpu, buffer(to), bytes);
                }
                Op::Send { message: to, bytes, .. } => add(program.gpu, message(to).home, bytes),
                Op::Flag(to) => add(program.gpu, message(to).home, message(to).bytes),
                Op::SignalPeers { base, index, count } => {
                    for peer in (0..count).filter(|&peer| peer != index) {
                        let flag = message(base + index * count + peer);
                        add(program.gpu, flag.home, flag.bytes);
                    }
                }
                Op::Copy { from, to, bytes, .. } => add(buffer(from), buffer(to), bytes),
                Op::KernelStart(_)
                | Op::Delay(_)
                | Op::WaitLoads
                | Op::Poll { .. }
                | Op::PollEach { .. }
                | Op::PollFlag { .. }
                | Op::PollCredit(_)
                | Op::PollPeers { .. }
                | Op::Fence
                | Op::BlockBarrier => {}
            }
        }
    }
    payload
}

fn check(rig: &Rig, choice: Choice, bytes: u64, gpus: Vec<u32>) {
    let mut schedule = build(choice.0, &rig.request(choice, gpus, bytes)).expect("builds");
    // Flags that nobody waits for in this call are let arrive.
    for block in schedule.ranks.iter_mut().flat_map(|rank| &mut rank.blocks) {
        block.ops.push(Op::Delay(Time::from_us(100.0)));
    }
    let expected = expected(&rig.fabric, &schedule);
    for (fidelity, name) in Fidelity::ALL {
        let outcome = rig.run(&schedule, fidelity);
        let place = format!("{}, {}, {bytes} B, {name}", rig.topology.name, schedule.name);
        let (mut left, mut entered) = (0, 0);
        for (link, used) in rig.fabric.links.iter().zip(&outcome.links) {
            left += if rig.fabric.is_gpu(link.from) { used.payload_bytes } else { 0 };
            entered += if rig.fabric.is_gpu(link.to) { used.payload_bytes } else { 0 };
        }
        assert_eq!(left, entered, "{place}: bytes that left and entered GPUs");
        let carried: Vec<u64> = outcome.links.iter().map(|used| used.payload_bytes).collect();
        assert_eq!(carried, expected, "{place}");
        let wire = outcome.links.iter().all(|used| used.wire_bytes >= used.payload_bytes);
        assert!(wire, "{place}: fewer bytes on the wire than payload");
    }
}

#[test]
fn links_carry_what_the_schedule_says() {
    for name in ["rtxpro6000x8", "rtxpro6000x8-hierarchy", "v100x8-cube-mesh", "h200x8-nvswitch"] {
        let rig = Rig::named(name);
        for choice in choices() {
            for bytes in [16, 14_352, 43_008] {
                check(&rig, choice, bytes, rig.gpus());
                check(&rig, choice, bytes, vec![6, 0, 3]);
            }
        }
    }
}
