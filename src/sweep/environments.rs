//! What NCCL gives with other variables in its environment: what a person can try without a file.

use std::collections::BTreeMap;

use serde::Serialize;

use super::choose::{Choosing, Chosen};
use super::in_parallel;
use crate::algorithm::Protocol;
use crate::algorithm::nccl::Algorithm;
use crate::error::Result;
use crate::prediction::nccl::{case_of, tuned};
use crate::prediction::{Case, CaseOptions, CasePrediction};
use crate::selection::nccl::Setup;
use crate::selection::nccl::graph::PathType;
use crate::selection::nccl::setup::Plan;
use crate::selection::nccl::transport::{Hop, Transport as HopTransport};

/// Lets peers write to each other's memory however far apart they are.
pub const ALL_PEERS: &str = "NCCL_P2P_LEVEL=SYS";
/// Nothing forced, then an algorithm with its protocol, the likelier ones first.
const FORCED: [&str; 5] = [
    "",
    "NCCL_ALGO=Ring NCCL_PROTO=LL",
    "NCCL_ALGO=Tree NCCL_PROTO=LL",
    "NCCL_ALGO=Ring NCCL_PROTO=Simple",
    "NCCL_ALGO=Tree NCCL_PROTO=Simple",
];
/// Variables that gain less than this at every size are not worth setting.
pub const GAIN_MIN: f64 = 0.05;

/// Some variables, and what NCCL gives with them.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// `NAME=VALUE`, one after another; empty for those that are set already.
    pub variables: String,
    /// What it takes at each size, on the wires; `None` where no schedule replays it.
    pub sizes: Vec<Option<CasePrediction>>,
}

impl Environment {
    fn us(&self, size: usize) -> Option<f64> {
        self.sizes[size].as_ref().map(|case| case.time_us.value)
    }
}

/// Whether some hop of NCCL's rings goes through host memory although the driver would let the two
/// GPUs address each other: [`ALL_PEERS`] changes that.
pub fn stages_for_distance(setup: &Setup) -> bool {
    let by_host = |hop: &Hop| matches!(hop.transport, HopTransport::Shm { .. });
    let peers = &setup.settings.peers;
    // `NCCL_P2P_DISABLE=1` stands as the level LOC: whoever set it has a reason.
    let free = !peers.driver_refuses && !peers.apart && peers.level != Some(PathType::Loc);
    free && setup.ring_hops.iter().flatten().any(by_host)
}

/// What NCCL gives as it is, and with those variables that are the best at some size; nothing when
/// none gains.
///
/// # Errors
/// Those of the engine.
pub fn environments(choosing: &Choosing<'_>, chosen: &[Chosen]) -> Result<Vec<Environment>> {
    let setups = setups(choosing.setup)?;
    let collective = tuned(choosing.collective)?;
    let mut plans: Vec<Vec<Plan>> = Vec::new();
    for (_, setup) in &setups {
        let plan = |size: &Chosen| setup.plan(collective, size.bytes);
        plans.push(chosen.iter().map(plan).collect::<Result<_>>()?);
    }
    // What NCCL could take as it is was simulated already, and several variables may make it do the same.
    let mut done: BTreeMap<String, CasePrediction> = BTreeMap::new();
    for size in chosen {
        for candidate in &size.candidates {
            let (row, simulated) = (&candidate.price.row, candidate.simulated.as_ref());
            let run = Run::of(choosing, choosing.setup, size.bytes, row.algorithm, row.protocol);
            done.extend(run.zip(simulated).map(|(run, found)| (run.key(), found.clone())));
        }
    }
    let mut jobs: BTreeMap<String, Run> = BTreeMap::new();
    let mut keys: Vec<Vec<Option<String>>> = Vec::new();
    for ((_, setup), plans) in setups.iter().zip(&plans) {
        let mut of_setup = Vec::new();
        for (size, plan) in chosen.iter().zip(plans) {
            let (algorithm, protocol) = (plan.choice.algorithm, plan.choice.protocol);
            let run = Run::of(choosing, setup, size.bytes, algorithm, protocol);
            of_setup.push(run.as_ref().map(Run::key));
            let new = run.filter(|run| !done.contains_key(&run.key()));
            jobs.extend(new.map(|run| (run.key(), run)));
        }
        keys.push(of_setup);
    }
    let jobs: Vec<(String, Run)> = jobs.into_iter().collect();
    let found = in_parallel(&jobs, |(_, Run { bytes, case, options })| {
        case.predict(choosing.machine, *bytes, options)
    })?;
    done.extend(jobs.into_iter().map(|job| job.0).zip(found));
    let all: Vec<Environment> = setups
        .iter()
        .zip(&keys)
        .map(|((variables, _), keys)| {
            let found = |key: &Option<String>| key.as_ref().and_then(|key| done.get(key)).cloned();
            Environment { variables: variables.clone(), sizes: keys.iter().map(found).collect() }
        })
        .collect();
    Ok(worth_setting(&all))
}

/// One simulation.
struct Run {
    bytes: u64,
    case: Case,
    options: CaseOptions,
}

impl Run {
    /// What stands for an algorithm and protocol of NCCL; nothing where no schedule replays it.
    fn of(
        choosing: &Choosing<'_>,
        setup: &Setup,
        bytes: u64,
        algorithm: Algorithm,
        protocol: Protocol,
    ) -> Option<Run> {
        let (collective, options) = (choosing.collective, choosing.options);
        let found = case_of(setup, collective, algorithm, protocol, bytes, options);
        found.ok().map(|(case, options)| Run { bytes, case, options })
    }

    /// Equal for two that give the same.
    fn key(&self) -> String {
        let Run { bytes, case, options } = self;
        format!("{bytes} {}", case.key(options))
    }
}

/// NCCL as it is, then with each set of variables that its user has left open.
fn setups(own: &Setup) -> Result<Vec<(String, Setup)>> {
    let levels: &[&str] = if stages_for_distance(own) { &["", ALL_PEERS] } else { &[""] };
    let forced = if own.settings.forces_none() { &FORCED[..] } else { &FORCED[..1] };
    let mut setups = Vec::new();
    for forced in forced {
        for level in levels {
            let words: Vec<&str> =
                [*level, *forced].into_iter().filter(|w| !w.is_empty()).collect();
            let variables = words.join(" ");
            setups.push((variables.clone(), own.with(&variables)?));
        }
    }
    Ok(setups)
}

/// The first, and those that are the fastest at some size and gain by it.
fn worth_setting(all: &[Environment]) -> Vec<Environment> {
    let own = &all[0];
    let mut kept: Vec<usize> = Vec::new();
    for size in 0..own.sizes.len() {
        let timed = (0..all.len()).filter_map(|at| Some((at, all[at].us(size)?)));
        let best = timed.min_by(|a, b| a.1.total_cmp(&b.1));
        let Some(((best, us), now)) = best.zip(own.us(size)) else { continue };
        if us < now * (1.0 - GAIN_MIN) && !kept.contains(&best) {
            kept.push(best);
        }
    }
    if kept.is_empty() {
        return Vec::new();
    }
    kept.push(0);
    kept.sort_unstable();
    kept.into_iter().map(|at| all[at].clone()).collect()
}
