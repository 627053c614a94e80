//! Rows of collectives in `observations.csv`: NCCL's, and kernels of serving libraries.

use super::standard::about;
use super::{Sink, serving, told};
use crate::algorithm::{Implementation, Protocol};
use crate::error::Result;
use crate::measurement::large;
use crate::measurement::table::Row;
use crate::measurement::{KernelCall, Launches, NcclCall, Run};
use crate::schedule::Collective;

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

/// Whether a machine's constants of NCCL were fitted to its rows of so many GPUs: two.
fn fitted_to_pairs(machine: &str, ranks: u32) -> bool {
    ranks == 2 && matches!(machine, "aic-a100sxm-x8" | "aic-h100sxm-x8" | "aic-b200-x8")
}

/// Whether a socket's `memory_total` was fitted to a row: all-reduces through host memory that are so
/// large that their buffers do not stay in caches.
fn fitted_to_memory(machine: &str, condition: &str, collective: Collective, bytes: u64) -> bool {
    let by_host = match machine {
        "4090x8-epyc7542-2s" => condition.contains("no P2P"),
        machine => machine == "aic-rtxpro6000-x2x4",
    };
    by_host && collective == Collective::AllReduce && bytes >= 16 << 20
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
    let gpus = (0..ranks).collect();
    let run = Run::Collective(KernelCall::all_reduce("one_shot_pull", implementation, gpus, bytes));
    let large = if bytes > 1 << 20 { ", over 1 MB" } else { "" };
    let experiment = experiment(sink, "one-shot all-reduce", ranks, large);
    let who = if sglang { "sglang" } else { "p2pmark" };
    let mut about = about(sink, row, experiment, format!("{who} {bytes} B"))?;
    about.regime = sink.machine.starts_with("asus") && ranks == 8;
    sink.add(row, about, run, 0, (time_us(row)?, "us"));
    Ok(())
}

/// Why nothing is predicted for a row of NCCL, if so.
fn unmodelled(row: &Row) -> Result<Option<&'static str>> {
    let condition = row.column("condition")?;
    if condition.contains("NCCL_SHM_DISABLE=1") && condition.contains("NCCL_P2P_DISABLE=1") {
        return Ok(Some("by network: NICs are not modelled"));
    }
    let broadcast = row.column("experiment")? == "broadcast";
    if broadcast
        && condition.contains("NCCL_MAX_NCHANNELS=")
        && row.column("placement")? == "in_place"
    {
        return Ok(Some(
            "in place the root keeps no copy, which shows on few channels: not modelled",
        ));
    }
    let alone = condition.contains("all_reduce_bench") || condition.contains("timed by itself");
    let reason = "each call is timed by itself with its launch: no time of the call";
    Ok((alone && size(row)? < 8 << 20).then_some(reason))
}

/// How a row's calls were launched, and whether the host's launches were read off it.
fn launches(sink: &Sink, row: &Row, collective: Collective) -> Result<(Launches, bool)> {
    let condition = row.column("condition")?;
    let told = condition.contains("one process (");
    let Some(host) = sink.host.as_ref().filter(|host| told || host.launched_in_turn(condition))
    else {
        return Ok((if told { Launches::InTurn(None) } else { Launches::AtOnce }, false));
    };
    let each = match collective {
        Collective::AllToAll => host.send_launch_ns,
        _ => host.launch_ns,
    };
    Ok((Launches::InTurn(Some(each)), size(row)? <= host.fitted_up_to_bytes))
}

/// The version that a row tells, and that assumed where the machine's source tells none.
fn version(sink: &Sink, condition: &str) -> Option<(String, bool)> {
    if let Some((_, told)) = condition.split_once("NCCL ") {
        let version = told.split([';', ' ']).next().unwrap_or_default();
        return Some((version.to_owned(), false));
    }
    sink.assumed_nccl.clone().map(|version| (version, true))
}

