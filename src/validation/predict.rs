//! The figures of an observation's run, by the simulator.

use std::collections::BTreeSet;

use super::experiment::{CollectiveRun, Machine, exact_bytes};
use super::nccl;
use crate::algorithm::Transport;
use crate::algorithm::probe::{LoadGroup, LoadKind};
use crate::algorithm::streams::Stream;
use crate::error::{Error, Result};
use crate::fabric::EndpointId;
use crate::measurement::{self, Carrier, Copy, Memory, Pair, Run};

/// Calls back to back for the mean of a collective: the phase of polls matters to short ones only.
fn calls(bytes: u64) -> u32 {
    match bytes {
        0..=65_536 => 6,
        65_537..=262_144 => 3,
        _ => 2,
    }
}

/// Bytes a flow up to which copies are run; longer ones are continued along a straight line.
fn exact_copy_bytes(flows: usize) -> u64 {
    match flows {
        0..=2 => 4 << 20,
        3..=8 => 2 << 20,
        _ => 1 << 20,
    }
}

/// All figures of a run, numbered as [`Run`] says.
///
/// # Errors
/// When the machine has no such GPU, and those of the engine.
pub fn figures(machine: &Machine<'_>, run: &Run) -> Result<Vec<f64>> {
    match run {
        Run::LoadMix { chase, loads } => load_mix(machine, *chase, loads),
        Run::PeerRead { pair, bytes } => {
            let (reader, target) = resolve(machine, pair)?;
            Ok(vec![machine.read_latency_ns(reader, target, *bytes)?])
        }
        Run::Chase { gpu, memory } => {
            let gpu = known(machine, *gpu)?;
            Ok(vec![machine.read_latency_ns(gpu, endpoint(machine, *memory)?, 4)?])
        }
        Run::Flag { pair, by_host, fenced } => {
            let (a, b) = resolve(machine, pair)?;
            let homes = if *by_host { [machine.host(a), machine.host(b)] } else { [a, b] };
            Ok(vec![machine.flag_one_way_ns([a, b], homes, *fenced)?])
        }
        Run::Copies(copies) => copy_rates(machine, copies),
        Run::Collective { .. } | Run::Nccl(_) => Ok(vec![collectives(machine, &[run])?[0]]),
    }
}

/// Times of collectives that differ in nothing but their size and how they were launched, us.
///
/// # Errors
/// As [`figures`]. Runs of other kinds are refused.
pub fn collectives(machine: &Machine<'_>, runs: &[&Run]) -> Result<Vec<f64>> {
    let mut times = vec![0.0; runs.len()];
    // Runs alike but for their size, with the places and sizes of their members.
    let mut alike: Vec<(CollectiveRun, Vec<usize>, Vec<u64>)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        let (run, floor) = collective(machine, run)?;
        times[place] = floor;
        let bytes = run.bytes;
        let common = CollectiveRun { bytes: 0, ..run };
        match alike.iter_mut().find(|(other, ..)| *other == common) {
            Some((_, places, sizes)) => {
                places.push(place);
                sizes.push(bytes);
            }
            None => alike.push((common, vec![place], vec![bytes])),
        }
    }
    for (run, places, sizes) in alike {
        let unique: Vec<u64> = BTreeSet::from_iter(sizes.iter().copied()).into_iter().collect();
        let of_size = machine.collective_us(&run, &unique)?;
        for (place, size) in places.into_iter().zip(sizes) {
            let index = unique.binary_search(&size).unwrap_or(0);
            times[place] = of_size[index].max(times[place]);
        }
    }
    Ok(times)
}

/// What is the same for runs that [`collectives`] should get together: they are alike, or large
/// collectives that are alike but for their size.
pub fn alike(machine: &Machine<'_>, run: &Run) -> String {
    let call = match run {
        Run::Collective { .. } | Run::Nccl(_) => collective(machine, run).ok(),
        _ => None,
    };
    let Some((call, _)) = call else { return format!("{run:?}") };
    match call.bytes > exact_bytes(call.algorithm, call.gpus.len()) {
        true => format!("{:?}", CollectiveRun { bytes: 0, ..call }),
        false => format!("{call:?}"),
    }
}

/// The call of a run, and the least time that launches leave it, us.
fn collective(machine: &Machine<'_>, run: &Run) -> Result<(CollectiveRun, f64)> {
    let floor = |gpus: &[u32], launched_in_turn: bool| match launched_in_turn {
        true => machine.fabric.launches_in_turn(gpus).as_us(),
        false => 0.0,
    };
    match run {
        Run::Collective {
            collective,
            algorithm,
            protocol,
            implementation,
            gpus,
            bytes,
            blocks,
            carrier,
            launched_in_turn,
        } => {
            for &gpu in gpus {
                known(machine, gpu)?;
            }
            let run = CollectiveRun {
                collective: *collective,
                algorithm,
                protocol: *protocol,
                implementation: *implementation,
                gpus: gpus.clone(),
                bytes: *bytes,
                blocks: *blocks,
                threads: None,
                orders: Vec::new(),
                transport: transport(machine, *carrier, gpus),
                calls: calls(*bytes),
                by_stream: false,
                first_of: None,
            };
            Ok((run, floor(gpus, *launched_in_turn)))
        }
        Run::Nccl(call) => {
            for &gpu in &call.gpus {
                known(machine, gpu)?;
            }
            let run = nccl::run_of(machine, call)?;
            let run = CollectiveRun { calls: calls(call.bytes), ..run };
            Ok((run, floor(&call.gpus, call.launched_in_turn)))
        }
        _ => Err(Error::request("this run is no collective", "report this")),
    }
}

