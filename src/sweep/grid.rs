//! A grid of cases: machines x edits x sizes x implementations. Case `k` is a pure function of the
//! plan, so that a run can stop anywhere, go on, and be shared out over processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::in_parallel;
use super::plan::{Plan, Prepared, Terms, parse_edits};
use crate::engine::Fidelity;
use crate::error::{Error, Problem, Result};
use crate::fabric::Calibration;
use crate::prediction::choice::protocol;
use crate::prediction::{Case, CaseOptions, Choice, InPlace, Machine};
use crate::topology::Topology;
use crate::units::{SIZE_MAX, format_thousands};
use crate::workload::{Arrival, Drawn, Scenario, Step, size_fault};

/// What is asked, as a file has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Version of this form: 1.
    pub schema_version: u32,
    /// Machines.
    pub machines: Vec<String>,
    /// Axes of edits: of each axis one list of edits at a time, `;` between them; `` for none.
    #[serde(default)]
    pub edits: Vec<Vec<String>>,
    /// The workload, whose number of ranks and collective hold.
    pub scenario: String,
    /// Bytes of a call; left out: those of the scenario's steps.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// Implementations, such as `ring:LL` or `one_shot_pull`.
    pub algorithms: Vec<String>,
    /// Seeds of drawn arrivals; left out: the scenario's own.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Network model: `packet`, `max_min` or `alpha_beta`.
    pub network_model: String,
    /// Without declared regimes.
    #[serde(default)]
    pub no_regimes: bool,
}

/// More cases than this are a slip of the pen.
pub const CASES_MAX: u128 = 10_000_000;

/// A grid with its machines and workload loaded.
pub struct Loaded {
    grid: Grid,
    calibration: Calibration,
    machines: Vec<Topology>,
    scenario: Scenario,
    /// Steps of the scenario, or one call of each size that the grid lists.
    sizes: usize,
    fidelity: Fidelity,
}

/// One machine with one list of edits, worked out, or why it cannot be.
pub struct Worked {
    edits: String,
    name: String,
    found: std::result::Result<Ready, String>,
}

struct Ready {
    machine: Machine,
    options: CaseOptions,
    /// By algorithm of the grid.
    cases: Vec<std::result::Result<Case, String>>,
    /// By size of the grid: a call of it, as edits of the workload make it.
    steps: Vec<Step>,
}

/// What a case came to.
struct Found {
    bytes: u64,
    /// A call of ranks that come together.
    us: f64,
    /// The calls of a step whose ranks do not.
    stay: Option<InPlace>,
}

/// Machines that a run has worked out and still needs.
pub type Pool = BTreeMap<u64, Arc<Worked>>;

impl Grid {
    /// Figures that cannot be, with the places of their file.
    pub fn faults(&self) -> Vec<Problem> {
        let sizes = self.sizes.iter().enumerate();
        sizes.filter_map(|(at, &bytes)| size_fault(bytes, format!("sizes[{at}]"))).collect()
    }

    /// Number of cases.
    ///
    /// # Errors
    /// None at all, or more than [`CASES_MAX`].
    pub fn count(&self, sizes: usize) -> Result<u64> {
        let axes = self.edits.iter().map(Vec::len);
        let seeds = self.seeds.len().max(1);
        let all =
            [self.machines.len(), sizes, seeds, self.algorithms.len()].into_iter().chain(axes);
        let count = all.fold(1_u128, |count, axis| count.saturating_mul(axis as u128));
        if count == 0 {
            return Err(Error::request(
                "the grid has no case: one of its axes is empty",
                "each of machines, algorithms and the axes of edits needs an entry; \"\" is no edit",
            ));
        }
        if count > CASES_MAX {
            let (count, most) = (count.min(u64::MAX.into()) as u64, CASES_MAX as u64);
            return Err(Error::request(
                format!(
                    "the grid has {} cases, more than {}",
                    format_thousands(count),
                    format_thousands(most)
                ),
                "take fewer sizes, or one axis at a time",
            ));
        }
        Ok(count as u64)
    }
}

