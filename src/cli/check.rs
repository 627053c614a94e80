//! `simulate check`: predictions against what was measured.

use clap::Args;

use super::arguments::{ConstantsFrom, Form};
use super::load;
use super::output::{Failure, Outcome, Output, pretty};
use super::progress::Progress;
use crate::error::Error;
use crate::report::plot::accuracy;
use crate::report::table::{Table, TableFormat};
use crate::validation::check::{self, CheckOptions, CheckReport};
use crate::validation::{page, render};

/// Options of `check`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Which measurements.
    #[command(flatten)]
    rows: Rows,
    /// More rows.
    #[arg(long)]
    verbose: bool,
    /// As a page in Markdown, or every row as comma-separated values [default: text].
    #[arg(long, value_name = "FORM", conflicts_with_all = ["json", "verbose"])]
    format: Option<Form>,
    /// The same as --format markdown.
    #[arg(long, conflicts_with_all = ["json", "verbose", "format"])]
    markdown: bool,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
    /// Draw the errors by machine and regime into a file, too.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<String>,
}

/// Which measurements, and with which constants: of `check` and `calibrate`.
#[derive(Debug, Args)]
pub(super) struct Rows {
    /// Only machines whose name holds this.
    #[arg(long, value_name = "TEXT")]
    machine: Option<String>,
    /// Only experiments whose name holds this.
    #[arg(long, value_name = "TEXT")]
    experiment: Option<String>,
    /// A folder of your own observations (`measured/README.md` tells the form), or the log of a
    /// benchmark such as nccl-tests, instead of those that come with the program.
    #[arg(long, visible_alias = "from", value_name = "FOLDER|LOG")]
    pub(super) measured: Option<String>,
    /// The machine on which they were taken; left out: topology.json of that folder.
    #[arg(long, value_name = "FILE|NAME", requires = "measured")]
    topo: Option<String>,
    /// The constants.
    #[command(flatten)]
    constants: ConstantsFrom,
}

impl Rows {
    /// What is asked of the library.
    ///
    /// # Errors
    /// A calibration, a folder or a log that cannot be read.
    pub(super) fn wanted(&self) -> crate::error::Result<CheckOptions> {
        let calibration = load::calibration(&self.constants)?;
        let topo = self.topo.as_deref();
        let own = self.measured.as_deref().map(|at| load::measured(at, topo)).transpose()?;
        let (machine, experiment) = (self.machine.clone(), self.experiment.clone());
        Ok(CheckOptions { machine, experiment, own, ..CheckOptions::new(calibration) })
    }
}

/// Runs the check and tells whether all is within its tolerance.
pub(super) fn run(options: &Options, output: &mut Output) -> Result<Outcome, Failure> {
    let progress = Progress::counting();
    let report = check::run(&options.rows.wanted()?, &|| progress.step());
    progress.finish();
    let report = report?;
    let own = options.rows.measured.is_some();
    let left_out: usize = report.unmatched.iter().map(|entry| entry.count).sum();
    if report.rows.is_empty() {
        if own && let Some(first) = report.unmatched.first() {
            let message = format!("no row can be predicted: {left_out} left out");
            return Err(Error::request(message, format!("the first: {}", first.reason)).into());
        }
        return Err(Error::request(
            "no measurement is left",
            "machines and experiments are named by `simulate check`; any part of a name will do",
        )
        .into());
    }
    let silent = options.json || options.format == Some(Form::Csv);
    if own && silent && left_out > 0 {
        // The text lists them.
        output.note(&format!(
            "{left_out} rows are not predicted; without --json or csv they are listed"
        ))?;
    }
    let text = if options.json {
        pretty(&report)?
    } else if let Some(Form::Csv) = options.format {
        rows(&report).write(TableFormat::Csv)
    } else if options.markdown || options.format == Some(Form::Markdown) {
        page::markdown(&report)
    } else {
        render::text(&report, options.verbose)
    };
    if let Some(file) = &options.plot {
        output.plain(&accuracy::picture(&report.rows).svg(), Some(file))?;
    }
    output.text(&text)?;
    Ok(if report.passes() { Outcome::Done } else { Outcome::OutsideTolerance })
}

/// Every row.
fn rows(report: &CheckReport) -> Table {
    let mut table = Table::new(&[
        "machine",
        "topology",
        "experiment",
        "regime",
        "id",
        "unit",
        "measured",
        "predicted",
        "low",
        "high",
        "error",
        "verdict",
        "nearest_mechanism",
        "its_share",
        "slower_by",
        "data",
        "rows",
        "noise",
        "condition",
        "note",
    ]);
    for row in &report.rows {
        table.row(vec![
            row.machine.clone(),
            row.topology.clone(),
            row.experiment.clone(),
            row.regime.names()[0].clone(),
            row.id.clone(),
            row.unit.to_owned(),
            row.measured.to_string(),
            row.predicted.to_string(),
            row.low.to_string(),
            row.high.to_string(),
            row.error.to_string(),
            row.verdict.name().to_owned(),
            row.nearest.as_ref().map_or(String::new(), |near| near.mechanism.to_owned()),
            row.nearest.as_ref().map_or(String::new(), |near| near.share.to_string()),
            row.nearest.as_ref().map_or(String::new(), |near| near.slower.to_string()),
            if row.fit { "fit" } else { "check" }.to_owned(),
            row.repetitions.to_string(),
            row.noise.map_or(String::new(), |noise| noise.to_string()),
            row.condition.clone(),
            row.note.clone(),
        ]);
    }
    table
}
