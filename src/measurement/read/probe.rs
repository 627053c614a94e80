//! Rows of `observations.csv` that the probe wrote (`docs/probe.md`): what has no column of its own
//! stands in `condition` as `key=value` parts.

use super::{About, Sink, ranks};
use crate::algorithm::Implementation;
use crate::error::Result;
use crate::measurement::table::Row;
use crate::measurement::{Carrier, Copy, KernelCall, Load, LoadKind, Memory, Pair, Run};

/// From this size a copy shows its link; below, its start.
const LARGE: u64 = 1 << 20;

/// Whether the probe wrote the row, and its own kernels or copies are what ran.
pub(super) fn wrote(row: &Row) -> Result<bool> {
    let own = matches!(row.column("implementation")?, "probe" | "copy_engine");
    Ok(own && row.column("source").is_ok_and(|source| source == "probe"))
}

/// One row.
pub(super) fn read(sink: &mut Sink, row: &Row) -> Result<()> {
    match row.column("experiment")? {
        "read_latency" => read_latency(sink, row),
        "flag" => flag(sink, row),
        "stream_rate" => stream(sink, row),
        "copy" => copy(sink, row),
        "latency_under_load" => under_load(sink, row),
        "share" => share(sink, row),
        "host_streams" | "latency_beside_other_gpu" => host_streams(sink, row),
        "pattern" => pattern(sink, row),
        "all_reduce" => all_reduce(sink, row),
        "clock_alignment" => {
            sink.skip(row, "how well the clocks of traces agree");
            Ok(())
        }
        _ => {
            sink.skip(row, "launches, fences, lines, single reads: each read for one constant");
            Ok(())
        }
    }
}

/// The value of a `key=value` part of the condition.
fn part<'a>(row: &'a Row, key: &str) -> Result<Option<&'a str>> {
    let condition = row.column("condition")?;
    Ok(condition.split("; ").find_map(|part| part.strip_prefix(key)?.strip_prefix('=')))
}

fn needed<'a>(row: &'a Row, key: &str) -> Result<&'a str> {
    part(row, key)?.ok_or_else(|| row.wrong(format!("the condition says no `{key}=`")))
}

fn value(row: &Row) -> Result<f64> {
    row.number(row.column("value")?)
}

fn bytes(row: &Row) -> Result<u64> {
    let text = row.column("size_bytes")?;
    text.parse().map_err(|_| row.wrong(format!("`{text}` is no number of bytes")))
}

/// GPU and memory of `0>host` or `0>1`.
fn path(row: &Row) -> Result<(u32, Memory)> {
    let flows = row.column("flows")?;
    let (gpu, memory) =
        flows.split_once('>').ok_or_else(|| row.wrong(format!("`{flows}` is no path")))?;
    let gpu = row.count(gpu)?;
    Ok((gpu, memory_of(row, memory, gpu)?))
}

/// A memory by its name; the host's is the one near `gpu`.
fn memory_of(row: &Row, name: &str, gpu: u32) -> Result<Memory> {
    Ok(if name == "host" { Memory::HostNear(gpu) } else { Memory::Gpu(row.count(name)?) })
}

/// Host, peer or local.
fn kind(gpu: u32, memory: Memory) -> &'static str {
    match memory {
        Memory::HostNear(_) => "host",
        Memory::Gpu(other) if other == gpu => "local",
        Memory::Gpu(_) => "peer",
    }
}

/// What is told of a row: the condition goes into the text, since it is part of the run.
fn about(row: &Row, experiment: impl Into<String>) -> Result<About> {
    let text = format!("{} {}", row.column("flows")?, row.column("condition")?);
    Ok(About::new(experiment, text.trim().to_owned()))
}

fn read_latency(sink: &mut Sink, row: &Row) -> Result<()> {
    let (gpu, memory) = path(row)?;
    if part(row, "lines")? == Some("written_by_cpu") {
        sink.skip(row, "lines that the CPU wrote last take another way than those of GPUs");
        return Ok(());
    }
    let run = match (bytes(row)?, memory) {
        (4, _) => Run::Chase { gpu, memory, beside: Vec::new() },
        (size, Memory::Gpu(other)) if other != gpu => {
            Run::PeerRead { pair: Pair::Gpus(gpu, other), bytes: size as u32 }
        }
        _ => {
            sink.skip(row, "reads of whole lines are run between GPUs only");
            return Ok(());
        }
    };
    let about = about(row, format!("chase {}", kind(gpu, memory)))?;
    sink.add(row, about, run, 0, (value(row)?, "ns"));
    Ok(())
}

