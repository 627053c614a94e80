//! Traces of the torch profiler.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};

use collsim::input::traces::{Import, read_from};
use flate2::Compression;
use flate2::write::GzEncoder;

use super::{holds, listed, read, refused, scenario, stated, steps, trace};
use crate::cli::{simulate, simulate_with};
use crate::grids::Folder;

/// A kernel of NCCL as torch annotates it.
fn nccl(start: f64, duration: f64, elements: u64) -> String {
    format!(
        "{{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(args)\", \"pid\": 0, \
         \"tid\": 7, \"ts\": {start}, \"dur\": {duration}, \"args\": {{\"stream\": 7, \"Collective name\": \"allreduce\", \
         \"In msg nelems\": {elements}, \"Out msg nelems\": {elements}, \"dtype\": \"BFloat16\", \"Group size\": 2}}}}"
    )
}

fn file(rank: u32, events: &[String]) -> String {
    format!(
        "{{\"schemaVersion\": 1, \"distributedInfo\": {{\"backend\": \"nccl\", \"rank\": {rank}, \"world_size\": 2}},\n\
         \"traceEvents\": [\n{}\n], \"traceName\": \"x\"}}",
        events.join(",\n")
    )
}

/// Three steps of four calls, 10 us apart, 5 ms between steps; the second rank is late by `late`.
pub(super) fn rank(number: u32, late: f64) -> String {
    let mut events = vec![
        "{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": 0, \"args\": {\"name\": \"python\"}}".to_owned(),
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"nccl:all_reduce\", \"ts\": 0, \"dur\": 1, \
          \"args\": {\"Collective name\": \"allreduce\", \"In msg nelems\": 8, \"dtype\": \"Float\"}}"
            .to_owned(),
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"ts\": 1, \"dur\": 3, \"args\": {}}".to_owned(),
    ];
    for step in 0..3 {
        for call in 0..4 {
            let start = f64::from(step) * 5000.0 + f64::from(call) * 40.0;
            events.push(nccl(start + late, 30.0 - late, 7168));
        }
    }
    file(number, &events)
}

#[test]
fn steps_sizes_and_waiting() {
    let (one, notes) = scenario(vec![trace(&rank(0, 0.0))], &stated());
    assert_eq!(
        (one.tensor_parallel, steps(&one)),
        (2, vec!["all_reduce-14336-bf16 x 4".to_owned()])
    );
    assert!(one.steps[0].arrival.is_none());
    holds(&notes, "3 steps, divided where the pause is over 20 times the usual 10 us");
    // Both ranks end together; the second comes 8 us later.
    let (two, notes) = scenario(vec![trace(&rank(0, 0.0)), trace(&rank(1, 8.0))], &stated());
    assert_eq!(steps(&two), ["all_reduce-14336-bf16 x 4"]);
    assert_eq!(listed(&two)[..2], [vec![0.0, 0.0], vec![10.0, 18.0]]);
    holds(&notes, "26.0 us of a rank on average: 22.0 moving (its shortest stay), 4.0 waiting");
}

#[test]
fn calls_are_kept_as_they_are() {
    // 122 calls of one size and one of another, an fp32 reduction, kernels without sizes.
    let mut events: Vec<String> =
        (0..122).map(|call| nccl(f64::from(call) * 40.0, 30.0, 7168)).collect();
    events.push(nccl(5000.0, 30.0, 7296));
    events.push(nccl(5040.0, 30.0, 100).replace("bf16", "f32").replace("BFloat16", "Float"));
    events.push(
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"void vllm::cross_device_reduce_1stage<bf16, 8>\", \"ts\": 5080, \
         \"dur\": 9, \"args\": {}}"
            .to_owned(),
    );
    let trace = trace(&file(0, &events));
    let (found, notes) = scenario(vec![trace.clone()], &stated());
    assert_eq!(
        steps(&found),
        ["all_reduce-14336-bf16 x 122", "all_reduce-400-fp32 x 1", "all_reduce-14592-bf16 x 1"]
    );
    holds(&notes, "1 calls without a size are left out");
    let (found, _) = scenario(vec![trace], &Import { bytes: Some(512), ..stated() });
    assert!(steps(&found).contains(&"all_reduce-512-bf16 x 1".to_owned()));
}

