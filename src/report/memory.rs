//! The budget of a GPU's memory, a line for each thing that takes some.

use std::fmt::Write;

use serde::Serialize;

use crate::selection::memory::{Budget, Buffers, GIB, Loss, Share};
use crate::topology::Confidence;
use crate::units::format_thousands;

/// Everything that was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Memory {
    /// The machine.
    pub topology: String,
    /// The workload.
    pub scenario: String,
    /// GPUs by name.
    pub gpu: String,
    /// GPUs of the group.
    pub ranks: u32,
    /// The engine by name.
    pub engine: String,
    /// How it divides memory.
    pub rule: String,
    /// Where that was read.
    pub rule_source: String,
    /// Captured batch sizes.
    pub graph_sizes: u32,
    /// Buffers, NCCL's first.
    pub buffers: Vec<Buffers>,
    /// The budget, GiB.
    pub budget: Budget,
    /// What is left for the KV cache, GiB.
    pub kv_cache: f64,
    /// What is left outside the share, GiB.
    pub spare: f64,
    /// What explains a KV cache that shrank.
    pub loss: Option<Loss>,
    /// What to know about the answer.
    pub notes: Vec<String>,
}

/// Shares nearer than this are alike.
const NEAR: f64 = 0.01;

/// As text.
pub fn text(memory: &Memory) -> String {
    let Memory { budget, ranks, .. } = memory;
    let mut out = format!(
        "{}: {} x {}, {}, {}: memory of one GPU\n",
        memory.topology, ranks, memory.gpu, memory.scenario, memory.engine
    );
    for note in &memory.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    let mut line = |gib: f64, what: &str| {
        let _ = writeln!(out, "{gib:>9.2} GiB  {what}");
    };
    line(budget.total, "in all, as CUDA reports it");
    line(-budget.context, "CUDA context and libraries (estimate)");
    for one in &memory.buffers {
        line(-(one.bytes() as f64) / GIB, &format!("buffers of {}", one.title));
    }
    line(budget.free(), "free before the model");
    line(-budget.weights, "weights");
    line(memory.kv_cache, &format!("KV cache at a share of {:.3}", budget.fraction));
    let graphs = format!(
        "{:.2} of CUDA graphs ({} batch sizes, estimate)",
        budget.graphs, memory.graph_sizes
    );
    let activations = format!("{:.2} of activations (estimate)", budget.activations);
    let rest = match budget.rule {
        Share::ShareOfFree => format!("left after {graphs} and {activations}"),
        Share::ShareOfTotal => format!("left after {graphs}; {activations} are in the share"),
    };
    line(memory.spare, &rest);
    if memory.kv_cache < 0.0 {
        let _ = writeln!(
            out,
            "the model does not fit: without any KV cache it needs a share of {:.3}",
            budget.fraction_for(0.0)
        );
    }
    if memory.spare < 0.0 {
        out.push_str("graphs and activations do not fit beside this share: lower it\n");
    }
    let _ = writeln!(out, "rule: {}\n      {}", memory.rule, memory.rule_source);
    out.push_str("buffers:\n");
    for part in memory.buffers.iter().flat_map(|one| one.parts.iter().map(move |p| (one, p))) {
        let (one, part) = part;
        let sure = match part.confidence {
            Confidence::Inferred => ", inferred",
            Confidence::Estimated => ", estimated",
            _ => "",
        };
        let bytes = format_thousands(part.bytes);
        let _ = writeln!(out, "{bytes:>14} B  {}: {} = {}", one.title, part.what, part.formula);
        let _ = writeln!(out, "                  {}{sure}", part.source);
    }
    if let Some(loss) = &memory.loss {
        explained(&mut out, loss, budget);
    }
    out
}

fn explained(out: &mut String, loss: &Loss, budget: &Budget) {
    let Loss { from, to, by_buffers, fractions: [before, after] } = loss;
    let share = 100.0 * loss.share_of_buffers();
    let _ = writeln!(
        out,
        "KV cache from {from:.2} to {to:.2} GiB, {:.2} lost:\n\
         {by_buffers:>9.2} GiB  by buffers beside NCCL's, {share:.1} % of it\n\
         \x20              a share of {before:.3} leaves {from:.2}, one of {after:.3} leaves {to:.2}: {:.3} less \
         explains it",
        from - to,
        before - after,
    );
    if (after - budget.fraction).abs() > NEAR {
        let _ = writeln!(
            out,
            "               at the share of {:.3} weights of {:.1} GiB would leave {to:.2}, and the step \
             from {from:.2} is as large",
            budget.fraction,
            budget.weights_for(*to),
        );
    }
    out.push_str(if share < 10.0 {
        "               so the share of memory explains the loss, not the kernel\n"
    } else if share > 90.0 {
        "               so the buffers explain the loss\n"
    } else {
        "               so the buffers explain a part of the loss\n"
    });
}
