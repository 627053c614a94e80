//! NCCL Inspector's JSON lines (the profiler plugin of NCCL 2.27 and later).

use std::io::BufRead;

use serde::Deserialize;

use super::{Call, Trace, TraceFormat, each_line, names};
use crate::error::Result;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "inspector",
    title: "NCCL Inspector's JSON lines",
    sniff: |head| head.contains("\"coll_perf\"") && head.contains("\"coll_sn\""),
    tells_calls: true,
    read,
};

#[derive(Deserialize)]
struct Line {
    header: Option<Header>,
    coll_perf: Option<Performance>,
}

#[derive(Deserialize)]
struct Header {
    rank: Option<u64>,
    n_ranks: Option<u32>,
    nnodes: Option<u32>,
}

#[derive(Deserialize)]
struct Performance {
    coll: String,
    coll_sn: Option<u64>,
    coll_msg_size_bytes: Option<u64>,
    coll_exec_time_us: Option<f64>,
    algo_proto: Option<String>,
}

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    let mut last = std::collections::BTreeMap::new();
    let (mut holes, mut broken) = (0_u64, 0_u64);
    each_line(file, stream, |_, text| {
        if text.trim().is_empty() {
            return;
        }
        let Ok(line) = serde_json::from_str::<Line>(text) else {
            broken += 1;
            return;
        };
        let Some(call) = line.coll_perf else { return };
        let header = line.header;
        let rank = header.as_ref().and_then(|header| header.rank).unwrap_or(0);
        if header.as_ref().is_some_and(|header| header.nnodes.is_some_and(|nodes| nodes > 1)) {
            trace.warn("several machines took part: their network is not modelled");
        }
        if let Some(number) = call.coll_sn {
            let before = last.insert((rank, call.coll.clone()), number);
            holes += before.map_or(0, |before| number.saturating_sub(before).saturating_sub(1));
        }
        let Some(collective) = names::collective(&call.coll) else {
            trace.leave_out(call.coll, 1);
            return;
        };
        trace.calls.push(Call {
            rank,
            collective,
            bytes: call.coll_msg_size_bytes,
            dtype: String::new(),
            ranks: header.and_then(|header| header.n_ranks),
            start_us: None,
            duration_us: call.coll_exec_time_us,
            by: call.algo_proto.unwrap_or_default(),
        });
    })?;
    if holes > 0 {
        trace.warn(format!(
            "{holes} calls are missing by their numbers: by default calls under 8,192 B and those not timed \
             on the GPU are dropped"
        ));
    }
    if broken > 0 {
        trace.leave_out("lines that are no JSON", broken);
    }
    trace.fact("times are whole microseconds");
    Ok(())
}
