//! `simulate sensitivity`: which constant and which link matter most to a call.

use clap::Args;
use serde_json::json;

use super::arguments::{Machine as MachineOptions, Model};
use super::load;
use super::output::{Failure, Outcome, Output};
use super::predict::{fidelity, start_threads};
use crate::error::Error;
use crate::input::load_scenario;
use crate::prediction::Choice;
use crate::report::number::{short, signed_percent};
use crate::report::table::{Table, TableFormat};
use crate::sweep::plan::{Plan, Terms, parse_edits};
use crate::sweep::sensitivity::{Moved, Sensitivity, sensitivity};
use crate::units::format_thousands;

/// Options of `sensitivity`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The machine.
    #[command(flatten)]
    machine: MachineOptions,
    /// Workload: a scenario file or the name of a built-in one.
    #[arg(long, value_name = "FILE|NAME", default_value = "kimi-k25-tp8")]
    scenario: String,
    /// The step; left out: the last.
    #[arg(long, value_name = "NAME")]
    step: Option<String>,
    /// Of the machine or workload edited (`simulate edits`).
    #[arg(long, value_name = "EDIT")]
    what_if: Vec<String>,
    /// Network model.
    #[arg(long, value_name = "MODEL", default_value = "packet")]
    fidelity: Model,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Moves that are shown; the rest is counted.
const SHOWN: usize = 16;
/// Changes below this are none.
const LEAST: f64 = 0.001;

/// Moves each constant and each link.
pub(super) fn run(options: &Options, output: &mut Output) -> Result<Outcome, Failure> {
    let calibration = load::calibration(&options.machine.constants)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    let scenario = load_scenario(&options.scenario)?;
    let plan = Plan { topology, scenario, choice: Choice::default() };
    let (plan, _) = plan.edited(&parse_edits(&options.what_if)?, &calibration)?;
    let steps = &plan.scenario.steps;
    let step = match &options.step {
        None => steps.last(),
        Some(name) => plan.scenario.step(name),
    };
    let Some(step) = step else {
        let names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
        let wanted = options.step.as_deref().unwrap_or_default();
        let help = format!("known: {}", names.join(", "));
        return Err(Error::request(format!("there is no step `{wanted}`"), help).into());
    };
    start_threads(None)?;
    let terms = Terms { regimes: true, ranges: false, fidelity: fidelity(options.fidelity) };
    let found = sensitivity(&plan, step, &calibration, terms)?;
    let text = match options.json {
        true => format!("{:#}\n", json!(found)),
        false => page(&plan.topology.name, &found),
    };
    output.titled(&text, None)?;
    Ok(Outcome::Done)
}

fn page(machine: &str, found: &Sensitivity) -> String {
    let (step, bytes) = (&found.step.name, format_thousands(found.step.bytes));
    let mut out =
        format!("{machine}: {step}, {bytes} B by {}, {} us a call\n", found.title, short(found.us));
    let mut table = Table::new(&["what", "moved", "a call"]).left(1);
    let (told, rest): (Vec<_>, Vec<_>) =
        found.effects.iter().partition(|effect| effect.change.abs() >= LEAST);
    for effect in told.iter().take(SHOWN) {
        let (what, to) = match &effect.moved {
            Moved::Constant { device, name, by } => {
                (format!("{name} of {device}"), format!("{} (1 sigma)", signed_percent(*by)))
            }
            Moved::Link { between, to } => (between.clone(), to.clone()),
        };
        let tenths = format!("{:+.1} %", effect.change * 100.0);
        table.row(vec![what, to, tenths]);
    }
    out.push_str(&table.write(TableFormat::Text));
    let more = told.len().saturating_sub(SHOWN);
    out.push_str(&format!("{more} more change it, {} do not by 0.1 %\n", rest.len()));
    out
}
