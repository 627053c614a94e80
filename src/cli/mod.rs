//! Arguments and nothing else: one file a subcommand.

mod arguments;
mod ask;
mod calibrate;
mod calibrate_alone;
mod check;
mod choose;
mod compare;
mod constants;
mod experts;
mod files;
mod here;
mod ignored;
mod import;
mod load;
mod memory;
mod numbers;
mod output;
mod place;
mod plan;
mod plot;
mod predict;
mod progress;
mod replay;
mod report;
mod row_files;
mod rows;
mod scenarios;
mod schedule;
mod select;
mod sensitivity;
mod shards;
mod slurm;
mod stage;
mod step;
mod stop;
mod sweep;
mod topo;
mod trace;
mod traces;

pub use arguments::Arguments;
pub use output::{Failure, Output};

use arguments::Command;
use output::Outcome;

/// Does what was asked.
///
/// # Errors
/// Inputs that are wrong, requests that cannot be met, an output that cannot be written.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<Outcome, Failure> {
    files::checked(std::env::args())?;
    match &arguments.command {
        None => predict::run(&arguments.predict, output),
        Some(Command::Topo(command)) => topo::run(command, output),
        Some(Command::Compare(options)) => compare::run(options, output),
        Some(Command::Step(options)) => step::run(options, output),
        Some(Command::Experts(options)) => experts::run(options, output),
        Some(Command::Sweep(command)) => sweep::run(command, output),
        Some(Command::Ask(options)) => ask::run(options, output),
        Some(Command::Sensitivity(options)) => sensitivity::run(options, output),
        Some(Command::Plan(options)) => plan::plan(options, output),
        Some(Command::Place(options)) => place::run(options, output),
        Some(Command::Edits) => compare::list(output),
        Some(Command::Memory(options)) => memory::run(options, output),
        Some(Command::Plot(options)) => plot::run(options, output),
        Some(Command::Report(options)) => report::run(options, output),
        Some(Command::Check(options)) => check::run(options, output),
        Some(Command::Calibrate(options)) => calibrate::run(options, output),
        Some(Command::Choose(options)) => choose::run(options, output),
        Some(Command::Here(options)) => here::run(options, output),
        Some(Command::Trace(command)) => traces::run(command, output),
        Some(Command::Import(options)) => import::run(options, output),
        Some(Command::Schedule(options)) => schedule::run(options, output),
        Some(Command::Replay(options)) => replay::run(options, output),
        Some(Command::Scenarios) => scenarios::run(output),
        Some(Command::Constants(options)) => constants::run(options, output),
    }
}
