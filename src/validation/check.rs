//! `simulate check`: every observation predicted or listed with the reason why not.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cause::{self, Causes, Miss};
use super::figures::{Figures, Job, UNCERTAIN, VARIANTS, simulate};
use super::left_out::{self, LeftOut};
use super::line::{self, Split};
use super::mechanism;
use super::read::{Read, observations};
use super::regret::{self, Regret};
use super::residual;
pub use super::row::{BOUND, CheckRow, Verdict};
use super::score::{self, Score};
use super::summary::{self, Group, Order, Unmatched};
use super::target::{self, Target};
use super::tolerance::Tolerances;
use crate::error::Result;
use crate::fabric::Calibration;
use crate::measurement::{Launches, Observation, Run, Skipped};
use crate::prediction::range::{constants_sigma, shifts};
use crate::prediction::regime::{Kind, Regime, Residuals, size_class};

/// What to check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Only machines whose name holds this.
    pub machine: Option<String>,
    /// Only machines of our library that this topology describes.
    pub topology: Option<String>,
    /// Only experiments whose name holds this.
    pub experiment: Option<String>,
    /// A folder of own observations or a log of a benchmark instead of those that come with the
    /// program, with the topology it was taken on (a name or a path).
    pub own: Option<(String, String)>,
    /// Constants.
    pub calibration: Calibration,
}

impl CheckOptions {
    /// Everything that comes with the program.
    pub fn new(calibration: Calibration) -> CheckOptions {
        CheckOptions { machine: None, topology: None, experiment: None, own: None, calibration }
    }
}

/// All of a check.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// Version of this structure.
    pub schema_version: u32,
    /// What a log says of its circumstances, and what is odd about it.
    pub notes: Vec<String>,
    /// Every predicted observation.
    pub rows: Vec<CheckRow>,
    /// By machine and experiment.
    pub groups: Vec<Group>,
    /// Whether algorithms come out in the right order.
    pub orders: Vec<Order>,
    /// Check rows by machine, and by machine and regime.
    pub scores: Vec<Score>,
    /// Beside fitted lines.
    pub splits: Vec<Split>,
    /// What a wrong choice costs.
    pub regrets: Vec<Regret>,
    /// Each machine by what the others say.
    pub left_out: Vec<LeftOut>,
    /// What is far off, and why.
    pub misses: Vec<Miss>,
    /// What is to be reached, and what is.
    pub targets: Vec<Target>,
    /// Share of check rows inside their 80 % range.
    pub coverage: f64,
    /// Rows without a prediction, by machine and reason.
    pub unmatched: Vec<Unmatched>,
}

impl CheckReport {
    /// The report of rows, their ranges by these residuals.
    ///
    /// # Errors
    /// When the embedded tolerances are damaged, which a test excludes.
    fn of(rows: Vec<CheckRow>, skipped: &[Skipped], residuals: &Residuals) -> Result<CheckReport> {
        let report = CheckReport {
            schema_version: 1,
            notes: Vec::new(),
            groups: Vec::new(),
            orders: Vec::new(),
            scores: Vec::new(),
            splits: Vec::new(),
            regrets: Vec::new(),
            left_out: Vec::new(),
            misses: Vec::new(),
            targets: Vec::new(),
            coverage: 0.0,
            unmatched: summary::unmatched(skipped),
            rows,
        };
        report.judged_by(residuals)
    }

    /// The same rows with ranges by other residuals.
    ///
    /// # Errors
    /// When the embedded tolerances are damaged, which a test excludes.
    pub fn judged_by(mut self, residuals: &Residuals) -> Result<CheckReport> {
        self.rows.iter_mut().for_each(|row| row.judge(residuals));
        let tolerances = Tolerances::embedded()?;
        self.groups = summary::groups(&self.rows, &tolerances);
        self.orders = summary::orders(&self.rows, &tolerances);
        self.scores = score::scores(&self.rows);
        self.splits = line::splits(&self.rows);
        self.regrets = regret::regrets(&self.rows);
        self.left_out = left_out::left_out(&self.rows);
        self.misses = cause::misses(&self.rows, &Causes::embedded()?, &tolerances);
        self.coverage = summary::coverage(self.rows.iter().filter(|row| !row.fit));
        self.targets = target::targets(&self)?;
        Ok(self)
    }

    /// What no constant explains, learned from these rows.
    pub fn residuals(&self) -> Residuals {
        residual::table(&self.rows)
    }

    /// Whether every group and order is within its tolerance; otherwise the program exits with 1.
    pub fn passes(&self) -> bool {
        self.groups.iter().all(|group| !group.misses) && self.orders.iter().all(|o| !o.misses)
    }
}

/// Reads, predicts, summarises; `progress` is told after each batch of simulations.
///
/// # Errors
/// Malformed tables, unknown topologies. A run that cannot be simulated is listed as unmatched.
pub fn run(options: &CheckOptions, progress: &(dyn Fn() + Sync)) -> Result<CheckReport> {
    let Read { observations, mut skipped, notes } = observations(options)?;
    let representatives = representatives(&observations);
    let mut jobs = BTreeSet::new();
    for (index, observation) in observations.iter().enumerate() {
        let moved = representatives.values().any(|&representative| representative == index);
        jobs.insert(job(observation, true));
        for variant in 0..if moved { VARIANTS } else { 0 } {
            jobs.insert(moved_job(observation, variant));
        }
        if observation.regime {
            jobs.insert(job(observation, false));
        }
    }
    let figures = simulate(&options.calibration, &jobs, progress)?;
    let movements = movements(&representatives, &observations, &figures);
    let mut rows = Vec::new();
    for observation in observations {
        let key = class(&observation);
        match row(&observation, &figures) {
            Ok(row) => rows.push((key, row)),
            Err(reason) => skipped.push(Skipped {
                machine: observation.machine,
                id: observation.id,
                reason: format!("cannot be run: {reason}"),
            }),
        }
    }
    let shares = mechanism::shares(&options.calibration);
    for (key, row) in &mut rows {
        let Some(Movement { shifts, slopes }) = movements.get(key) else { continue };
        row.constants_sigma = constants_sigma(shifts);
        let moved = shifts.iter().map(|shift| shift.abs());
        let shares = slopes.iter().zip(&shares).map(|(slope, known)| slope.abs() * known);
        row.reach = BOUND * moved.chain(shares).sum::<f64>();
        row.slopes.clone_from(slopes);
    }
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    Ok(CheckReport { notes, ..CheckReport::of(rows, &skipped, &Residuals::embedded()?)? })
}

