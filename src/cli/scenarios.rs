//! `simulate scenarios`: the built-in workloads.

use std::fmt::Write;

use super::output::{Failure, Outcome, Output};
use crate::input::scenario::SCENARIOS;
use crate::input::scenario_json;

/// Lists them.
pub(super) fn run(output: &mut Output) -> Result<Outcome, Failure> {
    let mut out = String::new();
    for embedded in SCENARIOS {
        let scenario = scenario_json::parse(&embedded.file_name(), embedded.text)?;
        let _ = writeln!(out, "{:<20}{}", scenario.name, scenario.title);
    }
    output.text(&out)?;
    Ok(Outcome::Done)
}
