//! `simulate calibrate --from FOLDER`: what one folder of the probe tells of its machine, from neutral
//! priors.

use std::fmt::Write;

use super::calibrate::short;
use super::output::{Failure, Outcome, Output, pretty};
use super::progress::Progress;
use crate::error::{Error, Result};
use crate::fabric::calibration::Constant;
use crate::input::calibration_json::{CalibrationFile, Replaced};
use crate::input::{folder, load_topology};
use crate::report::number::signed_percent;
use crate::report::table::{Table, TableFormat};
use crate::validation::check::CheckOptions;
use crate::validation::read::observations;
use crate::validation::stages::{Alone, How, Told, alone, confidence, recipe};

/// What was asked for.
pub(super) struct Asked<'a> {
    /// Folder of the probe.
    pub(super) folder: &'a str,
    /// The machine on which it ran.
    pub(super) topology: &'a str,
    /// File for the constants.
    pub(super) out: Option<&'a str>,
    /// As JSON.
    pub(super) json: bool,
}

/// Fits and prints.
pub(super) fn run(
    asked: &Asked<'_>,
    wanted: &CheckOptions,
    output: &mut Output,
) -> std::result::Result<Outcome, Failure> {
    if std::path::Path::new(asked.folder).is_file() {
        return Err(Error::request(
            format!("{} is a file: which constants shall be fitted to it?", asked.folder),
            "name them with --fit, or give a folder that the probe wrote (docs/probe.md)",
        )
        .into());
    }
    let recipe = recipe()?;
    let topology = load_topology(asked.topology)?;
    let rows = folder::rows(asked.folder)?;
    let read = observations(wanted)?;
    let progress = Progress::new(recipe.stages.len());
    let told = alone(&recipe, &topology, &rows, &read.observations, &wanted.calibration, &|_| {
        progress.step()
    });
    progress.finish();
    let told = told?;
    if told.stages.is_empty() {
        let message = format!("no row of {} tells a constant", asked.folder);
        let help = "the probe writes such rows (docs/probe.md); others are fitted with --fit";
        return Err(Error::request(message, help).into());
    }
    if let Some(out) = asked.out {
        output.plain(&file(&told, asked.folder)?, Some(out))?;
    }
    let text = if asked.json { pretty(&told)? } else { text(&told) };
    output.text(&text)?;
    Ok(Outcome::Done)
}

fn text(told: &Alone) -> String {
    let mut table = Table::new(&["constant", "table", "probe", "differs", "80 %", "", "told by"]);
    for constant in &told.constants {
        let differs = signed_percent(constant.alone / constant.table - 1.0);
        let (interval, by) = match constant.how {
            How::Read => (String::new(), format!("read: {}", constant.stage)),
            How::Fitted => {
                let interval = format!("{}-{}", short(constant.low), short(constant.high));
                (interval, constant.stage.clone())
            }
            How::Shared => (String::new(), format!("{}, with others", constant.stage)),
            How::Untold => (String::new(), "nothing: a neutral guess".to_owned()),
        };
        let (old, new) = (short(constant.table), short(constant.alone));
        table.row(vec![
            constant.name.clone(),
            old,
            new,
            differs,
            interval,
            constant.unit.clone(),
            by,
        ]);
    }
    let mut out = table.write(TableFormat::Text);
    let mut stages = Table::new(&["stage", "rows", "median error", "90th percentile"]);
    for stage in &told.stages {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let effect = &stage.effect;
        let (median, p90) = (percent(effect.median_after), percent(effect.p90_after));
        stages.row(vec![stage.name.clone(), effect.rows.to_string(), median, p90]);
    }
    let _ = write!(out, "\n{}", stages.write(TableFormat::Text));
    for stage in &told.without_rows {
        let _ = writeln!(out, "no rows for: {stage}");
    }
    out
}

/// What the file says of a constant.
fn source(constant: &Told, folder: &str) -> String {
    match constant.how {
        How::Read => {
            format!("simulate calibrate, {folder} alone: read from {} rows", constant.stage)
        }
        How::Fitted => format!(
            "simulate calibrate, {folder} alone: {}; 80 % interval {} to {}",
            constant.stage,
            short(constant.low),
            short(constant.high)
        ),
        How::Shared => format!(
            "simulate calibrate, {folder} alone: {}, told only together with others",
            constant.stage
        ),
        How::Untold => "neutral guess of calibration/probe-stages.json: no row tells it".to_owned(),
    }
}

/// All free constants, told or not, as a file.
fn file(told: &Alone, folder: &str) -> Result<String> {
    let folder = folder.trim_end_matches('/').rsplit('/').next().unwrap_or(folder);
    let constants = told.constants.iter().map(|constant| Replaced {
        name: constant.name.clone(),
        constant: Constant {
            value: constant.alone,
            unit: constant.unit.clone(),
            source: source(constant, folder),
            confidence: confidence(constant.how),
        },
    });
    let title = format!("from {folder} alone");
    pretty(&CalibrationFile { schema_version: 1, title, constants: constants.collect() })
}
