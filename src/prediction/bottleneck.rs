//! What to widen first: the link whose queue cost most, or the part of the latency that dominates.

use serde::Serialize;

use super::case::{Case, Run};
use super::options::CaseOptions;
use crate::algorithm::Kernel;
use crate::engine::network::LinkUse;
use crate::fabric::Fabric;

/// Waiting below this share is no bottleneck of a link.
const WAITING_MIN: f64 = 0.05;
/// A link that sends for this share of the time is one.
const BUSY_MIN: f64 = 0.6;

/// What limits a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The directed link on which packets waited longest in all.
    Link {
        /// As `gpu3 -> vs1`.
        label: String,
        /// Mostly because a declared regime slows it.
        regime: bool,
    },
    /// No link to speak of: the part of an idle call that is longest.
    Latency {
        /// Which part.
        part: &'static str,
    },
}

impl Bottleneck {
    /// In a few words.
    pub fn label(&self) -> String {
        match self {
            Bottleneck::Link { label, regime } => {
                format!("{label}{}", if *regime { " *" } else { "" })
            }
            Bottleneck::Latency { part } => format!("latency: {part}"),
        }
    }
}

pub(super) fn bottleneck(
    fabric: &Fabric,
    case: &Case,
    kernel: &Kernel,
    run: &Run,
    waiting: f64,
    slowed: bool,
    options: &CaseOptions,
) -> Bottleneck {
    let links = run.outcome.links.iter().enumerate();
    // A link that sends most of the time limits the call, wherever the queues before it stand.
    let elapsed = run.outcome.ended.as_ps() as f64;
    let share = |used: &LinkUse| used.busy.as_ps() as f64 / elapsed.max(1.0);
    let busiest = links.clone().rev().max_by(|a, b| share(a.1).total_cmp(&share(b.1)));
    if let Some((index, used)) = busiest
        && !slowed
        && share(used) >= BUSY_MIN
    {
        let label = fabric.links[index].label.clone();
        return Bottleneck::Link { label, regime: false };
    }
    // A slowed link fills the queues of others; it is the one to name. Of equals the first.
    let worst = links.rev().max_by_key(|(_, used)| if slowed { used.regime } else { used.queued });
    if let Some((index, used)) = worst
        && waiting >= WAITING_MIN
        && used.queued.as_ps() > 0
    {
        let label = fabric.links[index].label.clone();
        return Bottleneck::Link { label, regime: slowed };
    }
    Bottleneck::Latency { part: longest_part(fabric, case, kernel, run, options) }
}

/// The longest of what an idle call is made of.
fn longest_part(
    fabric: &Fabric,
    case: &Case,
    kernel: &Kernel,
    run: &Run,
    options: &CaseOptions,
) -> &'static str {
    let n = options.gpus.len();
    let total = run.time.as_us();
    let launch = (kernel.start.unwrap_or_default() + kernel.end).as_us();
    let path = |a: usize, b: usize| {
        let (a, b) = (options.gpus[a], options.gpus[b]);
        fabric.path_latency(a, b).unwrap_or_default().as_us()
    };
    // One-way trips one after another: a ring's steps, or two barriers and a read.
    let (trips, wires) = if case.algorithm.name == "ring" || case.algorithm.name == "chain" {
        let steps = 2 * (n - 1);
        let around: f64 = (0..n).map(|rank| path(rank, (rank + 1) % n)).sum();
        (steps as f64, steps as f64 * around / n as f64)
    } else {
        let pairs = (0..n).flat_map(|a| (0..n).map(move |b| (a, b)));
        let farthest = pairs.filter(|(a, b)| a != b).map(|(a, b)| path(a, b)).fold(0.0, f64::max);
        (4.0, 4.0 * farthest)
    };
    let library = trips * kernel.step.as_us();
    let gpu = total - launch - wires - library;
    let parts = [(launch, "launch"), (wires, "wires"), (library, "library"), (gpu, "GPUs")];
    let longest = parts.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    longest.map_or("GPUs", |part| part.1)
}
