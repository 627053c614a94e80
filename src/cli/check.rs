//! `simulate check`: predictions against what was measured.

use super::arguments::Check;
use super::output::{Failure, Outcome, Output};
use crate::error::Error;
use crate::fabric::Calibration;
use crate::validation::check::{self, CheckOptions};
use crate::validation::render;

/// Runs the check and tells whether all is within its tolerance.
pub(super) fn run(options: &Check, output: &mut Output) -> Result<Outcome, Failure> {
    let mut wanted = CheckOptions::new(Calibration::embedded()?);
    wanted.machine.clone_from(&options.machine);
    wanted.experiment.clone_from(&options.experiment);
    wanted.own = options.measured.clone().zip(options.topo.clone());
    let report = check::run(&wanted)?;
    if report.rows.is_empty() {
        return Err(Error::request(
            "no measurement is left",
            "machines and experiments are named by `simulate check`; any part of a name will do",
        )
        .into());
    }
    let text = if options.json {
        let json = serde_json::to_string_pretty(&report);
        json.map_err(|error| Error::request(format!("cannot write it: {error}"), ""))? + "\n"
    } else if options.markdown {
        render::markdown(&report)
    } else {
        render::text(&report, options.verbose)
    };
    output.text(&text)?;
    Ok(if report.passes() { Outcome::Done } else { Outcome::OutsideTolerance })
}
