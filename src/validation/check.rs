//! `simulate check`: every observation predicted or listed with the reason why not.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::Serialize;

use super::experiment::Machine;
use super::predict::{self, Call};
use super::summary::{self, Group, Order, Unmatched};
use super::tolerance::Tolerances;
use crate::error::Result;
use crate::fabric::{Calibration, CompileOptions, UncertaintyGroup};
use crate::input;
use crate::measurement::{self, Observation, Run, Skipped, library};
use crate::prediction::Range;
use crate::prediction::range::{RESIDUAL, shifts, sigma};
use crate::topology::Topology;

/// What to check.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// Only machines whose name holds this.
    pub machine: Option<String>,
    /// Only experiments whose name holds this.
    pub experiment: Option<String>,
    /// A folder of own observations instead of those that come with the program, with the topology
    /// it was taken on (a name or a path).
    pub own: Option<(String, String)>,
    /// Constants.
    pub calibration: Calibration,
}

impl CheckOptions {
    /// Everything that comes with the program.
    pub fn new(calibration: Calibration) -> CheckOptions {
        CheckOptions { machine: None, experiment: None, own: None, calibration }
    }
}

/// Whether a measured value lies in the predicted range.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does.
    InRange,
    /// It does not.
    OutOfRange,
}

/// One observation, predicted.
#[derive(Clone, Debug, Serialize)]
pub struct CheckRow {
    /// Folder of `measured/`.
    pub machine: String,
    /// Topology used.
    pub topology: String,
    /// File, line and a short text.
    pub id: String,
    /// Summarised together.
    pub experiment: String,
    /// Of the values.
    pub unit: &'static str,
    /// Measured, the median of `repetitions` rows.
    pub measured: f64,
    /// Rows of the file.
    pub repetitions: u32,
    /// Predicted.
    pub predicted: f64,
    /// Lower end of the 80 % range.
    pub low: f64,
    /// Upper end of the 80 % range.
    pub high: f64,
    /// predicted / measured - 1.
    pub error: f64,
    /// Predicted without the declared regimes, where a regime was read from this row.
    pub without_regimes: Option<f64>,
    /// Constants were fitted to it.
    pub fit: bool,
    /// Whether the measured value is in the range.
    pub verdict: Verdict,
    /// Environment as the source tells it.
    pub condition: String,
    /// What was assumed.
    pub note: String,
    /// What ran.
    #[serde(skip)]
    pub run: Run,
}

/// All of a check.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// Version of this structure.
    pub schema_version: u32,
    /// Every predicted observation.
    pub rows: Vec<CheckRow>,
    /// By machine and experiment.
    pub groups: Vec<Group>,
    /// Whether algorithms come out in the right order.
    pub orders: Vec<Order>,
    /// Share of check rows inside their 80 % range.
    pub coverage: f64,
    /// Rows without a prediction, by machine and reason.
    pub unmatched: Vec<Unmatched>,
}

impl CheckReport {
    /// Whether every group and order is within its tolerance; otherwise the program exits with 1.
    pub fn passes(&self) -> bool {
        self.groups.iter().all(|group| !group.misses) && self.orders.iter().all(|o| !o.misses)
    }
}

/// Nominal constants and those with one group of them moved.
const VARIANTS: usize = 1 + UncertaintyGroup::ALL.len();

/// What is simulated once however many rows ask for it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Job {
    topology: String,
    regimes: bool,
    variant: usize,
    run: Run,
}

type Figures = BTreeMap<Job, std::result::Result<Vec<f64>, String>>;

