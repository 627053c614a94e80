//! `simulate choose`: what NCCL would take, what that gives, and what would be better.

use super::arguments::Choose;
use super::load;
use super::output::{Failure, Outcome, Output};
use super::predict::start_threads;
use super::progress::Progress;
use super::select::named_collective;
use crate::algorithm::{Implementation, Transport};
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::input::nccl_xml::{self, XML_IS_SMALL, XML_LIMIT};
use crate::input::read_text;
use crate::prediction::cases::cases;
use crate::prediction::choice::chosen_or_first;
use crate::prediction::{Case, CaseOptions, Machine};
use crate::report::{choose as report, dispatch, json};
use crate::selection::nccl::beliefs::Beliefs;
use crate::selection::nccl::cure::{Cure, cure};
use crate::selection::nccl::environment::Settings;
use crate::selection::nccl::graph::GraphFile;
use crate::selection::nccl::inventory::Inventory;
use crate::selection::nccl::setup::Setup;
use crate::selection::nccl::survey::{Detection, survey};
use crate::selection::nccl::{Version, plugin};
use crate::selection::serving::{Facts, Query, Rules};
use crate::sweep::choose::{Choosing, Chosen, tuner_rules};
use crate::sweep::dispatch::Dispatching;
use crate::sweep::environments::{ALL_PEERS, environments, stages_for_distance};
use crate::sweep::sizes::Sizes;
use crate::workload::Collective;

/// A decode and a verify step of the mission, its verify step of four tokens, 32 of them, and a
/// prefill's.
const SIZES: [u64; 5] = [14_336, 43_008, 57_344, 458_752, 32 << 20];

/// Type of the elements that engines are asked for.
const DTYPE: &str = "bf16";

/// Asks, simulates and prints.
pub(super) fn run(options: &Choose, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    if options.machine.topo.is_empty() {
        return Err(load::no_topology().into());
    }
    let version = Version::parse(&options.nccl)?;
    let settings = Settings::parse(&options.nccl_env.join(" "))?;
    let collective = named_collective(&options.collective)?;
    let sizes = wanted_sizes(options)?;
    let calibration = load::calibration(&options.machine.constants)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    start_threads(options.threads)?;
    let machine = Machine::new(topology, &calibration, !options.no_regimes, true)?;
    let gpu_count = machine.nominal.fabric.gpu_count;
    let gpus = chosen_or_first(&options.gpus, gpu_count, gpu_count)?;
    if gpus.len() < 2 {
        return Err(Error::request(
            format!("{} has one GPU: there is nothing to choose", machine.topology.name),
            "choose a machine with two GPUs or more",
        )
        .into());
    }
    let (setup, cure) = start(options, version, settings, &machine, &calibration, &gpus)?;
    if let Some(engine) = &options.engine {
        let question = EngineQuestion { engine, options, machine: &machine, setup: &setup, sizes };
        return question.run(&calibration, gpus, output);
    }
    let others = others(options, collective, &machine, &setup, &gpus)?;
    let case_options = CaseOptions::of(gpus, Fidelity::Packet);
    let choosing = Choosing {
        machine: &machine,
        setup: &setup,
        collective,
        others: &others,
        options: &case_options,
    };
    let progress = Progress::new(choosing.simulations(sizes.len()));
    let chosen = choosing.answer(&sizes, &|| progress.step());
    progress.finish();
    let chosen = chosen?;
    let environments = environments(&choosing, &chosen)?;
    write_files(options, &setup, cure.as_ref(), collective, &chosen, output)?;
    let text = if options.json {
        format!("{:#}\n", json::choose(&choosing, &chosen, &environments, cure.as_ref())?)
    } else {
        report::page(&choosing, &chosen, &environments, cure.as_ref(), options.all)
    };
    output.titled(&text, options.out.as_deref())?;
    Ok(Outcome::Done)
}

/// What an engine would take.
struct EngineQuestion<'a> {
    engine: &'a str,
    options: &'a Choose,
    machine: &'a Machine,
    setup: &'a Setup,
    sizes: Vec<u64>,
}

impl EngineQuestion<'_> {
    fn run(
        &self,
        calibration: &Calibration,
        gpus: Vec<u32>,
        output: &mut Output,
    ) -> std::result::Result<Outcome, Failure> {
        let (engine, version) = match self.engine.split_once('@') {
            Some((engine, version)) => (engine, Some(version)),
            None => (self.engine, None),
        };
        let words = self.options.engine_env.iter().flat_map(|text| text.split_whitespace());
        let settings: Vec<String> = words.map(str::to_owned).collect();
        let rules = Rules::embedded()?;
        let facts = Facts::of(&self.machine.topology, calibration, &gpus)?;
        let case_options = CaseOptions::of(gpus, Fidelity::Packet);
        let dispatching = Dispatching {
            machine: self.machine,
            setup: self.setup,
            rules: &rules,
            facts: &facts,
            query: Query { engine, version, settings: &settings, bytes: 0, dtype: DTYPE },
            options: &case_options,
        };
        let candidates = rules.engine(engine)?.candidates.len();
        let progress = Progress::new(candidates * self.sizes.len());
        let answer = dispatching.answer(&self.sizes, &|| progress.step());
        progress.finish();
        let answer = answer?;
        let text = if self.options.json {
            format!("{:#}\n", json::dispatch(self.machine, &answer)?)
        } else {
            dispatch::page(&dispatching, &answer)
        };
        output.titled(&text, self.options.out.as_deref())?;
        Ok(Outcome::Done)
    }
}

