//! The figures of an observation's run, by the simulator.

use std::collections::BTreeSet;

use super::experiment::{CollectiveRun, Machine};
use super::figures::Job;
use super::likeness;
use super::nccl::{self, Setups};
use crate::algorithm::Transport;
use crate::algorithm::probe::{LoadGroup, LoadKind};
use crate::algorithm::streams::Stream;
use crate::error::{Error, Result};
use crate::fabric::EndpointId;
use crate::measurement::{self, Carrier, Copy, KernelCall, Launches, Memory, NcclCall, Pair, Run};
use crate::prediction::growth::exact_bytes;
use crate::prediction::regime::{Kind, Medium, Regime};

/// Calls back to back for the mean of a collective: the phase of polls matters to short ones only.
pub(super) fn calls(bytes: u64) -> u32 {
    match bytes {
        0..=65_536 => 6,
        65_537..=262_144 => 3,
        _ => 2,
    }
}

/// Bytes a flow up to which copies are run; longer ones are continued along a straight line, on which
/// one or two copies by PCIe are from 1 MiB on, to the digit.
fn exact_copy_bytes(medium: Medium, flows: usize) -> u64 {
    match (medium, flows) {
        (Medium::Nvlink, 0..=2) => 4 << 20,
        (_, 3..=8) => 2 << 20,
        _ => 1 << 20,
    }
}

/// All figures of a run that is no collective, numbered as [`Run`] says.
///
/// # Errors
/// When the machine has no such GPU, and those of the engine; a collective, which is a `call`.
pub fn figures(machine: &Machine<'_>, run: &Run) -> Result<Vec<f64>> {
    match run {
        Run::LoadMix { chase, loads } => load_mix(machine, *chase, loads),
        Run::PeerRead { pair, bytes } => {
            let (reader, target) = resolve(machine, pair)?;
            Ok(vec![machine.read_latency_ns(reader, target, *bytes)?])
        }
        Run::Chase { gpu, memory, beside } => {
            let (gpu, memory) = (known(machine, *gpu)?, endpoint(machine, *memory)?);
            let latency = match beside.is_empty() {
                true => machine.read_latency_ns(gpu, memory, 4)?,
                false => machine.read_latency_beside_ns(gpu, memory, beside)?,
            };
            Ok(vec![latency])
        }
        Run::Flag { pair, by_host, fenced } => {
            let (a, b) = resolve(machine, pair)?;
            let homes = if *by_host { [machine.host(a), machine.host(b)] } else { [a, b] };
            Ok(vec![machine.flag_one_way_ns([a, b], homes, *fenced)?])
        }
        Run::Copies(copies) => copy_rates(machine, copies),
        Run::Collective(_) | Run::Nccl(_) => {
            Err(Error::request("this run is a collective", "report this"))
        }
    }
}

/// A collective as it is run, and the least time that launches leave it, us.
pub type Call = (CollectiveRun, f64);

/// The call of a run, with all that NCCL chooses settled; `None` for other runs.
///
/// # Errors
/// When the machine has no such GPU, and what cannot be settled.
pub(super) fn call(machine: &Machine<'_>, job: &Job, setups: &Setups) -> Option<Result<Call>> {
    settled(machine, &job.run, |call| setups.run_of(&job.topology, machine, call))
}

/// The call of one run by itself.
///
/// # Errors
/// As [`call`].
pub(super) fn call_of(machine: &Machine<'_>, run: &Run) -> Option<Result<Call>> {
    settled(machine, run, |call| nccl::run_alone(machine, call))
}

fn settled(
    machine: &Machine<'_>,
    run: &Run,
    by_nccl: impl Fn(&NcclCall) -> Result<CollectiveRun>,
) -> Option<Result<Call>> {
    let (call, gpus, launches) = match run {
        Run::Collective(call) => (told(machine, call), &call.gpus, call.launches),
        Run::Nccl(call) => (by_nccl(call), &call.gpus, call.launches),
        _ => return None,
    };
    let floor = || match launches {
        Launches::AtOnce => 0.0,
        Launches::InTurn(Some(each)) => f64::from(each) * 1e-3 * gpus.len() as f64,
        Launches::InTurn(None) => machine.fabric.launches_in_turn(gpus).as_us(),
    };
    Some(call.map(|call| (call, floor())))
}

/// Bytes of a call that shows how longer ones follow the constants.
const QUICK_BYTES: u64 = 1 << 20;

/// One call alone, of up to 1 MiB.
pub(super) fn quick((run, floor): Call) -> Call {
    let bytes = run.bytes.min(QUICK_BYTES);
    (CollectiveRun { bytes, calls: 1, first_of: None, ..run }, floor)
}

/// The call of a kernel that the source tells.
///
/// # Errors
/// When the machine has no such GPU.
pub fn told(machine: &Machine<'_>, call: &KernelCall) -> Result<CollectiveRun> {
    all_known(machine, &call.gpus)?;
    Ok(CollectiveRun {
        collective: call.collective,
        algorithm: call.algorithm,
        protocol: call.protocol,
        implementation: call.implementation,
        gpus: call.gpus.clone(),
        bytes: call.bytes,
        blocks: call.blocks,
        settled: None,
        orders: Vec::new(),
        transport: transport(machine, call.carrier, &call.gpus),
        calls: calls(call.bytes),
        by_stream: false,
        first_of: None,
        beside: call.beside.clone(),
    })
}

