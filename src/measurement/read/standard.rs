//! `observations.csv`: the columns that all public machines share (`measured/README.md`).

use super::{About, Sink, collective};
use crate::error::Result;
use crate::measurement::table::{Row, with_header};
use crate::measurement::{Copy, Memory, Pair, Run};

/// What benchmarks copy one pair by; beyond the start the rate does not depend on it.
const COPY_BYTES: u64 = 64 << 20;
/// What p2pmark moves a pair with all pairs at once.
const ALL_PAIRS_BYTES: u64 = 64 << 20;
/// Bytes of a p2pmark latency read.
const LATENCY_BYTES: u32 = 128;

/// All rows.
pub(super) fn read(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in with_header(file, text)? {
        let told = format!("{} {}", row.column("condition")?, row.column("note")?).to_lowercase();
        if let Some(reason) = unusable(&told) {
            sink.skip(&row, reason);
            continue;
        }
        match row.column("experiment")? {
            "p2p_bandwidth" => copies(sink, &row, false)?,
            "p2p_bandwidth_bidirectional" => copies(sink, &row, true)?,
            "p2p_latency" => latency(sink, &row)?,
            "all_to_all_streams" => all_pairs(sink, &row)?,
            name if collective::is_collective(name) => collective::read(sink, &row)?,
            "decode_step" | "verify_step" => sink.skip(&row, "needs compute time"),
            other => sink.skip(&row, format!("no experiment for {other}")),
        }
    }
    Ok(())
}

/// Why a row cannot be used, from what its condition and note tell.
fn unusable(told: &str) -> Option<&'static str> {
    let reasons = [
        ("not idle", "GPUs were not idle: for spread only"),
        ("non-idle", "GPUs were not idle: for spread only"),
        ("superseded", "superseded: for spread only"),
        ("suspect", "the source's label is suspect"),
        ("env of this nccl column unclear", "the environment is unclear in the source"),
        ("host may be this box", "which machine it was is uncertain"),
        ("as above", "which machine it was is uncertain"),
    ];
    reasons.iter().find(|(words, _)| told.contains(words)).map(|entry| entry.1)
}

/// Source and destination of `0>3` or `0<>3`.
fn pair(row: &Row) -> Result<(u32, u32)> {
    let flows = row.column("flows")?;
    let (a, b) = flows
        .split_once("<>")
        .or_else(|| flows.split_once('>'))
        .ok_or_else(|| row.wrong(format!("`{flows}` is no pair such as 0>3")))?;
    Ok((row.count(a)?, row.count(b)?))
}

/// Whether a machine's constants were fitted to these rows.
fn is_fit(machine: &str, experiment: &str) -> bool {
    match machine {
        "wrx90-7955wx-2xpm50100-flat-8gpu" => true,
        "dual-turin-9575f-direct-8gpu" => experiment.starts_with("p2p_bandwidth"),
        "asus-esc8000a-e13p-2xpex890xx-8gpu" => {
            matches!(experiment, "p2p_bandwidth" | "p2p_latency")
        }
        _ => false,
    }
}

/// What is said of every row.
pub(super) fn about(sink: &Sink, row: &Row, experiment: String, text: String) -> Result<About> {
    let mut about =
        About::new(experiment, text).fit(is_fit(&sink.machine, row.column("experiment")?));
    row.column("condition")?.clone_into(&mut about.condition);
    Ok(about)
}

/// One pair by the source's engine; `both`, as p2pBandwidthLatencyTest does it: GPU i's engines
/// write to j and read from j at once, and the rate is the sum, until both have ended.
fn copies(sink: &mut Sink, row: &Row, both: bool) -> Result<()> {
    let told = format!("{} {}", row.column("implementation")?, row.column("condition")?);
    if told.contains("P2P=Disabled") || told.contains("p2p_disabled") {
        sink.skip(row, "P2P off: the driver's copies through host memory are not modelled");
        return Ok(());
    }
    if told.contains("stock_driver") {
        sink.skip(row, "P2P off (stock driver): copies through host memory are not modelled");
        return Ok(());
    }
    let (from, to) = pair(row)?;
    let write = Copy {
        from: Memory::Gpu(from),
        to: Memory::Gpu(to),
        engine: from,
        bytes: COPY_BYTES,
        kernel: false,
    };
    let read = Copy { from: Memory::Gpu(to), to: Memory::Gpu(from), ..write };
    let copies = if both { vec![write, read] } else { vec![write] };
    let rate = row.number(row.column("value")?)?;
    let experiment = row.column("experiment")?.to_owned();
    let about = about(sink, row, experiment, row.column("flows")?.to_owned())?;
    sink.add(row, about, Run::Copies(copies), 0, (rate, "GB/s"));
    Ok(())
}

fn latency(sink: &mut Sink, row: &Row) -> Result<()> {
    if !row.column("implementation")?.contains("128-byte remote read") {
        sink.skip(row, "p2pBandwidthLatencyTest times the issue of queued copies (trap 1)");
        return Ok(());
    }
    let (from, to) = pair(row)?;
    let run = Run::PeerRead { pair: Pair::Gpus(to, from), bytes: LATENCY_BYTES };
    let value = row.number(row.column("value")?)? * 1e3;
    let about = about(sink, row, "read latency 128 B".into(), row.column("flows")?.to_owned())?;
    sink.add(row, about, run, 0, (value, "ns"));
    Ok(())
}

/// GPUs of a group, by what the row says of it.
fn gpus(row: &Row, count: u32) -> Result<Vec<u32>> {
    let condition = row.column("condition")?;
    let first = if condition.contains("SW3+SW4") { 8 } else { 0 };
    Ok((first..first + count).collect())
}

fn all_pairs(sink: &mut Sink, row: &Row) -> Result<()> {
    let implementation = row.column("implementation")?;
    if !implementation.starts_with("p2pmark 3c39f36") {
        sink.skip(row, "torch copies to one destination are serialised (trap 2), or not stated");
        return Ok(());
    }
    let count = row.count(row.column("ranks")?)?;
    let gpus = gpus(row, count)?;
    let copies = crate::algorithm::streams::all_pairs_reads(&gpus, 0)
        .iter()
        .map(|stream| Copy {
            from: Memory::Gpu(stream.from),
            to: Memory::Gpu(stream.to),
            engine: stream.engine,
            bytes: ALL_PAIRS_BYTES,
            kernel: true,
        })
        .collect();
    let regime = sink.machine.starts_with("asus") && count == 8;
    let experiment = format!("all_to_all_streams {count} GPUs");
    let text = format!("{} {}", row.column("flows")?, row.column("condition")?);
    let mut about = about(sink, row, experiment, text)?;
    about.regime = regime;
    let rate = row.number(row.column("value")?)?;
    sink.add(row, about, Run::Copies(copies), 0, (rate, "GB/s"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_that_forbid_use_are_seen() {
        assert!(unusable("2026-03-20 gpus were not idle (superseded)").is_some());
        assert!(unusable("2026-03-20 idle gpus; the reference run").is_none());
    }

    #[test]
    fn pairs_one_way_and_both_ways() {
        let rows = with_header("x.csv", "flows\n0>3\n4<>5\n6\n").expect("one column");
        assert_eq!(pair(&rows[0]).expect("a pair"), (0, 3));
        assert_eq!(pair(&rows[1]).expect("a pair"), (4, 5));
        assert!(pair(&rows[2]).expect_err("none").to_string().contains("line 4"));
    }
}