fn job(observation: &Observation, regimes: bool) -> Job {
    let (topology, run) = (observation.topology.clone(), observation.run.clone());
    Job { topology, regimes, variant: 0, quick: false, run }
}

/// The run with one group of constants moved, where the max-min model says how the figure follows.
fn moved_job(observation: &Observation, variant: usize) -> Job {
    let quick = matches!(observation.run, Run::Copies(_) | Run::Collective(_) | Run::Nccl(_));
    Job { variant, quick, ..job(observation, true) }
}

/// Rows that share one uncertainty: machine, experiment, figure, and for collectives algorithm,
/// protocol and a class of size.
type Class = (String, String, String);

fn class(observation: &Observation) -> Class {
    let kind = match &observation.run {
        Run::Collective(call) => {
            format!("{} {} {}", call.algorithm, call.protocol.name(), size_class(call.bytes))
        }
        Run::Nccl(call) => size_class(call.bytes).to_owned(),
        _ => format!("{}", observation.figure.min(1)),
    };
    (observation.machine.clone(), observation.experiment.clone(), kind)
}

/// The row of each class for which the constants are moved: the first, which is a small one.
fn representatives(observations: &[Observation]) -> BTreeMap<Class, usize> {
    let mut first = BTreeMap::new();
    for (index, observation) in observations.iter().enumerate() {
        first.entry(class(observation)).or_insert(index);
    }
    first
}

fn figure(
    observation: &Observation,
    figures: &Figures,
    regimes: bool,
) -> std::result::Result<f64, String> {
    let found = figures.get(&job(observation, regimes));
    let values = found.ok_or_else(|| "not simulated".to_owned())?.as_ref().map_err(Clone::clone)?;
    match values.figures.get(observation.figure) {
        Some(value) if value.is_finite() && *value > 0.0 => Ok(*value),
        Some(value) => Err(format!("the figure came out as {value}")),
        None => Err("no such figure".to_owned()),
    }
}

/// What kind of figure it is; one of NCCL whose version or launch is assumed is of a kind of its own.
fn regime(observation: &Observation, figures: &Figures) -> std::result::Result<Regime, String> {
    let found = figures.get(&job(observation, true)).ok_or("not simulated")?;
    let regime = found.as_ref().map_err(Clone::clone)?.regime;
    let in_turn = match &observation.run {
        Run::Nccl(call) => call.launches != Launches::AtOnce,
        Run::Collective(call) => call.launches != Launches::AtOnce,
        _ => false,
    };
    let assumed = in_turn || observation.note.contains("assumed");
    Ok(match regime.kind {
        Kind::Nccl if assumed => Regime { kind: Kind::NcclAssumed, ..regime },
        _ => regime,
    })
}

/// The row with its prediction, the range still to be filled in.
fn row(observation: &Observation, figures: &Figures) -> std::result::Result<CheckRow, String> {
    let predicted = figure(observation, figures, true)?;
    let without_regimes =
        if observation.regime { Some(figure(observation, figures, false)?) } else { None };
    Ok(CheckRow {
        machine: observation.machine.clone(),
        topology: observation.topology.clone(),
        id: observation.id.clone(),
        experiment: observation.experiment.clone(),
        unit: observation.unit,
        measured: observation.measured,
        repetitions: observation.rows,
        predicted,
        low: predicted,
        high: predicted,
        error: predicted / observation.measured - 1.0,
        without_regimes,
        fit: observation.fit,
        verdict: Verdict::OutOfRange,
        nearest: None,
        condition: observation.condition.clone(),
        note: observation.note.clone(),
        regime: regime(observation, figures)?,
        constants_sigma: 0.0,
        reach: 0.0,
        slopes: Vec::new(),
        noise: observation.noise,
        run: observation.run.clone(),
    })
}

/// How the figures of a class follow constants.
struct Movement {
    /// Each group by one standard deviation: of logarithms.
    shifts: Vec<f64>,
    /// Each mechanism, a unit of slowness.
    slopes: Vec<f64>,
}

/// That of each class, from its representative.
fn movements(
    representatives: &BTreeMap<Class, usize>,
    observations: &[Observation],
    figures: &Figures,
) -> BTreeMap<Class, Movement> {
    let mut movements = BTreeMap::new();
    for (class, &index) in representatives {
        let observation = &observations[index];
        let value = |variant| {
            let values = figures.get(&moved_job(observation, variant))?.as_ref().ok()?;
            values.figures.get(observation.figure).copied()
        };
        let Some(nominal) = value(0) else { continue };
        let shifts = shifts(nominal, (1..UNCERTAIN).filter_map(value));
        let slopes = mechanism::slopes(nominal, (UNCERTAIN..VARIANTS).map(value));
        movements.insert(class.clone(), Movement { shifts, slopes });
    }
    movements
}
