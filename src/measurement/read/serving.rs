//! Rows of all-reduce kernels of serving libraries, named `library version`.

use super::Sink;
use super::collective::{experiment, size, time_us};
use super::standard::about;
use crate::algorithm::{Implementation, Protocol};
use crate::error::Result;
use crate::measurement::table::Row;
use crate::measurement::{Carrier, Run};
use crate::schedule::Collective;

/// vLLM's and SGLang's first kernel reads all of each peer below this, where NVLink joins all GPUs:
/// ranks up to which it holds, and bytes (`custom_all_reduce.cuh`).
const ONE_STAGE_BELOW: [(u32, u64); 3] = [(2, u64::MAX), (4, 512 << 10), (8, 256 << 10)];
/// SGLang hands larger calls to NCCL.
const SGLANG_MOST: u64 = 8 << 20;

/// One row.
pub(super) fn read(sink: &mut Sink, row: &Row) -> Result<()> {
    let name = row.column("implementation")?;
    let (ranks, bytes) = (row.count(row.column("ranks")?)?, size(row)?);
    if let Some(reason) = unmodelled(sink, name, ranks, bytes) {
        sink.skip(row, reason);
        return Ok(());
    }
    let below = ONE_STAGE_BELOW.iter().find(|entry| ranks <= entry.0).map_or(0, |entry| entry.1);
    let (algorithm, stage) = match bytes < below {
        true => ("one_shot_pull", "one-stage"),
        false => ("two_shot_pull", "two-stage"),
    };
    let run = Run::Collective {
        collective: Collective::AllReduce,
        algorithm,
        protocol: Protocol::Simple,
        implementation: Implementation::CustomAllReduce,
        gpus: (0..ranks).collect(),
        bytes,
        blocks: None,
        carrier: Carrier::Peer,
        launched_in_turn: false,
    };
    let experiment = experiment(sink, &format!("custom all-reduce, {stage}"), ranks, "");
    let about = about(sink, row, experiment, format!("{name} {ranks} GPUs {bytes} B"))?;
    sink.add(row, about, run, 0, (time_us(row)?, "us"));
    Ok(())
}

/// Why nothing is predicted, if so.
fn unmodelled(sink: &Sink, name: &str, ranks: u32, bytes: u64) -> Option<String> {
    let nvswitch = sink.topology.ends_with("nvswitch");
    match name.split_once(' ') {
        Some(("SGLang", version)) if !version.starts_with("0.5.14") => {
            let nccl = bytes >= SGLANG_MOST || (!nvswitch && ranks > 2);
            nccl.then(|| "SGLang leaves calls of this size to NCCL".into())
        }
        Some(("vLLM", _)) => {
            let other = bytes >= vllm_most(sink, ranks) || (!nvswitch && ranks > 2);
            other.then(|| "vLLM leaves calls of this size to another kernel".into())
        }
        _ => Some(format!("no model of {name}")),
    }
}

/// From here on vLLM takes torch's symmetric memory or NCCL.
fn vllm_most(sink: &Sink, ranks: u32) -> u64 {
    let sizes: [u64; 4] = match sink.topology.get(..4) {
        Some("h100" | "h200" | "h800") => [64 << 20, 32 << 20, 512 << 10, 256 << 10],
        Some("b200") => [2 << 20, 2 << 20, 1 << 20, 1 << 20],
        _ => [8 << 20; 4],
    };
    sizes[(ranks as usize / 2).clamp(1, 4) - 1]
}
