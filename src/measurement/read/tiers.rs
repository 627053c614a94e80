//! `raw/latency_tiers.csv`: latency by kind of path.

use super::{About, Sink};
use crate::error::Result;
use crate::measurement::table::{Row, with_header};
use crate::measurement::{Pair, Run};

/// Bytes of a p2pmark latency read.
const LATENCY_BYTES: u32 = 128;

/// All rows.
pub(super) fn read(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in with_header(file, text)? {
        let (path, method) = (row.column("path")?, row.column("method")?);
        if path.contains("effective") || method.contains("all read all") {
            sink.skip(&row, "a sum over reads of all pairs one after another, no path's latency");
        } else if method.contains("flag ping-pong") {
            flag(sink, &row)?;
        } else if method.contains("128 B") {
            remote_read(sink, &row)?;
        } else if method.contains("CPU-driven") {
            sink.skip(&row, "launches by the CPU dominate");
        } else {
            sink.skip(&row, "no latency of a stated pair");
        }
    }
    Ok(())
}

fn two(row: &Row, a: &str, b: &str) -> Result<Pair> {
    Ok(Pair::Gpus(row.count(a)?, row.count(b)?))
}

fn flag(sink: &mut Sink, row: &Row) -> Result<()> {
    let pair = row.column("pair")?;
    let (a, b) = pair.split_once('-').ok_or_else(|| row.wrong("no pair such as 0-4"))?;
    let run = Run::Flag { pair: two(row, a, b)?, by_host: false, fenced: false };
    let fit = sink.machine == "wrx90-7955wx-4xpm50100-flat-16gpu"
        || sink.machine == "wrx90-7955wx-2xpm50100-flat-8gpu";
    let about = About::new("flag", format!("{pair}, {}", row.column("path")?)).fit(fit);
    sink.add(row, about, run, 0, (row.number(row.column("value")?)?, "ns"));
    Ok(())
}

/// nvidia-smi's word for the path, where the row gives it or a synonym.
fn path_word(path: &str) -> Option<&'static str> {
    let words = [
        ("PIX", "PIX"),
        ("PXB", "PXB"),
        ("PHB", "PHB"),
        ("NODE", "NODE"),
        ("SYS", "SYS"),
        ("same NUMA (tier", "PIX"),
        ("cross NUMA (tier", "SYS"),
    ];
    words.iter().find(|(start, _)| path.starts_with(start)).map(|entry| entry.1)
}

fn remote_read(sink: &mut Sink, row: &Row) -> Result<()> {
    let (path, pair) = (row.column("path")?, row.column("pair")?);
    if row.column("note")?.contains("old stack") {
        sink.skip(row, "an older kernel and driver");
        return Ok(());
    }
    let pair = match (pair.split_once("<-"), path_word(path)) {
        (Some((a, b)), _) => two(row, a, b)?,
        (None, Some(word)) => Pair::Path(word.to_owned()),
        _ => {
            sink.skip(row, "the pair is not stated");
            return Ok(());
        }
    };
    let run = Run::PeerRead { pair, bytes: LATENCY_BYTES };
    let fit = sink.machine == "wrx90-7955wx-2xpm50100-flat-8gpu"
        || sink.machine.starts_with("asus-esc8000a");
    let about = About::new("read latency 128 B", path).fit(fit);
    sink.add(row, about, run, 0, (row.middle(row.column("value")?)? * 1e3, "ns"));
    Ok(())
}