/// What the row says was set.
fn settings(row: &Row, condition: &str) -> Result<String> {
    let told = |word: &&str| word.starts_with("NCCL_") && word.contains('=');
    let mut words: Vec<String> =
        condition.split([' ', ';']).filter(told).map(str::to_owned).collect();
    let algorithm = row.column("algorithm")?;
    if !algorithm.is_empty() && !condition.contains("NCCL_") {
        words.push(format!("NCCL_ALGO={algorithm}"));
    }
    // By its default level NCCL would stage all hops of such a machine in host memory, and P2P would
    // change nothing; it did.
    if condition.contains("P2P on") {
        words.push("NCCL_P2P_LEVEL=SYS".to_owned());
    }
    Ok(words.join(" "))
}

fn nccl(sink: &mut Sink, row: &Row) -> Result<()> {
    let Some(collective) = Collective::from_name(row.column("experiment")?) else {
        sink.skip(row, "send and receive between pairs have no schedule yet");
        return Ok(());
    };
    if let Some(reason) = unmodelled(row)? {
        sink.skip(row, reason);
        return Ok(());
    }
    if row.column("algorithm")?.starts_with("symmetric") {
        return symmetric(sink, row, collective);
    }
    let condition = row.column("condition")?;
    match version(sink, condition) {
        Some((version, assumed)) if row.column("channels")?.is_empty() => {
            chosen(sink, row, collective, version, assumed)
        }
        _ => {
            let launches = launches(sink, row, collective)?.0;
            told::nccl(sink, row, launches)
        }
    }
}

/// Largest call that NCCL's kernels for symmetric memory send as lines to all at once, as far as the
/// one source shows: 3.8 us at 16 KB and 8.3 at 64 KB on eight B200.
const SYMMETRIC_LINES_BYTES: u64 = 16 << 10;

/// A row of NCCL's kernels for symmetric memory. Which of them ran is not told: behind NVSwitches those
/// that the switches copy and sum for.
fn symmetric(sink: &mut Sink, row: &Row, collective: Collective) -> Result<()> {
    let (ranks, bytes) = (row.count(row.column("ranks")?)?, size(row)?);
    if collective != Collective::AllReduce {
        sink.skip(row, "NCCL's symmetric kernels are modelled for all-reduces only");
        return Ok(());
    }
    let (algorithm, protocol) = match bytes <= SYMMETRIC_LINES_BYTES {
        true => ("nvls_packet", Protocol::Ll),
        false => ("nvls_two_shot", Protocol::Simple),
    };
    let gpus = (0..ranks).collect();
    let call = KernelCall::all_reduce(algorithm, Implementation::NcclSymmetric, gpus, bytes);
    let experiment = experiment(sink, "NCCL symmetric all-reduce", ranks, large(bytes));
    let text = format!("{ranks} GPUs {bytes} B {algorithm}");
    let mut about = about(sink, row, experiment, text)?;
    "which kernel ran is assumed from the step in time between 16 and 64 KB"
        .clone_into(&mut about.note);
    sink.add(
        row,
        about,
        Run::Collective(KernelCall { protocol, ..call }),
        0,
        (time_us(row)?, "us"),
    );
    Ok(())
}

/// What a row says of how data travel, or a row of the probe forced, which summarises these apart: each
/// is a question of its own.
fn forced(row: &Row) -> Result<String> {
    let condition = row.column("condition")?;
    let ways = [
        ("NCCL_P2P_USE_CUDA_MEMCPY=1", " by copy engine"),
        ("NCCL_SHM_USE_CUDA_MEMCPY=1", " by host, copy engine"),
        ("NCCL_MAX_NCHANNELS=1;", " on one channel"),
        ("NCCL_MAX_NCHANNELS=", " on few channels"),
    ];
    if let Some((_, way)) = ways.iter().find(|way| condition.contains(way.0)) {
        return Ok((*way).to_owned());
    }
    if !row.column("source").is_ok_and(|source| source == "probe") {
        return Ok(String::new());
    }
    let words = [row.column("algorithm")?, row.column("protocol")?];
    let words = words.iter().filter(|word| !word.is_empty()).map(|word| format!(" {word}"));
    let by_host = condition.contains("NCCL_P2P_DISABLE=1");
    Ok(words.collect::<String>() + if by_host { " by host" } else { "" })
}