#[test]
fn gathers_count_what_is_gathered() {
    let event = nccl(0.0, 30.0, 1000)
        .replace("AllReduce_Sum_bf16", "AllGather_RING_LL_Sum_int8")
        .replace("\"Collective name\": \"allreduce\"", "\"Collective name\": \"_allgather_base\"")
        .replace("\"Out msg nelems\": 1000", "\"Out msg nelems\": 2000");
    let (found, notes) = scenario(vec![trace(&file(0, &[event]))], &stated());
    assert_eq!(steps(&found), ["all_gather-4000-bf16 x 1"]);
    holds(&notes, "where steps begin is not known");
}

#[test]
fn a_packed_trace_and_one_that_breaks_off() {
    let text = rank(0, 0.0);
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text.as_bytes()).expect("packed");
    let packed = packer.finish().expect("packed");
    assert_eq!(read(&packed).expect("a trace").calls, trace(&text).calls);
    let end = text.len() / 2;
    let cut = trace(&text[..end]);
    assert!(!cut.calls.is_empty() && cut.calls.len() < 12);
    holds(&cut.warnings, "the trace breaks off at line");
    refused(read(b"{\"traceEvents\": [{\"cat\": 5}]}"), &["no trace: invalid type", "line 1"]);
}

#[test]
fn a_trace_without_ranks_needs_them_stated() {
    let text =
        rank(0, 0.0).replace("\"Group size\": 2", "\"x\": 2").replace("world_size\": 2", "w\": 2");
    let error = collsim::input::traces::import(vec![trace(&text)], &stated()).expect_err("ranks");
    assert!(error.to_string().contains("does not say how many ranks"), "{error}");
    let (found, _) = scenario(vec![trace(&text)], &Import { ranks: Some(8), ..stated() });
    assert_eq!(found.tensor_parallel, 8);
}

/// A trace of any length that is never whole in memory.
struct Endless {
    event: String,
    left: u64,
    place: usize,
    started: bool,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let start = "{\"traceEvents\": [";
        if !self.started {
            self.started = true;
            buffer[..start.len()].copy_from_slice(start.as_bytes());
            return Ok(start.len());
        }
        if self.left == 0 {
            return Ok(0);
        }
        let rest = &self.event.as_bytes()[self.place..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.place += count;
        if self.place == self.event.len() {
            (self.place, self.left) = (0, self.left - 1);
            if self.left == 0 && count < buffer.len() {
                return Ok(count);
            }
        }
        Ok(count)
    }
}

#[test]
fn a_long_trace_is_a_stream() {
    // 32 MiB of events that are no collectives, each with a stack of Python; then it breaks off.
    let mut event = String::from(
        "{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"ts\": 1, \"dur\": 1, \"args\": {\"stack\": \"",
    );
    while event.len() < 4000 {
        let _ = write!(event, "frame {} ", event.len());
    }
    event.push_str("\"}},\n");
    let told = std::cell::Cell::new(0);
    let source = Endless { left: (32 << 20) / event.len() as u64, event, place: 0, started: false };
    let result = read_from("long", source, None, &|bytes| told.set(bytes));
    refused(result, &["no trace: EOF"]);
    assert!(told.get() > 31 << 20);
}

#[test]
fn a_fault_is_shown_where_it_stands() {
    let folder = Folder::new("trace-fault");
    let name = folder.file("rank0.json");
    let long = "x".repeat(3000);
    let text = format!(
        "{{\"traceEvents\": [\n{{\"ph\": \"X\", \"name\": \"{long}\", \"ts\": \"abc\", \"dur\": 3}}\n]}}"
    );
    fs::write(&name, &text).expect("writable");
    for command in [&["import", &name][..], &["trace", "show", &name]] {
        let run = simulate(command);
        assert_eq!(run.code, 2, "{}", run.out);
        assert!(run.err.contains("at line 2 column"), "{}", run.err);
        // What stands there, not the whole line.
        assert!(run.err.contains("\"ts\": \"abc\", \"dur\": 3}`"), "{}", run.err);
        assert!(run.err.len() < 600, "{}", run.err);
    }
    // By a pipe the place must do.
    let run = simulate_with(&["trace", "show", "-"], text.as_bytes());
    assert!(run.err.contains("at line 2 column") && !run.err.contains('`'), "{}", run.err);
}
