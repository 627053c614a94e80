//! Chakra execution traces in JSON.

use std::io::BufRead;

use serde::Deserialize;

use super::shown::at_fault;
use super::{Call, Trace, TraceFormat};
use crate::error::Result;
use crate::workload::Collective;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "chakra",
    title: "a Chakra trace in JSON",
    sniff: |head| head.trim_start().starts_with('{') && head.contains("\"workload_graph\""),
    tells_calls: true,
    read,
};

/// Nodes of this type are collectives.
pub(super) const COLLECTIVE: u32 = 7;
/// Collectives by their number.
const TYPES: [(u32, Collective); 7] = [
    (0, Collective::AllReduce),
    (1, Collective::Reduce),
    (2, Collective::AllGather),
    (5, Collective::Broadcast),
    (6, Collective::AllToAll),
    (7, Collective::ReduceScatter),
    (8, Collective::ReduceScatter),
];

#[derive(Deserialize)]
struct Graph {
    workload_graph: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    #[serde(rename = "Name", default)]
    name: String,
    #[serde(rename = "NodeType")]
    kind: u32,
    comm_type: Option<u32>,
    comm_size: Option<u64>,
}

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    let graph: Graph = serde_json::from_reader(stream).map_err(|error| {
        at_fault(file, "no Chakra trace", &error, "expected `workload_graph`, a list of nodes")
    })?;
    for node in graph.workload_graph.into_iter().filter(|node| node.kind == COLLECTIVE) {
        call(trace, node.comm_type, node.comm_size, node.name);
    }
    Ok(())
}

/// Adds a collective by the number of its type.
pub(super) fn call(
    trace: &mut Trace,
    kind: Option<u32>,
    bytes: Option<u64>,
    by: String,
) -> Option<&mut Call> {
    let Some(&(_, collective)) = TYPES.iter().find(|entry| Some(entry.0) == kind) else {
        let kind = kind.map_or("none".to_owned(), |kind| kind.to_string());
        trace.leave_out(format!("nodes of comm_type {kind}"), 1);
        return None;
    };
    trace.calls.push(Call {
        rank: 0,
        collective,
        bytes,
        dtype: String::new(),
        ranks: None,
        start_us: None,
        duration_us: None,
        by,
    });
    trace.calls.last_mut()
}
