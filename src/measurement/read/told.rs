//! Rows of NCCL's all-reduce that tell the protocol or the channels, or whose version is not known.

use super::Sink;
use super::collective::{experiment, size, time_us};
use super::standard::about;
use crate::algorithm::ring::LL_BYTES_A_RANK;
use crate::algorithm::{Implementation, Protocol};
use crate::error::Result;
use crate::measurement::large;
use crate::measurement::table::Row;
use crate::measurement::{Carrier, KernelCall, Launches, Run};

/// The protocol that is told, or that the sizes at which NCCL left LL on like machines suggest.
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

/// One row.
pub(super) fn nccl(sink: &mut Sink, row: &Row, launches: Launches) -> Result<()> {
    let (ranks, bytes) = (row.count(row.column("ranks")?)?, size(row)?);
    let (condition, note) = (row.column("condition")?, row.column("note")?);
    let told = row.column("protocol")?.to_uppercase();
    let protocol = protocol(&told, bytes, ranks);
    let channels = row.column("channels")?;
    // Rows of two groups of like GPUs count together, as runs of the first group.
    let gpus = (0..ranks).collect();
    let run = Run::Collective(KernelCall {
        protocol,
        blocks: if channels.is_empty() { None } else { Some(row.count(channels)?) },
        carrier: carrier(condition),
        launches,
        ..KernelCall::all_reduce("ring", Implementation::Nccl, gpus, bytes)
    });
    let large = large(bytes);
    let stated = match (told.contains("CHOSEN"), protocol) {
        (true, Protocol::Simple) => " Simple chosen",
        (true, _) => " LL chosen",
        _ => "",
    };
    let experiment = experiment(sink, "NCCL all-reduce", ranks, &format!("{stated}{large}"));
    let text = format!("{} {bytes} B {condition}", protocol.name());
    let mut about = about(sink, row, experiment, text)?;
    about.note = format!("{}{note}", if told.is_empty() { "assumed protocol; " } else { "" });
    sink.add(row, about, run, 0, (time_us(row)?, "us"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_a_protocol_wins() {
        assert_eq!(protocol("SIMPLE CHOSEN", 8, 8), Protocol::Simple);
        assert_eq!(protocol("LL128", 8, 8), Protocol::Ll128);
        assert_eq!(protocol("LL CHOSEN", 1 << 30, 8), Protocol::Ll);
        assert_eq!(protocol("", LL_BYTES_A_RANK * 8, 8), Protocol::Simple);
    }
}