fn flag(sink: &mut Sink, row: &Row) -> Result<()> {
    let flows = row.column("flows")?;
    let (a, b) = flows.split_once("<>").ok_or_else(|| row.wrong("no pair such as 0<>1"))?;
    if b == "cpu" {
        sink.skip(row, "the CPU takes part");
        return Ok(());
    }
    let by_host = needed(row, "memory")? == "host";
    let fenced = needed(row, "order")? == "release_acquire";
    let run = Run::Flag { pair: Pair::Gpus(row.count(a)?, row.count(b)?), by_host, fenced };
    let name = if by_host { "flag by host" } else { "flag" };
    sink.add(row, about(row, name)?, run, 0, (value(row)?, "ns"));
    Ok(())
}

fn stream(sink: &mut Sink, row: &Row) -> Result<()> {
    if needed(row, "width")? != "16" {
        sink.skip(row, "accesses of other than 16 bytes a thread have no experiment");
        return Ok(());
    }
    let (gpu, memory) = path(row)?;
    let kind_of_load = match needed(row, "op")? {
        "read" => LoadKind::Read(row.count(needed(row, "in_flight")?)?),
        _ => LoadKind::Write,
    };
    let (blocks, threads) =
        (row.count(needed(row, "blocks")?)?, row.count(needed(row, "threads")?)?);
    let load = Load { gpu, memory, kind: kind_of_load, blocks, threads, stop_check: false };
    let run = Run::LoadMix { chase: None, loads: vec![load] };
    let verb = if kind_of_load == LoadKind::Write { "write" } else { "read" };
    let about = about(row, format!("stream {verb} {}", kind(gpu, memory)))?;
    sink.add(row, about, run, 1, (value(row)?, "GB/s"));
    Ok(())
}

fn copy(sink: &mut Sink, row: &Row) -> Result<()> {
    let size = bytes(row)?;
    if size < LARGE {
        sink.skip(row, "below 1 MB a copy measures its launch");
        return Ok(());
    }
    let mut copies = Vec::new();
    for flow in row.column("flows")?.split('+') {
        let (from, to) = flow.split_once('>').ok_or_else(|| row.wrong("no flow such as 0>1"))?;
        // The sender's engine, or that of the GPU where the host sends.
        let engine = row.count(if from == "host" { to } else { from })?;
        let (from, to) = (memory_of(row, from, engine)?, memory_of(row, to, engine)?);
        copies.push(Copy { from, to, engine, bytes: size, kernel: false });
    }
    // The time until the last has ended.
    let rate = size as f64 * copies.len() as f64 / value(row)? / 1e3;
    let experiment = match copies.len() {
        1 => "copy",
        2 if copies[0].engine == copies[1].engine => "copy both ways",
        _ => "copies at once",
    };
    sink.add(row, about(row, experiment)?, Run::Copies(copies), 0, (rate, "GB/s"));
    Ok(())
}

/// Groups of equal blocks as `read=8; write=1` tells them, readers first.
fn groups(row: &Row, gpu: u32, memory: Memory, threads: u32) -> Result<Vec<Load>> {
    let mut loads = Vec::new();
    for part in row.column("condition")?.split("; ") {
        let kind = match part.split_once('=') {
            Some(("read", _)) => LoadKind::Read(1),
            Some(("write", _)) => LoadKind::Write,
            _ => continue,
        };
        let blocks = row.count(part.split('=').nth(1).unwrap_or_default())?;
        loads.push(Load { gpu, memory, kind, blocks, threads, stop_check: true });
    }
    Ok(loads)
}

fn under_load(sink: &mut Sink, row: &Row) -> Result<()> {
    let (gpu, memory) = path(row)?;
    let loads = groups(row, gpu, memory, row.count(needed(row, "threads")?)?)?;
    let of = |kind: LoadKind| loads.iter().position(|load| load.kind == kind).map(|at| at + 1);
    let (figure, what, unit) = match row.column("metric")? {
        "read_bandwidth" => (of(LoadKind::Read(1)), "read rate", "GB/s"),
        "write_bandwidth" => (of(LoadKind::Write), "write rate", "GB/s"),
        _ => (Some(0), "latency", "ns"),
    };
    let figure = figure.ok_or_else(|| row.wrong("no group of the condition has this rate"))?;
    let about = about(row, format!("latency_under_load {what} {}", kind(gpu, memory)))?;
    sink.add(
        row,
        about,
        Run::LoadMix { chase: Some((gpu, memory)), loads },
        figure,
        (value(row)?, unit),
    );
    Ok(())
}

