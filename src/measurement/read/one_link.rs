//! `h200-one-link`: one GPU and its host's memory.

use super::{About, Sink, ranks};
use crate::error::Result;
use crate::measurement::table::{Row, without_header};
use crate::measurement::{Carrier, Copy, Load, LoadKind, Memory, Pair, Run};

const HOST: Memory = Memory::HostNear(0);
const GPU: Memory = Memory::Gpu(0);
/// From this size the rate of a copy is that of the link.
const LARGE: u64 = 64 << 20;
/// Rates from which the link, not the number of threads, is the limit (the file's plateaus are
/// 50.5-50.9 read and 52.5-52.9 written), GB/s.
const READ_SATURATED: f64 = 49.0;
const WRITE_SATURATED: f64 = 51.0;

/// All of `probe1.csv`.
pub(super) fn probe1(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in without_header(file, text)? {
        match row.field(0) {
            "memcpy" => memcpy(sink, &row)?,
            "chase" => chase(sink, &row)?,
            "sm_read16" | "sm_write16" => stream(sink, &row)?,
            "pingpong_blocks" => ping_pong(sink, &row)?,
            "device" => sink.skip(&row, "names the device"),
            "sm_write8" | "sm_write_32B_pieces" => {
                sink.skip(&row, "stores of less than 16 bytes a thread have no experiment");
            }
            "pingpong_gpu_cpu" => sink.skip(&row, "the CPU takes part"),
            "virtual_ring_ll" | "virtual_one_stage" => {
                sink.skip(&row, "measured again in probe2.csv, with percentiles");
            }
            _ => sink.skip(&row, "launches, fences and kernels alone: read for one constant each"),
        }
    }
    Ok(())
}

fn memcpy(sink: &mut Sink, row: &Row) -> Result<()> {
    let bytes = u64::from(row.count(row.field(2))?);
    let rate = row.number(row.field(5))?;
    let copy = |from, to| Copy { from, to, engine: 0, bytes, kernel: false };
    let copies = match row.field(1) {
        "h2d" => vec![copy(HOST, GPU)],
        "d2h" => vec![copy(GPU, HOST)],
        "bidir" => vec![copy(HOST, GPU), copy(GPU, HOST)],
        _ => {
            sink.skip(row, "copies within one GPU use no link");
            return Ok(());
        }
    };
    if bytes < 1 << 20 {
        sink.skip(row, "below 1 MB a copy measures its launch");
        return Ok(());
    }
    let experiment = match (copies.len(), bytes >= LARGE) {
        (2, _) => "copy both ways",
        (_, true) => "copy 64 MB and more",
        _ => "copy 1 to 16 MB",
    };
    let text = format!("memcpy {} {bytes} B", row.field(1));
    sink.add(row, About::new(experiment, text).fit(true), Run::Copies(copies), 0, (rate, "GB/s"));
    Ok(())
}

fn chase(sink: &mut Sink, row: &Row) -> Result<()> {
    let time = row.number(row.field(3))?;
    let host = row.field(1) == "host";
    if !host && row.field(2) == "0" {
        sink.skip(row, "the first repetition is cold");
        return Ok(());
    }
    let memory = if host { HOST } else { GPU };
    let run = Run::Chase { gpu: 0, memory, beside: Vec::new() };
    let about = About::new(format!("chase {}", row.field(1)), "dependent 4-byte reads").fit(true);
    sink.add(row, about, run, 0, (time, "ns"));
    Ok(())
}

fn stream(sink: &mut Sink, row: &Row) -> Result<()> {
    let read = row.field(0) == "sm_read16";
    let (blocks, threads) = (row.count(row.after("blocks")?)?, row.count(row.after("threads")?)?);
    let (kind, rate, plateau, what) = if read {
        let unroll = row.count(row.after("unroll")?)?;
        let what = format!("{blocks}x{threads} threads, unrolled {unroll} times");
        // Four loads of this kernel's loop move what two in flight do: `h200-probe`, whose loads are
        // spelled out, moves 1.9 times as much with four.
        let in_flight = if unroll == 4 { 2 } else { unroll };
        (LoadKind::Read(in_flight), row.field(7), READ_SATURATED, what)
    } else {
        (LoadKind::Write, row.field(5), WRITE_SATURATED, format!("{blocks}x{threads} threads"))
    };
    let rate = row.number(rate)?;
    let name = if read { "sm_read" } else { "sm_write" };
    let saturated = if rate >= plateau { ", saturated" } else { "" };
    let load = Load { gpu: 0, memory: HOST, kind, blocks, threads, stop_check: false };
    let run = Run::LoadMix { chase: None, loads: vec![load] };
    let about = About::new(format!("{name}{saturated}"), what).fit(true);
    sink.add(row, about, run, 1, (rate, "GB/s"));
    Ok(())
}

