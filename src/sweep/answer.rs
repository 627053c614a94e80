//! The answer to "what does this scenario cost on this machine": all cases of the first screen.

use serde::Serialize;

use super::environments::stages_for_distance;
use super::in_parallel;
use super::nearby::{NearbyCheck, NearbyFigure};
use crate::error::Result;
use crate::fabric::bound::Bound;
use crate::prediction::nccl::taken;
use crate::prediction::throughput::chance_faster;
use crate::prediction::{Case, CaseOptions, CasePrediction, Exchange, InPlace, Machine, Waterfall};
use crate::selection::nccl::Setup;
use crate::selection::nccl::setup::Plan;
use crate::topology::Settings;
use crate::workload::{Collective, Scenario, Step};

/// What is asked.
pub struct Question<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The calls.
    pub scenario: &'a Scenario,
    /// How they may be done.
    pub cases: &'a [Case],
    /// Choices for all of them.
    pub options: &'a CaseOptions,
    /// NCCL on these GPUs, where it can be said.
    pub nccl: Option<&'a Setup>,
    /// Other machines of the same GPUs, by a short name.
    pub wirings: &'a [(String, Machine)],
    /// What was measured on a machine like this.
    pub nearby: &'a [NearbyFigure],
}

/// All predictions.
pub struct Answer {
    /// By step.
    pub steps: Vec<StepAnswer>,
    /// `[case][step]`.
    pub rows: Vec<Vec<CasePrediction>>,
    /// `[case][step]` for ranks that do not come together, where the step says so.
    pub in_place: Vec<Vec<Option<InPlace>>>,
    /// What NCCL takes at each step, where it can be said.
    pub picks: Vec<Pick>,
    /// Of the one-stage pull at the last step.
    pub waterfall: Option<Waterfall>,
    /// One-stage in place of the ring, for each rate reported with the ring.
    pub exchanges: Vec<Exchange>,
    /// The last step on other wirings.
    pub wirings: Vec<Wiring>,
    /// Measured against predicted.
    pub nearby: Vec<NearbyCheck>,
}

/// What holds for a step whatever the algorithm.
pub struct StepAnswer {
    /// The step.
    pub step: Step,
    /// What the wires allow.
    pub bound: Bound,
    /// Index of the fastest case.
    pub best: usize,
    /// The chance that it is faster than the second.
    pub sure: f64,
}

/// What NCCL takes for a step.
#[derive(Clone, Debug, Serialize)]
pub struct Pick {
    /// Algorithm, protocol, channels, threads, and what NCCL believes it to take.
    pub plan: Plan,
    /// What it takes on the wires; `None` where no schedule replays it.
    pub prediction: Option<CasePrediction>,
    /// Some hop goes through host memory only since NCCL thinks the GPUs too far apart.
    pub staged: bool,
}

/// The same GPUs, wired differently.
#[derive(Clone, Debug, Serialize)]
pub struct Wiring {
    /// Short name.
    pub name: String,
    /// A step with the fastest case, ms.
    pub best_ms: f64,
    /// A step with one-stage pull, ms.
    pub one_stage_ms: f64,
}

