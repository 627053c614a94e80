//! `simulate plan`: the cheapest edits that meet a target.

use std::fmt::Write;

use clap::Args;
use serde_json::json;

use super::arguments::{Machine as MachineOptions, Model};
use super::load;
use super::numbers::positive;
use super::output::{Failure, Outcome, Output};
use super::predict::{fidelity, start_threads};
use crate::error::{Error, Result};
use crate::input::load_scenario;
use crate::prediction::Choice;
use crate::report::number::short;
use crate::report::plot::frontier::{Candidate, Frontier, picture};
use crate::report::table::{Table, TableFormat};
use crate::sweep::capacity::{Offer, Target, Tried, search};
use crate::sweep::plan::{Plan, parse_edits};

/// Options of `plan`.
#[derive(Debug, Args)]
pub(super) struct PlanOptions {
    /// The machine.
    #[command(flatten)]
    machine: MachineOptions,
    /// Workload: a scenario file or the name of a built-in one.
    #[arg(long, value_name = "FILE|NAME", default_value = "kimi-k25-tp8")]
    scenario: String,
    /// What is to be met: "verify < 2 ms" of calls, or "decode > 90 tok/s" with --compute-ms.
    #[arg(long, value_name = "TARGET")]
    target: String,
    /// Edits to choose from; `;` between those that go together, ` = PRICE` after a blank: what they cost.
    #[arg(long = "with", value_name = "EDIT[ = PRICE]", required = true)]
    offers: Vec<String>,
    /// What a step takes beside its calls, ms.
    #[arg(long, value_name = "MS", value_parser = positive)]
    compute_ms: Option<f64>,
    /// Network model.
    #[arg(long, value_name = "MODEL", default_value = "packet")]
    fidelity: Model,
    /// Draw price and time of what was tried into a file, too.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<String>,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Finds the cheapest edits.
pub(super) fn plan(
    options: &PlanOptions,
    output: &mut Output,
) -> std::result::Result<Outcome, Failure> {
    let calibration = load::calibration(&options.machine.constants)?;
    let target = Target::parse(&options.target, options.compute_ms)?;
    let offers = options.offers.iter().map(|text| offer(text)).collect::<Result<Vec<_>>>()?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    let scenario = load_scenario(&options.scenario)?;
    let plan = Plan { topology, scenario, choice: Choice::default() };
    start_threads(None)?;
    let tried = search(&plan, &offers, &target, &calibration, fidelity(options.fidelity))?;
    if let Some(file) = &options.plot {
        let drawn = picture(&frontier(&plan.topology.name, &target, &tried));
        output.plain(&drawn.svg(), Some(file))?;
    }
    let text = match options.json {
        true => format!("{:#}\n", json!({"target": target, "tried": tried})),
        false => plan_page(&plan.topology.name, &target, &tried),
    };
    output.titled(&text, None)?;
    Ok(Outcome::Done)
}

/// Reads `EDIT;EDIT = PRICE`.
fn offer(text: &str) -> Result<Offer> {
    let (edits, price) = match text.rsplit_once(" = ") {
        None => (text, 1.0),
        Some((edits, price)) => {
            let number = price.trim().parse::<f64>().ok().filter(|p| p.is_finite() && *p >= 0.0);
            let wrong = || Error::request(format!("`{price}` is no price"), "write a number");
            (edits, number.ok_or_else(wrong)?)
        }
    };
    Ok(Offer { edits: parse_edits(&[edits.to_owned()])?, price })
}

/// What was tried, as it is drawn.
fn frontier(machine: &str, target: &Target, tried: &[Tried]) -> Frontier<'static> {
    let candidates = tried.iter().filter_map(|one| {
        let (ms, by) = one.found.as_ref().ok()?;
        let edits = if one.edits.is_empty() { "as it is".to_owned() } else { one.edits.join("; ") };
        let name = format!("{edits}, by {by}");
        Some(Candidate { name, cost: one.price, time: *ms, range: None })
    });
    Frontier {
        title: format!("What edits of {machine} cost and give"),
        about: "Calls of a step by the fastest implementation. Joined: nothing that costs less is \
                as fast."
            .to_owned(),
        cost: "price",
        time: "ms a step",
        most: Some(target.most_ms),
        candidates: candidates.collect(),
    }
}

fn plan_page(machine: &str, target: &Target, tried: &[Tried]) -> String {
    let mut table = Table::new(&["edits", "price", "ms/step", "by"]).left(3);
    for one in tried {
        let edits = if one.edits.is_empty() { "as it is".to_owned() } else { one.edits.join("; ") };
        let (ms, by) = match &one.found {
            Ok((ms, by)) => (short(*ms), by.clone()),
            Err(reason) => ("-".to_owned(), reason.clone()),
        };
        table.row(vec![edits, short(one.price), ms, by]);
    }
    let (step, most) = (&target.step, short(target.most_ms));
    let mut out = format!("{machine}: {step} within {most} ms of calls, cheapest first\n");
    out.push_str(&table.write(TableFormat::Text));
    let met = tried.last().filter(|t| t.found.as_ref().is_ok_and(|f| f.0 <= target.most_ms));
    let _ = match met {
        Some(one) if one.edits.is_empty() => writeln!(out, "met as it is"),
        Some(one) => {
            writeln!(out, "met by {}: nothing cheaper of these does", one.edits.join("; "))
        }
        None => writeln!(out, "not met by any of the {} lists", tried.len()),
    };
    out
}
