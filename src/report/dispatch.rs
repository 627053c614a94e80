//! What a serving engine takes, what it refuses and why, and what each would take.

use std::fmt::Write;

use super::number::short;
use super::table::{Table, TableFormat};
use crate::selection::serving::Verdict;
use crate::sweep::dispatch::{Dispatched, Dispatching, Timed};
use crate::units::format_size;

/// The whole page.
pub fn page(dispatching: &Dispatching<'_>, sizes: &[Dispatched]) -> String {
    let Some(first) = sizes.first() else { return String::new() };
    let machine = &dispatching.machine.topology.name;
    let (engine, version) = (&first.dispatch.engine, &first.dispatch.version);
    let gpus = dispatching.options.gpus.len();
    let mut out = format!("{machine}: {engine} {version} on {gpus} GPUs, all-reduce, us a call\n");
    for note in &first.dispatch.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    out.push('\n');
    let labels: Vec<String> = sizes.iter().map(|size| format_size(size.dispatch.bytes)).collect();
    let mut header: Vec<&str> = vec!["tried in this order"];
    header.extend(labels.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for (row, verdict) in first.dispatch.candidates.iter().enumerate() {
        let mut cells = vec![verdict.title.clone()];
        cells.extend(sizes.iter().map(|size| cell(size, row)));
        table.row(cells);
    }
    out.push_str(&table.write(TableFormat::Text));
    out.push_str(
        "> taken  x refused: what it would take if it were allowed  - not simulated  * declared regime\n",
    );
    out.push_str(&reasons(sizes));
    out
}

fn cell(size: &Dispatched, row: usize) -> String {
    let verdict = &size.dispatch.candidates[row];
    let mark = match size.dispatch.chosen {
        Some(chosen) if chosen == row => "> ",
        _ if !verdict.available() => "x ",
        _ => "",
    };
    match &size.times[row] {
        Timed::Simulated(prediction) => {
            let regime = if prediction.regimes.is_empty() { "" } else { " *" };
            format!("{mark}{}{regime}", short(prediction.time_us.value))
        }
        Timed::Not(_) => format!("{mark}-"),
    }
}

/// Every refusal once, with the sizes it holds for where it does not hold for all.
fn reasons(sizes: &[Dispatched]) -> String {
    let mut out = String::new();
    let count = sizes[0].dispatch.candidates.len();
    for row in 0..count {
        let mut told: Vec<(String, Vec<u64>)> = Vec::new();
        for size in sizes {
            let verdict = &size.dispatch.candidates[row];
            let text = said(verdict, &size.times[row]);
            match told.iter_mut().find(|(known, _)| *known == text) {
                Some((_, at)) => at.push(size.dispatch.bytes),
                None => told.push((text, vec![size.dispatch.bytes])),
            }
        }
        for (text, at) in told.iter().filter(|(text, _)| !text.is_empty()) {
            out.push('\n');
            if at.len() < sizes.len() {
                let at: Vec<String> = at.iter().map(|&bytes| format_size(bytes)).collect();
                let _ = writeln!(out, "at {}:", at.join(", "));
            }
            out.push_str(text);
        }
    }
    out
}

/// Refused or forced at length, or why it is not simulated; nothing for the rest.
fn said(verdict: &Verdict, timed: &Timed) -> String {
    let mut text = if verdict.refusals.is_empty() && verdict.forced_by.is_empty() {
        String::new()
    } else {
        verdict.at_length()
    };
    if let Timed::Not(reason) = timed {
        if text.is_empty() {
            let _ = writeln!(text, "{}: {}", verdict.title, verdict.in_short());
        }
        let _ = writeln!(text, "  not simulated: {reason}");
    }
    text
}