/// What kind of figures a run that is no collective has.
pub(super) fn regime(machine: &Machine<'_>, run: &Run) -> Regime {
    let kind = match run {
        Run::Copies(_) => Kind::Copies,
        Run::LoadMix { .. } => Kind::Load,
        _ => Kind::Latency,
    };
    let fabric = &machine.fabric;
    let gpus: Vec<u32> = (0..fabric.gpu_count as u32).collect();
    Regime { kind, medium: Medium::of(fabric, &gpus, &Transport::Peer), bytes: None }
}

/// What kind of figure the time of a call is.
pub(super) fn regime_of_call(machine: &Machine<'_>, run: &CollectiveRun) -> Regime {
    let medium = Medium::of(&machine.fabric, &run.gpus, &run.transport);
    let alone = Regime::of_call(run.implementation, run.collective, medium, run.bytes);
    alone.beside(&run.beside)
}

/// Roughly how long a batch takes to simulate, for an order only: bytes that cross links, packet by
/// packet.
pub(super) fn work(run: &Run, calls: &[Call]) -> u64 {
    let Some((call, _)) = calls.first() else {
        // A mix of loads is run for a time, over one link or two.
        return if let Run::LoadMix { .. } = run { 16 << 20 } else { 1 << 20 };
    };
    let largest = calls.iter().map(|call| call.0.bytes).max().unwrap_or_default();
    let exact = largest.min(exact_bytes(call.algorithm, call.gpus.len()));
    let beyond = if largest > exact { 2 } else { 1 };
    exact * beyond * call.gpus.len() as u64 * u64::from(call.calls.max(1))
}

/// What is the same for calls that [`collectives`] should get together: they are alike, or large
/// and alike but for their size.
pub fn alike(call: &CollectiveRun) -> String {
    match call.bytes >= exact_bytes(call.algorithm, call.gpus.len()) {
        true => format!("{:?}", CollectiveRun { bytes: 0, ..call.clone() }),
        false => format!("{call:?}"),
    }
}

/// Times of collectives that differ in nothing but their size and how they were launched, us.
///
/// # Errors
/// Those of the engine.
pub fn collectives(machine: &Machine<'_>, runs: Vec<Call>) -> Result<Vec<f64>> {
    let mut times = vec![0.0; runs.len()];
    // Runs alike but for their size, with the places and sizes of their members.
    let mut alike: Vec<(CollectiveRun, Vec<usize>, Vec<u64>)> = Vec::new();
    for (place, (run, floor)) in runs.into_iter().enumerate() {
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

/// Whether the machine has all of these GPUs.
pub(super) fn all_known(machine: &Machine<'_>, gpus: &[u32]) -> Result<()> {
    gpus.iter().try_for_each(|&gpu| known(machine, gpu).map(|_| ()))
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
        Carrier::HostBeyondSwitch => Transport::host_for(machine.topology.ranks_apart(gpus)),
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

/// The streams of copies, each of which moves at most `limit` bytes.
fn streams(machine: &Machine<'_>, copies: &[Copy], limit: u64) -> Result<Vec<Stream>> {
    let stream = |copy: &Copy| {
        Ok(Stream {
            from: endpoint(machine, copy.from)?,
            to: endpoint(machine, copy.to)?,
            engine: known(machine, copy.engine)?,
            bytes: copy.bytes.min(limit) as u32,
            kernel: copy.kernel,
        })
    };
    copies.iter().map(stream).collect()
}

/// What is the same for runs that are no collective and have the same figures.
pub(super) fn likeness(machine: &Machine<'_>, run: &Run) -> String {
    let of_copies = |copies: &Vec<Copy>| {
        let same = copies.iter().all(|copy| copy.bytes == copies[0].bytes);
        let streams = streams(machine, copies, u64::from(u32::MAX)).ok().filter(|_| same)?;
        likeness::of_copies(machine, &streams)
    };
    let alike = if let Run::Copies(copies) = run { of_copies(copies) } else { None };
    alike.unwrap_or_else(|| format!("{run:?}"))
}

/// Total rate, then that of each copy, then the sum of these, GB/s.
fn copy_rates(machine: &Machine<'_>, copies: &[Copy]) -> Result<Vec<f64>> {
    let ends = copies.iter().flat_map(|copy| [copy.from, copy.to]);
    let ends: Vec<u32> = ends.map(|memory| endpoint(machine, memory)).collect::<Result<_>>()?;
    let medium = Medium::of(&machine.fabric, &ends, &Transport::Peer);
    let limit = exact_copy_bytes(medium, copies.len());
    // Ends of all copies when each moves at most `limit` bytes, ns.
    let ends = |limit: u64| -> Result<Vec<f64>> {
        let outcome = machine.run_streams(&streams(machine, copies, limit)?)?;
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
