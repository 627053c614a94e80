//! Do the schedules of NCCL's kernels put on the wires what NCCL's put there, with slots used again,
//! orders of their own and every kind of hop?

use collsim::algorithm::{
    Algorithm, Flags, Hop, Implementation, Protocol, Request, Settled, Transport, build, find, nccl,
};
use collsim::engine::Fidelity;
use collsim::schedule::proof::prove;
use collsim::schedule::{Collective, Op, Schedule};

use crate::rig::Rig;

/// Bytes stored into a rank's GPU by others, those of at most 8 bytes apart, and bytes of flags that
/// the rank stores.
fn wire(schedule: &Schedule, rank: usize) -> (u64, u64, u64) {
    let target = schedule.ranks[rank].gpu;
    let (mut data, mut flags, mut own_flags) = (0, 0, 0);
    for program in &schedule.ranks {
        for op in program.blocks.iter().flat_map(|block| &block.ops) {
            let (home, bytes, flag) = match *op {
                Op::Send { message, bytes, .. } => {
                    (schedule.messages[message as usize].home, bytes, false)
                }
                Op::Write { buffer, bytes, .. } => {
                    (schedule.buffers[buffer as usize].home, bytes, false)
                }
                Op::Flag(message) | Op::Post { message, .. } => {
                    let message = schedule.messages[message as usize];
                    (message.home, message.bytes, true)
                }
                _ => continue,
            };
            let bytes = u64::from(bytes);
            let (to_it, by_it) = (home == target, program.gpu == target);
            data += if to_it && !by_it && !flag { bytes } else { 0 };
            flags += if to_it && !by_it && flag { bytes } else { 0 };
            own_flags += if by_it && flag { bytes } else { 0 };
        }
    }
    (data, flags, own_flags)
}

fn request(rig: &Rig, n: u32, bytes: u64, protocol: Protocol) -> Request<'_> {
    let gpus = rig.fabric.gpu_count as u32;
    Request {
        fabric: &rig.fabric,
        // Ranks beyond the GPUs share them.
        gpus: (0..n).map(|rank| rank % gpus).collect(),
        bytes,
        protocol,
        kernel: rig.kernel(Implementation::Nccl),
        transport: Transport::Peer,
        flags: Flags::Peer,
        blocks: None,
        settled: None,
        orders: Vec::new(),
        islands: Vec::new(),
    }
}

fn algorithm(collective: Collective, name: &str) -> &'static Algorithm {
    find(collective, name).expect("in the table")
}

#[test]
fn wire_bytes_are_those_of_the_kernels() {
    let rig = Rig::named("rtxpro6000x8-flat");
    let n = 8;
    for s in [14_336, 43_008] {
        let of = |collective, name, protocol, rank| {
            let algorithm = algorithm(collective, name);
            let request = Request { blocks: Some(1), ..request(&rig, n, s, protocol) };
            wire(&build(algorithm, &request).expect("builds"), rank)
        };
        use Collective::{AllGather, AllReduce, AllToAll, Broadcast, Reduce, ReduceScatter};
        use Protocol::{Ll, Simple};
        // Ring: 2 x 7/8 S, twice that with LL; 14 credits of 8 bytes there, 28 flags and 28 credits
        // here, as many received.
        assert_eq!(of(AllReduce, "ring", Ll, 3), (2 * 2 * 7 * s / 8, 14 * 8, 14 * 8));
        assert_eq!(of(AllReduce, "ring", Simple, 3), (2 * 7 * s / 8, 56 * 8, 56 * 8));
        // In the middle of the chain S comes up and S comes down, twice with LL; a chunk is 32 KiB.
        let chunks = s.div_ceil(32_768);
        assert_eq!(of(AllReduce, "chain", Ll, 3), (2 * 2 * s, 2 * 8 * chunks, 2 * 8 * chunks));
        assert_eq!(of(AllReduce, "chain", Simple, 3).0, 2 * s);
        // The ends receive once.
        assert_eq!(
            (of(AllReduce, "chain", Ll, 0).0, of(AllReduce, "chain", Ll, 7).0),
            (2 * s, 2 * s)
        );
        for (collective, name) in [(AllGather, "ring"), (ReduceScatter, "ring")] {
            assert_eq!(of(collective, name, Ll, 3), (2 * 7 * s / 8, 7 * 8, 7 * 8));
            assert_eq!(of(collective, name, Simple, 3), (7 * s / 8, 28 * 8, 28 * 8));
        }
        assert_eq!(of(AllToAll, "all_to_all", Simple, 3).0, 7 * s / 8);
        assert_eq!(of(AllToAll, "all_to_all", Ll, 3).0, 2 * 7 * s / 8);
        // A pipeline along the ring: the root of a broadcast receives nothing, of a reduce it sends
        // nothing.
        for (collective, quiet) in [(Broadcast, 0), (Reduce, 1)] {
            assert_eq!(of(collective, "ring", Simple, 3).0, s);
            assert_eq!(of(collective, "ring", Simple, quiet).0, 0);
        }
    }
}

