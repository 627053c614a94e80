//! The JSON form of a scenario: reading with its faults placed.

use super::json_error::read_form;
use super::kinds::SCENARIO;
use crate::error::{Error, Problem, Result};
use crate::suggestion::did_you_mean;
use crate::workload::{CALLS_MAX, Scenario, beside_fault, size_fault};

/// The form's version.
const SCHEMA_VERSION: u32 = 1;
/// Most ranks of a scenario.
const RANKS_MAX: u32 = 1024;
/// Largest scenario file read, in bytes.
pub(super) const LIMIT: u64 = 1 << 20;
/// More tokens a second, or milliseconds a pass, than anyone reports.
const REPORTED_MAX: f64 = 1e6;

/// Reads a scenario. `file` names the text in errors.
///
/// # Errors
/// [`crate::error::Error::Input`] with all that is wrong, in the order of the text.
pub fn parse(file: &str, text: &str) -> Result<Scenario> {
    read_form(
        (file, text),
        SCENARIO,
        SCHEMA_VERSION,
        |scenario: &Scenario| scenario.schema_version,
        check,
    )
}

/// Writes a scenario that [`parse`] reads again.
///
/// # Errors
/// [`Error::Request`] with the first thing that is wrong in it, and when it is too long to be read.
pub fn write(scenario: &Scenario) -> Result<String> {
    sound(scenario)?;
    let text = serde_json::to_string_pretty(scenario).unwrap_or_default() + "\n";
    if text.len() as u64 > LIMIT {
        let (kinds, mib) = (scenario.steps.len(), text.len() as f64 / f64::from(1 << 20));
        return Err(Error::request(
            format!("the scenario of {kinds} kinds of calls has {mib:.1} MiB, and 1 MiB is read"),
            "cut the trace to a few steps of the model",
        ));
    }
    Ok(text)
}

/// That a scenario that was no file is one that could be.
///
/// # Errors
/// [`Error::Request`] with the first thing that is wrong in it.
pub(super) fn sound(scenario: &Scenario) -> Result<()> {
    match check(scenario).into_iter().next() {
        None => Ok(()),
        Some(Problem { message, path, help, .. }) => {
            Err(Error::request(format!("no scenario can be made of this: {path}: {message}"), help))
        }
    }
}

fn check(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut wrong = |message: String, path: String, help: &str| {
        problems.push(Problem::new(message, path).help(help));
    };
    if !(1..=RANKS_MAX).contains(&scenario.tensor_parallel) {
        let message = format!("{} ranks are out of range", scenario.tensor_parallel);
        wrong(message, "tensor_parallel".into(), "1 to 1024 ranks, one GPU each");
    }
    match scenario.ranks_fault(scenario.tensor_parallel) {
        Err(Error::Request { message, help }) => wrong(message, "model".into(), &help),
        Ok(Some((why, help))) => {
            let message = format!("TP {}: {why}", scenario.tensor_parallel);
            wrong(message, "tensor_parallel".into(), &help);
        }
        // The catalogue itself is sound, which a test holds.
        Ok(None) | Err(_) => {}
    }
    if scenario.steps.is_empty() {
        wrong("there is no step".into(), "steps".into(), "name at least one step with its calls");
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        if !(1..=CALLS_MAX).contains(&step.calls) {
            let message = format!("{} calls are out of range", step.calls);
            wrong(message, format!("steps[{index}].calls"), "1 to 1,000,000 calls a step");
        }
        let arrival = step.arrival.as_ref();
        if let Some(fault) = arrival.and_then(|arrival| arrival.fault(scenario.tensor_parallel)) {
            let path = format!("steps[{index}].arrival");
            wrong(fault, path, "docs/scenario-files.md tells how arrivals are given");
        }
        if scenario.steps[..index].iter().any(|earlier| earlier.name == step.name) {
            let message = format!("step `{}` is defined twice", step.name);
            wrong(message, format!("steps[{index}].name"), "give each step its own name");
        }
    }
    if let Some((index, fault, help)) = beside_fault(&scenario.beside) {
        wrong(fault, format!("beside[{index}]"), help);
    }
    let sizes = scenario.steps.iter().enumerate();
    let faults =
        sizes.filter_map(|(index, step)| size_fault(step.bytes, format!("steps[{index}].bytes")));
    problems.extend(faults);
    check_reported(scenario, &mut problems);
    problems
}

fn check_reported(scenario: &Scenario, problems: &mut Vec<Problem>) {
    use crate::workload::Reported;
    for (index, reported) in scenario.reported.iter().enumerate() {
        let (kind, key, figure, step) = match reported {
            Reported::Throughput(told) => ("throughput", "tok_per_s", told.tok_per_s, &told.step),
            Reported::Pass(told) => ("pass", "ms", told.ms, &told.step),
        };
        if !(figure > 0.0 && figure <= REPORTED_MAX) {
            let path = format!("reported[{index}].{kind}.{key}");
            let message = format!("a figure above zero and up to {REPORTED_MAX} is needed");
            problems.push(Problem::new(message, path));
        }
        if scenario.step(step).is_none() {
            let names = scenario.steps.iter().map(|step| step.name.as_str());
            let help = did_you_mean(step, names);
            let path = format!("reported[{index}].{kind}.step");
            problems.push(Problem::new(format!("there is no step `{step}`"), path).help(help));
        }
    }
}

/// The JSON Schema of the form, as text.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Scenario);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
