//! Rows of collectives in `observations.csv`: NCCL's, and kernels of serving libraries.

use super::standard::about;
use super::{Sink, serving};
use crate::algorithm::ring::LL_BYTES_A_RANK;
use crate::algorithm::{self, Implementation, Protocol};
use crate::error::Result;
use crate::measurement::table::Row;
use crate::measurement::{Carrier, Run};
use crate::schedule::Collective;

/// Up to here a call is summarised as a small one.
const SMALL_BYTES: u64 = 256 << 10;

/// Whether the rows of this experiment are collectives.
pub(super) fn is_collective(experiment: &str) -> bool {
    experiment == "send_recv" || Collective::from_name(experiment).is_some()
}

/// One row.
pub(super) fn read(sink: &mut Sink, row: &Row) -> Result<()> {
    if row.count(row.column("nodes")?)? != 1 {
        sink.skip(row, "several machines are not modelled");
        return Ok(());
    }
    match row.column("implementation")? {
        "nccl" => nccl(sink, row),
        name if name.starts_with("PCIe one-shot") => one_shot(sink, row),
        _ => serving::read(sink, row),
    }
}

/// Time of the call, us; from a rate where the source gives one.
pub(super) fn time_us(row: &Row) -> Result<f64> {
    let value = row.number(row.column("value")?)?;
    let ranks = row.count(row.column("ranks")?)? as usize;
    let bytes = row.number(row.column("size_bytes")?)?;
    let collective = Collective::from_name(row.column("experiment")?);
    let factor = collective.map_or(1.0, |collective| collective.bus_factor(ranks));
    match row.column("metric")? {
        "time" => Ok(value),
        "bus_bandwidth" if value > 0.0 => Ok(bytes * factor / value / 1e3),
        other => Err(row.wrong(format!("`{other}` is neither time nor bus_bandwidth"))),
    }
}

/// Bytes of the call as nccl-tests counts them.
pub(super) fn size(row: &Row) -> Result<u64> {
    let text = row.column("size_bytes")?;
    text.parse().map_err(|_| row.wrong(format!("`{text}` is no number of bytes")))
}

/// Rows summarised together: behind NVSwitches all GPUs are alike, elsewhere their count matters.
pub(super) fn experiment(sink: &Sink, what: &str, ranks: u32, tail: &str) -> String {
    let count = match sink.topology.ends_with("nvswitch") {
        true => String::new(),
        false => format!(" {ranks} GPUs"),
    };
    format!("{what}{count}{tail}")
}

fn one_shot(sink: &mut Sink, row: &Row) -> Result<()> {
    let sglang = row.column("implementation")?.contains("sglang");
    let ranks = row.count(row.column("ranks")?)?;
    let bytes = size(row)?;
    let implementation = if sglang { Implementation::PcieOneShot } else { Implementation::P2pmark };
    let run = Run::Collective {
        collective: Collective::AllReduce,
        algorithm: "one_shot_pull",
        protocol: Protocol::Simple,
        implementation,
        gpus: (0..ranks).collect(),
        bytes,
        blocks: None,
        carrier: Carrier::Peer,
        launched_in_turn: false,
    };
    let large = if bytes > 1 << 20 { ", over 1 MB" } else { "" };
    let experiment = experiment(sink, "one-shot all-reduce", ranks, large);
    let who = if sglang { "sglang" } else { "p2pmark" };
    let mut about = about(sink, row, experiment, format!("{who} {bytes} B"))?;
    about.regime = sink.machine.starts_with("asus") && ranks == 8;
    sink.add(row, about, run, 0, (time_us(row)?, "us"));
    Ok(())
}

/// Why nothing is predicted for a row of NCCL, if so.
fn unmodelled(sink: &Sink, row: &Row, collective: Collective) -> Result<Option<String>> {
    let (condition, algorithm) = (row.column("condition")?, row.column("algorithm")?);
    let known = |name: &str| algorithm::of(collective).any(|algorithm| algorithm.name == name);
    Ok(if algorithm.starts_with("symmetric") {
        Some("no model of NCCL's kernels for symmetric memory".into())
    } else if algorithm == "NVLS" && !known("nvls") {
        Some("no schedule of NCCL's NVLS yet".into())
    } else if !known("ring") {
        Some(format!("NCCL's {} has no schedule yet", collective.title()))
    } else if condition.contains("all_reduce_bench") && size(row)? < 8 << 20 {
        Some("each call is timed by itself with its launch: no time of the call".into())
    } else if sink.machine.starts_with("asus")
        && in_turn(sink, condition)
        && row.column("ranks")? == "8"
        && size(row)? <= 16 << 10
    {
        Some("launch-bound: grouped launches of one process (trap 8)".into())
    } else {
        None
    })
}

