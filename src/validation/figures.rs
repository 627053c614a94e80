//! Every run that a check needs, once however many rows ask for it.

use std::cmp::Reverse;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::experiment::Machine;
use super::mechanism::{self, MECHANISMS};
use super::nccl::Setups;
use super::predict::{self, Call};
use crate::engine::Fidelity;
use crate::error::Result;
use crate::fabric::{Calibration, CompileOptions, UncertaintyGroup};
use crate::input;
use crate::measurement::{Run, library};
use crate::prediction::regime::Regime;
use crate::topology::Topology;

/// Nominal constants and those with one group of them moved by what it is uncertain.
pub(super) const UNCERTAIN: usize = 1 + UncertaintyGroup::ALL.len();
/// These, and those with one mechanism moved.
pub(super) const VARIANTS: usize = UNCERTAIN + MECHANISMS.len();

/// Something to run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    /// Name or path.
    pub(super) topology: String,
    /// With its declared regimes.
    pub(super) regimes: bool,
    /// Which constants: 0 the nominal ones, then those with one group moved, then those with one
    /// mechanism moved.
    pub(super) variant: usize,
    /// A single call by the max-min model, to see how figures follow the constants.
    pub(super) quick: bool,
    /// What runs.
    pub(super) run: Run,
}

/// What came of a job.
#[derive(Clone)]
pub(super) struct Done {
    /// Numbered as [`Run`] says.
    pub(super) figures: Vec<f64>,
    /// What kind of figures they are.
    pub(super) regime: Regime,
}

/// What came of each job, or why nothing did.
pub(super) type Figures = BTreeMap<Job, std::result::Result<Done, String>>;

/// Which machine: topology, with its regimes, constants, and by the max-min model.
type Which<'a> = (&'a str, bool, usize, bool);
/// Machines compiled with and without regimes, nominal and moved, for either model.
type Machines<'a> = BTreeMap<Which<'a>, Machine<'a>>;

impl Job {
    fn machine(&self) -> Which<'_> {
        (&self.topology, self.regimes, self.variant, self.quick)
    }
}

/// The topology of this name: of `measured/`, built in, or a file.
fn topology(name: &str) -> Result<Topology> {
    match library::own_topology(name) {
        Some(text) => input::topology_json::parse(&format!("{name}.json"), text),
        None => input::load_topology(name),
    }
}

/// Runs all jobs.
///
/// # Errors
/// Unknown topologies. A job that cannot be run has its reason in place of figures.
pub(super) fn simulate(
    calibration: &Calibration,
    jobs: &BTreeSet<Job>,
    progress: &(dyn Fn() + Sync),
) -> Result<Figures> {
    let mut calibrations = vec![calibration.clone()];
    for group in UncertaintyGroup::ALL {
        calibrations.push(calibration.perturbed(group, 1.0));
    }
    calibrations.extend((0..MECHANISMS.len()).map(|index| mechanism::moved(calibration, index)));
    let mut topologies: BTreeMap<String, Topology> = BTreeMap::new();
    for job in jobs {
        if !topologies.contains_key(&job.topology) {
            topologies.insert(job.topology.clone(), topology(&job.topology)?);
        }
    }
    let mut machines = Machines::new();
    for job in jobs {
        if let Entry::Vacant(free) = machines.entry(job.machine()) {
            let compile = CompileOptions { regimes: job.regimes };
            let (topology, calibration) = (&topologies[&job.topology], &calibrations[job.variant]);
            let fidelity = if job.quick { Fidelity::MaxMin } else { Fidelity::Packet };
            free.insert(Machine::new(topology, calibration, compile)?.with(fidelity));
        }
    }
    let setups = Setups::of(jobs, &topologies, calibration);
    let calls: Vec<(&Job, Option<Result<Call>>)> = jobs
        .par_iter()
        .map(|job| {
            let call = predict::call(&machines[&job.machine()], job, &setups);
            let quick = |call: Call| if job.quick { predict::quick(call) } else { call };
            (job, call.map(|call| call.map(quick)))
        })
        .collect();
    let (mut batches, mut figures) = batches(&machines, calls);
    // The longest first, so that no thread is left alone with one at the end.
    batches.sort_by_key(|(jobs, calls)| Reverse(predict::work(&jobs[0].run, calls)));
    let simulated: Vec<_> = batches
        .into_par_iter()
        .with_max_len(1)
        .flat_map_iter(|(jobs, calls)| {
            let figures = run(&machines[&jobs[0].machine()], jobs, calls);
            progress();
            figures
        })
        .collect();
    figures.extend(simulated);
    Ok(figures)
}

/// The figures of a batch.
fn run(
    machine: &Machine<'_>,
    jobs: Vec<&Job>,
    calls: Vec<Call>,
) -> Vec<(Job, std::result::Result<Done, String>)> {
    let regimes: Vec<Regime> = match calls.is_empty() {
        true => jobs.iter().map(|job| predict::regime(machine, &job.run)).collect(),
        false => calls.iter().map(|call| predict::regime_of_call(machine, &call.0)).collect(),
    };
    let figures = if calls.is_empty() {
        predict::figures(machine, &jobs[0].run).map(|figures| vec![figures; jobs.len()])
    } else {
        let times = predict::collectives(machine, calls);
        times.map(|times| times.into_iter().map(|time| vec![time]).collect())
    };
    let each = jobs.into_iter().enumerate().map(|(index, job)| {
        let own = figures.as_ref().map(|figures| figures[index].clone());
        let own = own.map(|figures| Done { figures, regime: regimes[index] });
        (job.clone(), own.map_err(ToString::to_string))
    });
    each.collect()
}

/// Jobs that are run together, with their calls if they are collectives: those that are the same
/// question, or large and the same but for their size, which start from one smaller call.
type Batch<'a> = (Vec<&'a Job>, Vec<Call>);

/// The batches, and the jobs whose call cannot be settled, with the reason.
fn batches<'a>(
    machines: &Machines<'_>,
    calls: Vec<(&'a Job, Option<Result<Call>>)>,
) -> (Vec<Batch<'a>>, Figures) {
    let mut batches: BTreeMap<(Which<'_>, String), Batch<'_>> = BTreeMap::new();
    let mut failed = Figures::new();
    for (job, call) in calls {
        let (alike, call) = match call {
            Some(Ok(call)) => (predict::alike(&call.0), Some(call)),
            Some(Err(error)) => {
                failed.insert(job.clone(), Err(error.to_string()));
                continue;
            }
            None => (predict::likeness(&machines[&job.machine()], &job.run), None),
        };
        let (jobs, calls) = batches.entry((job.machine(), alike)).or_default();
        jobs.push(job);
        calls.extend(call);
    }
    (batches.into_values().collect(), failed)
}
