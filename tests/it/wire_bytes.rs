//! What a call puts on a GPU's link, by library kernel: bytes in from peers with their in-band flags,
//! and barrier flags out, for 8 ranks.

use collsim::algorithm::expert_parallel::{Layer, Pattern, Way, exchange};
use collsim::algorithm::{Implementation, Protocol, Request, build, find};
use collsim::engine::Fidelity;
use collsim::engine::network::LinkUse;
use collsim::fabric::{DirectedLink, EndpointId};
use collsim::prediction::Machine;
use collsim::prediction::experts::ExpertExchange;
use collsim::schedule::{Collective, Op, Schedule};
use collsim::selection::nccl::environment::Settings;
use collsim::selection::nccl::survey::Detection;
use collsim::selection::nccl::{Setup, Version};

use crate::rig::Rig;

/// Bytes that ranks read from rank 0's peers, bytes that they store into rank 0's memory, and flags
/// that rank 0 stores.
fn traffic(schedule: &Schedule) -> [u64; 3] {
    let [mut read, mut stored, mut flags] = [0; 3];
    let own: EndpointId = schedule.ranks[0].gpu;
    for (rank, program) in schedule.ranks.iter().enumerate() {
        for op in program.blocks.iter().flat_map(|block| &block.ops) {
            match *op {
                Op::Load { buffer, bytes, .. } if rank == 0 => {
                    let far = schedule.buffers[buffer as usize].home != own;
                    read += if far { u64::from(bytes) } else { 0 };
                }
                Op::Write { buffer, bytes, .. } if rank != 0 => {
                    let here = schedule.buffers[buffer as usize].home == own;
                    stored += if here { u64::from(bytes) } else { 0 };
                }
                Op::Send { message, bytes, .. } if rank != 0 => {
                    let here = schedule.messages[message as usize].home == own;
                    stored += if here { u64::from(bytes) } else { 0 };
                }
                Op::SignalPeers { count, .. } | Op::AtomicPeers { count, .. } if rank == 0 => {
                    flags += u64::from(count) - 1;
                }
                _ => {}
            }
        }
    }
    [read, stored, flags]
}

