//! A comparison as people read it: before, after, the difference with its range, and where the
//! bottleneck went; and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::json::made_from;
use super::number::{short, signed_percent, with_range};
use super::table::{Table, TableFormat};
use crate::error::Result;
use crate::prediction::{CasePrediction, Range};
use crate::sweep::compare::{Comparison, Difference, Side, StepDifference};
use crate::units::format_thousands;
use crate::workload::Step;

/// Columns of the table of a step.
const HEADER: [&str; 6] = ["", "before us", "after us", "change (80 %)", "ms/step", "bottleneck"];

/// The page. `told` are the edits, each with what it did.
pub fn page(comparison: &Comparison, told: &[(String, String)], format: TableFormat) -> String {
    let mut out = String::new();
    if format != TableFormat::Csv {
        head(&mut out, comparison, told);
    }
    for step in &comparison.steps {
        let table = table(step, format);
        if format == TableFormat::Csv {
            out.push_str(&table.write(format));
            continue;
        }
        let _ = writeln!(out, "\n{}", title(comparison, step));
        out.push_str(&table.write(format));
        if let Some(nccl) = &step.nccl {
            let _ = writeln!(out, "NCCL's choice: {}", nccl.title);
        }
        let _ = writeln!(out, "best: {}", best(step));
    }
    let touched = |row: &Difference| {
        [&row.before, &row.after].into_iter().flatten().any(|p| !p.regimes.is_empty())
    };
    if format != TableFormat::Csv && comparison.steps.iter().any(|s| s.rows.iter().any(touched)) {
        out.push_str(
            "* declared regime, cause unknown; it is taken to hold after the edits: --no-regimes\n",
        );
    }
    out
}

fn head(out: &mut String, comparison: &Comparison, told: &[(String, String)]) {
    let (before, after) = (&comparison.before, &comparison.after);
    let title = &before.machine.topology.title;
    let _ = writeln!(out, "before  {}: {title}", before.name);
    // The title of a machine is that of its file, which an edited machine may not be any more.
    let own = Some(&after.machine.topology.title).filter(|own| *own != title);
    let own = own.map_or(String::new(), |own| format!(": {own}"));
    let _ = writeln!(out, "after   {}{own}", after.name);
    for (edit, what) in told {
        let _ = writeln!(out, "        {edit}   ({what})");
    }
    for (word, side) in [("before", &comparison.before), ("after ", &comparison.after)] {
        for note in &side.notes {
            let _ = writeln!(out, "{word}  note: {note}");
        }
    }
}

fn title(comparison: &Comparison, step: &StepDifference) -> String {
    let told = |step: &Step, side: &Side| {
        let (what, bytes) = (step.collective.title(), format_thousands(step.bytes));
        let ranks = side.options.gpus.len();
        format!("{} {what}s of {bytes} B, {}, TP {ranks}", step.calls, step.dtype.name())
    };
    let before = told(&step.before, &comparison.before);
    let after = told(&step.after, &comparison.after);
    match before == after {
        true => format!("{}: {before}", step.before.name),
        false => format!("{}: {before} -> {after}", step.before.name),
    }
}

fn table(step: &StepDifference, format: TableFormat) -> Table {
    let mut table = Table::new(&HEADER).left(5);
    let [before, after] = step.bounds_us;
    let ms = |us: f64, step: &Step| us * f64::from(step.calls) / 1e3;
    let steps = [ms(before, &step.before), ms(after, &step.after)];
    table.row(vec![
        "wires allow".to_owned(),
        short(before),
        short(after),
        signed_percent(steps[1] / steps[0] - 1.0),
        arrow(&short(steps[0]), &short(steps[1])),
        arrow(&step.limits[0], &step.limits[1]),
    ]);
    let nccl = step.nccl.iter().map(|row| ("NCCL's choice".to_owned(), row));
    for (name, row) in nccl.chain(step.rows.iter().map(|row| (row.title.clone(), row))) {
        table.row(cells(name, row, step, format));
    }
    table
}

fn cells(
    name: String,
    row: &Difference,
    step: &StepDifference,
    format: TableFormat,
) -> Vec<String> {
    let us = |side: &Option<CasePrediction>| match side {
        Some(side) if format == TableFormat::Csv => format!("{:.3}", side.time_us.value),
        Some(side) => with_range(side.time_us),
        None => "-".to_owned(),
    };
    let ms = |side: &Option<CasePrediction>, step: &Step| match side {
        Some(side) => short(side.time_us.value * f64::from(step.calls) / 1e3),
        None => "-".to_owned(),
    };
    let limit = |side: &Option<CasePrediction>| match side {
        Some(side) => side.bottleneck.label(),
        None => "-".to_owned(),
    };
    vec![
        name,
        us(&row.before),
        us(&row.after),
        row.change.map_or("-".to_owned(), change),
        arrow(&ms(&row.before, &step.before), &ms(&row.after, &step.after)),
        arrow(&limit(&row.before), &limit(&row.after)),
    ]
}

/// `a => b`, or what both are.
fn arrow(before: &str, after: &str) -> String {
    if before == after { before.to_owned() } else { format!("{before} => {after}") }
}

/// `-38 % (-45 to -25)`.
pub fn change(range: Range) -> String {
    let number = |share: f64| format!("{:+.0}", share * 100.0);
    if range.low == range.high {
        return signed_percent(range.value);
    }
    format!("{} ({} to {})", signed_percent(range.value), number(range.low), number(range.high))
}

fn best(step: &StepDifference) -> String {
    let side = |side: &Option<CasePrediction>| match side {
        Some(side) => format!("{} {} us", side.title, short(side.time_us.value)),
        None => "-".to_owned(),
    };
    let moved = step.best.change.map_or(String::new(), |range| format!(", {}", change(range)));
    format!("{}{moved}", arrow(&side(&step.best.before), &side(&step.best.after)))
}

/// Everything as JSON.
///
/// # Errors
/// A topology that JSON cannot hold.
pub fn json(comparison: &Comparison, told: &[(String, String)], seed: u64) -> Result<Value> {
    let mut value = made_from(&comparison.before.machine)?;
    let after = made_from(&comparison.after.machine)?;
    value["inputs_after"] = after["inputs"].clone();
    value["inputs"]["scenario"] = json!(comparison.before.scenario.name);
    value["inputs"]["gpus"] = json!(comparison.before.options.gpus);
    value["inputs_after"]["gpus"] = json!(comparison.after.options.gpus);
    value["inputs"]["network_model"] = json!(comparison.before.options.fidelity.name());
    value["inputs"]["seed"] = json!(seed);
    let edits: Vec<Value> =
        told.iter().map(|(edit, what)| json!({"edit": edit, "did": what})).collect();
    value["edits"] = Value::Array(edits);
    value["notes"] = json!([comparison.before.notes, comparison.after.notes]);
    value["steps"] = json!(comparison.steps);
    Ok(value)
}
