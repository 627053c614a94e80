//! `simulate schedule`: a schedule that another tool wrote, proved and timed on a machine.

use clap::Args;
use rayon::prelude::*;

use super::arguments::{Machine, Model};
use super::load;
use super::output::{Failure, Outcome, Output};
use super::predict::fidelity;
use crate::algorithm::plan::Plan;
use crate::error::{Error, Result};
use crate::input::plans::load_plan;
use crate::prediction;
use crate::prediction::choice::chosen_or_first;
use crate::prediction::plan::{plan_us, prove_plan};
use crate::report::table::{Table, TableFormat};
use crate::units::{format_size, parse_gpus, parse_size};
use crate::workload::size_fault;

/// Options of `schedule`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The schedule: MSCCL's XML, an execution plan of MSCCL++ (JSON), a schedule in GOAL, or `-`.
    file: String,
    /// Kind of the file; left out: told by its content.
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// The machine.
    #[command(flatten)]
    machine: Machine,
    /// GPUs in the order of ranks; left out: the first of the machine.
    #[arg(long, value_name = "0,1,4-7", value_parser = parse_gpus, default_value = "")]
    gpus: std::vec::Vec<u32>,
    /// Sizes of a call, rounded up to whole chunks [default: 14336,43008,448K,4M].
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', value_parser = parse_size)]
    sizes: Vec<u64>,
    /// Network model.
    #[arg(long, value_name = "MODEL", default_value = "packet")]
    fidelity: Model,
    /// Write to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    out: Option<String>,
}

/// Proves, times and prints.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let plan = load_plan(&options.file, options.format.as_deref())?;
    let sizes = sizes(options, &plan)?;
    let calibration = load::calibration(&options.machine.constants)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    let machine = prediction::Machine::new(topology, &calibration, true, false)?;
    let gpu_count = machine.nominal.fabric.gpu_count;
    let gpus = chosen_or_first(&options.gpus, plan.ranks(), gpu_count)?;
    prove_plan(&plan, &machine, &gpus)?;
    let mut sizes: Vec<u64> = sizes.iter().map(|&bytes| plan.round_up(bytes)).collect();
    sizes.dedup();
    let times: Vec<f64> = sizes
        .par_iter()
        .map(|&bytes| plan_us(&plan, &machine, &gpus, bytes, fidelity(options.fidelity)))
        .collect::<Result<_>>()?;
    let mut table = Table::new(&["size", "us", "algbw GB/s", "busbw GB/s"]);
    for (&bytes, us) in sizes.iter().zip(times) {
        let rate = bytes as f64 / us / 1e3;
        let bus = plan.collective.map(|collective| rate * collective.bus_factor(gpus.len()));
        let figure = |figure: Option<f64>| figure.map_or("-".to_owned(), |f| format!("{f:.2}"));
        let rate = plan.collective.map(|_| rate);
        table.row([vec![format_size(bytes)], [Some(us), rate, bus].map(figure).to_vec()].concat());
    }
    let proved = match plan.collective {
        Some(_) => "every rank ends with what it should, in three orders of the blocks",
        None => "every message is received and nothing waits in a circle; the file tells no data",
    };
    let text = format!(
        "{}: {} of {} ranks, {}, {} chunks, on {}\n  proved: {proved}\n\n{}",
        plan.name,
        plan.title(),
        gpus.len(),
        plan.protocol.name(),
        plan.chunks,
        machine.topology.name,
        table.write(TableFormat::Text)
    );
    output.titled(&text, options.out.as_deref())?;
    Ok(Outcome::Done)
}

/// Sizes where none are told.
const SIZES: [u64; 4] = [14_336, 43_008, 448 << 10, 4 << 20];

/// The sizes that are asked for.
fn sizes(options: &Options, plan: &Plan) -> Result<Vec<u64>> {
    if options.sizes.is_empty() {
        return Ok(SIZES.to_vec());
    }
    if plan.bytes.is_some() {
        return Err(Error::request(
            format!("{} tells the bytes of each message itself", options.file),
            "drop --sizes",
        ));
    }
    match options.sizes.iter().find_map(|&bytes| size_fault(bytes, "--sizes")) {
        Some(fault) => Err(Error::request(format!("--sizes: {}", fault.message), fault.help)),
        None => Ok(options.sizes.clone()),
    }
}
