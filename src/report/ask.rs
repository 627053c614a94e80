//! An answer to a classic question, as tables.

use std::fmt::Write;

use super::number::{short, signed_percent};
use super::table::{Table, TableFormat};
use crate::sweep::ask::{Answered, Ask, Held, Measured};
use crate::sweep::measured::{Figure, Predicted};
use crate::units::{format_size, format_thousands};

/// The answer as text or Markdown.
pub fn page(ask: &Ask, answered: &Answered, format: TableFormat) -> String {
    let mut out = String::new();
    for (index, side) in ask.sides.iter().enumerate() {
        let edits = if side.edits.is_empty() { String::new() } else { format!(": {}", side.edits) };
        let _ = writeln!(out, "{}. {}: {}{edits}", index + 1, side.name, side.machine);
    }
    out.push('\n');
    out.push_str(&sides(ask, answered).write(format));
    if !answered.held.is_empty() {
        out.push('\n');
        out.push_str(&held(ask, answered).write(format));
    }
    for note in &ask.notes {
        let _ = write!(out, "\nNote: {note}.\n");
    }
    out
}

/// Measured changes beside their predictions, a row a change, and why those differ that do.
pub fn measured(all: &[Predicted], format: TableFormat) -> String {
    let header = ["change", "measured", "predicted", "was", "predicted", "error", "", "source"];
    // On a terminal there is no room for the sources.
    let columns = if matches!(format, TableFormat::Text) { 7 } else { 8 };
    let mut table = Table::new(&header[..columns]).left(6);
    if columns == 8 {
        table = table.left(7);
    }
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for one in all {
        let change = &one.change;
        let size = match change.figure {
            Figure::Call { bytes } => format!(", {}", format_size(bytes)),
            _ => String::new(),
        };
        let pair = |[before, after]: [f64; 2]| format!("{} -> {}", short(before), short(after));
        let percent = |[before, after]: [f64; 2]| signed_percent(after / before - 1.0);
        let verdict = if one.holds() {
            "ok".to_owned()
        } else {
            let reason = change.unexplained.as_deref().unwrap_or("not said");
            let number = match reasons.iter().find(|entry| entry.0 == reason) {
                Some(entry) => entry.1,
                None => {
                    reasons.push((reason, reasons.len() + 1));
                    reasons.len()
                }
            };
            format!("not explained ({number})")
        };
        let mut cells = vec![
            format!("{}{size}", change.what),
            format!("{} {}", pair(change.measured), change.unit),
            pair(one.predicted),
            percent(change.measured),
            percent(one.predicted),
            signed_percent(one.error),
            verdict,
            change.source.clone(),
        ];
        cells.truncate(columns);
        table.row(cells);
    }
    let mut out = table.write(format);
    for (reason, number) in reasons {
        let _ = write!(out, "\n({number}) {reason}.\n");
    }
    out
}

/// A row a size: each side's fastest call, and the change against the first.
fn sides(ask: &Ask, answered: &Answered) -> Table {
    let names: Vec<String> = (1..=ask.sides.len())
        .flat_map(|side| [format!("{side}: us/call"), "ms/step".to_owned(), "by".to_owned()])
        .chain((2..=ask.sides.len()).map(|side| format!("{side} against 1")))
        .collect();
    let header: Vec<&str> =
        std::iter::once("bytes").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(&header);
    for side in 0..ask.sides.len() {
        table = table.left(3 * side + 3);
    }
    for row in &answered.rows {
        let mut bytes: Vec<String> = row.iter().map(|one| format_size(one.bytes)).collect();
        bytes.dedup();
        let mut cells = vec![bytes.join(" / ")];
        let ms = |us: f64, calls: u32| us * f64::from(calls) / 1e3;
        for one in row {
            cells.extend([short(one.us), short(ms(one.us, one.calls)), one.by.clone()]);
        }
        let first = ms(row[0].us, row[0].calls);
        cells.extend(row[1..].iter().map(|o| signed_percent(ms(o.us, o.calls) / first - 1.0)));
        table.row(cells);
    }
    table
}

fn held(ask: &Ask, answered: &Answered) -> Table {
    let header = ["measured", "was", "predicted", "error", "sign", "source", "what differs"];
    let mut table = Table::new(&header).left(4).left(5).left(6);
    for (measured, one) in ask.measured.iter().zip(&answered.held) {
        let Held { what, measured: was, predicted, sign, source, unexplained } = one;
        let number = |value: f64| match measured {
            Measured::Ratio(_) => format!("{value:.2}"),
            Measured::Crossover(_) => format_thousands(value.round() as u64),
        };
        let error = predicted.map(|predicted| signed_percent(predicted / was - 1.0));
        table.row(vec![
            what.clone(),
            number(*was),
            predicted.map_or("not among these sizes".to_owned(), number),
            error.unwrap_or_default(),
            if *sign { "right" } else { "wrong" }.to_owned(),
            source.clone(),
            unexplained.clone().unwrap_or_default(),
        ]);
    }
    table
}
