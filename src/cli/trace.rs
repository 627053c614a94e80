//! `--trace`: a step of calls, recorded for Perfetto or Chrome.

use super::arguments::{Model, Predict};
use super::output::{Failure, Output};
use crate::engine::{RunOptions, record};
use crate::error::{Error, Result};
use crate::report::trace::{Trace, chrome, perfetto};
use crate::sweep::{Answer, Question};

/// More calls than this are not recorded.
const CALLS_MAX: u32 = 1000;

/// How a trace is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum TraceForm {
    /// Chrome's JSON.
    Chrome,
    /// Perfetto's packets.
    Perfetto,
}

/// The form that a file's name asks for.
///
/// # Errors
/// Another ending; sizes instead of steps; a network model without packets.
pub(super) fn form(file: &str, options: &Predict, sizes: bool) -> Result<TraceForm> {
    if sizes || options.stop_after.is_some() {
        return Err(Error::request(
            "--trace records a step of the first screen",
            "drop -b, -e and --stop-after, or drop --trace",
        ));
    }
    if options.fidelity != Model::Packet {
        return Err(Error::request(
            "--trace records packets, which this network model has not",
            "drop --fidelity, or drop --trace",
        ));
    }
    match file.rsplit('.').next() {
        Some("json") => Ok(TraceForm::Chrome),
        Some("pftrace" | "perfetto-trace") => Ok(TraceForm::Perfetto),
        _ => Err(Error::request(
            format!("{file}: the form of a trace is told by its ending"),
            "name it .json (Chrome, Perfetto, most tools) or .pftrace (Perfetto)",
        )),
    }
}

/// Records the calls of the last step by its fastest case and writes them.
pub(super) fn write(
    file: &str,
    form: TraceForm,
    question: &Question<'_>,
    answer: &Answer,
    output: &mut Output,
) -> std::result::Result<(), Failure> {
    let Some(last) = answer.steps.last() else { return Ok(()) };
    let (case, machine) = (&question.cases[last.best], question.machine);
    let schedule = case.schedule(machine, last.step.bytes, question.options)?;
    let run = RunOptions { calls: last.step.calls.min(CALLS_MAX), ..RunOptions::default() };
    let fabric = &machine.nominal.fabric;
    let (outcome, timeline) = record(fabric, &schedule, run)?;
    let trace = Trace::of(fabric, &schedule, &outcome, &timeline);
    match form {
        TraceForm::Chrome => output.file(file, chrome(&trace).as_bytes()),
        TraceForm::Perfetto => output.file(file, &perfetto(&trace)),
    }
}
