//! NCCL's logs, NCCL Inspector, nsys, Chakra, serving engines.

use collsim::input::traces::{Import, import};
use collsim::workload::Collective;

use super::{NCCL, holds, read, refused, scenario, stated, steps, trace};

#[test]
fn calls_of_a_log_of_nccl() {
    let read = trace(NCCL);
    assert_eq!(read.calls.len(), 5);
    assert_eq!((read.calls[1].rank, read.calls[1].bytes), (1, Some(14336)));
    // 100 floats of each of two ranks.
    assert_eq!((read.calls[2].collective, read.calls[2].bytes), (Collective::AllGather, Some(800)));
    for part in [
        "NCCL 2.27.7",
        "NCCL_P2P_LEVEL=SYS",
        "1 hops via P2P/CUMEM",
        "1 hops via SHM/direct/direct",
        "Algo RING proto LL",
        "2 coll channels",
    ] {
        holds(&read.facts, part);
    }
    holds(&read.warnings, "1 calls are cut off");
    let (found, notes) = scenario(vec![read], &stated());
    assert_eq!(found.tensor_parallel, 2);
    assert_eq!(steps(&found), ["all_reduce-14336-bf16 x 1", "all_gather-800-fp32 x 1"]);
    holds(&notes, "logged once, when they are captured");
    let (found, _) = scenario(vec![trace(&NCCL.repeat(6))], &Import { steps: Some(6), ..stated() });
    assert_eq!(steps(&found)[0], "all_reduce-14336-bf16 x 1");
}

#[test]
fn prefixes_before_nccls_own() {
    let text: String = NCCL.lines().map(|line| format!("(Worker_TP0 pid=7) {line}\n")).collect();
    assert_eq!(trace(&text).calls.len(), 5);
    holds(&trace("x NCCL WARN Call to bind failed\n").warnings, "NCCL warned: Call to bind failed");
    let error =
        import(vec![trace("x NCCL WARN Call to bind failed\n")], &stated()).expect_err("no call");
    assert!(error.to_string().contains("no collective call in sample (a log of NCCL)"), "{error}");
}

#[test]
fn inspector_tells_holes() {
    let line = |number: u32, rank: u32, time: f64| {
        format!(
            "{{\"header\": {{\"id\": \"0x1\", \"rank\": {rank}, \"n_ranks\": 8, \"nnodes\": 1}}, \"metadata\": {{}}, \"coll_perf\": \
             {{\"coll\": \"AllReduce\", \"coll_sn\": {number}, \"coll_msg_size_bytes\": 14336, \"coll_exec_time_us\": {time}, \
             \"coll_algobw_gbs\": 0.5}}}}\n"
        )
    };
    let text = [
        line(1, 0, 20.0),
        line(1, 1, 24.0),
        line(4, 0, 21.0),
        line(4, 1, 21.0),
        "{\"coll_".to_owned(),
    ]
    .concat();
    let read = trace(&text);
    assert_eq!(read.calls.len(), 4);
    holds(&read.warnings, "4 calls are missing by their numbers");
    assert_eq!(read.left_out["lines that are no JSON"], 1);
    let (found, notes) = scenario(vec![read], &stated());
    assert_eq!(
        (found.tensor_parallel, steps(&found)),
        (8, vec!["all_reduce-14336-bf16 x 2".to_owned()])
    );
    // Shortest stays 20 and 21, means 22 and 21.
    holds(&notes, "21.5 us of a rank on average: 20.5 moving (its shortest stay), 1.0 waiting");
}

#[test]
fn nsys_has_times_and_no_sizes() {
    let text = "Processing [x.sqlite] with [cuda_gpu_trace.py]...\n\
        Start (ns),Duration (ns),CorrId,GrdX,Device,Ctx,Strm,Name\n\
        1000,20000,1,1,NVIDIA H200 (0),1,7,\"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)\"\n\
        1500,19500,1,1,NVIDIA H200 (1),1,7,\"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)\"\n\
        30000,5000,1,1,NVIDIA H200 (0),1,7,\"gemm\"\n";
    let read = trace(text);
    assert_eq!(read.calls.len(), 2);
    assert_eq!((read.calls[1].rank, read.calls[1].start_us), (1, Some(1.5)));
    let error = import(vec![read.clone()], &stated()).expect_err("no sizes");
    assert!(error.to_string().contains("the size of none is known"), "{error}");
    let (found, _) = scenario(vec![read], &Import { bytes: Some(14336), ..stated() });
    assert_eq!(
        (found.tensor_parallel, steps(&found)),
        (2, vec!["all_reduce-14336-bf16 x 1".to_owned()])
    );
}

