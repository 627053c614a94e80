//! Execution plans of MSCCL++.

use collsim::engine::Fidelity;
use collsim::input::plans::parse_plan;
use collsim::prediction::plan::{plan_us, prove_plan, schedule};
use serde_json::{Value, json};

use super::{machine, ranks, refused};

fn range(space: &str, index: usize, size: usize) -> Value {
    json!({"type": space, "index": index, "size": size})
}

fn remote(buffer: usize, index: usize, size: usize) -> Value {
    json!({"buffer_id": buffer, "index": index, "size": size})
}

fn channel(name: &str, id: usize) -> Value {
    json!({"name": name, "channel_type": "memory", "channel_ids": [id]})
}

/// The frame of a plan of `n` GPUs: channels to all peers in the order of ranks, their scratch as
/// remote buffers in the same order; `ops` of each GPU's thread blocks.
fn plan(
    n: usize,
    protocol: &str,
    (chunks, scratch): (usize, usize),
    ops: impl Fn(usize) -> Vec<Vec<Value>>,
) -> String {
    let gpu = |id: usize| {
        let peers: Vec<usize> = (0..n).filter(|peer| *peer != id).collect();
        let ids: Vec<usize> = (0..n - 1).collect();
        let block = |(number, ops): (usize, Vec<Value>)| {
            json!({"id": number, "ops": ops,
                "channels": [{"channel_type": "memory", "channel_ids": ids}],
                "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": ids}]})
        };
        let buffers: Vec<Value> = peers
            .iter()
            .map(|rank| json!({"rank": rank, "type": "s", "access_channel_types": ["memory"]}))
            .collect();
        json!({"id": id, "input_chunks": chunks, "output_chunks": chunks, "scratch_chunks": scratch,
            "channels": [{"channel_type": "memory", "connected_to": peers}],
            "remote_buffers": buffers, "semaphores": [{"init_value": 0}],
            "threadblocks": ops(id).into_iter().enumerate().map(block).collect::<Vec<_>>()})
    };
    let whole = json!({"name": "test", "collective": "allreduce", "protocol": protocol, "inplace": true,
        "num_threads_per_block": 512, "buffer_alignment": 16,
        "gpus": (0..n).map(gpu).collect::<Vec<_>>()});
    serde_json::to_string_pretty(&whole).expect("JSON")
}

/// Every rank stores its data in each peer's scratch at its own place, and adds what came.
fn all_pairs(n: usize) -> String {
    plan(n, "Simple", (1, n), |id| {
        let mut ops = Vec::new();
        for peer in 0..n - 1 {
            ops.push(json!({"name": "put", "channel_type": "memory", "channel_ids": [peer],
                "src_buff": [range("i", 0, 1)], "dst_buff": [remote(peer, id, 1)]}));
            ops.push(channel("signal", peer));
        }
        ops.extend((0..n - 1).map(|peer| channel("wait", peer)));
        let others = (0..n).filter(|rank| *rank != id).map(|rank| range("s", rank, 1));
        let sources: Vec<Value> = [range("i", 0, 1)].into_iter().chain(others).collect();
        ops.push(json!({"name": "re", "src_buff": sources, "dst_buff": [range("i", 0, 1)]}));
        vec![ops]
    })
}

/// The same in packets: two thread blocks share each move.
fn packets(n: usize) -> String {
    plan(n, "LL", (1, n), |id| {
        let block = |share: usize| {
            let group = json!({"tb_id": share, "tbg_size": 2});
            let mut ops: Vec<Value> = (0..n - 1)
                .map(|peer| json!({"name": "ppkt", "channel_type": "memory", "channel_ids": [peer],
                    "src_buff": [range("i", 0, 1)], "dst_buff": [remote(peer, id, 1)], "tbg_info": group}))
                .collect();
            let others = (0..n).filter(|rank| *rank != id).map(|rank| range("s", rank, 1));
            let sources: Vec<Value> = [range("i", 0, 1)].into_iter().chain(others).collect();
            ops.push(json!({"name": "repkt", "src_buff": sources, "dst_buff": [range("i", 0, 1)],
                "tbg_info": group}));
            ops
        };
        vec![block(0), block(1)]
    })
}

