//! A check as text for a terminal.

use std::fmt::Write;

use super::check::{BOUND, CheckReport, CheckRow, Verdict};
use super::summary::{Group, Unmatched};
use crate::measurement::SET_ASIDE;

/// Columns of the text.
const WIDTH: usize = 110;
/// Worst rows shown.
const WORST: usize = 15;
/// Worst rows shown when asked for more.
const WORST_VERBOSE: usize = 80;

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width - 2).collect();
    short.push_str("..");
    short
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

pub(super) fn signed(share: f64) -> String {
    format!("{:+.1}", share * 100.0)
}

/// What is allowed, shortly: `med 12`, `p90 35`, `max 2`, `x1.5`.
pub(super) fn allowed(group: &Group) -> String {
    let mut parts = Vec::new();
    if let Some(most) = group.allowed_median {
        parts.push(format!("med {:.0}", most * 100.0));
    }
    if let Some(most) = group.allowed_p90 {
        parts.push(format!("p90 {:.0}", most * 100.0));
    }
    if let Some(most) = group.allowed_worst {
        parts.push(format!("max {:.0}", most * 100.0));
    }
    if let Some(most) = group.allowed_factor {
        parts.push(format!("x{most:.1}"));
    }
    parts.join(" ")
}

pub(super) fn verdict(misses: bool, known: bool, told: bool) -> &'static str {
    match (misses, known, told) {
        (true, true, _) => "MISS (known)",
        (true, false, _) => "MISS",
        (false, _, true) => "ok",
        _ => "",
    }
}

/// A table of groups, the orders, and the worst rows, misses first; 110 columns.
pub fn text(report: &CheckReport, verbose: bool) -> String {
    let mut out = String::new();
    for note in &report.notes {
        let _ = writeln!(out, "{}", cut(note, WIDTH));
    }
    let _ = groups_text(&mut out, report);
    let _ = orders_text(&mut out, report, verbose);
    let _ = worst_text(&mut out, report, if verbose { WORST_VERBOSE } else { WORST });
    let _ = set_aside_text(&mut out, report);
    let _ = unmatched_text(&mut out, report, verbose);
    let misses = report.groups.iter().filter(|group| group.misses).count()
        + report.orders.iter().filter(|order| order.misses).count();
    let (rows, inside) = (report.rows.len(), percent(report.coverage));
    let _ = writeln!(
        out,
        "\n{rows} predictions; {inside} % of the check rows inside their 80 % range; {misses} outside \
         tolerance"
    );
    out
}

/// Kind of data, rows, median, 90th percentile, worst and bias of a group.
pub(super) fn cells(group: &Group) -> [String; 6] {
    [
        if group.fit { "fit" } else { "check" }.to_owned(),
        group.count.to_string(),
        percent(group.median_abs_error),
        percent(group.p90_abs_error),
        signed(group.worst_error),
        signed(group.bias),
    ]
}

