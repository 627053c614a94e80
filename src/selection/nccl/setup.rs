//! What NCCL settles when a communicator starts, put together: the machine as it sees it, the
//! channels of its search, how each hop travels, and the table of its cost model. A [`Plan`] is
//! what it then takes for a call.

use serde::Serialize;

use super::beliefs::Beliefs;
use super::constants::Constants;
use super::environment::Settings;
use super::graph::{GraphFile, PathType};
use super::inventory::Inventory;
use super::launch::{channels, p2p, split};
use super::path::Paths;
use super::search::{Graphs, search_rest};
use super::survey::{Detection, survey};
use super::system::System;
use super::transport::{Hop, between, hops};
use super::tune::{Call, Choice, Communicator, Cpu, Model, Row};
use super::version::Version;
use crate::algorithm::Protocol;
use crate::algorithm::nccl::{Algorithm, CHANNELS_MAX, Collective, Launch, Split};
use crate::algorithm::p2p::P2p;
use crate::error::Result;
use crate::fabric::Calibration;
use crate::topology::Topology;

/// A communicator of all GPUs of an inventory.
pub struct Setup {
    /// Version of NCCL.
    pub version: Version,
    /// What its environment says.
    pub settings: Settings,
    /// The machine as NCCL lists it.
    pub inventory: Inventory,
    /// Its nodes and links with the rates that NCCL believes in.
    pub system: System,
    /// Paths between them.
    pub paths: Paths,
    /// Channels found, or given by a file.
    pub graphs: Graphs,
    /// Channels of the communicator.
    pub channels: u32,
    /// How the hops of the rings travel, by channel of the search.
    pub ring_hops: Vec<Vec<Hop>>,
    /// How the hops of the trees do, down and up.
    pub tree_hops: Vec<Vec<Hop>>,
    /// What NCCL believes of each algorithm and protocol.
    pub model: Model,
    beliefs: Beliefs,
    given: GraphFile,
    constants: Constants,
    communicator: Communicator,
}

/// What NCCL takes for a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Algorithm, protocol, and NCCL's own time for them.
    #[serde(flatten)]
    pub choice: Choice,
    /// Channels that carry data.
    pub channels: u32,
    /// Threads of a channel's block, those that synchronise included.
    pub threads: u32,
}

/// One line of NCCL's table at a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Price {
    /// Algorithm and protocol, and why NCCL does not take them, if it does not.
    #[serde(flatten)]
    pub row: Row,
    /// NCCL's time, us, also where the row is off; `None` where it has no price.
    pub time_us: Option<f32>,
}

impl Setup {
    /// Starts a communicator of a machine's GPUs as NCCL would find them.
    ///
    /// # Errors
    /// As [`survey`] and [`Setup::new`].
    pub fn of(
        topology: &Topology,
        calibration: &Calibration,
        detection: &Detection,
        version: Version,
        mut settings: Settings,
    ) -> Result<Setup> {
        let beliefs = Beliefs::of(version)?;
        let inventory = survey(topology, calibration, &beliefs, detection)?;
        settings.peers.driver_refuses |= !topology.settings.peer_to_peer;
        Setup::new(inventory, beliefs, settings, GraphFile::default())
    }

    /// Starts a communicator of all GPUs of a machine, by NCCL of the version of `beliefs`.
    ///
    /// # Errors
    /// An inventory that is no machine, or a version without constants.
    pub fn new(
        inventory: Inventory,
        beliefs: Beliefs,
        settings: Settings,
        given: GraphFile,
    ) -> Result<Setup> {
        let version = beliefs.version();
        let constants = Constants::of(version)?;
        let system = System::new(&inventory, &beliefs)?;
        let paths = Paths::new(&system, &settings.peers, beliefs.same_device());
        let mut graphs = search_rest(&system, &paths, &beliefs, 1, &given);
        // Rings and trees share channels, so the fewer count.
        let both = graphs.ring.channels.len().min(graphs.tree.channels.len());
        graphs.ring.channels.truncate(both);
        graphs.tree.channels.truncate(both);
        let ring_hops = hops(&system, &paths, &beliefs, &settings.transports, &graphs.ring);
        let tree_hops = hops(&system, &paths, &beliefs, &settings.transports, &graphs.tree);
        let communicator = communicator(&inventory, &system, &graphs, &settings);
        let model = Model::new(&constants, &communicator, &settings);
        let channels = communicator.channels;
        Ok(Setup {
            version,
            settings,
            inventory,
            system,
            paths,
            graphs,
            channels,
            ring_hops,
            tree_hops,
            model,
            beliefs,
            given,
            constants,
            communicator,
        })
    }

