//! `observations.csv`: the columns that all public machines share (`measured/README.md`).

use super::{About, SET_ASIDE, Sink, beside, collective, probe};
use crate::error::Result;
use crate::measurement::table::{Row, with_header_or_fault};
use crate::measurement::{Copy, Memory, Pair, Run};

/// What benchmarks copy one pair by; beyond the start the rate does not depend on it.
const COPY_BYTES: u64 = 64 << 20;
/// What p2pmark moves a pair with all pairs at once.
const ALL_PAIRS_BYTES: u64 = 64 << 20;
/// Bytes of a p2pmark latency read.
const LATENCY_BYTES: u32 = 128;

/// Columns without which a row says nothing.
const COLUMNS: [&str; 17] = [
    "experiment",
    "implementation",
    "algorithm",
    "protocol",
    "channels",
    "ranks",
    "nodes",
    "flows",
    "size_bytes",
    "dtype",
    "placement",
    "condition",
    "run",
    "metric",
    "value",
    "unit",
    "note",
];
/// An all-reduce over several GPUs that is shorter is a broken measurement.
const SHORTEST_ALL_REDUCE_US: f64 = 2.0;

/// All rows. Those that make no sense are set aside with the reason, where the file is a user's own;
/// ours have none.
pub(super) fn read(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    let (rows, faulty) = with_header_or_fault(file, text)?;
    for (row, fault) in faulty {
        sink.set_aside(&row, row.wrong(fault))?;
    }
    if let Some(first) = rows.first() {
        let missing = first.missing(&COLUMNS);
        if !missing.is_empty() {
            return Err(first.wrong(format!("columns are missing: {}", missing.join(", "))));
        }
    }
    for (index, row) in rows.iter().enumerate() {
        let earlier = rows[..index].iter().find(|earlier| earlier.same_as(row));
        if let Some(earlier) = earlier.filter(|_| sink.sets_aside) {
            sink.skip(row, format!("{SET_ASIDE}the same row as line {}", earlier.line));
            continue;
        }
        let done = match unsound(row) {
            Ok(None) => one(sink, row),
            Ok(Some(reason)) => {
                sink.skip(row, format!("{SET_ASIDE}{reason}"));
                Ok(())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = done {
            sink.set_aside(row, error)?;
        }
    }
    Ok(())
}

/// What is wrong with the figure of a row, if anything.
fn unsound(row: &Row) -> Result<Option<String>> {
    let (metric, unit) = (row.column("metric")?, row.column("unit")?);
    let wanted: &[&str] = match metric {
        // Fences, polls and lines of the probe are short.
        "time" if probe::wrote(row)? => &["us", "ns"],
        "time" => &["us"],
        "latency" => &["us", "ns"],
        "bandwidth" | "bus_bandwidth" | "algorithm_bandwidth" => &["GB/s", "GBps"],
        _ => return Ok(None),
    };
    if !wanted.contains(&unit) {
        let wanted = wanted.join(" or ");
        return Ok(Some(format!("{metric} in `{unit}`, expected {wanted}")));
    }
    let value = row.number(row.column("value")?)?;
    let all_reduce = row.column("experiment")? == "all_reduce" && metric == "time";
    if all_reduce && row.count(row.column("ranks")?)? > 1 && value < SHORTEST_ALL_REDUCE_US {
        return Ok(Some(format!("an all-reduce of {value} us is a broken measurement")));
    }
    Ok(None)
}

/// One row that reads well.
fn one(sink: &mut Sink, row: &Row) -> Result<()> {
    let told = format!("{} {}", row.column("condition")?, row.column("note")?).to_lowercase();
    if let Some(reason) = unusable(&told) {
        sink.skip(row, reason);
        return Ok(());
    }
    if row.column("experiment")? == "beside" {
        return beside::probe(sink, row);
    }
    if probe::wrote(row)? {
        return probe::read(sink, row);
    }
    match row.column("experiment")? {
        "p2p_bandwidth" => copies(sink, row, false)?,
        "p2p_bandwidth_bidirectional" => copies(sink, row, true)?,
        "p2p_latency" => latency(sink, row)?,
        "all_to_all_streams" => all_pairs(sink, row)?,
        name if collective::is_collective(name) => collective::read(sink, row)?,
        "decode_step" | "verify_step" => sink.skip(row, "needs compute time"),
        other => sink.skip(row, format!("no experiment for {other}")),
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
        "wrx90-7955wx-2xpm50100-flat-8gpu" | "h200x2-nccl" => true,
        "dual-turin-9575f-direct-8gpu" => experiment.starts_with("p2p_bandwidth"),
        "asus-esc8000a-e13p-2xpex890xx-8gpu" => {
            matches!(experiment, "p2p_bandwidth" | "p2p_latency")
        }
        "a800sxm-x8" => experiment == "p2p_bandwidth_bidirectional",
        _ => false,
    }
}

/// What is said of every row.
pub(super) fn about(sink: &Sink, row: &Row, experiment: String, text: String) -> Result<About> {
    let mut about =
        About::new(experiment, text).fit(is_fit(&sink.machine, row.column("experiment")?));
    row.column("condition")?.clone_into(&mut about.condition);
    about.noise = told_noise(row.column("note")?);
    Ok(about)
}

/// Half of the spread of `median; 39.68 to 157.7`, relative to the middle.
fn told_noise(note: &str) -> Option<f64> {
    let (low, high) = note.split_once("median; ")?.1.split_once(" to ")?;
    let high = high.split([' ', ';']).next()?;
    let (low, high): (f64, f64) = (low.parse().ok()?, high.parse().ok()?);
    (low > 0.0).then(|| (high - low) / (high + low))
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
    use crate::measurement::table::with_header;

    #[test]
    fn notes_that_forbid_use_are_seen() {
        assert!(unusable("2026-03-20 gpus were not idle (superseded)").is_some());
        assert!(unusable("2026-03-20 idle gpus; the reference run").is_none());
    }

    const HEAD: &str = "experiment,implementation,algorithm,protocol,channels,ranks,nodes,flows,\
                        size_bytes,dtype,placement,condition,run,metric,value,unit,note\n";

    fn row(experiment: &str, ranks: &str, metric: &str, value: &str, unit: &str) -> String {
        format!("{experiment},nccl,,,,{ranks},1,,1024,,,,,{metric},{value},{unit},\n")
    }

    #[test]
    fn bad_rows_of_a_user_are_set_aside_with_their_reason() {
        let mut text = HEAD.to_owned();
        text += &row("all_reduce", "2", "time", "20", "us");
        text += &row("all_reduce", "2", "time", "20", "us");
        text += &row("all_reduce", "2", "time", "0.02", "ms");
        text += &row("all_reduce", "2", "time", "-3", "us");
        text += &row("all_reduce", "2", "time", "NaN", "us");
        text += &row("all_reduce", "2", "time", "1.2", "us");
        text += &row("all_reduce", "two", "time", "20", "us");
        text += "all_reduce,nccl\n";
        let mut sink = Sink::new("own", "h200x2-nvlink-pair");
        sink.sets_aside = true;
        sink.assumed_nccl = Some("2.30".into());
        read(&mut sink, "observations.csv", &text).expect("a table");
        let record = sink.finish();
        assert_eq!((record.observations.len(), record.observations[0].rows), (1, 1));
        let reasons: Vec<&str> = record.skipped.iter().map(|s| s.reason.as_str()).collect();
        let expected = [
            "set aside: 2 columns, expected 17",
            "set aside: the same row as line 2",
            "set aside: time in `ms`, expected us",
            "set aside: `-3` is no number",
            "set aside: `NaN` is no number",
            "set aside: an all-reduce of 1.2 us is a broken measurement",
            "set aside: `two` is no count",
        ];
        assert_eq!(reasons, expected);
        let mut strict = Sink::new("ours", "h200x2-nvlink-pair");
        assert!(read(&mut strict, "observations.csv", &text).is_err());
        let text = "experiment,ranks,value\nall_reduce,2,20\n";
        let error = read(&mut sink_of_a_user(), "own.csv", text).expect_err("columns");
        assert!(error.to_string().contains("columns are missing: implementation"), "{error}");
    }

    fn sink_of_a_user() -> Sink {
        let mut sink = Sink::new("own", "h200x2-nvlink-pair");
        sink.sets_aside = true;
        sink
    }

    #[test]
    fn pairs_one_way_and_both_ways() {
        let rows = with_header("x.csv", "flows\n0>3\n4<>5\n6\n").expect("one column");
        assert_eq!(pair(&rows[0]).expect("a pair"), (0, 3));
        assert_eq!(pair(&rows[1]).expect("a pair"), (4, 5));
        assert!(pair(&rows[2]).expect_err("none").to_string().contains("line 4"));
    }
}