fn proved(rig: &Rig, algorithm: &Algorithm, request: &Request<'_>) {
    let bytes = algorithm.collective.round_up(request.bytes, request.gpus.len());
    let request = Request { bytes, fabric: &rig.fabric, ..request.clone() };
    let schedule = build(algorithm, &request).expect("builds");
    let n = request.ranks();
    prove(&schedule).unwrap_or_else(|flaw| {
        panic!("{} {:?} n={n} {bytes}: {flaw}", schedule.name, algorithm.collective)
    });
}

/// NCCL's algorithms.
fn all() -> Vec<&'static Algorithm> {
    let rings = Collective::ALL.into_iter().filter(|entry| entry.0 != Collective::AllToAll);
    let mut all: Vec<&Algorithm> = rings.map(|entry| algorithm(entry.0, "ring")).collect();
    all.push(algorithm(Collective::AllReduce, "chain"));
    all.push(algorithm(Collective::AllToAll, "all_to_all"));
    all
}

/// More chunks than a connection has slots, so that slots are used again.
#[test]
fn slots_are_used_again_only_when_free() {
    let rig = Rig::named("rtxpro6000x8-flat");
    for (collective, name) in [(Collective::Broadcast, "ring"), (Collective::AllReduce, "chain")] {
        let algorithm = algorithm(collective, name);
        let bytes = 6 << 20;
        let request = Request { blocks: Some(1), ..request(&rig, 3, bytes, Protocol::Simple) };
        proved(&rig, algorithm, &request);
        proved(&rig, algorithm, &by_engine(&request, 3));
        // Without the credits a slot is written before it was read.
        let mut schedule = build(algorithm, &request).expect("builds");
        for block in schedule.ranks.iter_mut().flat_map(|rank| &mut rank.blocks) {
            block.ops.retain(|op| !matches!(op, Op::PollCredit(_)));
        }
        assert!(prove(&schedule).is_err(), "{}", schedule.name);
    }
}

/// Orders of their own on two channels, other channels and threads, and every kind of hop.
#[test]
fn told_orders_and_hops_are_proved() {
    let rig = Rig::named("rtxpro6000x8");
    let n = 5;
    let orders = vec![vec![3, 0, 4, 1, 2], vec![1, 2, 0, 4, 3]];
    let by_engines = |send, receive| Hop::HostEngine { send, receive };
    let hops = vec![
        (3, 0, Hop::Read),
        (0, 4, Hop::Host),
        (2, 0, Hop::Read),
        (1, 2, Hop::Write),
        (4, 1, Hop::Engine),
        (2, 3, by_engines(true, true)),
        (4, 3, by_engines(false, true)),
        (3, 1, by_engines(true, false)),
    ];
    for algorithm in all() {
        for &protocol in algorithm.protocols {
            // Two channels of at most 96 threads, the second with less than the first.
            let of = nccl::Collective::of(algorithm.collective);
            let of = of.unwrap_or(nccl::Collective::AllReduce);
            let split = nccl::Split::new(of, nccl::Algorithm::Ring, protocol, 0, n, 2);
            let told = nccl::Split { threads_max: 96, ..split };
            let request = Request {
                blocks: Some(2),
                settled: Some(Settled::Split(told)),
                orders: orders.clone(),
                transport: Transport::Each(hops.clone()),
                ..request(&rig, n, 43_040, protocol)
            };
            proved(&rig, algorithm, &request);
        }
        let wrong =
            Request { orders: vec![vec![0, 1]], ..request(&rig, n, 43_040, Protocol::Simple) };
        let error = build(algorithm, &wrong).expect_err("no order of five");
        assert!(error.to_string().contains("[0, 1] is no order of 5 ranks"), "{error}");
    }
}