    /// The same communicator with more variables, `NAME=VALUE` one after another.
    ///
    /// # Errors
    /// As [`Settings::parse`] and [`Setup::new`].
    pub fn with(&self, variables: &str) -> Result<Setup> {
        let settings = self.settings.with(variables)?;
        Setup::new(self.inventory.clone(), self.beliefs.clone(), settings, self.given.clone())
    }

    /// How each rank reaches each other one, for sends and receives.
    pub fn pair_hops(&self) -> Vec<Hop> {
        let ranks = self.system.gpus.len() as u32;
        let to_all = |from: u32| (0..ranks).filter(move |&to| to != from).map(move |to| (from, to));
        let hop = |(from, to): (u32, u32)| {
            let options = &self.settings.transports;
            between(&self.system, &self.paths, &self.beliefs, options, from, to)
        };
        (0..ranks).flat_map(to_all).map(hop).collect()
    }

    /// What NCCL takes for a call of `bytes`, as nccl-tests counts them.
    ///
    /// # Errors
    /// When the settings leave no algorithm.
    pub fn plan(&self, collective: Collective, bytes: u64) -> Result<Plan> {
        let choice = self.model.choose(collective, Call::of(bytes))?;
        let (channels, launch) = self.launch(collective, choice.algorithm, choice.protocol, bytes);
        Ok(Plan { choice, channels, threads: launch.block_threads() })
    }

    /// Channels that carry data, and the launch, of an algorithm and protocol at a size.
    pub fn launch(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        protocol: Protocol,
        bytes: u64,
    ) -> (u32, Launch) {
        let split = self.split(collective, algorithm, protocol, bytes);
        (split.shares().len() as u32, split.launch())
    }

    /// A call before it is split, with the limits of this communicator.
    pub fn split(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        protocol: Protocol,
        bytes: u64,
    ) -> Split {
        split(
            &self.constants,
            &self.communicator,
            &self.settings,
            collective,
            algorithm,
            protocol,
            bytes,
        )
    }

    /// How sends and receives are shared out: two channels to a peer, or two for each NVLink of the
    /// thinnest pair.
    pub fn p2p(&self) -> P2p {
        let system = &self.system;
        let each = self.beliefs.nvlink(system.least_capability());
        let (mut fewest, mut all_nvlink) = (CHANNELS_MAX, true);
        for (from, &a) in system.gpus.iter().enumerate() {
            for (to, &b) in system.gpus.iter().enumerate().filter(|&(to, _)| to != from) {
                let path = self.paths.between(a, b);
                let joined = path.kind == PathType::Nvl && self.paths.peer(from, to).direct;
                let links = if joined { (path.gb_per_s / each).floor().max(1.0) as u32 } else { 1 };
                fewest = fewest.min(2 * links);
                all_nvlink &= joined;
            }
        }
        let to_peer = fewest.next_power_of_two();
        p2p(&self.constants, &self.communicator, &self.settings, to_peer, all_nvlink)
    }

    /// NCCL's whole table for a call, in its order.
    pub fn prices(&self, collective: Collective, bytes: u64) -> Vec<Price> {
        let price = |row: &Row| Price {
            row: row.clone(),
            time_us: self.model.time_us(row, Call::of(bytes)),
        };
        self.model.rows_of(collective).map(price).collect()
    }

    /// What NCCL believes of links.
    pub fn beliefs(&self) -> &Beliefs {
        &self.beliefs
    }
}

/// The vendor that all CPUs of a machine share; the first stands for the rest.
fn cpu(inventory: &Inventory) -> Cpu {
    let first = inventory.cpus.first();
    first.map_or(Cpu::OtherX86, |cpu| Cpu::from_names(&cpu.names.arch, &cpu.names.vendor))
}

fn communicator(
    inventory: &Inventory,
    system: &System,
    graphs: &Graphs,
    settings: &Settings,
) -> Communicator {
    let capabilities = || system.gpus.iter().map(|&gpu| system.compute_capability(gpu));
    let low = capabilities().min().unwrap_or(0);
    let nvls = match &graphs.nvls {
        _ if settings.nvls == Some(false) => Err("switched off by NCCL_NVLS_ENABLE".to_owned()),
        Some(graph) => Ok(graph.clone()),
        None if system.nvswitch.is_none() => Err("needs an NVSwitch".to_owned()),
        None if low < 90 => Err("needs an NVSwitch of Hopper or later".to_owned()),
        None => Err("the search found no channel for it".to_owned()),
    };
    Communicator {
        ranks: system.gpus.len() as u32,
        machines: 1,
        capability: (low, capabilities().max().unwrap_or(0)),
        cpu: cpu(inventory),
        channels: channels(&graphs.ring, low, 1, settings),
        ring: graphs.ring.clone(),
        tree: graphs.tree.clone(),
        nvls,
        collnet: None,
    }
}
