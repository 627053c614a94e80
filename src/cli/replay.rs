//! `simulate replay`: traces of the probe, call by call.

use clap::Args;

use super::arguments::Machine;
use super::load;
use super::output::{Failure, Outcome, Output, pretty};
use crate::error::Error;
use crate::fabric::CompileOptions;
use crate::input::folder::traces;
use crate::report::number::percent;
use crate::report::plot::replay::picture;
use crate::report::table::{Table, TableFormat};
use crate::validation::experiment;
use crate::validation::replay::{self, Replayed};

/// Calls of a step that are drawn.
const DRAWN: std::ops::Range<usize> = 10..18;

/// Options of `replay`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The folder that the probe wrote: traces.csv, and system.json for NCCL's version.
    #[arg(value_name = "FOLDER")]
    folder: String,
    /// The machine.
    #[command(flatten)]
    machine: Machine,
    /// Only traces whose name holds this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Draw the first trace, measured and simulated on one timeline, into a file instead.
    #[arg(long, value_name = "FILE.svg", conflicts_with = "json")]
    plot: Option<String>,
    /// Every call of every rank as JSON.
    #[arg(long)]
    json: bool,
}

/// Replays every trace of a folder.
pub(super) fn run(options: &Options, output: &mut Output) -> Result<Outcome, Failure> {
    let calibration = load::calibration(&options.machine.constants)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    let machine = experiment::Machine::new(&topology, &calibration, CompileOptions::default())?;
    let wanted = |name: &str| options.only.as_ref().is_none_or(|part| name.contains(part.as_str()));
    let mut replayed = Vec::new();
    for trace in traces(&options.folder)? {
        if wanted(&trace.name) {
            replayed.push(replay::replay(&machine, &trace)?);
        }
    }
    if replayed.is_empty() {
        let help = "names begin with the kernel: ring_ll, one_stage_pull, nccl";
        return Err(Error::request("no trace is left", help).into());
    }
    if let Some(file) = &options.plot {
        let drawn = picture(&replayed[0], DRAWN.start, DRAWN.len());
        output.plain(&drawn.svg(), Some(file))?;
    } else if options.json {
        output.text(&pretty(&replayed)?)?;
    } else {
        output.titled(&table(&replayed), None)?;
    }
    Ok(Outcome::Done)
}

fn table(replayed: &[Replayed]) -> String {
    let mut table = Table::new(&[
        "trace",
        "calls",
        "call us",
        "predicted",
        "error",
        "step ms",
        "predicted",
        "error",
        "waiting",
        "predicted",
    ]);
    for one in replayed {
        table.row(vec![
            one.name.clone(),
            one.calls.len().to_string(),
            format!("{:.2}", one.call_measured),
            format!("{:.2}", one.call_predicted),
            percent(one.call_error),
            format!("{:.3}", one.step_measured / 1e3),
            format!("{:.3}", one.step_predicted / 1e3),
            format!("{:+.1} %", one.step_error() * 100.0),
            percent(one.waiting_measured),
            percent(one.waiting_predicted),
        ]);
    }
    table.write(TableFormat::Text)
}
