//! NCCL's plans as cases: which schedule, channels, ring orders and memories stand for what NCCL
//! would launch.

use super::{Case, CaseOptions};
use crate::algorithm::nccl::{Algorithm, BLOCK_THREADS_MIN, Collective as NcclCollective};
use crate::algorithm::{self, Implementation, Protocol, Transport};
use crate::selection::nccl::Setup;
use crate::selection::nccl::transport::{Hop, Transport as HopTransport};
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
    let (channels, launch) = setup.launch(of_nccl, algorithm, protocol, bytes);
    let (graph, hops) = match algorithm {
        Algorithm::Tree => (&setup.graphs.tree, &setup.tree_hops),
        _ => (&setup.graphs.ring, &setup.ring_hops),
    };
    let transport = transport(hops)?;
    let carried = match &transport {
        Transport::Peer => "",
        Transport::Host => ", SHM",
        _ => ", partly SHM",
    };
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
    let ring = algorithm == Algorithm::Ring;
    let sync = if ring && protocol == Protocol::Simple { 32 } else { 0 };
    let options = CaseOptions {
        blocks: Some(channels),
        threads: ring.then(|| (launch.threads - sync).max(BLOCK_THREADS_MIN)),
        orders: if algorithm == Algorithm::Nvls { Vec::new() } else { graph.channels.clone() },
        ..options.clone()
    };
    Ok((case, options))
}

/// Which memory carries the hops.
fn transport(channels: &[Vec<Hop>]) -> Result<Transport, String> {
    let hops = || channels.iter().flatten();
    if let Some(hop) = hops()
        .find(|hop| !matches!(hop.transport, HopTransport::P2p { .. } | HopTransport::Shm { .. }))
    {
        return Err(format!("rank {} reaches rank {} by network", hop.from, hop.to));
    }
    let by_host = |hop: &&Hop| matches!(hop.transport, HopTransport::Shm { .. });
    let mut pairs: Vec<(u32, u32)> = hops().filter(by_host).map(|hop| (hop.from, hop.to)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    Ok(match pairs.len() {
        0 => Transport::Peer,
        _ if hops().all(|hop| by_host(&hop)) => Transport::Host,
        _ => Transport::HostFor(pairs),
    })
}