/// One process launches on all GPUs, one after another.
fn in_turn(sink: &Sink, condition: &str) -> bool {
    let grouped = sink.machine.starts_with("asus") && !condition.contains("SGLang");
    grouped || condition.contains("one process (")
}

/// The protocol that is told, or that today's rule assumes.
fn protocol(told: &str, bytes: u64, ranks: u32) -> Protocol {
    let simple = bytes >= LL_BYTES_A_RANK * u64::from(ranks);
    match told {
        told if told.starts_with("SIMPLE") => Protocol::Simple,
        told if told.starts_with("LL128") => Protocol::Ll128,
        told if told.starts_with("LL ") || told == "LL" => Protocol::Ll,
        _ if simple => Protocol::Simple,
        _ => Protocol::Ll,
    }
}

fn carrier(condition: &str) -> Carrier {
    if condition.starts_with("default") || condition.contains("SGLang") {
        Carrier::HostBeyondSwitch
    } else if condition.contains("no P2P") {
        Carrier::Host
    } else {
        Carrier::Peer
    }
}

fn nccl(sink: &mut Sink, row: &Row) -> Result<()> {
    let Some(collective) = Collective::from_name(row.column("experiment")?) else {
        sink.skip(row, "send and receive between pairs have no schedule yet");
        return Ok(());
    };
    if let Some(reason) = unmodelled(sink, row, collective)? {
        sink.skip(row, reason);
        return Ok(());
    }
    let (ranks, bytes) = (row.count(row.column("ranks")?)?, size(row)?);
    let (condition, note) = (row.column("condition")?, row.column("note")?);
    let told = row.column("protocol")?.to_uppercase();
    let protocol = protocol(&told, bytes, ranks);
    let channels = row.column("channels")?;
    let nvls = row.column("algorithm")? == "NVLS";
    let run = Run::Collective {
        collective,
        algorithm: if nvls { "nvls" } else { "ring" },
        protocol,
        implementation: Implementation::Nccl,
        // Rows of two groups of like GPUs are averaged, as runs of the first group.
        gpus: (0..ranks).collect(),
        bytes,
        blocks: if channels.is_empty() { None } else { Some(row.count(channels)?) },
        carrier: carrier(condition),
        launched_in_turn: in_turn(sink, condition),
    };
    let large = if bytes > SMALL_BYTES { ", over 256 KB" } else { "" };
    let stated = match (told.contains("CHOSEN"), protocol) {
        _ if nvls => " NVLS",
        (true, Protocol::Simple) => " Simple chosen",
        (true, _) => " LL chosen",
        _ => "",
    };
    let experiment = experiment(
        sink,
        &format!("NCCL {}", collective.title()),
        ranks,
        &format!("{stated}{large}"),
    );
    let text = format!("{} {bytes} B {condition}", protocol.name());
    let mut about = about(sink, row, experiment, text)?;
    about.note = format!("{}{note}", if told.is_empty() { "assumed protocol; " } else { "" });
    sink.add(row, about, run, 0, (time_us(row)?, "us"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::table::with_header;

    #[test]
    fn rates_become_times() {
        // 8 GB at 480 GB/s of bus bandwidth, eight ranks: 8e9 x 2 x 7/8 / 480e9 s = 29,166.67 us.
        let text = "experiment,ranks,size_bytes,metric,value\n\
                    all_reduce,8,8000000000,bus_bandwidth,480\nall_gather,4,10,time,7.5\n\
                    broadcast,4,10,speed,7.5\n";
        let rows = with_header("x.csv", text).expect("CSV");
        assert!((time_us(&rows[0]).expect("a rate") - 29_166.666_666).abs() < 1e-3);
        assert!((time_us(&rows[1]).expect("a time") - 7.5).abs() < 1e-12);
        assert!(time_us(&rows[2]).is_err());
    }

    #[test]
    fn what_is_told_of_a_protocol_wins() {
        assert_eq!(protocol("SIMPLE CHOSEN", 8, 8), Protocol::Simple);
        assert_eq!(protocol("LL128", 8, 8), Protocol::Ll128);
        assert_eq!(protocol("LL CHOSEN", 1 << 30, 8), Protocol::Ll);
        assert_eq!(protocol("", LL_BYTES_A_RANK * 8, 8), Protocol::Simple);
    }
}
