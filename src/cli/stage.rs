//! Stages of the pipeline as JSON, for those who want to look inside.

use serde_json::json;

use super::output::pretty;
use crate::error::Result;
use crate::fabric::Fabric;
use crate::schedule::Schedule;

/// Directed links, and the path of each pair of GPUs.
pub(super) fn fabric(fabric: &Fabric) -> String {
    let links: Vec<_> = fabric
        .links
        .iter()
        .map(|link| {
            json!({
                "label": link.label,
                "class": link.class,
                "wire_gb_per_s": link.wire_rate().as_gb_per_s(),
                "latency_ns": link.latency.as_ns(),
                "buffer_bytes": link.buffer,
            })
        })
        .collect();
    let count = fabric.gpu_count as u32;
    let pairs = (0..count).flat_map(|a| (0..count).map(move |b| (a, b)));
    let paths: Vec<_> = pairs
        .filter(|(a, b)| a != b)
        .map(|(a, b)| {
            json!({
                "from_gpu": a,
                "to_gpu": b,
                "links": fabric.path(a, b),
                "read_128_byte_ns": fabric.read_latency(a as usize, b, 128).map(|t| t.as_ns()),
                "flag_ns": fabric.flag_latency(a as usize, b as usize).map(|t| t.as_ns()),
            })
        })
        .collect();
    format!("{:#}\n", json!({"gpus": fabric.gpu_count, "links": links, "paths": paths}))
}

/// What each rank does.
pub(super) fn schedule(schedule: &Schedule) -> Result<String> {
    pretty(schedule)
}
