//! `simulate import`: traces and logs of what ran -> a scenario.

use std::path::Path;

use clap::Args;

use super::output::{Failure, Outcome, Output, pretty};
use super::progress::Bytes;
use crate::error::{Error, Result};
use crate::input::traces::{Import, TRACES, TraceFormat, import, read_trace};
use crate::suggestion::known;
use crate::units::parse_size;

/// Options of `import`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Traces of the torch profiler (also .gz), NCCL's logs, NCCL Inspector, nsys stats as CSV, Chakra
    /// (JSON, protobuf), or `-`; one file a rank where each rank has its own.
    #[arg(required = true)]
    files: Vec<String>,
    /// Kind of the files; left out: told by their content.
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
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
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    out: Option<String>,
}

/// Reads, joins and prints.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let format = options.format.as_deref().map(named).transpose()?;
    let mut traces = Vec::new();
    for file in &options.files {
        let progress = Bytes::new(file);
        let trace = read_trace(file, format, &|bytes| progress.at(bytes));
        progress.finish();
        traces.push(trace?);
    }
    let stem = Path::new(&options.files[0]).file_name().and_then(|name| name.to_str());
    let stem = stem.and_then(|name| name.split('.').next()).filter(|name| !name.is_empty());
    let stated = Import {
        name: options.name.clone().unwrap_or_else(|| stem.unwrap_or("trace").replace('-', "_")),
        bytes: options.bytes,
        ranks: options.ranks,
        steps: options.steps,
    };
    let (scenario, notes) = import(traces, &stated)?;
    for note in notes {
        output.note(&note)?;
    }
    output.plain(&pretty(&scenario)?, options.out.as_deref())?;
    Ok(Outcome::Done)
}

fn named(name: &str) -> Result<&'static TraceFormat> {
    TRACES.iter().find(|format| format.name == name).ok_or_else(|| {
        let help = known(name, "known", TRACES.iter().map(|format| format.name));
        Error::request(format!("there is no format `{name}`"), help)
    })
}