/// A row whose algorithm, protocol and channels are what NCCL chooses.
fn chosen(
    sink: &mut Sink,
    row: &Row,
    collective: Collective,
    version: String,
    assumed: bool,
) -> Result<()> {
    let (ranks, bytes) = (row.count(row.column("ranks")?)?, size(row)?);
    let condition = row.column("condition")?;
    let bench = condition.contains("all_reduce_bench");
    let (launches, launches_fitted) = launches(sink, row, collective)?;
    let class = match large(bytes) {
        _ if launches_fitted => ", launches",
        "" => "",
        _ if row.column("metric")? == "bus_bandwidth" && !bench => ", peaks",
        large => large,
    };
    let pairs = fitted_to_pairs(&sink.machine, ranks);
    let class = format!("{}{class}", if pairs { " 2 GPUs" } else { "" });
    let what = format!("NCCL {}{}", collective.title(), forced(row)?);
    let experiment = experiment(sink, &what, ranks, &class);
    let mut about = about(sink, row, experiment, format!("{ranks} GPUs {bytes} B {condition}"))?;
    about.fit |= launches_fitted || pairs;
    about.fit |= ranks > 2 && fitted_to_memory(&sink.machine, condition, collective, bytes);
    about.note = match assumed {
        true => format!("version assumed: {version}"),
        false => String::new(),
    };
    let run = Run::Nccl(NcclCall {
        collective,
        version,
        settings: settings(row, condition)?,
        peer_to_peer: !condition.contains("no P2P") && !condition.contains("NCCL_P2P_DISABLE=1"),
        // This source prints eight NUMA nodes of two sockets.
        numa_per_socket: if sink.machine == "4090x8-epyc7542-2s" { 4 } else { 1 },
        gpus: (0..ranks).collect(),
        bytes,
        launches,
        in_graph: ["CUDA graph", "calls in a graph"].iter().any(|told| condition.contains(told)),
        first_of: condition.contains("-n 5 ").then_some(5),
    });
    sink.add(row, about, run, 0, (time_us(row)?, "us"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::read::hosts;
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
    fn launches_are_the_hosts() {
        let text = "condition,size_bytes\none process (-g 8),2048\n\"one process, a thread\",2048\n\
                    SGLang auto-crossover,4096\ndefault,8192\n";
        let rows = with_header("x.csv", text).expect("CSV");
        let of = |machine: &str, row: usize| {
            let mut sink = Sink::new(machine, "rtxpro6000x8");
            sink.host = hosts::host(machine).expect("sound");
            launches(&sink, &rows[row], Collective::AllReduce).expect("sound")
        };
        let (rome, asus) = ("4090x8-epyc7542-2s", "asus-esc8000a-e13p-2xpex890xx-8gpu");
        assert_eq!(of(rome, 0), (Launches::InTurn(Some(5250)), true));
        assert_eq!(of("another", 0), (Launches::InTurn(None), false));
        assert_eq!(of(rome, 1), (Launches::AtOnce, false));
        assert_eq!(of(asus, 2), (Launches::AtOnce, false));
        assert_eq!(of(asus, 3), (Launches::InTurn(Some(3300)), false));
    }

    #[test]
    fn what_a_row_tells_nccl() {
        let text = "algorithm,condition\nRing,\"NCCL_ALGO=Ring NCCL_PROTO=Simple; -n 5 -w 2\"\n\
                    NVLS,\"NCCL 2.27.7; default\"\n,\"P2P on (BAR1); one process (-g 8)\"\n";
        let rows = with_header("x.csv", text).expect("CSV");
        let told = |row: &Row| settings(row, row.column("condition").expect("there"));
        let all: Vec<String> = rows.iter().map(|row| told(row).expect("settings")).collect();
        assert_eq!(
            all,
            ["NCCL_ALGO=Ring NCCL_PROTO=Simple", "NCCL_ALGO=NVLS", "NCCL_P2P_LEVEL=SYS"]
        );
        let mut sink = Sink::new("occl-h800-x8", "h800x8-nvswitch");
        sink.assumed_nccl = Some("2.12.12".into());
        assert_eq!(version(&sink, "NCCL 2.23; one process"), Some(("2.23".into(), false)));
        assert_eq!(version(&sink, "-n 5 -w 2"), Some(("2.12.12".into(), true)));
    }
}
