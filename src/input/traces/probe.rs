//! `traces.csv` of the probe: when each rank came to each call of a step and ended it.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;

use super::{Call, Trace, TraceFormat, failure};
use crate::error::Result;
use crate::workload::Collective;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "probe",
    title: "traces of the probe as CSV",
    sniff,
    tells_calls: true,
    read,
};

fn sniff(head: &str) -> bool {
    let header = head.lines().next().unwrap_or("");
    ["algorithm,", ",call,", ",rank,", ",ready_ns,", ",end_ns"]
        .iter()
        .all(|name| header.contains(name))
}

/// From the end of a step to the start of the next, us: each has a clock of its own.
const APART_US: f64 = 1e6;

/// A stay of a rank in a call.
#[derive(Deserialize)]
struct Row {
    algorithm: String,
    carrier: String,
    size_bytes: u64,
    skew: String,
    rank: u32,
    ready_ns: f64,
    end_ns: f64,
}

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    let mut rows = csv::ReaderBuilder::new().from_reader(stream);
    let mut steps: BTreeMap<String, f64> = BTreeMap::new();
    let mut last = 0.0_f64;
    let wrong = |reason: String| failure(file, reason, "is it as the probe wrote it?");
    let header = rows.headers().map_err(|error| wrong(error.to_string()))?.clone();
    for row in rows.deserialize() {
        let row: Row = row.map_err(|error| wrong(place(&error, &header)))?;
        let Row { algorithm, carrier, skew, .. } = &row;
        let by = format!("{algorithm} by {carrier}, {skew}");
        if !(row.ready_ns.is_finite() && row.end_ns >= row.ready_ns) {
            return Err(wrong(format!("{by}: a call ends before its rank has come")));
        }
        let next = if steps.is_empty() { 0.0 } else { last + APART_US };
        let from = *steps.entry(format!("{by} {}", row.size_bytes)).or_insert(next);
        let start = from + row.ready_ns / 1e3;
        let stay = (row.end_ns - row.ready_ns) / 1e3;
        last = last.max(start + stay);
        trace.calls.push(Call {
            rank: u64::from(row.rank),
            collective: Collective::AllReduce,
            bytes: Some(row.size_bytes),
            dtype: String::new(),
            ranks: None,
            start_us: Some(start),
            duration_us: Some(stay),
            by,
        });
    }
    trace.apart = steps.len() > 1;
    if trace.apart {
        trace.fact(format!("{} steps on clocks of their own, laid a second apart", steps.len()));
    }
    Ok(())
}

/// What is wrong with a row, with its line and column.
fn place(error: &csv::Error, header: &csv::StringRecord) -> String {
    let csv::ErrorKind::Deserialize { pos, err } = error.kind() else { return error.to_string() };
    let line = pos.as_ref().map_or(0, csv::Position::line);
    let column = err.field().and_then(|field| header.get(usize::try_from(field).ok()?));
    format!("line {line}: {}: {}", column.unwrap_or("columns"), err.kind())
}
