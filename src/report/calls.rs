//! The calls of traces as tables for people.

use std::fmt::Write;

use super::number::{short, with_range};
use super::table::{Table, TableFormat};
use crate::input::traces::{Call, Kind, Spread, Summary};
use crate::prediction::Range;
use crate::units::format_thousands;

/// Most facts, and most warnings, that are shown; JSON has all.
const SHOWN: usize = 12;

/// Everything that a trace says, on a screen.
pub fn page(summary: &Summary) -> String {
    let mut out = summary.sources.join("\n") + "\n" + &head(summary) + "\n";
    if !summary.kinds.is_empty() {
        out.push_str(&kinds(&summary.kinds).write(TableFormat::Text));
    }
    let mut list = |title: &str, lines: &[String]| {
        for line in lines.iter().take(SHOWN) {
            let _ = writeln!(out, "{title}: {line}");
        }
        if lines.len() > SHOWN {
            let _ = writeln!(out, "{title}: {} more, see --json", lines.len() - SHOWN);
        }
    };
    let left = summary.left_out.iter();
    let left: Vec<String> =
        left.map(|(what, &count)| format!("{} {what}", format_thousands(count))).collect();
    list("left out", &left);
    list("not told", &untold(summary));
    list("warning", &summary.warnings);
    list("says", &summary.facts);
    out
}

fn head(summary: &Summary) -> String {
    let calls = format_thousands(summary.calls as u64);
    let seen = summary.seen.len();
    let group = summary.kinds.iter().filter_map(|kind| kind.ranks).max().or(summary.ranks);
    let ranks = match group {
        Some(ranks) if ranks as usize > seen => format!("{seen} of {ranks} ranks"),
        Some(ranks) if (ranks as usize) < seen => format!("{seen} ranks in groups of {ranks}"),
        _ if seen == 1 => "one rank".to_owned(),
        _ => format!("{seen} ranks"),
    };
    let span = summary.span_us.map_or(String::new(), |us| format!(", {} ms", short(us / 1e3)));
    match summary.calls {
        0 => "no collective call\n".to_owned(),
        _ => format!("{calls} calls of {ranks}{span}\n"),
    }
}

/// Name of a column, and a kind's cell in it.
type Column<'a> = (&'static str, &'a dyn Fn(&Kind) -> String);

/// Columns that no kind has a figure for are left out.
fn kinds(kinds: &[Kind]) -> Table {
    let spread = |Spread { median, low, high }: Spread| match high - low > 1e-3 * median {
        true => with_range(Range { value: median, low, high }),
        false => short(median),
    };
    let number = |us: Option<f64>| us.map_or(String::new(), short);
    let bytes = |kind: &Kind| kind.bytes.map_or(String::new(), format_thousands);
    let ranks = |kind: &Kind| kind.ranks.map_or(String::new(), |ranks| ranks.to_string());
    let share = |kind: &Kind| {
        let total: f64 = kinds.iter().filter_map(|kind| kind.total_us).sum();
        kind.total_us.map_or(String::new(), |us| format!("{:.0} %", us / total.max(1e-9) * 100.0))
    };
    let columns: [Column; 11] = [
        ("collective", &|kind| kind.collective.title().to_owned()),
        ("bytes", &bytes),
        ("type", &|kind| kind.dtype.clone()),
        ("ranks", &ranks),
        ("calls of a rank", &|kind| counted(kind.calls)),
        ("us/call (80 %)", &|kind| kind.stay_us.map_or(String::new(), spread)),
        ("moving", &|kind| number(kind.moving_us)),
        ("waiting", &|kind| number(kind.waiting_us)),
        ("pause before", &|kind| kind.pause_us.map_or(String::new(), spread)),
        ("of all", &share),
        ("by", &|kind| kernel(&kind.by)),
    ];
    let columns: Vec<_> = columns
        .iter()
        .filter(|column| kinds.iter().any(|kind| !column.1(kind).is_empty()))
        .collect();
    let header: Vec<&str> = columns.iter().map(|column| column.0).collect();
    let mut table = Table::new(&header);
    if header.last() == Some(&"by") {
        table = table.left(header.len() - 1);
    }
    for kind in kinds {
        table.row(columns.iter().map(|column| column.1(kind)).collect());
    }
    table
}

fn counted([fewest, most]: [usize; 2]) -> String {
    let [few, many] = [fewest, most].map(|count| format_thousands(count as u64));
    if fewest == most { many } else { format!("{few} to {many}") }
}

/// A kernel's name without its arguments, parameters of its template and namespaces.
fn kernel(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let end = name.find(['<', '(']).unwrap_or(name.len());
    let plain = &name[..end];
    plain.rsplit("::").next().unwrap_or(plain).to_owned()
}

/// What the calls of these files lack.
fn untold(summary: &Summary) -> Vec<String> {
    let kinds = &summary.kinds;
    let count = |kinds: &mut dyn Iterator<Item = &Kind>| -> u64 {
        kinds.map(|kind| kind.calls[1] as u64).sum()
    };
    let all = count(&mut kinds.iter());
    let lacks = |has: fn(&Kind) -> bool, what: &str| {
        let lacking = count(&mut kinds.iter().filter(|kind| !has(kind)));
        let [some, all] = [lacking, all].map(format_thousands);
        (lacking > 0).then(|| format!("{what} of {some} of {all} calls of a rank"))
    };
    let size = lacks(|kind| kind.bytes.is_some(), "the size");
    let time = lacks(|kind| kind.stay_us.is_some(), "the time");
    let mut untold: Vec<String> = size.into_iter().chain(time).collect();
    if kinds.iter().all(|kind| kind.stay_us.is_none()) {
        return untold;
    }
    if kinds.iter().all(|kind| kind.waiting_us.is_none()) {
        untold.push("waiting apart from moving: that takes a trace of every rank".to_owned());
    } else if let Some(kind) = kinds.iter().find(|kind| kind.waiting_us.is_none()) {
        let what = format!("{} by {}", kind.collective.title(), kernel(&kind.by));
        untold.push(format!("waiting in {what}: ranks made different numbers of calls"));
    }
    untold
}

/// Every call, rank by rank.
pub fn every_call(calls: &[Call]) -> String {
    let header = ["rank", "call", "start us", "us", "collective", "bytes", "type", "by"];
    let mut table = Table::new(&header).left(4).left(7);
    let time = |us: Option<f64>| us.map_or(String::new(), |us| format!("{us:.3}"));
    for of_rank in calls.chunk_by(|a, b| a.rank == b.rank) {
        for (number, call) in of_rank.iter().enumerate() {
            table.row(vec![
                call.rank.to_string(),
                number.to_string(),
                time(call.start_us),
                time(call.duration_us),
                call.collective.title().to_owned(),
                call.bytes.map_or(String::new(), format_thousands),
                call.dtype.clone(),
                kernel(&call.by),
            ]);
        }
    }
    table.write(TableFormat::Text)
}
