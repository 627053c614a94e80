//! `h200-nvlink-pair`: two GPUs joined by NVLink.

use super::{About, Sink, one_link, ranks};
use crate::algorithm::{Implementation, Protocol};
use crate::error::Result;
use crate::measurement::table::{Row, with_header, without_header};
use crate::measurement::{Carrier, Copy, KernelCall, Load, LoadKind, Memory, Pair, Run};
use crate::schedule::Collective;

const PEER: Memory = Memory::Gpu(1);
/// Channels that NCCL opened on this machine, logged (README.md of the folder).
const CHANNELS: u32 = 24;
/// As logged through host memory (`tests/data/nccl/h200x2/README.md`).
pub(super) const CHANNELS_BY_HOST: u32 = 4;
/// By host memory the times bend between 262,144 and 458,752 bytes, not at 1 MiB.
pub(super) const LL_MAX_BY_HOST: u64 = 1 << 18;
/// Blocks and threads of `sm_both_ways`, which its row does not state: as of the largest `sm_peer`
/// row.
const BOTH_WAYS: (u32, u32) = (132, 512);

/// All of `probe.csv`.
pub(super) fn probe(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in without_header(file, text)? {
        match row.field(0) {
            "chase" => chase(sink, &row)?,
            "flag_pingpong" => {
                let fenced = row.field(1) == "relacq_sys";
                let run = Run::Flag { pair: Pair::Gpus(0, 1), by_host: false, fenced };
                let about = About::new("flag", format!("peer, {}", row.field(1))).fit(true);
                let round_trip = row.number(row.field(3))?;
                sink.add(&row, about, run, 0, (round_trip / 2.0, "ns"));
            }
            "sm_peer" => peer_streams(sink, &row)?,
            "copy_engine_peer" => copy(sink, &row)?,
            "latency_under_load" => one_link::latency_under_load(sink, &row, PEER, true)?,
            "sm_both_ways" => both_ways(sink, &row)?,
            "ranks_on_two_gpus" => {
                let fit = row.count(row.after("ranks")?)? == 2;
                let experiment = if fit { "2 ranks" } else { "4 and 8 ranks" };
                ranks::add(sink, &row, experiment, Carrier::Peer, fit)?;
            }
            _ => sink.skip(&row, "pieces and fences: read for one constant each"),
        }
    }
    Ok(())
}

fn chase(sink: &mut Sink, row: &Row) -> Result<()> {
    let time = row.number(row.field(3))?;
    if row.field(2) == "0" {
        sink.skip(row, "the first repetition is cold");
        return Ok(());
    }
    let memory = if row.field(1) == "peer" { PEER } else { Memory::Gpu(0) };
    let about = About::new(format!("chase {}", row.field(1)), "dependent 4-byte reads").fit(true);
    sink.add(row, about, Run::Chase { gpu: 0, memory, beside: Vec::new() }, 0, (time, "ns"));
    Ok(())
}

fn peer_streams(sink: &mut Sink, row: &Row) -> Result<()> {
    let (blocks, threads) = (row.count(row.after("blocks")?)?, row.count(row.after("threads")?)?);
    let kinds = [
        ("read_unroll1", LoadKind::Read(1)),
        ("read_unroll4", LoadKind::Read(4)),
        ("write", LoadKind::Write),
    ];
    for (column, kind) in kinds {
        let rate = row.number(row.after(column)?)?;
        let load = Load { gpu: 0, memory: PEER, kind, blocks, threads, stop_check: false };
        let run = Run::LoadMix { chase: None, loads: vec![load] };
        let experiment = if column == "write" { "sm_peer write" } else { "sm_peer read" };
        let about = About::new(experiment, format!("{column} {blocks}x{threads}")).fit(true);
        sink.add(row, about, run, 1, (rate, "GB/s"));
    }
    Ok(())
}

fn copy(sink: &mut Sink, row: &Row) -> Result<()> {
    let bytes = u64::from(row.count(row.field(1))?);
    let rate = row.number(row.field(4))?;
    if bytes < 1 << 20 {
        sink.skip(row, "below 1 MB a copy measures its launch");
        return Ok(());
    }
    let copy = Copy { from: Memory::Gpu(0), to: PEER, engine: 0, bytes, kernel: false };
    let about = About::new("copy to peer", format!("{bytes} B")).fit(true);
    sink.add(row, about, Run::Copies(vec![copy]), 0, (rate, "GB/s"));
    Ok(())
}

fn both_ways(sink: &mut Sink, row: &Row) -> Result<()> {
    let rate = row.number(row.field(2))?;
    let kind = if row.field(1) == "read" { LoadKind::Read(4) } else { LoadKind::Write };
    let (blocks, threads) = BOTH_WAYS;
    let load = |gpu: u32| Load {
        gpu,
        memory: Memory::Gpu(1 - gpu),
        kind,
        blocks,
        threads,
        stop_check: false,
    };
    let run = Run::LoadMix { chase: None, loads: vec![load(0), load(1)] };
    let about = About::new("sm_both_ways", row.field(1)).fit(true);
    let about = about.note("assumed: 132 blocks of 512 threads, reads with 4 in flight");
    sink.add(row, about, run, 1, (rate, "GB/s"));
    Ok(())
}

/// All of `nccl.csv`.
pub(super) fn nccl(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in with_header(file, text)? {
        let word = row.column("collective")?;
        let Some(collective) = Collective::from_name(word) else {
            return Err(row.wrong(format!("there is no collective `{word}`")));
        };
        nccl_row(sink, &row, collective)?;
    }
    Ok(())
}

fn nccl_row(sink: &mut Sink, row: &Row, collective: Collective) -> Result<()> {
    let setting = row.column("setting")?;
    let ranks = row.count(row.column("ranks")?)?;
    let bytes = u64::from(row.count(row.column("bytes")?)?);
    let by_host = setting == "P2P_off_SHM";
    let ll_max = if by_host { LL_MAX_BY_HOST } else { 1 << 20 };
    let small = if bytes <= ll_max { Protocol::Ll } else { Protocol::Simple };
    let (protocol, carrier, channels) = match setting {
        "Ring_LL" => (Protocol::Ll, Carrier::Peer, CHANNELS),
        "Ring_Simple" => (Protocol::Simple, Carrier::Peer, CHANNELS),
        "free" => (small, Carrier::Peer, CHANNELS),
        "P2P_off_SHM" => (small, Carrier::Host, CHANNELS_BY_HOST),
        _ => return Err(row.wrong(format!("there is no setting `{setting}`"))),
    };
    let gpus = (0..ranks).collect();
    let run = Run::Collective(KernelCall {
        collective,
        protocol,
        blocks: Some(channels),
        carrier,
        ..KernelCall::all_reduce("ring", Implementation::Nccl, gpus, bytes)
    });
    let median = row.number(row.column("median_us")?)?;
    // What NCCL chose was logged for a part of the sizes only.
    let fit = setting != "free";
    let text = format!("{} {bytes} B", collective.name());
    let about = About::new(format!("NCCL {setting}"), text).fit(fit);
    let about = if fit && carrier == Carrier::Peer {
        about
    } else {
        about.note("assumed: LL up to 1 MiB, then Simple")
    };
    sink.add(row, about, run, 0, (median, "us"));
    Ok(())
}