fn ping_pong(sink: &mut Sink, row: &Row) -> Result<()> {
    let round_trip = row.number(row.field(4))?;
    let (by_host, fenced) = (row.field(1) == "host", row.field(2) == "relacq_sys");
    let run = Run::Flag { pair: Pair::Gpus(0, 0), by_host, fenced };
    let text = format!("two blocks, {}, {}", row.field(1), row.field(2));
    let about = About::new("flag", text).fit(true);
    sink.add(row, about, run, 0, (round_trip / 2.0, "ns"));
    Ok(())
}

/// All of `probe2.csv`.
pub(super) fn probe2(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in without_header(file, text)? {
        match row.field(0) {
            "latency_under_load" => latency_under_load(sink, &row, HOST, true)?,
            "shares" => shares(sink, &row)?,
            "virtual" => {
                let host = row.field(2) == "host";
                let carrier = if host { Carrier::Host } else { Carrier::Peer };
                let experiment = if host { "virtual host" } else { "virtual device" };
                ranks::add(sink, &row, experiment, carrier, true)?;
            }
            _ => sink.skip(&row, "no experiment for this row"),
        }
    }
    Ok(())
}

/// A chain of reads beside readers and writers of the same GPU and memory; three figures a row.
pub(super) fn latency_under_load(
    sink: &mut Sink,
    row: &Row,
    memory: Memory,
    fit: bool,
) -> Result<()> {
    let threads = row.count(row.after("threads")?)?;
    let readers = row.count(row.after("read_blocks")?)?;
    let writers = row.count(row.after("write_blocks")?)?;
    let load = |kind, blocks| Load { gpu: 0, memory, kind, blocks, threads, stop_check: true };
    let mut loads = Vec::new();
    if readers > 0 {
        loads.push(load(LoadKind::Read(1), readers));
    }
    if writers > 0 {
        loads.push(load(LoadKind::Write, writers));
    }
    let run = Run::LoadMix { chase: Some((0, memory)), loads };
    let text = format!("{readers} reading, {writers} writing x{threads}");
    let about = |what: &str| {
        About::new(format!("latency_under_load {what}"), format!("{text}: {what}")).fit(fit)
    };
    let time = row.number(row.after("chase_ns")?)?;
    sink.add(row, about("latency"), run.clone(), 0, (time, "ns"));
    if readers > 0 {
        let rate = row.number(row.after("read_GBps")?)?;
        sink.add(row, about("read rate"), run.clone(), 1, (rate, "GB/s"));
    }
    if writers > 0 {
        let rate = row.number(row.after("write_GBps")?)?;
        sink.add(row, about("write rate"), run, 1 + usize::from(readers > 0), (rate, "GB/s"));
    }
    Ok(())
}

fn shares(sink: &mut Sink, row: &Row) -> Result<()> {
    let both_read = row.field(1) == "both_read";
    let (a, b) = (row.count(row.after("blocks_a")?)?, row.count(row.after("blocks_b")?)?);
    // The readers look at a clock between accesses, much as a load test looks at its stop flag: one
    // block alone reaches the same 5.7 GB/s in both.
    let load =
        |kind, blocks| Load { gpu: 0, memory: HOST, kind, blocks, threads: 512, stop_check: true };
    let second = if both_read { LoadKind::Read(1) } else { LoadKind::Write };
    let run =
        Run::LoadMix { chase: None, loads: vec![load(LoadKind::Read(1), a), load(second, b)] };
    let names = if both_read {
        ["shares both read", "shares both read"]
    } else {
        ["shares reader", "shares writer"]
    };
    for (index, column) in ["a_GBps", "b_GBps"].into_iter().enumerate() {
        let rate = row.number(row.after(column)?)?;
        let text = format!("{} {a}+{b} blocks, {}", row.field(1), &column[..1]);
        let about = About::new(names[index], text).fit(true);
        sink.add(row, about, run.clone(), index + 1, (rate, "GB/s"));
    }
    Ok(())
}