impl Loaded {
    /// With its machines and its workload, in the order of the grid.
    ///
    /// # Errors
    /// A network model that there is not, edits that are none, an empty or too large grid.
    pub fn new(
        grid: Grid,
        machines: Vec<Topology>,
        scenario: Scenario,
        calibration: Calibration,
    ) -> Result<Loaded> {
        let fidelity = Fidelity::named(&grid.network_model)?;
        for texts in &grid.edits {
            texts
                .iter()
                .try_for_each(|text| parse_edits(std::slice::from_ref(text)).map(|_| ()))?;
        }
        let drawn = |step: &Step| matches!(step.arrival, Some(Arrival::Drawn(_)));
        if !grid.seeds.is_empty() && !scenario.steps.iter().all(drawn) {
            return Err(Error::request(
                format!("seeds draw arrivals, and scenario {} has none drawn", scenario.name),
                "leave `seeds` out, or give its steps an arrival (docs/scenario-files.md)",
            ));
        }
        let sizes = match grid.sizes.is_empty() {
            true => scenario.steps.len(),
            false => grid.sizes.len(),
        };
        grid.count(sizes)?;
        Ok(Loaded { grid, calibration, machines, scenario, sizes, fidelity })
    }

    /// Number of cases.
    ///
    /// # Errors
    /// As [`Grid::count`].
    pub fn count(&self) -> Result<u64> {
        self.grid.count(self.sizes)
    }

    /// Cases of one machine with one list of edits: they follow each other.
    fn of_one_machine(&self) -> u64 {
        (self.sizes * self.grid.seeds.len().max(1) * self.grid.algorithms.len()) as u64
    }

    /// Works out the machines that these cases need, keeping those of `pool` that they share.
    ///
    /// # Errors
    /// None: a machine that cannot be is one whose cases fail.
    pub fn pool(&self, cases: std::ops::Range<u64>, pool: Pool) -> Result<Pool> {
        let each = self.of_one_machine();
        let (first, last) = (cases.start / each, cases.end.saturating_sub(1) / each);
        let wanted: Vec<u64> = (first..=last).collect();
        let one = |&at: &u64| {
            let kept = pool.get(&at).cloned();
            Ok((at, kept.unwrap_or_else(|| Arc::new(self.work_out(at)))))
        };
        Ok(in_parallel(&wanted, one)?.into_iter().collect())
    }

    fn work_out(&self, at: u64) -> Worked {
        let mut rest = at;
        let mut take = |axis: usize| {
            let digit = rest % axis as u64;
            rest /= axis as u64;
            digit as usize
        };
        let chosen = self.grid.edits.iter().rev().map(|axis| axis[take(axis.len())].clone());
        let mut chosen: Vec<String> = chosen.collect();
        chosen.reverse();
        let topology = &self.machines[take(self.machines.len())];
        chosen.retain(|text| !text.trim().is_empty());
        let found = self.ready(topology, &chosen).map_err(|error| error.to_string());
        Worked { edits: chosen.join("; "), name: topology.name.clone(), found }
    }

    fn ready(&self, topology: &Topology, edits: &[String]) -> Result<Ready> {
        let plan = Plan {
            topology: topology.clone(),
            scenario: self.scenario.clone(),
            choice: Choice::default(),
        };
        let (plan, _) = plan.edited(&parse_edits(edits)?, &self.calibration)?;
        let regimes = !self.grid.no_regimes;
        let terms = Terms { regimes, ranges: false, fidelity: self.fidelity };
        let Prepared { machine, scenario, choice, options, .. } =
            plan.prepared(&self.calibration, terms)?;
        let collective = scenario.steps[0].collective;
        let case = |name: &String| {
            let (name, wanted) = match name.split_once(':') {
                Some((name, wanted)) => (name, Some(protocol(wanted)?)),
                None => (name.as_str(), None),
            };
            let algorithms = vec![name.to_owned()];
            let protocol = wanted.or(choice.protocol);
            let one = Choice { algorithms, protocol, ..choice.clone() };
            let mut found = one.cases(collective, &machine, &options.gpus)?;
            Ok(found.swap_remove(0))
        };
        let cases = self
            .grid
            .algorithms
            .iter()
            .map(|name| case(name).map_err(|error: Error| error.to_string()));
        let cases = cases.collect();
        let steps = match self.grid.sizes.is_empty() {
            true => scenario.steps,
            false => {
                // Edits of the workload change the listed sizes as they change its first step.
                let of = |scenario: &Scenario| u128::from(scenario.steps[0].bytes);
                let scaled = |size: &u64| u128::from(*size) * of(&scenario) / of(&self.scenario);
                let bytes = |size| scaled(size).clamp(1, u128::from(SIZE_MAX)) as u64;
                let step = |size| Step { bytes: bytes(size), ..scenario.steps[0].clone() };
                self.grid.sizes.iter().map(step).collect()
            }
        };
        Ok(Ready { machine, options, cases, steps })
    }

