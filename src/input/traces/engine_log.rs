//! Start-up logs of vLLM and SGLang: which all-reduce runs, and why another does not.

use std::io::BufRead;

use super::{Trace, TraceFormat, each_line};
use crate::error::Result;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "engine-log",
    title: "a log of vLLM or SGLang",
    sniff: |head| {
        // A scenario may name an engine among its sources.
        let json = head.trim_start().starts_with('{');
        !json && ["vllm", "sglang", "vLLM", "SGLang"].iter().any(|name| head.contains(name))
    },
    tells_calls: false,
    read,
};

/// Words of lines that say something of all-reduces, in lower case.
const SIGNS: [&str; 12] = [
    "custom allreduce",
    "custom all-reduce",
    "custom_all_reduce",
    "quickreduce",
    "quick allreduce",
    "symm_mem",
    "symmetric memory",
    "flashinfer allreduce",
    "allreduce fusion",
    "allreduce_fusion",
    "using nccl",
    "mscclpp",
];

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    each_line(file, stream, |_, text| {
        let small = text.to_lowercase();
        if SIGNS.iter().any(|sign| small.contains(sign)) {
            // What stands before the module's bracket is time and process.
            let said = text.rsplit_once("] ").map_or(text, |parts| parts.1).trim();
            trace.fact(said.to_owned());
        }
        if let Some(ranks) = number_after(&small, "tensor_parallel_size=")
            .or_else(|| number_after(&small, "tp_size="))
        {
            trace.ranks = trace.ranks.or(Some(ranks));
        }
    })?;
    trace.warn("start-up logs say which all-reduce runs, not which calls are made");
    Ok(())
}

fn number_after(text: &str, key: &str) -> Option<u32> {
    let (_, rest) = text.split_once(key)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}