fn share(sink: &mut Sink, row: &Row) -> Result<()> {
    let (gpu, memory) = path(row)?;
    let loads = groups(row, gpu, memory, row.count(needed(row, "threads")?)?)?;
    let second = needed(row, "group")? == "b";
    let experiment = match (second, loads.get(1).map(|load| load.kind)) {
        (_, Some(LoadKind::Read(_))) => "shares both read",
        (false, _) => "shares reader",
        (true, _) => "shares writer",
    };
    let run = Run::LoadMix { chase: None, loads };
    sink.add(row, about(row, experiment)?, run, 1 + usize::from(second), (value(row)?, "GB/s"));
    Ok(())
}

/// What each GPU of `gpu0=read; gpu1=read+write` does to the host's memory near it.
fn host_streams(sink: &mut Sink, row: &Row) -> Result<()> {
    let (gpu, memory) = path(row)?;
    let (blocks, threads) =
        (row.count(needed(row, "blocks")?)?, row.count(needed(row, "threads")?)?);
    let mut loads = Vec::new();
    let mut both = false;
    for part in row.column("condition")?.split("; ") {
        let Some((other, does)) = part.strip_prefix("gpu").and_then(|rest| rest.split_once('='))
        else {
            continue;
        };
        let other = row.count(other)?;
        both |= other == gpu && does.contains('+');
        for (word, kind) in [("read", LoadKind::Read(1)), ("write", LoadKind::Write)] {
            if does.split('+').any(|one| one == word) {
                let memory = Memory::HostNear(other);
                loads.push(Load { gpu: other, memory, kind, blocks, threads, stop_check: true });
            }
        }
    }
    let metric = row.column("metric")?;
    if metric == "latency" {
        let run = Run::LoadMix { chase: Some((gpu, memory)), loads };
        sink.add(row, about(row, "other_gpu_load")?, run, 0, (value(row)?, "ns"));
        return Ok(());
    }
    let wanted = if metric == "write_bandwidth" { LoadKind::Write } else { LoadKind::Read(1) };
    let figure = loads.iter().position(|load| load.gpu == gpu && load.kind == wanted);
    let figure = figure.ok_or_else(|| row.wrong("the condition has no such stream"))? + 1;
    // A GPU that both reads and writes starves its own reads: another question.
    let starved = both && wanted != LoadKind::Write;
    let about = about(row, if starved { "host_streams starved read" } else { "host_streams" })?;
    sink.add(row, about, Run::LoadMix { chase: None, loads }, figure, (value(row)?, "GB/s"));
    Ok(())
}

fn pattern(sink: &mut Sink, row: &Row) -> Result<()> {
    let name = row.column("condition")?;
    if name.contains("in turn") {
        sink.skip(row, "flows of one reader one after another are not run");
        return Ok(());
    }
    let size = bytes(row)?;
    let kernel = row.column("implementation")? == "probe";
    let mut copies = Vec::new();
    for flow in row.column("flows")?.split('+') {
        let (from, to) = flow.split_once('>').ok_or_else(|| row.wrong("no flow such as 0>1"))?;
        let to = row.count(to)?;
        let from = Memory::Gpu(row.count(from)?);
        copies.push(Copy { from, to: Memory::Gpu(to), engine: to, bytes: size, kernel });
    }
    let experiment = if kernel { "pattern by SMs" } else { "pattern by copy engines" };
    sink.add(row, about(row, experiment)?, Run::Copies(copies), 0, (value(row)?, "GB/s"));
    Ok(())
}

