//! `h200-two-host-links`: two GPUs that meet in host memory.

use super::{About, Sink, ranks};
use crate::error::Result;
use crate::measurement::table::{Row, without_header};
use crate::measurement::{Carrier, Copy, Load, LoadKind, Memory, Pair, Run};

/// Blocks and threads of `host_streams`, from the folder's README.md.
const STREAM_BLOCKS: u32 = 32;
const THREADS: u32 = 512;
/// Size of the copies, which the rows do not state: large.
const COPY_BYTES: u64 = 256 << 20;

/// All of `probe.csv`.
pub(super) fn probe(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in without_header(file, text)? {
        match row.field(0) {
            "chase_host" => {
                let gpu = row.count(row.field(2))?;
                let run = Run::Chase { gpu, memory: Memory::HostNear(gpu), beside: Vec::new() };
                let about = About::new("chase host", format!("GPU {gpu}")).fit(true);
                sink.add(&row, about, run, 0, (row.number(row.field(4))?, "ns"));
            }
            "flag_pingpong_two_gpus_by_host" => {
                let fenced = row.field(1) == "relacq_sys";
                let run = Run::Flag { pair: Pair::Gpus(0, 1), by_host: true, fenced };
                let about = About::new("flag by host", row.field(1)).fit(true);
                let round_trip = row.number(row.field(3))?;
                sink.add(&row, about, run, 0, (round_trip / 2.0, "ns"));
            }
            "host_streams" => host_streams(sink, &row)?,
            "other_gpu_load" => other_gpu_load(sink, &row)?,
            "copy_engines" => copy_engines(sink, &row)?,
            "ranks_on_two_gpus_by_host" => {
                let fit = row.count(row.after("ranks")?)? == 2;
                let experiment = if fit { "2 ranks by host" } else { "4 and 8 ranks by host" };
                ranks::add(sink, &row, experiment, Carrier::Host, fit)?;
            }
            _ => sink.skip(&row, "no experiment for this row"),
        }
    }
    Ok(())
}

fn load(gpu: u32, kind: LoadKind, blocks: u32) -> Load {
    let memory = Memory::HostNear(gpu);
    Load { gpu, memory, kind, blocks, threads: THREADS, stop_check: true }
}

fn host_streams(sink: &mut Sink, row: &Row) -> Result<()> {
    let mut loads = Vec::new();
    let mut figures = Vec::new();
    for gpu in 0..2 {
        let does = row.after(&format!("gpu{gpu}"))?.to_owned();
        for (word, kind) in [("read", LoadKind::Read(1)), ("write", LoadKind::Write)] {
            if does.split('+').any(|part| part == word) {
                loads.push(load(gpu, kind, STREAM_BLOCKS));
                figures.push((format!("gpu{gpu}_{word}"), word));
            }
        }
    }
    let run = Run::LoadMix { chase: None, loads };
    let does = format!("{} beside {}", row.after("gpu0")?, row.after("gpu1")?);
    // A GPU that both reads and writes starves its own reads: another question.
    let starved = does.contains('+');
    for (index, (column, word)) in figures.iter().enumerate() {
        let rate = row.number(row.after(column)?)?;
        let experiment = match (*word, starved && row.after(&column[..4])?.contains('+')) {
            ("read", true) => "host_streams starved read",
            _ => "host_streams",
        };
        let about = About::new(experiment, format!("{does}: {column}")).fit(true);
        sink.add(row, about, run.clone(), index + 1, (rate, "GB/s"));
    }
    Ok(())
}

fn other_gpu_load(sink: &mut Sink, row: &Row) -> Result<()> {
    let kind = row.field(2);
    let blocks = row.count(row.after("blocks")?)?;
    let loads = match kind {
        "0" => vec![],
        "1" => vec![load(1, LoadKind::Read(1), blocks)],
        "2" => vec![load(1, LoadKind::Write, blocks)],
        "3" => vec![load(1, LoadKind::Read(1), blocks), load(1, LoadKind::Write, blocks)],
        _ => return Err(row.wrong(format!("there is no kind `{kind}`"))),
    };
    let run = Run::LoadMix { chase: Some((0, Memory::HostNear(0))), loads };
    let about = About::new("other_gpu_load", format!("kind {kind}, {blocks} blocks")).fit(true);
    let time = row.number(row.after("gpu0_chase")?)?;
    sink.add(row, about, run, 0, (time, "ns"));
    Ok(())
}

fn copy_engines(sink: &mut Sink, row: &Row) -> Result<()> {
    let gpus = row.count(row.after("gpus")?)?;
    let down = |gpu: u32| Copy {
        from: Memory::HostNear(gpu),
        to: Memory::Gpu(gpu),
        engine: gpu,
        bytes: COPY_BYTES,
        kernel: false,
    };
    let up = |gpu: u32| Copy {
        from: Memory::Gpu(gpu),
        to: Memory::HostNear(gpu),
        engine: gpu,
        bytes: COPY_BYTES,
        kernel: false,
    };
    let mut copies = match row.field(1) {
        "h2d" => vec![down(0), down(1)],
        "d2h" => vec![up(0), up(1)],
        _ => vec![down(0), up(1)],
    };
    copies.truncate(gpus as usize);
    // The rate a GPU is half of the total when both run: the slower one ends the clock.
    let rate = row.number(row.field(4))? * f64::from(gpus);
    let about = About::new("copy engines", format!("{} of {gpus} GPUs", row.field(1))).fit(true);
    let about = about.note("rate a GPU times GPUs");
    sink.add(row, about, Run::Copies(copies), 0, (rate, "GB/s"));
    Ok(())
}
