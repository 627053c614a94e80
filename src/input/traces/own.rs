//! Traces that this program recorded (`--trace t.json`): its predicted calls, rank by rank.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;

use super::shown::at_fault;
use super::{Call, Trace, TraceFormat};
use crate::error::Result;
use crate::workload::Collective;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "collsim",
    title: "a trace that collsim recorded",
    sniff: |head| head.contains("\"otherData\"") && head.contains("\"program\":\"collsim\""),
    tells_calls: true,
    read,
};

#[derive(Deserialize)]
struct File {
    #[serde(rename = "otherData")]
    made: Made,
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
}

/// What the calls are.
#[derive(Deserialize)]
struct Made {
    collective: Option<Collective>,
    bytes: u64,
    by: String,
}

#[derive(Deserialize)]
struct Event {
    ph: String,
    pid: u64,
    #[serde(default)]
    name: String,
    ts: Option<f64>,
    dur: Option<f64>,
    args: Option<Arguments>,
}

#[derive(Deserialize)]
struct Arguments {
    name: Option<String>,
}

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    let File { made, events } = serde_json::from_reader(stream)
        .map_err(|error| at_fault(file, "no trace", &error, "is it as `--trace` wrote it?"))?;
    let Some(collective) = made.collective else {
        trace.leave_out("calls that are no collective", 1);
        return Ok(());
    };
    let mut ranks = BTreeMap::new();
    for event in &events {
        let named = event.args.as_ref().and_then(|arguments| arguments.name.as_deref());
        let rank =
            named.and_then(|name| name.strip_prefix("rank ")?.split(' ').next()?.parse().ok());
        if let Some(rank) = rank.filter(|_| event.ph == "M") {
            ranks.insert(event.pid, rank);
        }
    }
    let told =
        events.into_iter().filter(|event| event.ph == "X" && event.name.starts_with("call "));
    let calls = told.filter_map(|event| {
        Some(Call {
            rank: *ranks.get(&event.pid)?,
            collective,
            bytes: Some(made.bytes),
            dtype: String::new(),
            ranks: Some(ranks.len() as u32),
            start_us: event.ts,
            duration_us: event.dur,
            by: made.by.clone(),
        })
    });
    trace.calls.extend(calls);
    trace.ranks = Some(ranks.len() as u32);
    trace.fact("predicted, not measured: each call begins where the one before ends");
    Ok(())
}