#[test]
fn sound_plans_are_proved_at_all_sizes() {
    let (two, eight) = (machine("h200x2-nvlink-pair"), machine("rtxpro6000x8-flat"));
    for (text, n) in [(all_pairs(2), 2), (all_pairs(4), 4), (packets(2), 2), (packets(8), 8)] {
        let on = if n == 2 { &two } else { &eight };
        let plan = parse_plan("plan.json", &text, None)
            .unwrap_or_else(|error| panic!("{}", collsim::input::render(&error, false)));
        prove_plan(&plan, on, &ranks(n)).unwrap_or_else(|error| panic!("{error}"));
        for bytes in [48, 14_336, 512 << 10] {
            let built = schedule(&plan, on, &ranks(n), plan.round_up(bytes)).expect("a schedule");
            collsim::schedule::proof::prove(&built)
                .unwrap_or_else(|flaw| panic!("{n} ranks, {bytes} B: {flaw}"));
        }
    }
}

#[test]
fn all_pairs_in_packets_take_about_what_our_own_kernel_takes() {
    let eight = machine("rtxpro6000x8-flat");
    let plan = parse_plan("plan.json", &packets(8), None).expect("a plan");
    let us = plan_us(&plan, &eight, &ranks(8), 14_336, Fidelity::Packet).expect("a time");
    // Seven packet copies of 14,336 B leave each GPU by a Gen5 x16 link: at least 3.2 us.
    let wires = 7.0 * 2.0 * 14_336.0 / 63e3;
    assert!(us > wires && us < 20.0 * wires, "{us} us, the link alone {wires}");
    let data = parse_plan("plan.json", &all_pairs(8), None).expect("a plan");
    assert!(
        plan_us(&data, &eight, &ranks(8), 14_336, Fidelity::Packet).expect("a time") > wires / 2.0
    );
}

#[test]
fn thread_blocks_of_a_gpu_meet() {
    // One block puts and waits, another adds after a barrier or a semaphore.
    let two = machine("h200x2-nvlink-pair");
    let text = |before: Value, after: Value| {
        plan(2, "Simple", (1, 1), |_| {
            let put = json!({"name": "put", "channel_type": "memory", "channel_ids": [0],
                "src_buff": [range("i", 0, 1)], "dst_buff": [remote(0, 0, 1)]});
            let add = json!({"name": "re", "src_buff": [range("i", 0, 1), range("s", 0, 1)],
                "dst_buff": [range("i", 0, 1)]});
            vec![
                vec![put, channel("signal", 0), channel("wait", 0), before.clone()],
                vec![after.clone(), add],
            ]
        })
    };
    let proved = |text: &str| {
        let plan = parse_plan("x", text, None)
            .unwrap_or_else(|error| panic!("{}", collsim::input::render(&error, false)));
        prove_plan(&plan, &two, &ranks(2)).map_err(|error| error.to_string())
    };
    let barrier = json!({"name": "barrier", "barrier_id": 0, "num_threadblocks": 2});
    assert_eq!(proved(&text(barrier.clone(), barrier)), Ok(()));
    let semaphore = |name: &str| json!({"name": name, "semaphore_ids": [0]});
    assert_eq!(proved(&text(semaphore("sem_release"), semaphore("sem_acquire"))), Ok(()));
    let nothing = json!({"name": "nop"});
    let flaw = proved(&text(nothing.clone(), nothing)).expect_err("no order");
    assert!(flaw.contains("is no all-reduce"), "{flaw}");
}

#[test]
fn flaws_and_what_is_not_replayed_are_refused_with_the_place() {
    let good = all_pairs(2);
    refused(&good.replace("\"put\"", "\"putt\""), &["`putt` is no operation", "plan:"]);
    let mut port: Value = serde_json::from_str(&good).expect("JSON");
    port["gpus"][0]["threadblocks"][0]["ops"][0]["channel_type"] = json!("port");
    refused(&port.to_string(), &["put: a port channel", "only memory channels are replayed"]);
    refused(
        &good.replace("\"allreduce\"", "\"allsum\""),
        &["`allsum` is no collective", "allreduce"],
    );
    refused(
        &good.replacen("\"buffer_id\": 0", "\"buffer_id\": 3", 1),
        &["a buffer that this thread"],
    );
    refused(&good.replacen("\"signal\"", "\"nop\"", 1), &["signals rank", "which waits 1 times"]);
    refused(&good.replacen("\"size\": 1", "\"size\": 4", 1), &["different sizes"]);
    refused(
        &good.replace("\"scratch_chunks\": 2", "\"scratch_chunks\": 1"),
        &["outside the 1 of Scratch"],
    );
    refused(&packets(2).replace("\"tb_id\": 1", "\"tb_id\": 0"), &["are stored twice"]);
    refused(&packets(2).replace("\"ppkt\"", "\"nop\""), &["nobody stores packets of chunk"]);
    refused(&good[..good.len() / 2], &["not valid JSON"]);
}