fn all_reduce(sink: &mut Sink, row: &Row) -> Result<()> {
    let name = row.column("algorithm")?;
    if row.column("metric")? != "time_p50" {
        sink.skip(row, "percentiles beside the middle one: for spread only");
        return Ok(());
    }
    if name == "ring_simple" {
        sink.skip(row, "no model of the probe's ring with flags");
        return Ok(());
    }
    let (algorithm, protocol) = ranks::kernel(row, name)?;
    let count = row.count(row.column("ranks")?)?;
    let per_gpu = row.count(needed(row, "ranks_a_gpu")?)?.max(1);
    let by_host = needed(row, "memory")? == "host";
    // Loads are grouped as the compiler did it in the tables before.
    let several = count > per_gpu;
    let implementation = if several { Implementation::PairProbe } else { Implementation::Probe };
    let run = Run::Collective(KernelCall {
        protocol,
        blocks: Some(row.count(row.column("channels")?)?),
        carrier: if by_host { Carrier::Host } else { Carrier::Peer },
        ..KernelCall::all_reduce(
            algorithm,
            implementation,
            (0..count).map(|rank| rank / per_gpu).collect(),
            bytes(row)?,
        )
    });
    let where_ranks_are = match (several, per_gpu) {
        (false, _) => "virtual".to_owned(),
        (true, 1) => format!("{count} ranks"),
        (true, _) => format!("{count} ranks, {per_gpu} a GPU"),
    };
    let experiment = format!("{where_ranks_are}{}", if by_host { " by host" } else { "" });
    let text = format!("{name} {count} ranks, {} B", bytes(row)?);
    sink.add(row, About::new(experiment, text), run, 0, (value(row)?, "us"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::table::with_header;

    const HEADER: &str = "experiment,implementation,algorithm,channels,ranks,flows,size_bytes,\
                          condition,metric,value,source\n";

    fn read_all(rows: &str) -> (Vec<crate::measurement::Observation>, usize) {
        let mut sink = Sink::new("mine", "h200x2-nvlink-pair");
        for row in with_header("observations.csv", &format!("{HEADER}{rows}")).expect("CSV") {
            assert!(wrote(&row).expect("columns"));
            read(&mut sink, &row).unwrap_or_else(|error| panic!("{error}"));
        }
        let record = sink.finish();
        (record.observations, record.skipped.len())
    }

    #[test]
    fn paths_flags_and_streams_are_runs() {
        let (seen, skipped) = read_all(
            "read_latency,probe,,,1,0>host,4,lines=written_by_gpu,latency,1150,probe\n\
             read_latency,probe,,,1,0>host,4,lines=written_by_cpu,latency,1210,probe\n\
             read_latency,probe,,,1,0>1,128,,latency,870,probe\n\
             flag,probe,,,1,0<>1,4,memory=poller; order=release_acquire,latency,1260,probe\n\
             flag,probe,,,1,0<>cpu,4,memory=host; order=volatile,latency,1260,probe\n\
             stream_rate,probe,,,1,0>1,64,op=read; width=16; in_flight=4; blocks=8; threads=512,bandwidth,200,probe\n",
        );
        assert_eq!(skipped, 2);
        assert_eq!(seen[0].run, Run::Chase { gpu: 0, memory: Memory::HostNear(0), beside: vec![] });
        assert_eq!(seen[1].run, Run::PeerRead { pair: Pair::Gpus(0, 1), bytes: 128 });
        assert_eq!(seen[2].run, Run::Flag { pair: Pair::Gpus(0, 1), by_host: false, fenced: true });
        let Run::LoadMix { chase: None, loads } = &seen[3].run else { panic!("{:?}", seen[3]) };
        assert_eq!((loads[0].kind, loads[0].memory), (LoadKind::Read(4), Memory::Gpu(1)));
    }

    #[test]
    fn rates_belong_to_their_groups() {
        let (seen, skipped) = read_all(
            "share,probe,,,1,0>host,0,read=2; write=8; threads=512; group=b,bandwidth,52,probe\n\
             latency_under_load,probe,,,1,0>host,0,read=8; write=1; threads=512,write_bandwidth,50,probe\n\
             host_streams,probe,,,1,1>host,0,gpu0=read+write; gpu1=write; blocks=32; threads=512,write_bandwidth,47,probe\n\
             copy,copy_engine,,,1,host>0+1>host,268435456,,time,5000,probe\n",
        );
        assert_eq!((seen.len(), skipped), (4, 0));
        assert_eq!([seen[0].figure, seen[1].figure, seen[2].figure], [2, 2, 3]);
        // 2 x 268,435,456 B in 5 ms.
        assert!((seen[3].measured - 107.374_182).abs() < 1e-5);
        let Run::Copies(copies) = &seen[3].run else { panic!("{:?}", seen[3]) };
        assert_eq!((copies[0].engine, copies[1].engine), (0, 1));
    }

    #[test]
    fn ranks_know_their_gpu() {
        let (seen, skipped) = read_all(
            "all_reduce,probe,ring_ll,1,8,,14336,memory=host; ranks_a_gpu=4,time_p50,36,probe\n\
             all_reduce,probe,ring_ll,1,8,,14336,memory=host; ranks_a_gpu=4,time_p99,46,probe\n",
        );
        assert_eq!(skipped, 1);
        let Run::Collective(call) = &seen[0].run else { panic!("{:?}", seen[0]) };
        assert_eq!(call.gpus, [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(call.implementation, Implementation::PairProbe);
        assert_eq!(call.carrier, Carrier::Host);
    }
}