/// NCCL on these GPUs, and the cure where its search fails.
fn start(
    options: &Choose,
    version: Version,
    mut settings: Settings,
    machine: &Machine,
    calibration: &Calibration,
    gpus: &[u32],
) -> Result<(Setup, Option<Cure>)> {
    settings.peers.driver_refuses |= !machine.topology.settings.peer_to_peer;
    let beliefs = Beliefs::of(version)?;
    let inventory = match &settings.topology_file {
        Some(file) => {
            let text = read_text(file, XML_LIMIT, XML_IS_SMALL)?;
            let inventory = nccl_xml::read_system(file, &text)?;
            same_gpus(file, &inventory, gpus)?;
            inventory
        }
        None => {
            let detection =
                Detection { numa_per_socket: options.numa_per_socket, ..Detection::of(gpus) };
            survey(&machine.topology, calibration, &beliefs, &detection)?
        }
    };
    let given = match &settings.graph_file {
        Some(file) => {
            let text = read_text(file, XML_LIMIT, XML_IS_SMALL)?;
            nccl_xml::read_graphs(file, &text, &inventory)?
        }
        None => GraphFile::default(),
    };
    let cure = match given.ring {
        None => cure(&inventory, &beliefs, &settings.peers, None)?,
        Some(_) => None,
    };
    let given = match &cure {
        Some(cure) if options.cured => GraphFile {
            ring: Some(cure.graphs.ring.clone()),
            tree: Some(cure.graphs.tree.clone()),
            nvls: cure.graphs.nvls.clone(),
            ..GraphFile::default()
        },
        None if options.cured => {
            return Err(Error::request(
                "--cured has nothing to cure: NCCL's search finds rings here",
                "leave it out",
            ));
        }
        _ => given,
    };
    let setup = Setup::new(inventory, beliefs, settings, given)?;
    Ok((setup, cure))
}

/// A system file must list as many GPUs as there are ranks: it stands for the same machine.
fn same_gpus(file: &str, inventory: &Inventory, gpus: &[u32]) -> Result<()> {
    let ranks = inventory.gpus().iter().filter(|(_, gpu)| gpu.rank.is_some()).count();
    if ranks == gpus.len() {
        return Ok(());
    }
    Err(Error::request(
        format!("{file} has {ranks} GPUs with a rank, --topo has {}", gpus.len()),
        "NCCL_TOPO_FILE must describe the machine of --topo; choose some of its GPUs with --gpus",
    ))
}

/// What else could do the call: other libraries, and NCCL with all peers by P2P where it does not
/// write to all of them.
fn others(
    options: &Choose,
    collective: Collective,
    machine: &Machine,
    setup: &Setup,
    gpus: &[u32],
) -> Result<Vec<Case>> {
    let mut others = cases(collective, machine, gpus)?;
    let reachable = stages_for_distance(setup);
    others.retain(|case| {
        let shown = options.all || !case.extra;
        let nccl = case.implementation == Implementation::Nccl;
        shown && (!nccl || (reachable && case.transport == Transport::Peer))
    });
    for case in &mut others {
        if case.implementation == Implementation::Nccl {
            let plain = case.title.replace(" (NCCL)", "");
            // After a failed search the level alone would leave it at Simple.
            let file = if setup.graphs.ring.fallback { ", graph file" } else { "" };
            case.title = format!("{plain}, {ALL_PEERS}{file}");
        }
    }
    Ok(others)
}

fn wanted_sizes(options: &Choose) -> Result<Vec<u64>> {
    let Some(begin) = options.begin else {
        let mut sizes =
            if options.sizes.is_empty() { SIZES.to_vec() } else { options.sizes.clone() };
        if sizes.contains(&0) {
            return Err(Error::request("a call of 0 bytes moves nothing", "name larger sizes"));
        }
        sizes.sort_unstable();
        sizes.dedup();
        return Ok(sizes);
    };
    let end = options.end.unwrap_or(begin);
    Sizes { begin, end, factor: options.factor.unwrap_or(2.0) }.all()
}

fn write_files(
    options: &Choose,
    setup: &Setup,
    cure: Option<&Cure>,
    collective: Collective,
    chosen: &[Chosen],
    output: &mut Output,
) -> std::result::Result<(), Failure> {
    if let Some(file) = &options.write_graph {
        let graphs = cure.map_or(&setup.graphs, |cure| &cure.graphs);
        output.plain(&nccl_xml::write_graphs(graphs, &setup.inventory), Some(file))?;
    }
    if let Some(file) = &options.write_topo {
        let inventory = cure.map_or(&setup.inventory, |cure| &cure.one_cpu);
        output.plain(&nccl_xml::write_system(inventory), Some(file))?;
        if setup.settings.topology_file.is_none() {
            output.note(&format!(
                "{file}: its bus ids are made up, in the order of the GPUs; put those of \
                 `nvidia-smi --query-gpu=index,pci.bus_id --format=csv` in their place, or NCCL finds no \
                 GPU in it"
            ))?;
        }
    }
    if let Some(file) = &options.write_tuner {
        let rules = tuner_rules(setup, collective, chosen)?;
        let about = [
            format!(
                "{} on NCCL {}, {}",
                options.machine.topo.join(" --topo "),
                setup.version,
                collective.title()
            ),
            "fastest by simulation at the simulated sizes, NCCL's own choice elsewhere".to_owned(),
        ];
        output.plain(&plugin::write(&rules, &about), Some(file))?;
    }
    Ok(())
}
