//! What to hand NCCL where its search fails and it prices everything at 0.1 GB/s: the channels that
//! it would find if it believed better of the link between the CPUs.

use super::beliefs::Beliefs;
use super::graph::Graph;
use super::inventory::Inventory;
use super::path::{Paths, PeerOptions};
use super::search::{Graphs, search_all};
use super::system::System;
use crate::error::Result;

/// A machine where the search fails, and two ways out.
#[derive(Clone, Debug, PartialEq)]
pub struct Cure {
    /// The rate between CPUs that NCCL believes in, GB/s.
    pub believed: f32,
    /// The slowest speed that its search tries, GB/s.
    pub slowest_trial: f32,
    /// For a graph file (`NCCL_GRAPH_FILE`): the channels with the stated rate between CPUs.
    pub graphs: Graphs,
    /// For a system file (`NCCL_TOPO_FILE`): all devices below one CPU, so that no link between
    /// CPUs is believed in at all.
    pub one_cpu: Inventory,
    /// What NCCL finds with that file.
    pub with_one_cpu: Graphs,
}

/// The way out for a machine whose ring search fails; `None` when it does not, or when no rate
/// between CPUs helps. `inter_cpu` is the rate that the CPUs' link really has, GB/s; without it the
/// link counts as no limit.
///
/// # Errors
/// As [`System::new`].
pub fn cure(
    inventory: &Inventory,
    beliefs: &Beliefs,
    options: &PeerOptions,
    inter_cpu: Option<f32>,
) -> Result<Option<Cure>> {
    let find = |system: &System| {
        let paths = Paths::new(system, options, beliefs.same_device());
        search_all(system, &paths, beliefs, 1)
    };
    let system = System::new(inventory, beliefs)?;
    let (Some(cpu), true) = (inventory.cpus.first(), system.cpus.len() > 1) else {
        return Ok(None);
    };
    if !find(&system).ring.fallback {
        return Ok(None);
    }
    let graphs = find(&system.with_inter_cpu(inter_cpu.unwrap_or(beliefs.same_device())));
    let one_cpu = inventory.under_one_cpu();
    let with_one_cpu = find(&System::new(&one_cpu, beliefs)?);
    let found = |graph: &Graph| !graph.fallback;
    if !found(&graphs.ring) {
        return Ok(None);
    }
    let speeds = beliefs.intra_speeds(system.least_capability());
    Ok(Some(Cure {
        believed: beliefs.inter_cpu(&cpu.names),
        slowest_trial: speeds.last().copied().unwrap_or(0.0),
        graphs,
        one_cpu,
        with_one_cpu,
    }))
}
