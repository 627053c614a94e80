//! `simulate plan`: the cheapest edits that meet a target. `simulate place`: which GPUs in which order,
//! and which implementation at which size.

use std::fmt::Write;

use clap::Args;
use serde_json::json;

use super::arguments::{Machine as MachineOptions, Model};
use super::load;
use super::output::{Failure, Outcome, Output};
use super::predict::{fidelity, start_threads};
use crate::error::{Error, Result};
use crate::input::load_scenario;
use crate::prediction::{CaseOptions, Choice, Machine};
use crate::report::number::{short, signed_percent};
use crate::report::plot::frontier::{Candidate, Frontier, picture};
use crate::report::table::{Table, TableFormat};
use crate::schedule::Collective;
use crate::sweep::capacity::{Offer, Target, Tried, search};
use crate::sweep::placement::{Placed, Placement, Winner, place, winners};
use crate::sweep::plan::{Plan, parse_edits};
use crate::sweep::sizes::Sizes;
use crate::units::{format_size, parse_size};

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
    #[arg(long, value_name = "MS")]
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

/// Options of `place`.
#[derive(Debug, Args)]
pub(super) struct PlaceOptions {
    /// The machine.
    #[command(flatten)]
    machine: MachineOptions,
    /// Ranks; left out: all GPUs.
    #[arg(long, value_name = "N")]
    ranks: Option<u32>,
    /// Bytes of the call for which the ring is ordered.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "43008")]
    bytes: u64,
    /// Without the regimes that the topology declares.
    #[arg(long)]
    no_regimes: bool,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Sizes of the table of the fastest implementations.
const SIZES: Sizes = Sizes { begin: 4 << 10, end: 4 << 20, factor: 2.0 };

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

/// Finds places of ranks.
pub(super) fn run_place(
    options: &PlaceOptions,
    output: &mut Output,
) -> std::result::Result<Outcome, Failure> {
    let calibration = load::calibration(&options.machine.constants)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    start_threads(None)?;
    let machine = Machine::new(topology, &calibration, !options.no_regimes, false)?;
    let count = machine.nominal.fabric.gpu_count;
    let ranks = options.ranks.map_or(count, |ranks| ranks as usize);
    let bytes = Collective::AllReduce.round_up(options.bytes, ranks);
    let placement = place(&machine, ranks, bytes)?;
    let case_options = CaseOptions::of(placement.best.gpus.clone(), fidelity(Model::Packet));
    let choice = Choice::default();
    let cases = choice.cases(Collective::AllReduce, &machine, &placement.best.gpus)?;
    let table = winners(&machine, &cases, &SIZES.all()?, &case_options)?;
    let text = match options.json {
        true => format!("{:#}\n", json!({"bytes": bytes, "ring": placement, "fastest": table})),
        false => place_page(&machine, bytes, &placement, &table),
    };
    output.titled(&text, None)?;
    Ok(Outcome::Done)
}

fn place_page(machine: &Machine, bytes: u64, placement: &Placement, table: &[Winner]) -> String {
    let order = |placed: &Placed| {
        let gpus: Vec<String> = placed.gpus.iter().map(u32::to_string).collect();
        format!("{:>8} us  --gpus {}", short(placed.us), gpus.join(","))
    };
    let how = match placement.exact {
        true => "every choice and order of GPUs was tried",
        false => "exchanges of two ranks from the own order on; there may be better",
    };
    let mut out = format!(
        "{}: ring of {} ranks, {} B ({} orders; {how})\n",
        machine.topology.name,
        placement.own.gpus.len(),
        bytes,
        placement.tried
    );
    let named = [("own", &placement.own), ("best", &placement.best), ("worst", &placement.worst)];
    for (word, placed) in named {
        let _ = writeln!(out, "  {word:<6}{}", order(placed));
    }
    out.push_str("\nfastest by size, in the best order\n");
    let mut rows = Table::new(&["size", "us", "fastest", "second", "slower by"]).left(2).left(3);
    for winner in table {
        let second = winner.second.as_ref();
        let slower = second.map(|second| signed_percent(second.1 / winner.best.1 - 1.0));
        rows.row(vec![
            format_size(winner.bytes),
            short(winner.best.1),
            winner.best.0.clone(),
            second.map_or(String::new(), |second| second.0.clone()),
            slower.unwrap_or_default(),
        ]);
    }
    out.push_str(&rows.write(TableFormat::Text));
    out
}
