//! The JSON form of a scenario: reading with its faults placed.

use super::json_error::{other_version, read_json};
use super::places::Places;
use crate::error::{Error, Problem, Result};
use crate::suggestion::did_you_mean;
use crate::workload::{CALLS_MAX, Scenario};

/// The form's version.
const SCHEMA_VERSION: u32 = 1;
/// Most ranks of a scenario.
const RANKS_MAX: u32 = 1024;
/// Largest call, bytes.
const BYTES_MAX: u64 = 1 << 40;

/// Reads a scenario. `file` names the text in errors.
///
/// # Errors
/// [`Error::Input`] with all that is wrong, in the order of the text.
pub fn parse(file: &str, text: &str) -> Result<Scenario> {
    let failed = |problems| Error::Input { file: file.to_owned(), text: text.to_owned(), problems };
    let scenario: Scenario = read_json(text).map_err(|problem| failed(vec![*problem]))?;
    let mut problems = check(&scenario);
    if problems.is_empty() {
        return Ok(scenario);
    }
    let places = Places::new(text);
    for problem in &mut problems {
        problem.span = places.value(&problem.path);
    }
    problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
    Err(failed(problems))
}

fn check(scenario: &Scenario) -> Vec<Problem> {
    let mut problems = Vec::from_iter(other_version(scenario.schema_version, SCHEMA_VERSION));
    let mut wrong = |message: String, path: String, help: &str| {
        problems.push(Problem::new(message, path).help(help));
    };
    if !(1..=RANKS_MAX).contains(&scenario.tensor_parallel) {
        let message = format!("{} ranks are out of range", scenario.tensor_parallel);
        wrong(message, "tensor_parallel".into(), "1 to 1024 ranks, one GPU each");
    }
    if scenario.steps.is_empty() {
        wrong("there is no step".into(), "steps".into(), "name at least one step with its calls");
    }
    for (index, step) in scenario.steps.iter().enumerate() {
        if !(1..=CALLS_MAX).contains(&step.calls) {
            let message = format!("{} calls are out of range", step.calls);
            wrong(message, format!("steps[{index}].calls"), "1 to 1,000,000 calls a step");
        }
        if !(1..=BYTES_MAX).contains(&step.bytes) {
            let message = format!("{} bytes are out of range", step.bytes);
            wrong(message, format!("steps[{index}].bytes"), "1 byte to 1024G a call");
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
        if !(figure.is_finite() && figure > 0.0) {
            let path = format!("reported[{index}].{kind}.{key}");
            problems.push(Problem::new("a figure above zero is needed", path));
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
