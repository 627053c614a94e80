//! `simulate compare A B` and `--what-if EDIT`: before, after, difference. `simulate edits`: the kinds
//! of edit.

use clap::Args;

use super::arguments::{Machine, Predict, Stage};
use super::output::{Failure, Outcome, Output};
use super::predict::{fidelity, start_threads, table_format, workload};
use super::select;
use super::{ignored, load};
use crate::error::{Error, Result};
use crate::input::{Loaded, read_list, read_text};
use crate::prediction::Choice;
use crate::report::compare as report;
use crate::report::table::{Table, TableFormat};
use crate::sweep::compare::{Comparison, Side};
use crate::sweep::plan::{Plan, kinds, parse_edits};
use crate::units::format_size;
use crate::workload::{Scenario, Step};

/// Options of `compare`.
#[derive(Debug, Args)]
pub(super) struct Compare {
    /// The machine before: a topology file, or the name of a built-in one.
    before: String,
    /// The machine after; edits (`--what-if`) change this one.
    after: String,
    /// As for a prediction.
    #[command(flatten)]
    predict: Predict,
}

/// Largest list of edits.
const EDITS_LIMIT: u64 = 1 << 20;

/// Compares two machines.
pub(super) fn run(options: &Compare, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    if !options.predict.machine.topo.is_empty() {
        let help = "`simulate compare A B` takes both machines by place";
        return Err(Error::request("--topo beside two machines", help).into());
    }
    let before = named(&options.before, &options.predict);
    compare(&before, Some(&named(&options.after, &options.predict)), &options.predict, output)
}

/// The machine of one name, with what is stated of both.
fn named(name: &str, options: &Predict) -> Machine {
    load::named(&[name.to_owned()], &options.machine.assume)
}

/// Compares a machine with itself edited.
pub(super) fn what_if(
    options: &Predict,
    output: &mut Output,
) -> std::result::Result<Outcome, Failure> {
    compare(&options.machine, None, options, output)
}

fn compare(
    machine: &Machine,
    other: Option<&Machine>,
    options: &Predict,
    output: &mut Output,
) -> std::result::Result<Outcome, Failure> {
    refuse(options)?;
    ignored::of_prediction(options)?;
    let edits = parse_edits(&edit_texts(&options.what_if)?)?;
    if edits.is_empty() && !options.what_if.is_empty() {
        let help = "such as --what-if p2p=off; `simulate edits` lists them";
        return Err(Error::request("--what-if names no edit", help).into());
    }
    let calibration = load::calibration(&options.machine.constants)?;
    let mut notes = Vec::new();
    let scenario = scenario(options, &mut notes)?;
    let plan = |machine: &Machine| {
        let Loaded { topology, ring } = load::machine(machine, &calibration)?;
        let choice = Choice { graph: ring.unwrap_or_default(), ..select::choice(options)? };
        Ok::<Plan, Error>(Plan { topology, scenario: scenario.clone(), choice })
    };
    let before = plan(machine)?;
    let base = other.map_or_else(|| Ok(before.clone()), plan)?;
    let (after, did) = base.edited(&edits, &calibration)?;
    if options.stop_after == Some(Stage::Topology) {
        let text = crate::input::topology_json::write(&after.topology)?;
        output.plain(&text, options.out.as_deref())?;
        return Ok(Outcome::Done);
    }
    start_threads(options.threads)?;
    let words: Vec<String> = edits.iter().map(ToString::to_string).collect();
    let (first, second) = (before.topology.name.clone(), after.topology.name.clone());
    let second =
        if edits.is_empty() { second } else { format!("{second} with {}", words.join("; ")) };
    let side = |name: &str, plan: Plan| {
        let model = fidelity(options.fidelity);
        Side::of(name, plan, &calibration, !options.no_regimes, model)
    };
    let mut before = side(&first, before)?;
    before.notes.splice(0..0, notes);
    let comparison = Comparison::of(before, side(&second, after)?)?;
    let told: Vec<(String, String)> = words.into_iter().zip(did).collect();
    let text = if options.json {
        format!("{:#}\n", report::json(&comparison, &told, options.seed())?)
    } else {
        report::page(&comparison, &told, options.format.map_or(TableFormat::Text, table_format))
    };
    output.titled(&text, options.out.as_deref())?;
    Ok(Outcome::Done)
}

/// What a comparison does not do.
fn refuse(options: &Predict) -> Result<()> {
    let stage = matches!(options.stop_after, Some(Stage::Fabric | Stage::Schedule));
    if options.trace.is_some() {
        let help = "write the edited machine with --stop-after topology, then record it";
        return Err(Error::request("--trace records one machine", help));
    }
    if options.explain || options.assumptions || options.every_call || stage {
        return Err(Error::request(
            "--explain, --assumptions, --every-call and later stages belong to one machine",
            "write the edited machine with --stop-after topology, then ask about it",
        ));
    }
    Ok(())
}

/// The calls: those of the scenario, or one call of each size.
fn scenario(options: &Predict, notes: &mut Vec<String>) -> Result<Scenario> {
    let (mut scenario, collective) = workload(options, notes)?;
    let sizes = select::wanted_sizes(options, true)?;
    if !sizes.is_empty() {
        let dtype = scenario.steps[0].dtype;
        let step = |bytes: u64| Step {
            name: format_size(bytes),
            calls: 1,
            bytes,
            collective,
            dtype,
            arrival: None,
        };
        scenario.steps = sizes.into_iter().map(step).collect();
    }
    Ok(scenario)
}

/// Edits as texts; `@FILE` stands for a JSON list of them.
fn edit_texts(given: &[String]) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for text in given {
        match text.strip_prefix('@') {
            None => texts.push(text.clone()),
            Some(file) => {
                let content = read_text(file, EDITS_LIMIT, "is it a list of edits?")?;
                let help = "a list of edits is such as [\"p2p=off\", \"link:gpu0=gen4x8\"]";
                texts.extend(read_list(file, &content, help)?);
            }
        }
    }
    Ok(texts)
}

/// Lists the kinds of edit.
pub(super) fn list(output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let mut table = Table::new(&["edit", "what"]).left(1);
    for (_, form, what) in kinds() {
        table.row(vec![form.to_owned(), what.to_owned()]);
    }
    output.plain(&table.write(TableFormat::Text), None)?;
    Ok(Outcome::Done)
}
