//! NCCL's plans as cases: which schedule, channels, ring orders and memories stand for what NCCL
//! would launch.

use super::cases::cases;
use super::{Case, CaseOptions, Machine};
use crate::algorithm::nccl::{Algorithm, Collective as NcclCollective, Split};
use crate::algorithm::{self, Implementation, Protocol, Settled, Transport};
use crate::error::{self, Error};
use crate::selection::nccl::environment::Settings;
use crate::selection::nccl::setup::Plan;
use crate::selection::nccl::survey::Detection;
use crate::selection::nccl::transport::{Hop, Transport as HopTransport};
use crate::selection::nccl::{Setup, Version};
use crate::workload::Collective;

/// Our entry for an algorithm of NCCL.
fn entry(algorithm: Algorithm) -> Option<&'static str> {
    match algorithm {
        Algorithm::Ring => Some("ring"),
        Algorithm::Tree => Some("chain"),
        Algorithm::Nvls => Some("nvls"),
        _ => None,
    }
}

/// What NCCL takes for a call.
pub struct Taken {
    /// The choice.
    pub plan: Plan,
    /// The case that stands for it with its options, or why none does.
    pub case: Result<(Case, CaseOptions), String>,
}

/// What NCCL takes for a call of `bytes`.
///
/// # Errors
/// An all-to-all, which no tuner sees, and settings that leave no algorithm.
pub fn taken(
    setup: &Setup,
    collective: Collective,
    bytes: u64,
    options: &CaseOptions,
) -> error::Result<Taken> {
    let plan = setup.plan(tuned(collective)?, bytes)?;
    let (algorithm, protocol) = (plan.choice.algorithm, plan.choice.protocol);
    Ok(Taken { plan, case: case_of(setup, collective, algorithm, protocol, bytes, options) })
}

/// NCCL's name of a collective for which its tuner chooses.
///
/// # Errors
/// An all-to-all.
pub fn tuned(collective: Collective) -> error::Result<NcclCollective> {
    NcclCollective::of(collective).ok_or_else(|| {
        Error::request(
            "NCCL's tuner does not choose for an all-to-all: it is grouped sends and receives",
            "`simulate --collective all_to_all` times it",
        )
    })
}

/// The case that stands for an algorithm and protocol of NCCL at a size, and the options that give
/// it the channels, threads and ring orders of the communicator.
///
/// # Errors
/// A sentence that says why nothing stands for it.
pub fn case_of(
    setup: &Setup,
    collective: Collective,
    algorithm: Algorithm,
    protocol: Protocol,
    bytes: u64,
    options: &CaseOptions,
) -> Result<(Case, CaseOptions), String> {
    let known = NcclCollective::of(collective).zip(entry(algorithm));
    let (of_nccl, name) = known.ok_or_else(|| format!("{} is not modelled", algorithm.name()))?;
    let found = algorithm::find(collective, name).ok();
    let found = found.filter(|entry| entry.protocols.contains(&protocol));
    let not_modelled = || format!("{} {} is not modelled", algorithm.name(), protocol.name());
    let entry = found.ok_or_else(not_modelled)?;
    let nvls = algorithm == Algorithm::Nvls;
    let (graph, hops) = match algorithm {
        Algorithm::Tree => (&setup.graphs.tree, &setup.tree_hops),
        _ => (&setup.graphs.ring, &setup.ring_hops),
    };
    // NVLS reaches no peer but by the switch.
    let transport = if nvls { Transport::Peer } else { transport(hops.iter().flatten())? };
    let carried = carried(&transport, protocol);
    let title = format!("{} {}{carried}", algorithm.name(), protocol.name());
    let case = Case {
        algorithm: entry,
        protocol,
        large: None,
        implementation: Implementation::Nccl,
        transport,
        title,
        extra: false,
    };
    let split = setup.split(of_nccl, algorithm, protocol, bytes);
    let options = CaseOptions {
        blocks: Some(split.shares().len() as u32),
        settled: (!nvls).then_some(Settled::Split(Split { bytes: 0, ..split })),
        orders: if nvls { Vec::new() } else { graph.channels.clone() },
        ..options.clone()
    };
    Ok((case, options))
}