/// A call whose data travel by copy engine.
fn by_engine<'a>(request: &Request<'a>, n: u32) -> Request<'a> {
    let pairs = (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
    let hops = pairs.map(|(from, to)| (from, to, Hop::Engine)).collect();
    Request { transport: Transport::Each(hops), ..request.clone() }
}

/// Bytes that copy engines write, and the host thread's part of a call: its slices with data.
fn copies(schedule: &Schedule) -> (u64, u64) {
    let blocks = schedule.ranks.iter().flat_map(|rank| &rank.blocks);
    let copies = blocks.flat_map(|block| &block.ops).filter_map(|op| match *op {
        Op::Copy { bytes, push: true, .. } => Some(u64::from(bytes)),
        _ => None,
    });
    copies.fold((0, 0), |(bytes, count), copy| (bytes + copy, count + 1))
}

#[test]
fn copy_engines_carry_what_stores_would_and_one_host_thread_starts_them() {
    let rig = Rig::named("h200x2-nvlink-pair");
    let ring = algorithm(Collective::AllReduce, "ring");
    let bytes = 4 << 20;
    let call = |channels| {
        let request = request(&rig, 2, bytes, Protocol::Simple);
        by_engine(&Request { blocks: Some(channels), ..request }, 2)
    };
    let time = |schedule: &Schedule| rig.time(schedule, Fidelity::Packet);
    let many = build(ring, &call(24)).expect("builds");
    // Two ranks send 2 x 1/2 S each; no SM writes data to a peer.
    assert_eq!((copies(&many).0, wire(&many, 0).0), (2 * bytes, 0));
    // A rank's host thread starts its copies one after another, so that 24 channels take no less.
    let each = rig.kernel(Implementation::Nccl).host_copy[0];
    assert!(time(&many) > each * (copies(&many).1 / 2), "{}", time(&many).as_us());
    // One channel has fewer slices; its copies are waited for by one block alone.
    let one = build(ring, &call(1)).expect("builds");
    assert!(copies(&one).1 < copies(&many).1 && time(&one) < time(&many));
    // Lines are stored by SMs whatever carries slices.
    let lines = Request { protocol: Protocol::Ll, ..call(1) };
    assert_eq!(copies(&build(ring, &lines).expect("builds")), (0, 0));
}

/// Credits lie where the sender looks for them: in host memory wherever counters do, also when nothing
/// goes the other way.
#[test]
fn credits_go_back_the_way_that_data_came() {
    let rig = Rig::named("rtxpro6000x8");
    let algorithm = algorithm(Collective::Broadcast, "ring");
    for hop in [Hop::Host, Hop::Engine, Hop::HostEngine { send: true, receive: false }] {
        let told = request(&rig, 2, 8 << 20, Protocol::Simple);
        let transport = Transport::Each(vec![(0, 1, hop)]);
        let schedule =
            build(algorithm, &Request { blocks: Some(1), transport, ..told }).expect("builds");
        let back = schedule.messages.iter().filter(|message| (message.from, message.to) == (1, 0));
        let homes: Vec<u32> = back.map(|message| message.home).collect();
        assert!(!homes.is_empty(), "{hop:?}");
        assert!(homes.iter().all(|&home| !rig.fabric.is_gpu(home)), "{hop:?} {homes:?}");
    }
}