fn groups_text(out: &mut String, report: &CheckReport) -> std::fmt::Result {
    writeln!(out, "errors in %: predicted / measured - 1")?;
    let mut machine = "";
    for group in &report.groups {
        if group.machine != machine {
            machine = &group.machine;
            let topology = report.rows.iter().find(|row| row.machine == machine);
            let topology = topology.map_or("", |row| row.topology.as_str());
            writeln!(out, "\n{machine} [{topology}]")?;
            writeln!(
                out,
                "  {:<42} {:<5} {:>4} {:>6} {:>6} {:>7} {:>6} {:>6}  {:<14} ",
                "", "", "rows", "median", "p90", "worst", "bias", "in 80%", "allowed"
            )?;
        }
        let [kind, count, median, p90, worst, bias] = cells(group);
        let line = format!(
            "  {:<42} {:<5} {:>4} {:>6} {:>6} {:>7} {:>6} {:>6}  {:<14} {}",
            cut(&group.experiment, 42),
            kind,
            count,
            median,
            p90,
            worst,
            bias,
            format!("{:.0}", group.coverage * 100.0),
            allowed(group),
            verdict(group.misses, group.known_miss.is_some(), !allowed(group).is_empty()),
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn orders_text(out: &mut String, report: &CheckReport, verbose: bool) -> std::fmt::Result {
    if report.orders.is_empty() {
        return Ok(());
    }
    writeln!(out, "\norder of algorithms that differ by more than 10 % at the same size")?;
    for order in &report.orders {
        let line = format!(
            "  {:<44} {:<22} {:>4} of {:>4} right {}  {}",
            cut(&order.machine, 44),
            cut(&order.experiment, 22),
            order.right,
            order.pairs,
            order.allowed.map_or(String::new(), |least| format!("(least {:.0} %)", least * 100.0)),
            verdict(order.misses, order.known_miss.is_some(), order.allowed.is_some()),
        );
        writeln!(out, "{}", line.trim_end())?;
        for wrong in order.wrong.iter().take(if verbose { 5 } else { 0 }) {
            writeln!(out, "{}", cut(&format!("    wrong: {wrong}"), WIDTH))?;
        }
    }
    Ok(())
}

/// Rows by error, those of groups outside their tolerance first.
fn worst(report: &CheckReport, most: usize) -> Vec<&CheckRow> {
    let misses = |row: &CheckRow| {
        report.groups.iter().any(|group| {
            group.misses
                && group.machine == row.machine
                && group.experiment == row.experiment
                && group.fit == row.fit
        })
    };
    let mut rows: Vec<(bool, f64, &CheckRow)> = report
        .rows
        .iter()
        .map(|row| (misses(row), (1.0 + row.error).max(1e-9).ln().abs(), row))
        .collect();
    rows.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    rows.truncate(most);
    rows.into_iter().map(|row| row.2).collect()
}

fn figure(value: f64) -> String {
    match value {
        value if value >= 1000.0 => format!("{value:.0}"),
        value if value >= 100.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn worst_text(out: &mut String, report: &CheckReport, most: usize) -> std::fmt::Result {
    let rows = worst(report, most);
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nworst rows, those of groups outside tolerance first; nearest mechanism, and how many times \
         slower\n  its constants would have to be (? no constant that is off by {BOUND} deviations explains it)"
    )?;
    writeln!(out, "  {:>9} {:>9} {:>18}  {:>7}  ", "measured", "predicted", "80 % range", "error")?;
    for row in rows {
        let range = format!("{}-{}", figure(row.low), figure(row.high));
        let short: String = row.machine.chars().take(20).collect();
        let regime = match row.without_regimes {
            Some(value) => format!(" (without regimes {})", figure(value)),
            None => String::new(),
        };
        let near = row.nearest.as_ref().map_or(String::new(), |near| {
            let unexplained = if row.verdict == Verdict::NotExplained { "?" } else { "" };
            format!(" {} x{:.1}{unexplained},", near.mechanism, near.slower)
        });
        let line = format!(
            "  {:>9} {:>9} {range:>18} {:<4} {:>6}%  {short}{near} {}{regime}",
            figure(row.measured),
            figure(row.predicted),
            row.unit,
            format!("{:+.0}", row.error * 100.0),
            row.id,
        );
        writeln!(out, "{}", cut(&line, WIDTH))?;
    }
    Ok(())
}

/// Rows that make no sense, each with its reason.
fn set_aside_text(out: &mut String, report: &CheckReport) -> std::fmt::Result {
    let told = |entry: &Unmatched| {
        entry
            .reason
            .strip_prefix(SET_ASIDE)
            .map(|reason| (entry.count, entry.first.clone(), reason.to_owned()))
    };
    let rows: Vec<(usize, String, String)> = report.unmatched.iter().filter_map(told).collect();
    let all: usize = rows.iter().map(|row| row.0).sum();
    if all == 0 {
        return Ok(());
    }
    writeln!(out, "\n{all} rows set aside")?;
    for (count, first, reason) in rows {
        let more = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        writeln!(out, "{}", cut(&format!("  {first} {reason}{more}"), WIDTH))?;
    }
    Ok(())
}

fn unmatched_text(out: &mut String, report: &CheckReport, verbose: bool) -> std::fmt::Result {
    let others = || report.unmatched.iter().filter(|entry| !entry.reason.starts_with(SET_ASIDE));
    let all: usize = others().map(|entry| entry.count).sum();
    if all == 0 {
        return Ok(());
    }
    writeln!(out, "\n{all} rows without a prediction, by reason")?;
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for entry in others() {
        match reasons.iter_mut().find(|(reason, _)| *reason == entry.reason) {
            Some(found) => found.1 += entry.count,
            None => reasons.push((&entry.reason, entry.count)),
        }
    }
    reasons.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let shown = if verbose { reasons.len() } else { 5.min(reasons.len()) };
    for (reason, count) in &reasons[..shown] {
        writeln!(out, "{}", cut(&format!("  {count:>5}  {reason}"), WIDTH))?;
    }
    let rest: usize = reasons[shown..].iter().map(|(_, count)| count).sum();
    if rest > 0 {
        writeln!(out, "  {rest:>5}  other reasons")?;
    }
    Ok(())
}
