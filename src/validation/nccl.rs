//! What NCCL would run of a call whose algorithm, protocol and channels the source does not tell.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::experiment::{CollectiveRun, Machine};
use super::figures::Job;
use super::predict::{all_known, calls};
use crate::algorithm::{Implementation, Transport};
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::measurement::{Launches, NcclCall, Run};
use crate::prediction::CaseOptions;
use crate::prediction::nccl::{sends, taken};
use crate::selection::nccl::environment::Settings;
use crate::selection::nccl::survey::Detection;
use crate::selection::nccl::{Setup, Version};
use crate::topology::Topology;
use crate::workload::Collective;

/// The schedule of sends and receives that NCCL does an all-to-all by.
const ALL_TO_ALL: &str = "all_to_all";

/// Communicators of all calls of a check, each started once.
pub(super) struct Setups(BTreeMap<(String, NcclCall), Result<Setup>>);

/// What a communicator depends on, of a call.
fn communicator(call: &NcclCall) -> NcclCall {
    NcclCall {
        collective: Collective::AllReduce,
        bytes: 0,
        launches: Launches::AtOnce,
        in_graph: false,
        first_of: None,
        ..call.clone()
    }
}

fn setup(topology: &Topology, calibration: &Calibration, call: &NcclCall) -> Result<Setup> {
    let version = Version::parse(&call.version)?;
    let detection =
        Detection { numa_per_socket: call.numa_per_socket, ..Detection::of(&call.gpus) };
    let mut settings = Settings::parse(&call.settings)?;
    settings.peers.driver_refuses = !call.peer_to_peer;
    Setup::of(topology, calibration, &detection, version, settings)
}

impl Setups {
    /// Starts the communicator of each NCCL call among the jobs. One that cannot be started has its
    /// error, which every call of it gets.
    pub(super) fn of(
        jobs: &BTreeSet<Job>,
        topologies: &BTreeMap<String, Topology>,
        calibration: &Calibration,
    ) -> Setups {
        let wanted: BTreeSet<(String, NcclCall)> = jobs
            .iter()
            .filter_map(|job| match &job.run {
                Run::Nccl(call) => Some((job.topology.clone(), communicator(call))),
                _ => None,
            })
            .collect();
        let started = wanted.into_par_iter().map(|(name, call)| {
            let topology = &topologies[&name];
            let known = call.gpus.iter().all(|&gpu| (gpu as usize) < topology.gpus().len());
            let setup = match known {
                true => setup(topology, calibration, &call),
                false => Err(Error::request("the machine has fewer GPUs", "choose another one")),
            };
            ((name, call), setup)
        });
        Setups(started.collect())
    }

    fn get(&self, topology: &str, call: &NcclCall) -> Result<&Setup> {
        let key = (topology.to_owned(), communicator(call));
        match self.0.get(&key) {
            Some(Ok(setup)) => Ok(setup),
            Some(Err(error)) => Err(Error::request(error.to_string(), "correct it")),
            None => Err(Error::request("no communicator was started", "report this")),
        }
    }

    /// The run that stands for a call on a machine whose topology goes by this name.
    ///
    /// # Errors
    /// A version or setting that is not known, or a choice that no schedule stands for.
    pub(super) fn run_of(
        &self,
        topology: &str,
        machine: &Machine<'_>,
        call: &NcclCall,
    ) -> Result<CollectiveRun> {
        all_known(machine, &call.gpus)?;
        run_by(self.get(topology, call)?, call)
    }
}

/// The run that stands for one call by itself.
///
/// # Errors
/// As [`Setups::run_of`].
pub(super) fn run_alone(machine: &Machine<'_>, call: &NcclCall) -> Result<CollectiveRun> {
    all_known(machine, &call.gpus)?;
    run_by(&setup(machine.topology, machine.calibration, call)?, call)
}

/// What a communicator makes of a call.
fn run_by(setup: &Setup, call: &NcclCall) -> Result<CollectiveRun> {
    let p2p = setup.p2p();
    let ranks = call.gpus.len().max(1) as u64;
    // What holds for every call; sends and receives go as they may, whatever the tuner says.
    let run = CollectiveRun {
        collective: call.collective,
        algorithm: ALL_TO_ALL,
        protocol: p2p.parts(call.bytes / ranks, false).1,
        implementation: Implementation::Nccl,
        gpus: call.gpus.clone(),
        bytes: call.bytes,
        blocks: None,
        settled: None,
        orders: Vec::new(),
        transport: Transport::Peer,
        calls: calls(call.bytes),
        by_stream: !call.in_graph,
        first_of: call.first_of,
        beside: Vec::new(),
    };
    let not_modelled = |reason: String| {
        Error::request(format!("NCCL {} would take what {reason}", call.version), "wait for it")
    };
    let options = CaseOptions::of(call.gpus.clone(), Fidelity::Packet);
    if call.collective == Collective::AllToAll {
        let CaseOptions { settled, transport, .. } =
            sends(setup, &options).map_err(not_modelled)?;
        let transport = transport.unwrap_or(run.transport);
        return Ok(CollectiveRun { settled, transport, ..run });
    }
    let taken = taken(setup, call.collective, call.bytes, &options)?;
    let (case, options) = taken.case.map_err(not_modelled)?;
    Ok(CollectiveRun {
        algorithm: case.algorithm.name,
        protocol: case.protocol,
        blocks: options.blocks,
        settled: options.settled,
        orders: options.orders,
        transport: case.transport,
        ..run
    })
}
