//! Rows of the virtual-rank collectives, the same in three files.

use super::{About, Sink};
use crate::algorithm::{Implementation, Protocol};
use crate::error::Result;
use crate::measurement::table::Row;
use crate::measurement::{Carrier, KernelCall, Run};

/// The algorithm that a kernel of the probe is, with its protocol.
pub(in crate::measurement) fn kernel(row: &Row, name: &str) -> Result<(&'static str, Protocol)> {
    match name {
        "ring_ll" => Ok(("ring", Protocol::Ll)),
        "one_stage_pull" => Ok(("one_shot_pull", Protocol::Simple)),
        "two_stage_pull" => Ok(("two_shot_pull", Protocol::Simple)),
        "one_stage_push_ll" => Ok(("one_shot_push", Protocol::Ll)),
        _ => Err(row.wrong(format!("there is no kernel `{name}`"))),
    }
}

/// Adds a row; `experiment` says where the ranks are and what carries their data.
pub(super) fn add(
    sink: &mut Sink,
    row: &Row,
    experiment: &str,
    carrier: Carrier,
    fit: bool,
) -> Result<()> {
    let name = row.field(1);
    let (algorithm, protocol) = kernel(row, name)?;
    let ranks = row.count(row.after("ranks")?)?;
    // Without `per_gpu` all ranks are on one GPU.
    let per_gpu = match row.after("per_gpu") {
        Ok(text) => row.count(text)?.max(1),
        Err(_) => ranks,
    };
    let blocks = row.count(row.after("blocks")?)?;
    let bytes = row.count(row.after("bytes")?)?;
    let p50 = row.number(row.after("p50")?)?;
    // The two-GPU probes were compiled with other groups of loads.
    let implementation =
        if ranks > per_gpu { Implementation::PairProbe } else { Implementation::Probe };
    let gpus = (0..ranks).map(|rank| rank / per_gpu).collect();
    let run = Run::Collective(KernelCall {
        protocol,
        blocks: Some(blocks),
        carrier,
        ..KernelCall::all_reduce(algorithm, implementation, gpus, u64::from(bytes))
    });
    let text = format!("{name} {ranks} ranks, {blocks} blocks, {bytes} B");
    sink.add(row, About::new(experiment, text).fit(fit), run, 0, (p50, "us"));
    Ok(())
}
