//! A machine and what is wrong with it, the dearest fault first.

use std::fmt::Write;

use super::machine::head;
use super::table::{Table, TableFormat};
use crate::fabric::Fabric;
use crate::topology::Topology;

/// A fault and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Priced {
    /// What it is.
    pub what: String,
    /// What to do about it.
    pub cure: String,
    /// What mending it saves of a small and a large all-reduce, us; `None` where it has no price.
    pub saved: Option<[f64; 2]>,
}

/// The page; `now` are the times of both all-reduces as the machine is, us.
pub fn faults_page(
    topology: &Topology,
    fabric: &Fabric,
    faults: &[Priced],
    now: Option<[f64; 2]>,
) -> String {
    let mut out = head(topology, fabric);
    if let Some(now) = now {
        let _ = writeln!(
            out,
            "  NCCL's all-reduce of all GPUs: 43,008 B {:.1} us, 32 MiB {:.2} ms (max-min model)",
            now[0],
            now[1] / 1e3
        );
    }
    out.push('\n');
    if faults.is_empty() {
        out.push_str("nothing is wrong with it that can be seen from here\n");
        return out;
    }
    out.push_str("what is wrong with it, the dearest first: what an all-reduce loses by it\n");
    let mut table = Table::new(&["43,008 B", "32 MiB", "what"]).left(2);
    for fault in faults {
        table.row(vec![cost(fault, now, 0), cost(fault, now, 1), fault.what.clone()]);
        table.row(vec![String::new(), String::new(), format!("  cure: {}", fault.cure)]);
    }
    out.push_str(&table.write(TableFormat::Text));
    if faults.iter().any(|fault| fault.saved.is_none()) {
        out.push_str("?: no part of the model stands for it\n");
    }
    out
}

/// The share of the time that mending it saves.
fn cost(fault: &Priced, now: Option<[f64; 2]>, size: usize) -> String {
    match (fault.saved, now) {
        (Some(saved), Some(now)) => format!("{:.0} %", 100.0 * saved[size] / now[size]),
        _ => "?".to_owned(),
    }
}
