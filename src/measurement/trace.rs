//! `traces.csv` of the probe: when each rank came to each call of a step and ended it.

use std::collections::BTreeMap;

use super::table::{Row, with_header};
use super::{Carrier, KernelCall, Launches, NcclCall, Run};
use crate::algorithm::Implementation;
use crate::error::Result;
use crate::measurement::read::kernel_of_probe;
use crate::schedule::Collective;

/// One rank's stay in a call, ns on the clock of GPU 0.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Stamp {
    /// It came.
    pub ready: f64,
    /// It ended the call.
    pub end: f64,
}

/// The calls of one step.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Kernel, carrier, size and kind of arrival, for people.
    pub name: String,
    /// What ran.
    pub run: Run,
    /// `calls[call][rank]`.
    pub calls: Vec<Vec<Stamp>>,
    /// Calls are kernels of their own, stamped by kernels between them.
    pub nodes: bool,
}

/// Reads the text of a `traces.csv`.
///
/// # Errors
/// [`crate::error::Error::Input`] for a malformed row, or when a rank lacks a call.
pub fn parse_traces(file: &str, text: &str, nccl: &str) -> Result<Vec<Trace>> {
    // In the order of the file.
    let mut order = Vec::new();
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in with_header(file, text)? {
        let words = ["algorithm", "carrier", "size_bytes", "skew"];
        let words = words.iter().map(|word| row.column(word)).collect::<Result<Vec<&str>>>()?;
        let name = words.join(" ");
        if !rows.contains_key(&name) {
            order.push(name.clone());
        }
        rows.entry(name).or_default().push(row);
    }
    order.iter().map(|name| one(name, &rows[name], nccl)).collect()
}

fn time(row: &Row, column: &str) -> Result<f64> {
    // Clocks are aligned to the first stamp, so that times may be negative.
    let text = row.column(column)?;
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(row.wrong(format!("`{text}` is no time"))),
    }
}

fn one(name: &str, rows: &[Row], nccl: &str) -> Result<Trace> {
    let first = &rows[0];
    let mut gpus = BTreeMap::new();
    let mut stamps = BTreeMap::new();
    for row in rows {
        let (call, rank) = (row.count(row.column("call")?)?, row.count(row.column("rank")?)?);
        gpus.insert(rank, row.count(row.column("gpu")?)?);
        let stamp = Stamp { ready: time(row, "ready_ns")?, end: time(row, "end_ns")? };
        if stamp.end < stamp.ready {
            return Err(row.wrong("the call ends before the rank has come"));
        }
        if stamps.insert((call, rank), stamp).is_some() {
            return Err(row.wrong("this call of this rank stands here twice"));
        }
    }
    let ranks = gpus.len() as u32;
    let calls = (0..stamps.len() as u32 / ranks).map(|call| {
        let of = |rank| stamps.get(&(call, rank)).copied();
        let missing = || first.wrong(format!("{name}: call {call} lacks a rank"));
        (0..ranks).map(of).collect::<Option<Vec<Stamp>>>().ok_or_else(missing)
    });
    let calls = calls.collect::<Result<Vec<Vec<Stamp>>>>()?;
    let kernel = first.column("algorithm")?;
    let size = first.column("size_bytes")?;
    let bytes = size.parse().map_err(|_| first.wrong(format!("`{size}` is no size")))?;
    let by_host = first.column("carrier")? == "host";
    let gpus: Vec<u32> = gpus.into_values().collect();
    let run = if kernel == "nccl" {
        library(nccl, by_host, gpus, bytes)
    } else {
        let (algorithm, protocol) = kernel_of_probe(first, kernel)?;
        Run::Collective(KernelCall {
            protocol,
            blocks: Some(1),
            carrier: if by_host { Carrier::Host } else { Carrier::Peer },
            ..KernelCall::all_reduce(algorithm, Implementation::PairProbe, gpus, bytes)
        })
    };
    Ok(Trace { name: name.to_owned(), run, calls, nodes: kernel == "nccl" })
}

fn library(version: &str, by_host: bool, gpus: Vec<u32>, bytes: u64) -> Run {
    let off = if by_host { " NCCL_P2P_DISABLE=1" } else { "" };
    Run::Nccl(NcclCall {
        collective: Collective::AllReduce,
        version: if version.is_empty() { "2.28.9".to_owned() } else { version.to_owned() },
        settings: format!("NCCL_NVLS_ENABLE=0{off}"),
        peer_to_peer: !by_host,
        numa_per_socket: 1,
        gpus,
        bytes,
        launches: Launches::AtOnce,
        in_graph: true,
        first_of: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "algorithm,carrier,size_bytes,skew,call,rank,gpu,ready_ns,end_ns\n";

    fn read(rows: &str) -> Result<Vec<Trace>> {
        parse_traces("traces.csv", &format!("{HEADER}{rows}"), "2.28.9")
    }

    #[test]
    fn calls_and_ranks_find_their_places() {
        let traces = read(
            "ring_ll,peer,14336,late,0,0,0,0,9000\nring_ll,peer,14336,late,1,0,0,9500,15000\n\
             ring_ll,peer,14336,late,0,1,1,-20,8990\nring_ll,peer,14336,late,1,1,1,11000,15010\n\
             nccl,host,14336,even,0,0,0,0,13000\nnccl,host,14336,even,0,1,1,5,13010\n",
        )
        .expect("two traces");
        assert_eq!(traces.len(), 2);
        assert_eq!(traces[0].calls.len(), 2);
        assert_eq!(traces[0].calls[1][1], Stamp { ready: 11_000.0, end: 15_010.0 });
        assert!(!traces[0].nodes && traces[1].nodes);
        let Run::Nccl(call) = &traces[1].run else { panic!("{:?}", traces[1].run) };
        assert!(call.settings.contains("P2P_DISABLE=1") && call.gpus == [0, 1]);
    }

    #[test]
    fn holes_and_nonsense_are_refused() {
        let hole = "ring_ll,peer,512,late,0,0,0,0,9\nring_ll,peer,512,late,2,0,0,0,9\n";
        assert!(read(hole).expect_err("call 1").to_string().contains("lacks a rank"));
        let twice = "ring_ll,peer,512,late,0,0,0,0,9\nring_ll,peer,512,late,0,0,0,0,9\n";
        assert!(read(twice).expect_err("twice").to_string().contains("twice"));
        let back = "ring_ll,peer,512,late,0,0,0,10,9\n";
        assert!(read(back).expect_err("ends first").to_string().contains("line 2"));
    }
}