/// A kernel: read, stored and flags of a call of 14,336 B and of one of 43,008 B.
type Row = (&'static str, Protocol, Implementation, [[u64; 3]; 2]);

/// With S bytes and n = 8: (n-1)S is 100,352 and 301,056; 2(n-1)/n S is 25,088 and 75,264; half of
/// that 12,544 and 37,632. vLLM launches 2 and 6 blocks, so that a barrier is 14 and 42 flags; so do
/// the others that give a thread one element of S.
const ROWS: &[Row] = {
    use Implementation as By;
    use Protocol::{Ll, Simple};
    const ONE: [u64; 2] = [100_352, 301_056];
    const TWO: [u64; 2] = [25_088, 75_264];
    const HALF: [u64; 2] = [12_544, 37_632];
    const BARRIERS: [u64; 2] = [28, 84];
    const fn rows(read: [u64; 2], stored: [u64; 2], flags: [u64; 2]) -> [[u64; 3]; 2] {
        [[read[0], stored[0], flags[0]], [read[1], stored[1], flags[1]]]
    }
    const NONE: [u64; 2] = [0, 0];
    &[
        ("one_shot_pull", Simple, By::CustomAllReduce, rows(ONE, NONE, BARRIERS)),
        ("one_shot_pull", Simple, By::SglangV2, rows(ONE, NONE, BARRIERS)),
        ("one_shot_pull", Simple, By::TorchSymmMem, rows(ONE, NONE, BARRIERS)),
        ("two_shot_pull", Simple, By::CustomAllReduce, rows(TWO, NONE, BARRIERS)),
        // Three barriers.
        ("two_shot_pull", Simple, By::TorchSymmMem, rows(TWO, NONE, [42, 126])),
        ("one_shot_push", Simple, By::FlashInfer, rows(NONE, ONE, NONE)),
        ("one_shot_push", Simple, By::SglangV2, rows(NONE, ONE, NONE)),
        ("one_shot_push", Simple, By::PcieIpc, rows(NONE, ONE, NONE)),
        // Packets of 4 data and 4 flag bytes: 2(n-1)S.
        ("allpair_packet", Ll, By::Mscclpp, rows(NONE, [200_704, 602_112], NONE)),
        // Lines of 8 data and 8 flag bytes: 4(n-1)/n S.
        ("two_shot_push", Ll, By::Mscclpp, rows(NONE, [50_176, 150_528], NONE)),
        ("two_shot_push", Simple, By::PcieIpc, rows(NONE, TWO, NONE)),
        ("two_shot_pull_push", Simple, By::FlashInfer, rows(HALF, HALF, BARRIERS)),
        ("two_shot_pull_push", Simple, By::SglangV2, rows(HALF, HALF, BARRIERS)),
        ("two_shot_pull_push", Simple, By::TorchSymmMem, rows(HALF, HALF, BARRIERS)),
        ("two_shot_pull_push", Simple, By::Mscclpp, rows(HALF, HALF, BARRIERS)),
        ("staged_ring", Simple, By::PcieIpc, rows(NONE, TWO, NONE)),
        // One island of 8 where all are equally near: as two-stage; staged: one-stage.
        ("island_pull", Simple, By::CustomAllReduce, rows(TWO, NONE, BARRIERS)),
        ("island_push", Simple, By::PcieIpc, rows(NONE, TWO, NONE)),
        ("staged_push", Simple, By::PcieIpc, rows(NONE, ONE, NONE)),
    ]
};

fn counted(rig: &Rig, (name, protocol, implementation, _): &Row, bytes: u64) -> [u64; 3] {
    let algorithm = find(Collective::AllReduce, name).expect("known");
    let request = Request {
        kernel: rig.kernel(*implementation),
        ..rig.request((algorithm, *protocol), (0..8).collect(), bytes)
    };
    traffic(&build(algorithm, &request).expect("builds"))
}

#[test]
fn library_kernels_put_on_the_wire_what_their_sources_say() {
    let rig = Rig::named("h200x8-nvswitch");
    for row in ROWS {
        let found = [14_336, 43_008].map(|bytes| counted(&rig, row, bytes));
        assert_eq!(found, row.3, "{} {:?} {:?}", row.0, row.1, row.2);
    }
}

#[test]
fn islands_of_four() {
    // Two sockets of four GPUs. Shares inside: 3/4 S; across: S/4; sums inside: 3/4 S; 7/4 S in all,
    // of which S/4 crosses. Staged: 3 S inside and S across. Barriers by reading: 3 + 1 + 3 flags a
    // block.
    let rig = Rig::named("rtxpro6000x8");
    let rows: [Row; 3] = [
        ("island_pull", Protocol::Simple, Implementation::CustomAllReduce, [[25_088, 0, 14]; 2]),
        ("island_push", Protocol::Simple, Implementation::PcieIpc, [[0, 25_088, 0]; 2]),
        ("staged_push", Protocol::Simple, Implementation::PcieIpc, [[0, 57_344, 0]; 2]),
    ];
    for row in &rows {
        assert_eq!(counted(&rig, row, 14_336), row.3[0], "{}", row.0);
    }
}

/// Experts evenly apart: every token goes to every rank.
#[test]
fn experts_get_their_tokens() {
    let rig = Rig::named("h200x8-nvswitch");
    let ring = find(Collective::AllReduce, "ring").expect("known");
    let request = Request {
        kernel: rig.kernel(Implementation::DeepEp),
        ..rig.request((ring, Protocol::Simple), (0..8).collect(), 16)
    };
    // 16 tokens to each of 8 ranks; 7 peers: 7 x 16 x 7,392 = 827,904 and 7 x 16 x 14,336 = 1,605,632.
    let layer = Layer { pattern: Pattern::Spread, ..Layer::deepseek_v3(16) };
    for (way, wanted) in [(Way::Dispatch, 827_904), (Way::Combine, 1_605_632)] {
        let schedule = exchange(&request, &layer, way).expect("builds");
        for (fidelity, name) in Fidelity::ALL {
            let outcome = rig.run(&schedule, fidelity);
            for gpu in 0..8 {
                let into = |link: &&(&DirectedLink, &LinkUse)| link.0.to == gpu;
                let links: Vec<_> = rig.fabric.links.iter().zip(&outcome.links).collect();
                let bytes: u64 = links.iter().filter(into).map(|link| link.1.payload_bytes).sum();
                // Besides the data, flags of 4 bytes: those that arrive before the end.
                assert!((wanted..wanted + 2048).contains(&bytes), "{name} {way:?}: {bytes}");
            }
        }
    }
    let odd = Layer { dispatch_bytes: 7400, ..layer };
    assert!(exchange(&request, &odd, Way::Dispatch).is_err());
}

#[test]
fn a_layer_on_eight_h200_sends_what_its_routing_says() {
    let rig = Rig::named("h200x8-nvswitch");
    let machine = Machine::new(rig.topology, &rig.calibration, true, false).expect("compiles");
    let gpus: Vec<u32> = (0..8).collect();
    let layer = Layer::deepseek_v3(32);
    let detection = Detection::of(&gpus);
    let setup = Setup::of(
        &machine.topology,
        &machine.nominal.calibration,
        &detection,
        Version::NEWEST,
        Settings::default(),
    )
    .expect("NCCL starts");
    let found = ExpertExchange::of(&machine, &setup, &gpus, &layer).expect("runs");
    // A token goes to 5.3 ranks, 7/8 of them others: about 32 x 4.65 x 7,392 B leave a rank.
    let mean = f64::from(layer.tokens) * found.ranks_per_token * 7.0 / 8.0 * 7392.0;
    assert!((found.sent_bytes[0] as f64 / mean - 1.0).abs() < 0.05, "{found:?}");
    // Dispatch is no faster than its bytes at 450 GB/s, and combine carries about twice as many.
    assert!(found.exchange_us[0] > found.sent_bytes[0] as f64 / 450e3, "{found:?}");
    assert!(found.exchange_us[1] > found.exchange_us[0], "{found:?}");
    // Every token to every rank is 1.7 times as much, and NCCL's ring passes it on seven times.
    assert!(found.gathered().expect("modelled") > found.exchanged(), "{found:?}");
}

/// Payload that leaves and reaches GPU 0.
fn payload(rig: &Rig, schedule: &Schedule) -> [u64; 2] {
    let outcome = rig.run(schedule, Fidelity::MaxMin);
    let links = || rig.fabric.links.iter().zip(&outcome.links);
    let sum = |chosen: &dyn Fn(&DirectedLink) -> bool| {
        let used = |&(link, _): &(&DirectedLink, &LinkUse)| chosen(link);
        links().filter(used).map(|(_, used)| used.payload_bytes).sum()
    };
    [sum(&|link| link.from == 0), sum(&|link| link.to == 0)]
}

#[test]
fn the_switch_takes_and_gives_each_chunk_once() {
    // 8 ranks, S = 1 MiB. All-gather: S/8 leaves a GPU once, S arrives, its own part among it.
    // Reduce-scatter: the switch reads S from each GPU, S/8 of sums arrives. All-reduce is both.
    const PART: u64 = 1 << 17;
    let rig = Rig::named("h200x8-nvswitch");
    for (collective, wanted) in [
        (Collective::AllGather, [PART, 8 * PART]),
        (Collective::ReduceScatter, [8 * PART, PART]),
        (Collective::AllReduce, [9 * PART, 9 * PART]),
    ] {
        let nvls = find(collective, "nvls").expect("known");
        let request = rig.request((nvls, Protocol::Simple), (0..8).collect(), 8 * PART);
        let found = payload(&rig, &build(nvls, &request).expect("builds"));
        for (found, wanted) in found.into_iter().zip(wanted) {
            // Besides the data, flags of 4 bytes.
            assert!((wanted..wanted + 4096).contains(&found), "{collective:?}: {found} {wanted}");
        }
    }
}
