//! `simulate import`: traces and logs of what ran -> a scenario.

use std::path::Path;

use clap::Args;

use super::output::{Failure, Outcome, Output};
use super::traces::Files;
use crate::input::scenario_json;
use crate::input::traces::{Import, import};
use crate::units::parse_size;

/// Options of `import`.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    files: Files,
    /// Bytes of calls whose size the trace does not tell.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bytes: Option<u64>,
    /// Ranks, where the trace does not tell them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    ranks: Option<u32>,
    /// Steps in the trace, where pauses do not tell them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    steps: Option<u32>,
    /// Name of the scenario; left out: the first file's.
    #[arg(long, value_name = "NAME", value_parser = super::arguments::name)]
    name: Option<String>,
    /// Write to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    out: Option<String>,
}

/// Reads, joins and prints.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let traces = options.files.read()?;
    let stem = Path::new(&options.files.files[0]).file_name().and_then(|name| name.to_str());
    let stem =
        stem.and_then(|name| name.split('.').next()).filter(|name| !["", "-"].contains(name));
    let stated = Import {
        name: options.name.clone().unwrap_or_else(|| stem.unwrap_or("trace").replace('-', "_")),
        bytes: options.bytes,
        ranks: options.ranks,
        steps: options.steps,
    };
    let (scenario, notes) = import(traces, &stated)?;
    let text = scenario_json::write(&scenario)?;
    for note in notes {
        output.note(&note)?;
    }
    output.plain(&text, options.out.as_deref())?;
    Ok(Outcome::Done)
}