#[test]
fn chakra_in_json() {
    let text = r#"{"workload_graph": [
        {"Id": 1, "Name": "COMP", "NodeType": 4, "runtime": 5},
        {"Id": 2, "Name": "ar", "NodeType": 7, "comm_type": 0, "comm_size": 4096},
        {"Id": 3, "Name": "bar", "NodeType": 7, "comm_type": 9, "comm_size": 0}]}"#;
    let (found, notes) = scenario(vec![trace(text)], &Import { ranks: Some(4), ..stated() });
    assert_eq!(steps(&found), ["all_reduce-4096-bf16 x 1"]);
    holds(&notes, "left out: 1 nodes of comm_type 9");
    refused(
        read(text.replace("\"NodeType\": 4", "\"NodeType\": \"x\"").as_bytes()),
        &["no Chakra trace", "line 2"],
    );
}

/// A number in groups of seven bits.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn number(tag: u64, value: u64) -> Vec<u8> {
    [varint(tag << 3), varint(value)].concat()
}

fn part(tag: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(tag << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A node of Chakra's form: name, type, start and duration, attributes by the field of their value.
fn node(name: &str, kind: u64, time: (u64, u64), attributes: &[(&str, u64, u64)]) -> Vec<u8> {
    let mut bytes =
        [number(1, 9), part(2, name.as_bytes()), number(3, kind), number(6, time.0)].concat();
    bytes.extend(number(7, time.1));
    for (name, field, value) in attributes {
        bytes.extend(part(10, &[part(1, name.as_bytes()), number(*field, *value)].concat()));
    }
    bytes
}

fn chakra_et() -> Vec<u8> {
    let messages = [
        part(1, b"0.0.4"),
        node("gemm", 4, (0, 9), &[("comm_type", 9, 0)]),
        node("one", 7, (10, 30), &[("comm_type", 9, 0), ("comm_size", 9, 14_336)]),
        node("two", 7, (1000, 20), &[("comm_type", 13, 2), ("comm_size", 13, 800)]),
        node("send", 7, (1100, 20), &[("comm_type", 9, 9)]),
    ];
    messages
        .iter()
        .flat_map(|message| [varint(message.len() as u64), message.clone()].concat())
        .collect()
}

#[test]
fn chakra_in_protobuf() {
    let bytes = chakra_et();
    let read_as =
        |file: &str, bytes: &[u8]| collsim::input::traces::read_from(file, bytes, None, &|_| ());
    let found = read_as("llama.3.et", &bytes).expect("a trace");
    assert_eq!(found.calls.len(), 2);
    let first = &found.calls[0];
    assert_eq!((first.rank, first.bytes, first.start_us), (3, Some(14_336), Some(10.0)));
    assert_eq!(first.duration_us, Some(30.0));
    assert_eq!(found.left_out["nodes of comm_type 9"], 1);
    holds(&found.warnings, "some writers put nanoseconds");
    let (scenario, _) = scenario(vec![found], &Import { ranks: Some(4), ..stated() });
    assert_eq!(steps(&scenario), ["all_reduce-14336-bf16 x 1", "all_gather-800-bf16 x 1"]);
    // Cut off: what was before stands, unless it is nothing.
    let cut = read_as("llama.3.et", &bytes[..bytes.len() - 5]).expect("the start of it");
    holds(&cut.warnings, "breaks off in message 4");
    refused(read_as("x.et", &bytes[..20]), &["message 1: it is cut off", "is it a Chakra trace"]);
    let endless = [&bytes[..8], &[0xff; 12]].concat();
    refused(read_as("x.et", &endless), &["message 1: its length has more than ten bytes"]);
    let huge = [&bytes[..8], &varint(1 << 40)].concat();
    refused(read_as("x.et", &huge), &["no length of a message"]);
}

#[test]
fn logs_of_engines_say_what_runs() {
    let text = "INFO 03-01 10:00:00 [__init__.py:1] Initializing a V1 LLM engine (vllm) tensor_parallel_size=8\n\
        WARNING 03-01 10:00:05 [custom_all_reduce.py:146] Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.\n\
        INFO 03-01 10:00:06 [pynccl.py:70] vLLM is using nccl==2.27.3\n";
    let read = trace(text);
    assert_eq!(read.ranks, Some(8));
    holds(&read.facts, "Custom allreduce is disabled because");
    holds(&read.facts, "vLLM is using nccl==2.27.3");
    let error = import(vec![read], &stated()).expect_err("no calls");
    assert!(error.to_string().contains("no collective call"), "{error}");
}
