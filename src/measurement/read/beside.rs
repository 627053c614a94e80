//! NCCL's all-reduces by host memory beside copies between GPUs and the host that do not end.

use super::nvlink_pair::{CHANNELS_BY_HOST, LL_MAX_BY_HOST};
use super::{About, Sink};
use crate::algorithm::{Implementation, Protocol};
use crate::error::Result;
use crate::measurement::table::{Row, with_header};
use crate::measurement::{Carrier, KernelCall, Memory, Run};
use crate::workload::{Beside, Traffic};

/// All of `interference.csv` of `h200-two-host-links`.
pub(super) fn interference(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in with_header(file, text)? {
        let copies = row.column("copies_beside")?;
        let beside = of_word(&row, copies)?;
        let bytes = u64::from(row.count(row.column("bytes")?)?);
        let ranks = row.count(row.column("ranks")?)?;
        let measured = row.number(row.column("median_us")?)?;
        add(sink, &row, format!("{copies} {bytes} B"), (bytes, ranks), beside, measured);
    }
    Ok(())
}

/// A `beside` row of the probe.
pub(super) fn probe(sink: &mut Sink, row: &Row) -> Result<()> {
    let condition = row.column("condition")?;
    match row.column("implementation")? {
        "copy_engine" => {
            sink.skip(row, "what is left to copies beside calls: a call's time is predicted");
            return Ok(());
        }
        "probe" if condition.contains("beside=fences") => {
            sink.skip(row, "fences beside copies: read for what a fence waits for");
            return Ok(());
        }
        "probe" => return reads(sink, row),
        _ if !condition.contains("NCCL_P2P_DISABLE=1") => {
            sink.skip(row, "NCCL between peers beside copies: other links than theirs");
            return Ok(());
        }
        _ => {}
    }
    let copies = copies(row)?;
    let ranks = row.count(row.column("ranks")?)?;
    let bytes = u64::from(row.count(row.column("size_bytes")?)?);
    let beside = of_flows(row, copies, ranks)?;
    let measured = row.number(row.column("value")?)?;
    add(sink, row, format!("{copies} {bytes} B"), (bytes, ranks), beside, measured);
    Ok(())
}

/// Reads of host memory by GPU 0, one after another.
fn reads(sink: &mut Sink, row: &Row) -> Result<()> {
    let copies = copies(row)?;
    // Copies of all GPUs are named one by one: the reader is one rank.
    let beside = of_flows(row, copies, 0)?;
    let memory = Memory::HostNear(0);
    let about = About::new("reads beside copies", copies.to_owned()).fit(true);
    let run = Run::Chase { gpu: 0, memory, beside };
    sink.add(row, about, run, 0, (row.number(row.column("value")?)?, "ns"));
    Ok(())
}

/// The copies that a row's condition names.
fn copies(row: &Row) -> Result<&str> {
    let named = row.column("condition")?.split("; ").find_map(|part| part.strip_prefix("copies="));
    named.ok_or_else(|| row.wrong("the condition says no `copies=`"))
}

/// A call of `bytes` between `ranks`.
fn add(
    sink: &mut Sink,
    row: &Row,
    text: String,
    (bytes, ranks): (u64, u32),
    beside: Vec<Beside>,
    measured: f64,
) {
    let experiment = match beside.len() {
        0 => "NCCL beside nothing",
        1 => "NCCL beside copies one way",
        _ => "NCCL beside copies both ways",
    };
    let protocol = if bytes <= LL_MAX_BY_HOST { Protocol::Ll } else { Protocol::Simple };
    let run = Run::Collective(KernelCall {
        protocol,
        blocks: Some(CHANNELS_BY_HOST),
        carrier: Carrier::Host,
        beside,
        ..KernelCall::all_reduce("ring", Implementation::Nccl, (0..ranks).collect(), bytes)
    });
    let about = About::new(experiment, text).note("assumed: LL up to 256 KiB, then Simple");
    sink.add(row, about, run, 0, (measured, "us"));
}

/// What a word stands for: `h2d_all`, `both_gpu0`.
fn of_word(row: &Row, copies: &str) -> Result<Vec<Beside>> {
    let wrong = || row.wrong(format!("there are no copies `{copies}`"));
    if copies == "none" {
        return Ok(Vec::new());
    }
    let (way, whose) = copies.split_once('_').ok_or_else(wrong)?;
    let gpus = match whose {
        "all" => Vec::new(),
        "gpu0" => vec![0],
        _ => return Err(wrong()),
    };
    let traffic = match way {
        "h2d" => vec![Traffic::H2d],
        "d2h" => vec![Traffic::D2h],
        "both" => vec![Traffic::H2d, Traffic::D2h],
        _ => return Err(wrong()),
    };
    Ok(traffic.into_iter().map(|traffic| Beside { traffic, gpus: gpus.clone() }).collect())
}

/// What flows stand for: `host>0+0>host`; copies of all `ranks` GPUs name none.
fn of_flows(row: &Row, copies: &str, ranks: u32) -> Result<Vec<Beside>> {
    let (mut down, mut up) = (Vec::new(), Vec::new());
    for flow in copies.split('+').filter(|_| copies != "none") {
        match flow.split_once('>') {
            Some(("host", gpu)) => down.push(row.count(gpu)?),
            Some((gpu, "host")) => up.push(row.count(gpu)?),
            _ => return Err(row.wrong(format!("`{flow}` is no copy such as host>0"))),
        }
    }
    let ways = [(Traffic::H2d, down), (Traffic::D2h, up)];
    let beside = ways.into_iter().filter(|(_, gpus)| !gpus.is_empty()).map(|(traffic, gpus)| {
        let gpus = if gpus.len() == ranks as usize { Vec::new() } else { gpus };
        Beside { traffic, gpus }
    });
    Ok(beside.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::table::with_header;

    #[test]
    fn flows_are_traffic_and_only_calls_by_host_are_run() {
        let text = "experiment,implementation,ranks,size_bytes,condition,value\n\
                    beside,nccl,2,14336,NCCL_P2P_DISABLE=1; copies=none; beside=all_reduce,13.4\n\
                    beside,nccl,2,14336,NCCL_P2P_DISABLE=1; copies=host>0+host>1,26.5\n\
                    beside,nccl,2,14336,NCCL_P2P_DISABLE=1; copies=host>0+0>host,27.3\n\
                    beside,nccl,2,14336,copies=host>0+0>host,7.3\n\
                    beside,copy_engine,2,67108864,copies=host>0,53.8\n\
                    beside,probe,1,0,copies=host>0; beside=fences behind stores,3494\n\
                    beside,probe,1,4,copies=host>0+0>host; beside=reads one after another,3340\n";
        let mut sink = Sink::new("mine", "h200x2-nvlink-pair");
        for row in with_header("observations.csv", text).expect("CSV") {
            probe(&mut sink, &row).unwrap_or_else(|error| panic!("{error}"));
        }
        let record = sink.finish();
        assert_eq!((record.observations.len(), record.skipped.len()), (4, 3));
        let beside = |at: usize| match &record.observations[at].run {
            Run::Collective(call) => call.beside.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(beside(0), []);
        assert_eq!(beside(1), [Beside { traffic: Traffic::H2d, gpus: vec![] }]);
        let both = [Traffic::H2d, Traffic::D2h].map(|traffic| Beside { traffic, gpus: vec![0] });
        assert_eq!(beside(2), both);
        let chase = Run::Chase { gpu: 0, memory: Memory::HostNear(0), beside: both.to_vec() };
        assert_eq!(record.observations[3].run, chase);
    }
}
