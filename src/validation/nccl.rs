//! What NCCL would run of a call whose algorithm, protocol and channels the source does not tell.

use super::experiment::{CollectiveRun, Machine};
use super::predict::{all_known, calls};
use crate::algorithm::all_to_all::LL_BYTES_A_CHANNEL;
use crate::algorithm::{Implementation, Protocol, Transport};
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::measurement::NcclCall;
use crate::prediction::CaseOptions;
use crate::prediction::nccl::taken;
use crate::selection::nccl::environment::Settings;
use crate::selection::nccl::survey::Detection;
use crate::selection::nccl::{Setup, Version};
use crate::workload::Collective;

/// The schedule of sends and receives that NCCL does an all-to-all by.
const ALL_TO_ALL: &str = "all_to_all";

/// The communicator that the call belongs to.
fn setup(machine: &Machine<'_>, call: &NcclCall) -> Result<Setup> {
    let version = Version::parse(&call.version)?;
    let detection =
        Detection { numa_per_socket: call.numa_per_socket, ..Detection::of(&call.gpus) };
    let mut settings = Settings::parse(&call.settings)?;
    settings.peers.driver_refuses = !call.peer_to_peer;
    Setup::of(machine.topology, machine.calibration, &detection, version, settings)
}

/// The run that stands for a call.
///
/// # Errors
/// A version or setting that is not known, or a choice that no schedule stands for.
pub(super) fn run_of(machine: &Machine<'_>, call: &NcclCall) -> Result<CollectiveRun> {
    all_known(machine, &call.gpus)?;
    let ranks = call.gpus.len().max(1) as u64;
    // What holds for every call; sends and receives go as they may, whatever the tuner says.
    let run = CollectiveRun {
        collective: call.collective,
        algorithm: ALL_TO_ALL,
        protocol: match call.bytes / ranks <= LL_BYTES_A_CHANNEL {
            true => Protocol::Ll,
            false => Protocol::Simple,
        },
        implementation: Implementation::Nccl,
        gpus: call.gpus.clone(),
        bytes: call.bytes,
        blocks: None,
        threads: None,
        orders: Vec::new(),
        transport: if call.peer_to_peer { Transport::Peer } else { Transport::Host },
        calls: calls(call.bytes),
        by_stream: true,
        first_of: call.first_of,
    };
    if call.collective == Collective::AllToAll {
        return Ok(run);
    }
    let options = CaseOptions::of(call.gpus.clone(), Fidelity::Packet);
    let taken = taken(&setup(machine, call)?, call.collective, call.bytes, &options)?;
    let (case, options) = taken.case.map_err(|reason| {
        Error::request(format!("NCCL {} would take what {reason}", call.version), "wait for it")
    })?;
    Ok(CollectiveRun {
        algorithm: case.algorithm.name,
        protocol: case.protocol,
        blocks: options.blocks,
        threads: options.threads,
        orders: options.orders,
        transport: case.transport,
        ..run
    })
}