/// Reads, predicts, summarises.
///
/// # Errors
/// Malformed tables, unknown topologies. A run that cannot be simulated is listed as unmatched.
pub fn run(options: &CheckOptions) -> Result<CheckReport> {
    let (observations, mut skipped) = observations(options)?;
    let representatives = representatives(&observations);
    let mut jobs = BTreeSet::new();
    for (index, observation) in observations.iter().enumerate() {
        let moved = representatives.values().any(|&representative| representative == index);
        for variant in 0..if moved { VARIANTS } else { 1 } {
            jobs.insert(job(observation, true, variant));
        }
        if observation.regime {
            jobs.insert(job(observation, false, 0));
        }
    }
    let figures = simulate(options, jobs)?;
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
    let sigmas = sigmas(&representatives, &rows, &figures);
    let rows: Vec<CheckRow> = rows
        .into_iter()
        .map(|(key, mut row)| {
            let sigma = sigmas.get(&key).copied().unwrap_or(RESIDUAL);
            let range = Range::around(row.predicted, sigma);
            (row.low, row.high) = (range.low, range.high);
            let inside = (range.low..=range.high).contains(&row.measured);
            row.verdict = if inside { Verdict::InRange } else { Verdict::OutOfRange };
            row
        })
        .collect();
    let tolerances = Tolerances::embedded()?;
    Ok(CheckReport {
        schema_version: 1,
        groups: summary::groups(&rows, &tolerances),
        orders: summary::orders(&rows, &tolerances),
        coverage: summary::coverage(rows.iter().filter(|row| !row.fit)),
        unmatched: summary::unmatched(&skipped),
        rows,
    })
}

fn observations(options: &CheckOptions) -> Result<(Vec<Observation>, Vec<Skipped>)> {
    let mut all = measurement::Record::default();
    match &options.own {
        Some((directory, topology)) => {
            all = measurement::read_directory(directory, topology)?;
        }
        None => {
            for machine in library::MACHINES {
                let record = measurement::read_machine(machine)?;
                all.observations.extend(record.observations);
                all.skipped.extend(record.skipped);
            }
        }
    }
    let holds = |filter: &Option<String>, name: &str| {
        filter.as_ref().is_none_or(|part| name.contains(part.as_str()))
    };
    all.observations.retain(|observation| {
        holds(&options.machine, &observation.machine)
            && holds(&options.experiment, &observation.experiment)
    });
    all.skipped.retain(|skipped| holds(&options.machine, &skipped.machine));
    Ok((all.observations, all.skipped))
}

fn job(observation: &Observation, regimes: bool, variant: usize) -> Job {
    Job { topology: observation.topology.clone(), regimes, variant, run: observation.run.clone() }
}

/// Rows that share one uncertainty: machine, experiment, figure, and for collectives algorithm,
/// protocol and a class of size.
type Class = (String, String, String);

