//! Do links carry what the schedule says, no more and no less?

use collsim::algorithm::build;
use collsim::engine::Fidelity;
use collsim::fabric::{EndpointId, Fabric};
use collsim::schedule::{Op, Schedule};
use collsim::units::Time;

use crate::rig::{Choice, Rig};

type Payload = Vec<u64>;

/// What a switch copies or sums for a group: once on the link of the GPU that asks, and once on every
/// member's link of the other direction.
fn by_switch(
    payload: &mut Payload,
    fabric: &Fabric,
    schedule: &Schedule,
    gpu: u32,
    op: &Op,
    bytes: u32,
) {
    let members = &schedule.groups[0];
    let other = |gpu| *members.iter().find(|&&member| member != gpu).expect("two members");
    let up = |gpu| fabric.path(gpu, other(gpu)).expect("a path")[0];
    let down = |gpu| up(gpu) ^ 1;
    let reads = matches!(op, Op::LoadReduce { .. });
    payload[if reads { down(gpu) } else { up(gpu) } as usize] += u64::from(bytes);
    for &member in members {
        payload[if reads { up(member) } else { down(member) } as usize] += u64::from(bytes);
    }
}

/// Payload that each directed link must carry in one call whose polls are all local.
fn expected(fabric: &Fabric, schedule: &Schedule) -> Vec<u64> {
    let mut payload = vec![0_u64; fabric.links.len()];
    let buffer = |index: u32| schedule.buffers[index as usize].home;
    let message = |index: u32| schedule.messages[index as usize];
    for program in &schedule.ranks {
        for op in program.blocks.iter().flat_map(|block| &block.ops) {
            match *op {
                Op::Load { buffer: from, bytes, .. } => {
                    add(fabric, &mut payload, buffer(from), program.gpu, bytes)
                }
                Op::Write { buffer: to, bytes, .. } | Op::Move { to, bytes, .. } => {
                    add(fabric, &mut payload, program.gpu, buffer(to), bytes);
                }
                Op::Send { message: to, bytes, .. } => {
                    add(fabric, &mut payload, program.gpu, message(to).home, bytes)
                }
                Op::Flag(to) | Op::Post { message: to, .. } => {
                    add(fabric, &mut payload, program.gpu, message(to).home, message(to).bytes)
                }
                Op::SignalPeers { base, index, count } => {
                    for peer in (0..count).filter(|&peer| peer != index) {
                        let flag = message(base + index * count + peer);
                        add(fabric, &mut payload, program.gpu, flag.home, flag.bytes);
                    }
                }
                // The word goes there, the old value comes back.
                Op::AtomicPeers { base, index, count } => {
                    for peer in (0..count).filter(|&peer| peer != index) {
                        let flag = message(base + index * count + peer);
                        add(fabric, &mut payload, program.gpu, flag.home, flag.bytes);
                        add(fabric, &mut payload, flag.home, program.gpu, flag.bytes);
                    }
                }
                Op::LoadReduce { bytes, .. }
                | Op::WriteAll { bytes, .. }
                | Op::SendAll { bytes, .. } => {
                    by_switch(&mut payload, fabric, schedule, program.gpu, op, bytes);
                }
                Op::FlagAll { .. } => by_switch(&mut payload, fabric, schedule, program.gpu, op, 4),
                Op::Copy { from, to, bytes, .. } => {
                    add(fabric, &mut payload, buffer(from), buffer(to), bytes)
                }
                Op::KernelStart(_)
                | Op::Delay(_)
                | Op::HostTurn(_)
                | Op::WaitLoads
                | Op::Poll { .. }
                | Op::PollEach { .. }
                | Op::PollFlag { .. }
                | Op::PollCredit(_)
                | Op::PollStep(_)
                | Op::WaitPosts
                | Op::PollPeers { .. }
                | Op::Fence
                | Op::BlockBarrier => {}
            }
        }
    }
    payload
}

fn add(fabric: &Fabric, payload: &mut Payload, from: EndpointId, to: EndpointId, bytes: u32) {
    for &link in fabric.path(from, to).expect("a path") {
        payload[link as usize] += u64::from(bytes);
    }
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
        // A switch that copies and sums takes in and gives out other numbers of bytes.
        if schedule.groups.is_empty() {
            assert_eq!(left, entered, "{place}: bytes that left and entered GPUs");
        }
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
        for choice in rig.choices() {
            for bytes in [16, 14_352, 43_008] {
                check(&rig, choice, bytes, rig.gpus());
                check(&rig, choice, bytes, vec![6, 0, 3]);
            }
        }
    }
}