    /// The row of a case, a line of JSON; a case that fails is a row with its error.
    pub fn row(&self, case: u64, pool: &Pool) -> String {
        let each = self.of_one_machine();
        let (at, within) = (case / each, (case % each) as usize);
        let (rest, algorithm) =
            (within / self.grid.algorithms.len(), within % self.grid.algorithms.len());
        let seeds = self.grid.seeds.len().max(1);
        let (size, seed) = (rest / seeds, self.grid.seeds.get(rest % seeds).copied());
        let name = &self.grid.algorithms[algorithm];
        let mut row = json!({"case": case, "algorithm": name, "size": size});
        let Some(worked) = pool.get(&at) else {
            return row.to_string();
        };
        row["machine"] = json!(worked.name);
        row["edits"] = json!(worked.edits);
        if let Some(seed) = seed {
            row["seed"] = json!(seed);
        }
        let found = match &worked.found {
            Err(error) => Err(error.clone()),
            Ok(ready) => ready.found(algorithm, size, seed),
        };
        match found {
            Ok(Found { bytes, us, stay }) => {
                row["bytes"] = json!(bytes);
                row["us"] = json!(us);
                if let Some(stay) = stay {
                    row["in_place_us"] = json!(stay.in_place_us);
                    row["waiting_us"] = json!(stay.waiting_us);
                }
            }
            Err(error) => row["error"] = json!(error),
        }
        row.to_string()
    }
}

impl Ready {
    fn found(
        &self,
        algorithm: usize,
        size: usize,
        seed: Option<u64>,
    ) -> std::result::Result<Found, String> {
        let case = self.cases[algorithm].as_ref().map_err(Clone::clone)?;
        self.run(case, &self.steps[size], seed).map_err(|error| error.to_string())
    }

    fn run(&self, case: &Case, step: &Step, seed: Option<u64>) -> Result<Found> {
        let us = case.nominal_us(&self.machine, step.bytes, &self.options)?;
        let arrival = step.arrival.as_ref().map(|arrival| match (arrival, seed) {
            (Arrival::Drawn(drawn), Some(seed)) => Arrival::Drawn(Drawn { seed, ..drawn.clone() }),
            _ => arrival.clone(),
        });
        let stay = |arrival| InPlace::of(case, &self.machine, step, arrival, &self.options);
        Ok(Found { bytes: step.bytes, us, stay: arrival.as_ref().map(stay).transpose()? })
    }
}

/// The cases of shard `index` of `count`: runs of equal length, in order.
pub fn shard(cases: u64, index: u64, count: u64) -> std::ops::Range<u64> {
    let at = |index: u64| (u128::from(cases) * u128::from(index) / u128::from(count)) as u64;
    at(index)..at(index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_follow_each_other_and_miss_nothing() {
        for (cases, count) in [(10, 3), (7, 7), (3, 8), (9_999_999, 64)] {
            let shards: Vec<_> = (0..count).map(|index| shard(cases, index, count)).collect();
            assert_eq!((shards[0].start, shards[shards.len() - 1].end), (0, cases));
            assert!(shards.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
