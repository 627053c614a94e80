//! The part of the accuracy page that tells what is far off, and why.

use std::collections::BTreeMap;
use std::fmt::{Result, Write};

use super::cause::{MISS, Miss};
use super::check::CheckReport;
use super::render::signed;

/// Misses over a quarter, those of one cause together.
pub(super) fn causes(out: &mut String, report: &CheckReport) -> Result {
    let rows: usize = report.misses.iter().map(|miss| miss.over).sum();
    writeln!(out, "## Misses over {:.0} %, by suspected cause\n", MISS * 100.0)?;
    writeln!(
        out,
        "{rows} of {} rows, fit and check, in {} groups of a machine, an experiment and a class of size.",
        report.rows.len(),
        report.misses.len()
    )?;
    writeln!(out, "Errors in % of the rows that miss.\n")?;
    let mut by_cause: BTreeMap<&str, Vec<&Miss>> = BTreeMap::new();
    for miss in &report.misses {
        let cause = miss.cause.as_deref().unwrap_or("cause unknown");
        by_cause.entry(cause).or_default().push(miss);
    }
    let mut ordered: Vec<(&str, Vec<&Miss>)> = by_cause.into_iter().collect();
    let over = |misses: &[&Miss]| misses.iter().map(|miss| miss.over).sum::<usize>();
    ordered.sort_by_key(|(_, misses)| std::cmp::Reverse(over(misses)));
    for (cause, misses) in ordered {
        writeln!(out, "**{}** {}.\n", over(&misses), cause)?;
        writeln!(out, "| machine | experiment | size | rows | errors |\n|---|---|---|---:|---:|")?;
        for miss in misses {
            let errors = match miss.over {
                1 => signed(miss.low),
                _ => format!("{} to {}", signed(miss.low), signed(miss.high)),
            };
            let Miss { machine, experiment, size, over, rows, .. } = miss;
            writeln!(out, "| {machine} | {experiment} | {size} | {over} of {rows} | {errors} |")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Groups and orders outside what is allowed.
pub(super) fn misses(out: &mut String, report: &CheckReport) -> Result {
    writeln!(out, "\n## Outside tolerance\n")?;
    for group in report.groups.iter().filter(|group| group.misses) {
        let reason = group.known_miss.as_deref().unwrap_or("not explained yet");
        writeln!(
            out,
            "- {}, {}: {reason}. Worst: {} ({} %).",
            group.machine,
            group.experiment,
            { &group.worst },
            signed(group.worst_error)
        )?;
    }
    for order in report.orders.iter().filter(|order| order.misses) {
        let reason = order.known_miss.as_deref().unwrap_or("not explained yet");
        writeln!(out, "- {}, order of {}: {reason}.", order.machine, order.experiment)?;
    }
    Ok(())
}
