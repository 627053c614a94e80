//! `simulate calibrate`: constants fitted to what was measured.

use std::fmt::Write;

use clap::Args;

use super::calibrate_alone::{self as alone, Asked};
use super::check::Rows;
use super::output::{Failure, Outcome, Output, pretty};
use crate::error::{Error, Result};
use crate::input::calibration_json::{CalibrationFile, Replaced, find};
use crate::measurement::{Observation, Run};
use crate::topology::Confidence;
use crate::validation::fit::{Effect, Fit, Name, fit};
use crate::validation::read::{Read, observations};

/// Options of `calibrate`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Constants to fit: class/device/name,.. such as gpu/rtx-4090/stream_launch (`simulate
    /// constants` lists them). Left out: all that a folder of the probe tells of its machine, from
    /// neutral priors, in stages (docs/probe.md).
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    fit: Vec<String>,
    /// Which measurements, and the constants to start from.
    #[command(flatten)]
    rows: Rows,
    /// Hold out machines whose name holds this, and show the error on them.
    #[arg(long, value_name = "TEXT")]
    hold_out_machine: Option<String>,
    /// Hold out calls of so many GPUs, and show the error on them.
    #[arg(long, value_name = "N")]
    hold_out_gpus: Option<usize>,
    /// Fit to calls and copies of at most this many bytes: large ones take long and say little of
    /// latencies.
    #[arg(long, value_name = "SIZE", value_parser = crate::units::parse_size, default_value = "1M")]
    most_bytes: u64,
    /// Write the constants that the rows tell to a file that --calibration takes.
    #[arg(long, short, value_name = "FILE")]
    out: Option<String>,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Most rows of a fit: each is simulated several times.
const ROWS_MAX: usize = 2000;

/// Fits and prints.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let wanted = options.rows.wanted()?;
    if options.fit.is_empty() && wanted.own.is_none() {
        return Err(Error::request(
            "what shall be fitted?",
            "name constants with --fit, or give a folder that the probe wrote with --from",
        )
        .into());
    }
    if let (Some((folder, topology)), []) = (&wanted.own, &options.fit[..]) {
        let asked = Asked { folder, topology, out: options.out.as_deref(), json: options.json };
        return alone::run(&asked, &wanted, output);
    }
    let start = &wanted.calibration;
    let names: Vec<Name> =
        options.fit.iter().map(|name| find(start, name)).collect::<Result<_>>()?;
    let Read { observations: mut all, skipped, .. } = observations(&wanted)?;
    let read = all.len();
    all.retain(|observation| bytes(&observation.run).is_none_or(|b| b <= options.most_bytes));
    let small = read - all.len();
    let (held_out, rows): (Vec<Observation>, Vec<Observation>) =
        all.into_iter().partition(|observation| is_held_out(options, observation));
    if rows.len() + held_out.len() > ROWS_MAX {
        return Err(Error::request(
            format!("{} rows are too many to fit to", rows.len() + held_out.len()),
            "choose some with --machine, --experiment or --most-bytes",
        )
        .into());
    }
    let done = fit(&rows, &held_out, &names, start)?;
    if let Some(out) = &options.out {
        let text = file(&done, &names, &rows)?;
        output.plain(&text, Some(out))?;
    }
    let text = match options.json {
        true => pretty(&done)?,
        false => text(&done, skipped.len(), small),
    };
    output.text(&text)?;
    Ok(Outcome::Done)
}

/// Largest size that a run moves, where it has one.
fn bytes(run: &Run) -> Option<u64> {
    match run {
        Run::Collective(call) => Some(call.bytes),
        Run::Nccl(call) => Some(call.bytes),
        _ => None,
    }
}

fn is_held_out(options: &Options, observation: &Observation) -> bool {
    let gpus = match &observation.run {
        Run::Collective(call) => Some(call.gpus.len()),
        Run::Nccl(call) => Some(call.gpus.len()),
        _ => None,
    };
    let machine = options.hold_out_machine.as_deref();
    machine.is_some_and(|part| observation.machine.contains(part))
        || options.hold_out_gpus.is_some() && gpus == options.hold_out_gpus
}

fn effect(out: &mut String, what: &str, effect: &Effect) {
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let _ = writeln!(
        out,
        "  {what:<12} {:>5} rows   median error {:>7} -> {:>7}   90th percentile {:>7} -> {:>7}",
        effect.rows,
        percent(effect.median_before),
        percent(effect.median_after),
        percent(effect.p90_before),
        percent(effect.p90_after)
    );
    if effect.without > 0 {
        let _ = writeln!(out, "  {:<12} {:>5} rows without a prediction", "", effect.without);
    }
}

fn text(fit: &Fit, skipped: usize, small: usize) -> String {
    let mut out = String::new();
    let width = fit.constants.iter().map(|constant| constant.name.len()).max().unwrap_or(0);
    let _ = writeln!(out, "  {:<width$}  {:>10} {:>10}  80 % interval", "", "before", "after");
    for constant in &fit.constants {
        let told = match constant.identifiable {
            true => format!(
                "{:>10} {:>10}  {}-{} {}",
                short(constant.before),
                short(constant.after),
                short(constant.low),
                short(constant.high),
                constant.unit
            ),
            false => format!(
                "{:>10} {:>10}  not identifiable from these rows ({})",
                short(constant.before),
                "as before",
                constant.unit
            ),
        };
        let _ = writeln!(out, "  {:<width$}  {told}", constant.name);
    }
    effect(&mut out, "fitted to", &fit.fitted);
    match &fit.held_out {
        Some(held_out) => effect(&mut out, "held out", held_out),
        None => out.push_str("  no row was held out: --hold-out-machine, --hold-out-gpus\n"),
    }
    if small > 0 {
        let _ = writeln!(out, "  {small} larger rows left out (--most-bytes)");
    }
    if skipped > 0 {
        let _ =
            writeln!(out, "  {skipped} rows without a prediction (`simulate check` lists them)");
    }
    out
}

/// Four digits.
pub(super) fn short(value: f64) -> String {
    if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.4}")[..5].to_owned() }
}

/// The constants that the rows tell, as a file.
fn file(fit: &Fit, names: &[Name], rows: &[Observation]) -> Result<String> {
    let mut machines: Vec<&str> = rows.iter().map(|row| row.machine.as_str()).collect();
    machines.sort_unstable();
    machines.dedup();
    let title = format!("fitted to {} rows of {}", rows.len(), machines.join(", "));
    let mut constants = Vec::new();
    for (fitted, (class, device, name)) in fit.constants.iter().zip(names) {
        if fitted.identifiable {
            let mut constant = fit.calibration.constant(*class, device, name)?.clone();
            constant.source = format!(
                "simulate calibrate, {title}; 80 % interval {} to {}",
                short(fitted.low),
                short(fitted.high)
            );
            constant.confidence = Confidence::Inferred;
            constants.push(Replaced { name: fitted.name.clone(), constant });
        }
    }
    pretty(&CalibrationFile { schema_version: 1, title, constants })
}