/// Something to simulate.
enum Job<'a> {
    Case(&'a Case, &'a Step),
    Pick(&'a Setup, &'a Step),
    Wiring(&'a Machine, &'a Case, &'a Step),
    Nearby(&'a NearbyFigure),
}

enum Done {
    Case(Box<CasePrediction>, Option<InPlace>),
    Pick(Option<Box<Pick>>),
    Wiring(f64),
    Nearby(Box<NearbyCheck>),
}

/// Calls of a case on another wiring, for a comparison of the order of things.
const WIRING_CALLS: u32 = 1;
/// Calls of a measured figure: one to fill the pipeline, one to count.
const NEARBY_CALLS: u32 = 2;

impl Question<'_> {
    /// Simulates all of it.
    ///
    /// # Errors
    /// Those of the algorithms and the engine.
    pub fn answer(&self) -> Result<Answer> {
        let mut jobs: Vec<Job<'_>> = Vec::new();
        let steps = &self.scenario.steps;
        // The longest jobs first, so that no thread is left alone with one at the end.
        for case in self.cases.iter().rev() {
            jobs.extend(steps.iter().rev().map(|step| Job::Case(case, step)));
        }
        if let Some(setup) = self.nccl {
            jobs.extend(steps.iter().map(|step| Job::Pick(setup, step)));
        }
        let main: Vec<&Case> = self.cases.iter().filter(|case| !case.extra).collect();
        let last = &steps[steps.len() - 1];
        for (_, machine) in self.wirings {
            jobs.extend(main.iter().map(|case| Job::Wiring(machine, case, last)));
        }
        jobs.extend(self.nearby.iter().map(Job::Nearby));
        let done = in_parallel(&jobs, |job| self.run(job))?;
        let (mut rows, mut wiring_us, mut nearby) = (Vec::new(), Vec::new(), Vec::new());
        let (mut picks, mut in_place) = (Vec::new(), Vec::new());
        for result in done {
            match result {
                Done::Case(prediction, stay) => {
                    rows.push(*prediction);
                    in_place.push(stay);
                }
                Done::Pick(pick) => picks.extend(pick.map(|pick| *pick)),
                Done::Wiring(us) => wiring_us.push(us),
                Done::Nearby(check) => nearby.push(*check),
            }
        }
        rows.reverse();
        in_place.reverse();
        let rows: Vec<Vec<CasePrediction>> =
            rows.chunks(steps.len()).map(<[CasePrediction]>::to_vec).collect();
        let pull = self.index_of("one_shot_pull", "Simple");
        let waterfall = pull
            .map(|row| {
                let prediction = &rows[row][steps.len() - 1];
                Waterfall::of(&self.cases[row], self.machine, self.options, prediction)
            })
            .transpose()?;
        Ok(Answer {
            steps: self.steps(&rows),
            waterfall,
            exchanges: self.exchanges(&rows),
            wirings: self.wirings(&wiring_us, &main, last),
            nearby,
            picks,
            in_place: in_place.chunks(steps.len()).map(<[_]>::to_vec).collect(),
            rows,
        })
    }

    fn run(&self, job: &Job<'_>) -> Result<Done> {
        match *job {
            Job::Case(case, step) => {
                let mut options = self.options.clone();
                options.every_call = options.every_call.map(|_| step.calls);
                let prediction = case.predict(self.machine, step.bytes, &options)?;
                let arrival = step.arrival.as_ref();
                let stay = arrival
                    .map(|arrival| InPlace::of(case, self.machine, step, arrival, &options))
                    .transpose()?;
                Ok(Done::Case(Box::new(prediction), stay))
            }
            Job::Pick(setup, step) => Ok(Done::Pick(self.pick(setup, step)?.map(Box::new))),
            Job::Wiring(machine, case, step) => {
                let options = CaseOptions {
                    calls_max: Some(WIRING_CALLS),
                    every_call: None,
                    ..self.options.clone()
                };
                Ok(Done::Wiring(case.nominal_us(machine, step.bytes, &options)?))
            }
            Job::Nearby(figure) => {
                let options = CaseOptions {
                    every_call: None,
                    blocks: None,
                    calls_max: Some(NEARBY_CALLS),
                    beside: Vec::new(),
                    ..self.options.clone()
                };
                Ok(Done::Nearby(Box::new(figure.check(self.machine, &options)?)))
            }
        }
    }

    /// What NCCL takes for a step; nothing for sends and receives, which no tuner sees.
    fn pick(&self, setup: &Setup, step: &Step) -> Result<Option<Pick>> {
        if step.collective == Collective::AllToAll {
            return Ok(None);
        }
        let options = CaseOptions { every_call: None, ..self.options.clone() };
        let taken = taken(setup, step.collective, step.bytes, &options)?;
        let prediction = match taken.case {
            Ok((case, options)) => Some(case.predict(self.machine, step.bytes, &options)?),
            Err(_) => None,
        };
        Ok(Some(Pick { plan: taken.plan, prediction, staged: stages_for_distance(setup) }))
    }

    /// The row of an algorithm and protocol among those of the first screen.
    fn index_of(&self, algorithm: &str, protocol: &str) -> Option<usize> {
        self.cases.iter().position(|case| {
            case.algorithm.name == algorithm && case.protocol.name() == protocol && !case.extra
        })
    }

    fn steps(&self, rows: &[Vec<CasePrediction>]) -> Vec<StepAnswer> {
        let gpus: Vec<usize> = self.options.gpus.iter().map(|&gpu| gpu as usize).collect();
        let fabric = &self.machine.nominal.fabric;
        let answer = |(index, step): (usize, &Step)| {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            let of = |row: usize| &rows[row][index];
            let time = |row: usize| of(row).time_us.value;
            order.sort_by(|&a, &b| time(a).total_cmp(&time(b)));
            let sure = match order[..] {
                [best, second, ..] => chance_faster(of(best), of(second)),
                _ => 1.0,
            };
            let bound = fabric.bound(step.collective, &gpus, step.bytes);
            StepAnswer { step: step.clone(), bound, best: order[0], sure }
        };
        self.scenario.steps.iter().enumerate().map(answer).collect()
    }

    /// Whether what was reported of the scenario was reported of such a machine.
    pub fn comparable(&self) -> bool {
        self.scenario.reported_on.as_ref().is_some_and(|on| {
            let own_order = self.options.gpus.windows(2).all(|pair| pair[0] < pair[1]);
            on.gpu_model == self.machine.gpu_model
                && on.gpus as usize == self.options.gpus.len()
                && self.machine.topology.settings == Settings::default()
                && own_order
        })
    }

    fn exchanges(&self, rows: &[Vec<CasePrediction>]) -> Vec<Exchange> {
        let (Some(ring), Some(pull)) =
            (self.index_of("ring", "LL"), self.index_of("one_shot_pull", "Simple"))
        else {
            return Vec::new();
        };
        if !self.comparable() {
            return Vec::new();
        }
        let reported = self.scenario.throughputs().filter(|told| told.algorithm == "ring");
        reported
            .filter_map(|told| {
                let index = self.scenario.steps.iter().position(|step| step.name == told.step)?;
                let calls = self.scenario.steps[index].calls;
                let (ring, pull) = (&rows[ring][index], &rows[pull][index]);
                Some(Exchange::of(told.tok_per_s, calls, ring, pull))
            })
            .collect()
    }

    fn wirings(&self, us: &[f64], main: &[&Case], step: &Step) -> Vec<Wiring> {
        let Some(pull) = main.iter().position(|case| case.algorithm.name == "one_shot_pull") else {
            return Vec::new();
        };
        let ms = |us: f64| us * f64::from(step.calls) / 1e3;
        let each = self.wirings.iter().zip(us.chunks(main.len().max(1)));
        each.map(|((name, _), us)| Wiring {
            name: name.clone(),
            best_ms: ms(us.iter().copied().fold(f64::INFINITY, f64::min)),
            one_stage_ms: ms(us[pull]),
        })
        .collect()
    }
}
