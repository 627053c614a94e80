//! `simulate trace`: traces and logs of what ran, told as tables.

use clap::{Args, Subcommand};
use serde_json::json;

use super::output::{Failure, Outcome, Output, pretty};
use super::progress::Bytes;
use crate::error::{Error, Result};
use crate::input::traces::{TRACES, Trace, TraceFormat, in_order, read_trace, summary};
use crate::report::calls::{every_call, page};
use crate::suggestion::known;

/// Traces of what ran.
#[derive(Debug, Subcommand)]
pub(super) enum Traces {
    /// The calls by kind and size: how many, how long, what waits, and what was left out.
    Show(ShowOptions),
}

/// Files of one run.
#[derive(Debug, Args)]
pub(super) struct Files {
    /// Traces of the torch profiler (also .gz), NCCL's logs, NCCL Inspector, nsys stats as CSV, Chakra
    /// (JSON, protobuf), the probe's traces.csv, or `-`; one file a rank where each rank has its own.
    #[arg(required = true)]
    pub(super) files: Vec<String>,
    /// Kind of the files; left out: told by their content.
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
}

/// Options of `trace show`.
#[derive(Debug, Args)]
pub(super) struct ShowOptions {
    #[command(flatten)]
    files: Files,
    /// Every call of every rank instead.
    #[arg(long)]
    calls: bool,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
    /// Write to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    out: Option<String>,
}

/// Does what was asked.
pub(super) fn run(command: &Traces, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let Traces::Show(options) = command;
    let traces = options.files.read()?;
    let text = match (options.calls, options.json) {
        (true, true) => pretty(&json!({"schema_version": 1, "calls": in_order(traces)}))?,
        (true, false) => every_call(&in_order(traces)),
        (false, true) => pretty(&json!({"schema_version": 1, "trace": summary(traces)}))?,
        (false, false) => page(&summary(traces)),
    };
    output.titled(&text, options.out.as_deref())?;
    Ok(Outcome::Done)
}

impl Files {
    /// Reads them all, with progress.
    ///
    /// # Errors
    /// As [`read_trace`]; a format that there is not.
    pub(super) fn read(&self) -> Result<Vec<Trace>> {
        let format = self.format.as_deref().map(named).transpose()?;
        let read = |file: &String| {
            let progress = Bytes::new(file);
            let trace = read_trace(file, format, &|bytes| progress.at(bytes));
            progress.finish();
            trace
        };
        self.files.iter().map(read).collect()
    }
}

fn named(name: &str) -> Result<&'static TraceFormat> {
    TRACES.iter().find(|format| format.name == name).ok_or_else(|| {
        let help = known(name, "known", TRACES.iter().map(|format| format.name));
        Error::request(format!("there is no format `{name}`"), help)
    })
}
