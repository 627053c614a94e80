//! `simulate place`: which GPUs in which order, which of them together, which implementation at which
//! size, and where the uplinks of switches go.

use clap::Args;
use serde_json::json;

use super::arguments::{Machine as MachineOptions, Model};
use super::load;
use super::output::{Failure, Outcome, Output};
use super::predict::{fidelity, start_threads};
use crate::error::{Error, Result};
use crate::input::load_scenario;
use crate::prediction::{CaseOptions, Choice, Machine};
use crate::report::place::{page, wirings as wirings_page};
use crate::schedule::Collective;
use crate::sweep::grouping::{groups, islands};
use crate::sweep::placement::{place, winners};
use crate::sweep::plan::Plan;
use crate::sweep::sizes::Sizes;
use crate::sweep::wiring::wirings;
use crate::topology::Topology;
use crate::units::parse_size;
use crate::workload::{Scenario, size_fault};

/// Options of `place`.
#[derive(Debug, Args)]
pub(super) struct PlaceOptions {
    /// The machine.
    #[command(flatten)]
    machine: MachineOptions,
    /// Ranks; left out: all GPUs. Where several groups of so many fit, which GPUs form each is told.
    #[arg(long, value_name = "N")]
    ranks: Option<u32>,
    /// Bytes of the call for which ranks, groups and wirings are compared.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "43008")]
    bytes: u64,
    /// Other places for the uplinks of the switches instead: root ports, sockets, below each other, two
    /// uplinks; each as edits for --what-if.
    #[arg(long)]
    wiring: bool,
    /// Without the regimes that the topology declares.
    #[arg(long)]
    no_regimes: bool,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Sizes of the table of the fastest implementations.
const SIZES: Sizes = Sizes { begin: 4 << 10, end: 4 << 20, factor: 2.0 };

/// Finds places of ranks, or of switches.
pub(super) fn run(
    options: &PlaceOptions,
    output: &mut Output,
) -> std::result::Result<Outcome, Failure> {
    let calibration = load::calibration(&options.machine.constants)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    start_threads(None)?;
    if options.wiring {
        let (ranks, bytes) = asked(options, topology.gpus().len())?;
        let plan = plan(topology, ranks)?;
        let found = wirings(&plan, bytes, &calibration, !options.no_regimes)?;
        let text = match options.json {
            true => format!("{:#}\n", json!({"bytes": bytes, "ranks": ranks, "wirings": found})),
            false => wirings_page(&plan.topology, ranks, bytes, &found),
        };
        output.titled(&text, None)?;
        return Ok(Outcome::Done);
    }
    let machine = Machine::new(topology, &calibration, !options.no_regimes, false)?;
    let count = machine.nominal.fabric.gpu_count;
    let (ranks, bytes) = asked(options, count)?;
    let placement = place(&machine, ranks, bytes)?;
    let gpus = &placement.best.gpus;
    let split = islands(&machine, gpus, bytes)?;
    let several = ranks < count && count.is_multiple_of(ranks);
    let groups = several.then(|| groups(&machine, ranks, bytes)).transpose()?;
    let case_options = CaseOptions::of(gpus.clone(), fidelity(Model::Packet));
    let cases = Choice::default().cases(Collective::AllReduce, &machine, gpus)?;
    let table = winners(&machine, &cases, &SIZES.all()?, &case_options)?;
    let text = match options.json {
        true => {
            let found = json!({
                "bytes": bytes,
                "ring": placement,
                "islands": split,
                "groups": groups,
                "fastest": table,
            });
            format!("{found:#}\n")
        }
        false => page(&machine, bytes, &placement, (split.as_ref(), groups.as_ref()), &table),
    };
    output.titled(&text, None)?;
    Ok(Outcome::Done)
}

/// Ranks and bytes that are asked of a machine with so many GPUs.
fn asked(options: &PlaceOptions, count: usize) -> Result<(usize, u64)> {
    let ranks = options.ranks.map_or(count, |ranks| ranks as usize);
    if !(2..=count).contains(&ranks) {
        return Err(Error::request(
            format!("{ranks} ranks have no place: the machine has {count} GPUs"),
            "two ranks or more, one a GPU",
        ));
    }
    if let Some(fault) = size_fault(options.bytes, "--bytes") {
        return Err(Error::request(format!("--bytes: {}", fault.message), fault.help));
    }
    Ok((ranks, Collective::AllReduce.round_up(options.bytes, ranks)))
}

/// All-reduces of so many ranks on a machine.
fn plan(topology: Topology, ranks: usize) -> Result<Plan> {
    let scenario = load_scenario("kimi-k25-tp8")?;
    let scenario = Scenario { tensor_parallel: ranks as u32, model: None, ..scenario };
    Ok(Plan { topology, scenario, choice: Choice::default() })
}