/// What a title says of a transport: what its data pass through beside peers' memory.
fn carried(transport: &Transport, protocol: Protocol) -> String {
    let pairs = match transport {
        Transport::Peer => return String::new(),
        Transport::Host => return ", SHM".to_owned(),
        Transport::Each(pairs) => pairs,
    };
    let count = |of: fn(algorithm::Hop) -> bool| pairs.iter().filter(|pair| of(pair.2)).count();
    // Lines never go by copy engine.
    let engines =
        if protocol == Protocol::Simple { count(algorithm::Hop::is_by_engine) } else { 0 };
    let mut told = String::new();
    for (word, found) in [("SHM", count(algorithm::Hop::is_by_host)), ("copy engine", engines)] {
        match found {
            0 => {}
            all if all == pairs.len() => told += &format!(", {word}"),
            _ => told += &format!(", partly {word}"),
        }
    }
    told
}

/// NCCL of the newest known version by its defaults on these GPUs; `None` where its detection would not
/// understand the machine.
pub fn newest(machine: &Machine, gpus: &[u32]) -> Option<Setup> {
    let (detection, settings) = (Detection::of(gpus), Settings::default());
    let calibration = &machine.nominal.calibration;
    Setup::of(&machine.topology, calibration, &detection, Version::NEWEST, settings).ok()
}

/// The options with what NCCL settles for sends and receives: channels, parts and how they travel.
///
/// # Errors
/// A sentence that says which way is not modelled.
pub fn sends(setup: &Setup, options: &CaseOptions) -> Result<CaseOptions, String> {
    let transport = Some(transport(&setup.pair_hops())?);
    let settled = Some(Settled::Sends(setup.p2p()));
    Ok(CaseOptions { settled, transport, ..options.clone() })
}

/// The options for calls of a collective, where nothing else is laid down: those of an all-to-all with
/// what NCCL settles for sends and receives.
#[must_use]
pub fn settled(machine: &Machine, collective: Collective, options: CaseOptions) -> CaseOptions {
    if collective != Collective::AllToAll || options.blocks.is_some() {
        return options;
    }
    let sends = newest(machine, &options.gpus).and_then(|setup| sends(&setup, &options).ok());
    sends.unwrap_or(options)
}

/// What NCCL does for any call: what its tuner takes, or sends and receives.
///
/// # Errors
/// A sentence that says why nothing stands for it.
pub fn call(
    setup: &Setup,
    machine: &Machine,
    collective: Collective,
    bytes: u64,
    options: &CaseOptions,
) -> Result<(Case, CaseOptions), String> {
    if collective != Collective::AllToAll {
        return taken(setup, collective, bytes, options).map_err(|error| error.to_string())?.case;
    }
    let cases = cases(collective, machine, &options.gpus).map_err(|error| error.to_string())?;
    let case = cases.into_iter().find(|case| case.large.is_some());
    let case = case.ok_or_else(|| "sends and receives are not modelled".to_owned())?;
    Ok((case, sends(setup, options)?))
}

/// Why no schedule stands for hops by network.
const NETWORK: &str = "not modelled, since no machine file tells what a NIC's host thread, engine and \
                       wire take";

/// How hops travel. Lines are written all the same where Simple reads.
fn transport<'a>(hops: impl IntoIterator<Item = &'a Hop>) -> Result<Transport, String> {
    let mut pairs: Vec<(u32, u32, algorithm::Hop)> = Vec::new();
    for hop in hops {
        let (from, to) = (hop.from, hop.to);
        let how = match hop.transport {
            HopTransport::P2p { copy_engine: true, .. } => algorithm::Hop::Engine,
            HopTransport::P2p { read: false, .. } => algorithm::Hop::Write,
            HopTransport::P2p { read: true, .. } => algorithm::Hop::Read,
            HopTransport::Shm { send_copy_engine: false, receive_copy_engine: false } => {
                algorithm::Hop::Host
            }
            HopTransport::Shm { send_copy_engine: send, receive_copy_engine: receive } => {
                algorithm::Hop::HostEngine { send, receive }
            }
            HopTransport::Net => {
                return Err(format!("rank {from} reaches rank {to} by network: {NETWORK}"));
            }
            HopTransport::None => {
                return Err(format!("rank {from} has no way to rank {to}: NCCL would fail"));
            }
        };
        pairs.push((from, to, how));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let count = |wanted: algorithm::Hop| pairs.iter().filter(|pair| pair.2 == wanted).count();
    Ok(if count(algorithm::Hop::Write) == pairs.len() {
        Transport::Peer
    } else if count(algorithm::Hop::Host) == pairs.len() {
        Transport::Host
    } else {
        Transport::Each(pairs)
    })
}
