//! What NCCL would run of a call whose algorithm, protocol and channels the source does not tell.

use super::experiment::{CollectiveRun, Machine};
use crate::algorithm::all_to_all::LL_BYTES_A_CHANNEL;
use crate::algorithm::nccl::Collective as NcclCollective;
use crate::algorithm::{self, Implementation, Protocol, Transport};
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::measurement::NcclCall;
use crate::prediction::CaseOptions;
use crate::prediction::nccl::case_of;
use crate::selection::nccl::beliefs::Beliefs;
use crate::selection::nccl::environment::Settings;
use crate::selection::nccl::graph::GraphFile;
use crate::selection::nccl::setup::Setup;
use crate::selection::nccl::survey::{Detection, survey};
use crate::selection::nccl::version::Version;

/// The schedule of sends and receives that NCCL does an all-to-all by.
const ALL_TO_ALL: &str = "all_to_all";

/// The communicator that the call belongs to.
fn setup(machine: &Machine<'_>, call: &NcclCall) -> Result<Setup> {
    let version = Version::parse(&call.version)?;
    let detection = Detection {
        numa_per_socket: call.numa_per_socket,
        gpus: call.gpus.iter().map(|&gpu| gpu as usize).collect(),
        ..Detection::default()
    };
    let beliefs = Beliefs::of(version)?;
    let inventory = survey(machine.topology, machine.calibration, &beliefs, &detection)?;
    let settings = Settings::parse(&call.settings)?;
    let peer_to_peer = call.peer_to_peer && machine.topology.settings.peer_to_peer;
    Setup::new(inventory, version, settings, peer_to_peer, GraphFile::default())
}

/// The run that stands for a call.
///
/// # Errors
/// A version or setting that is not known, or a choice that no schedule stands for.
pub(super) fn run_of(machine: &Machine<'_>, call: &NcclCall) -> Result<CollectiveRun> {
    let Some(of_nccl) = NcclCollective::of(call.collective) else {
        return all_to_all(call);
    };
    let setup = setup(machine, call)?;
    let choice = setup.plan(of_nccl, call.bytes)?.choice;
    let options = CaseOptions::of(call.gpus.clone(), Fidelity::Packet);
    let case =
        case_of(&setup, call.collective, choice.algorithm, choice.protocol, call.bytes, &options);
    let (case, options) = case.map_err(|reason| {
        Error::request(format!("NCCL {} would take what {reason}", call.version), "wait for it")
    })?;
    Ok(CollectiveRun {
        collective: call.collective,
        algorithm: case.algorithm.name,
        protocol: case.protocol,
        implementation: Implementation::Nccl,
        gpus: call.gpus.clone(),
        bytes: call.bytes,
        blocks: options.blocks,
        threads: options.threads,
        orders: options.orders,
        transport: case.transport,
        calls: 1,
        by_stream: true,
        first_of: call.first_of,
    })
}

fn all_to_all(call: &NcclCall) -> Result<CollectiveRun> {
    let algorithm = algorithm::find(call.collective, ALL_TO_ALL)?;
    let ranks = call.gpus.len().max(1) as u64;
    Ok(CollectiveRun {
        collective: call.collective,
        algorithm: algorithm.name,
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
        calls: 1,
        by_stream: true,
        first_of: call.first_of,
    })
}