fn known(machine: &Machine<'_>, gpu: u32) -> Result<u32> {
    if (gpu as usize) < machine.fabric.gpu_count {
        return Ok(gpu);
    }
    Err(Error::request(
        format!("{} has no GPU {gpu}", machine.topology.name),
        "choose the topology on which it was measured",
    ))
}

fn endpoint(machine: &Machine<'_>, memory: Memory) -> Result<EndpointId> {
    match memory {
        Memory::Gpu(gpu) => known(machine, gpu),
        Memory::HostNear(gpu) => Ok(machine.host(known(machine, gpu)?)),
    }
}

fn resolve(machine: &Machine<'_>, pair: &Pair) -> Result<(u32, u32)> {
    let word = match pair {
        Pair::Gpus(a, b) => return Ok((known(machine, *a)?, known(machine, *b)?)),
        Pair::Path(word) => word,
    };
    let count = machine.fabric.gpu_count;
    (0..count)
        .flat_map(|a| (a + 1..count).map(move |b| (a, b)))
        .find(|&(a, b)| machine.topology.path_type(a, b).to_string() == *word)
        .map(|(a, b)| (a as u32, b as u32))
        .ok_or_else(|| {
            Error::request(
                format!("no two GPUs of {} are {word} apart", machine.topology.name),
                "choose the topology on which it was measured",
            )
        })
}

fn transport(machine: &Machine<'_>, carrier: Carrier, gpus: &[u32]) -> Transport {
    match carrier {
        Carrier::Peer => Transport::Peer,
        Carrier::Host => Transport::Host,
        Carrier::HostBeyondSwitch => Transport::HostFor(machine.topology.ranks_apart(gpus)),
    }
}

fn load_mix(
    machine: &Machine<'_>,
    chase: Option<(u32, Memory)>,
    loads: &[measurement::Load],
) -> Result<Vec<f64>> {
    let chase = match chase {
        Some((gpu, memory)) => Some((known(machine, gpu)?, endpoint(machine, memory)?)),
        None => None,
    };
    let mut groups = Vec::new();
    for load in loads {
        groups.push(LoadGroup {
            gpu: known(machine, load.gpu)?,
            target: endpoint(machine, load.memory)?,
            kind: match load.kind {
                measurement::LoadKind::Read(in_flight) => LoadKind::Read { in_flight },
                measurement::LoadKind::Write => LoadKind::Write,
            },
            blocks: load.blocks,
            threads: load.threads,
            stop_check: load.stop_check,
        });
    }
    let mix = machine.load_mix(chase, &groups)?;
    let mut figures = vec![mix.chase_ns];
    figures.extend(mix.rates);
    Ok(figures)
}

/// Total rate, then that of each copy, then the sum of these, GB/s.
fn copy_rates(machine: &Machine<'_>, copies: &[Copy]) -> Result<Vec<f64>> {
    let limit = exact_copy_bytes(copies.len());
    // Ends of all copies when each moves at most `limit` bytes, ns.
    let ends = |limit: u64| -> Result<Vec<f64>> {
        let mut streams = Vec::new();
        for copy in copies {
            streams.push(Stream {
                from: endpoint(machine, copy.from)?,
                to: endpoint(machine, copy.to)?,
                engine: known(machine, copy.engine)?,
                bytes: copy.bytes.min(limit) as u32,
                kernel: copy.kernel,
            });
        }
        let outcome = machine.run_streams(&streams)?;
        Ok(outcome.call_ends[0].iter().map(|end| end.as_ns()).collect())
    };
    let near = ends(limit)?;
    let long = copies.iter().any(|copy| copy.bytes > limit);
    let half = if long { ends(limit / 2)? } else { near.clone() };
    let time = |index: usize| {
        let rest = copies[index].bytes.saturating_sub(limit) as f64;
        near[index] + (near[index] - half[index]) / (limit / 2) as f64 * rest
    };
    let times: Vec<f64> = (0..copies.len()).map(time).collect();
    let last = times.iter().copied().fold(0.0, f64::max);
    let total: u64 = copies.iter().map(|copy| copy.bytes).sum();
    let mut figures = vec![total as f64 / last];
    let own = copies.iter().zip(&times).map(|(copy, time)| copy.bytes as f64 / time);
    figures.extend(own.clone());
    figures.push(own.sum());
    Ok(figures)
}