fn class(observation: &Observation) -> Class {
    let size = |bytes: u64| match bytes {
        0..=16_384 => "small",
        16_385..=262_144 => "middle",
        _ => "large",
    };
    let kind = match &observation.run {
        Run::Collective(call) => {
            format!("{} {} {}", call.algorithm, call.protocol.name(), size(call.bytes))
        }
        Run::Nccl(call) => size(call.bytes).to_owned(),
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

fn simulate(options: &CheckOptions, jobs: BTreeSet<Job>) -> Result<Figures> {
    let mut calibrations = vec![options.calibration.clone()];
    for group in UncertaintyGroup::ALL {
        calibrations.push(options.calibration.perturbed(group, 1.0));
    }
    let mut topologies: BTreeMap<String, Topology> = BTreeMap::new();
    for job in &jobs {
        if !topologies.contains_key(&job.topology) {
            topologies.insert(job.topology.clone(), input::load_topology(&job.topology)?);
        }
    }
    let mut machines: BTreeMap<(&str, bool, usize), Machine<'_>> = BTreeMap::new();
    for job in &jobs {
        let key = (job.topology.as_str(), job.regimes, job.variant);
        if let Entry::Vacant(free) = machines.entry(key) {
            let compile = CompileOptions { regimes: job.regimes };
            let (topology, calibration) = (&topologies[key.0], &calibrations[job.variant]);
            free.insert(Machine::new(topology, calibration, compile)?);
        }
    }
    let calls: Vec<(&Job, Option<Result<Call>>)> = jobs
        .par_iter()
        .map(|job| {
            let machine = &machines[&(job.topology.as_str(), job.regimes, job.variant)];
            (job, predict::call(machine, &job.run))
        })
        .collect();
    let (batches, mut figures) = batches(calls);
    let simulated: Vec<_> = batches
        .into_par_iter()
        .with_max_len(1)
        .flat_map_iter(|(jobs, calls)| {
            let first = jobs[0];
            let machine = &machines[&(first.topology.as_str(), first.regimes, first.variant)];
            let figures = if calls.is_empty() {
                predict::figures(machine, &first.run).map(|figures| vec![figures])
            } else {
                let times = predict::collectives(machine, calls);
                times.map(|times| times.into_iter().map(|time| vec![time]).collect())
            };
            jobs.into_iter().enumerate().map(move |(index, job)| {
                let own = figures.as_ref().map(|figures| figures[index].clone());
                (job.clone(), own.map_err(ToString::to_string))
            })
        })
        .collect();
    figures.extend(simulated);
    Ok(figures)
}

/// Jobs that are run together, with their calls if they are collectives: those that are the same, or
/// large and the same but for their size, which start from one smaller call.
type Batch<'a> = (Vec<&'a Job>, Vec<Call>);

/// The batches, and the jobs whose call cannot be settled, with the reason.
fn batches(calls: Vec<(&Job, Option<Result<Call>>)>) -> (Vec<Batch<'_>>, Figures) {
    let mut batches: BTreeMap<(&str, bool, usize, String), Batch<'_>> = BTreeMap::new();
    let mut failed = Figures::new();
    for (job, call) in calls {
        let (alike, call) = match call {
            Some(Ok(call)) => (predict::alike(&call.0), Some(call)),
            Some(Err(error)) => {
                failed.insert(job.clone(), Err(error.to_string()));
                continue;
            }
            None => (format!("{:?}", job.run), None),
        };
        let key = (job.topology.as_str(), job.regimes, job.variant, alike);
        let (jobs, calls) = batches.entry(key).or_default();
        jobs.push(job);
        calls.extend(call);
    }
    (batches.into_values().collect(), failed)
}

fn figure(
    observation: &Observation,
    figures: &Figures,
    regimes: bool,
) -> std::result::Result<f64, String> {
    let found = figures.get(&job(observation, regimes, 0));
    let values = found.ok_or_else(|| "not simulated".to_owned())?.as_ref().map_err(Clone::clone)?;
    match values.get(observation.figure) {
        Some(value) if value.is_finite() && *value > 0.0 => Ok(*value),
        Some(value) => Err(format!("the figure came out as {value}")),
        None => Err("no such figure".to_owned()),
    }
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
        condition: observation.condition.clone(),
        note: observation.note.clone(),
        run: observation.run.clone(),
    })
}

/// Relative standard deviation of each class, from its representative.
fn sigmas(
    representatives: &BTreeMap<Class, usize>,
    rows: &[(Class, CheckRow)],
    figures: &Figures,
) -> BTreeMap<Class, f64> {
    let mut sigmas = BTreeMap::new();
    for class in representatives.keys() {
        let Some((_, row)) = rows.iter().find(|(of, _)| of == class) else { continue };
        let values = |variant| {
            let (topology, run) = (row.topology.clone(), row.run.clone());
            figures.get(&Job { topology, regimes: true, variant, run })?.as_ref().ok()
        };
        let Some(nominal) = values(0) else { continue };
        // The figure of the row is the one whose nominal value it has.
        let index = nominal.iter().position(|value| *value == row.predicted).unwrap_or(0);
        let moved = (1..VARIANTS).filter_map(values).map(|values| values[index]);
        sigmas.insert(class.clone(), sigma(&shifts(nominal[index], moved)));
    }
    sigmas
}
