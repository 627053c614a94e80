//! What NCCL would choose at each size, what that gives on the wires, and what would be best.

use serde::Serialize;

use super::in_parallel;
use crate::algorithm::nccl::Collective as NcclCollective;
use crate::error::Result;
use crate::fabric::bound::Bound;
use crate::prediction::nccl::{case_of, tuned};
use crate::prediction::throughput::chance_faster;
use crate::prediction::{Case, CaseOptions, CasePrediction, Machine};
use crate::selection::nccl::Setup;
use crate::selection::nccl::plugin::{self, Pick, Rule};
use crate::selection::nccl::setup::{Plan, Price};
use crate::workload::Collective;

/// What is asked.
pub struct Choosing<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// NCCL on it.
    pub setup: &'a Setup,
    /// What the calls compute.
    pub collective: Collective,
    /// What else could do them.
    pub others: &'a [Case],
    /// GPUs, and how to simulate.
    pub options: &'a CaseOptions,
}

/// One size.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    /// Size as nccl-tests counts it.
    pub bytes: u64,
    /// What the wires allow.
    pub bound: Bound,
    /// What NCCL takes.
    pub plan: Plan,
    /// Every algorithm and protocol of NCCL.
    pub candidates: Vec<Candidate>,
    /// Index of the one that it takes.
    pub taken: usize,
    /// Index of the fastest that a tuner plugin could make it take; `None` when none is simulated.
    pub best_of_nccl: Option<usize>,
    /// Everything else, simulated.
    pub others: Vec<CasePrediction>,
}

/// An algorithm and protocol of NCCL.
#[derive(Clone, Debug, Serialize)]
pub struct Candidate {
    /// What NCCL believes.
    #[serde(flatten)]
    pub price: Price,
    /// Channels that would carry data.
    pub channels: u32,
    /// Threads of a block.
    pub threads: u32,
    /// What the wires make of it.
    pub simulated: Option<CasePrediction>,
    /// Why it is not simulated.
    pub not_simulated: Option<String>,
}

impl Chosen {
    /// What NCCL's choice gives, us, where it is simulated.
    pub fn taken_prediction(&self) -> Option<&CasePrediction> {
        self.candidates[self.taken].simulated.as_ref()
    }

    /// The fastest of all that is simulated, NCCL's own among it.
    pub fn best(&self) -> Option<&CasePrediction> {
        let of_nccl = self.best_of_nccl.and_then(|at| self.candidates[at].simulated.as_ref());
        let all = self.others.iter().chain(of_nccl).chain(self.taken_prediction());
        all.min_by(|a, b| a.time_us.value.total_cmp(&b.time_us.value))
    }

    /// The chance that a prediction beats NCCL's choice.
    pub fn chance_of(&self, better: &CasePrediction) -> Option<f64> {
        let taken = self.taken_prediction()?;
        Some(chance_faster(better, taken))
    }
}

#[derive(Copy, Clone)]
enum Job<'a> {
    Nccl(usize, usize),
    Other(u64, &'a Case),
}

impl Choosing<'_> {
    /// Asks NCCL at every size and simulates what it could take and what else there is. `progress`
    /// is told after each simulation; [`Choosing::simulations`] says how many there will be.
    ///
    /// # Errors
    /// An all-to-all, settings that leave no algorithm, and those of the engine.
    pub fn answer(&self, sizes: &[u64], progress: &(dyn Fn() + Sync)) -> Result<Vec<Chosen>> {
        let collective = tuned(self.collective)?;
        let mut chosen = sizes
            .iter()
            .map(|&bytes| self.plan(collective, bytes))
            .collect::<Result<Vec<Chosen>>>()?;
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for (at, size) in chosen.iter().enumerate().rev() {
            // What NCCL prices is simulated, also where it is off: a reader wants to know the loss.
            let priced = |&row: &usize| size.candidates[row].price.time_us.is_some();
            let rows = (0..size.candidates.len()).filter(priced);
            jobs.extend(rows.map(|row| Job::Nccl(at, row)));
            jobs.extend(self.others.iter().map(|case| Job::Other(size.bytes, case)));
        }
        let done = in_parallel(&jobs, |job| {
            let result = self.run(&chosen, job);
            progress();
            result
        })?;
        for (job, result) in jobs.iter().zip(done) {
            match (*job, result) {
                (Job::Nccl(at, row), Ok(prediction)) => {
                    chosen[at].candidates[row].simulated = Some(prediction);
                }
                (Job::Nccl(at, row), Err(reason)) => {
                    chosen[at].candidates[row].not_simulated = Some(reason);
                }
                (Job::Other(bytes, _), Ok(prediction)) => {
                    let size = chosen.iter_mut().find(|size| size.bytes == bytes);
                    size.into_iter().for_each(|size| size.others.push(prediction.clone()));
                }
                (Job::Other(..), Err(_)) => {}
            }
        }
        for size in &mut chosen {
            size.best_of_nccl = fastest_allowed(&size.candidates);
        }
        Ok(chosen)
    }

    /// Most simulations of so many sizes.
    pub fn simulations(&self, sizes: usize) -> usize {
        let of_nccl = NcclCollective::of(self.collective).map_or(0, |collective| {
            let prices = self.setup.prices(collective, 1);
            prices.iter().filter(|price| price.time_us.is_some()).count()
        });
        sizes * (of_nccl + self.others.len())
    }

    fn plan(&self, collective: NcclCollective, bytes: u64) -> Result<Chosen> {
        let plan = self.setup.plan(collective, bytes)?;
        let candidates: Vec<Candidate> = self
            .setup
            .prices(collective, bytes)
            .into_iter()
            .map(|price| {
                let (algorithm, protocol) = (price.row.algorithm, price.row.protocol);
                let (channels, launch) = self.setup.launch(collective, algorithm, protocol, bytes);
                let threads = launch.block_threads();
                Candidate { price, channels, threads, simulated: None, not_simulated: None }
            })
            .collect();
        let taken = candidates.iter().position(|candidate| {
            let row = &candidate.price.row;
            (row.algorithm, row.protocol) == (plan.choice.algorithm, plan.choice.protocol)
        });
        let gpus: Vec<usize> = self.options.gpus.iter().map(|&gpu| gpu as usize).collect();
        let bound = self.machine.nominal.fabric.bound(self.collective, &gpus, bytes);
        Ok(Chosen {
            bytes,
            bound,
            plan,
            candidates,
            // The choice is one of the rows.
            taken: taken.unwrap_or(0),
            best_of_nccl: None,
            others: Vec::new(),
        })
    }

    /// The prediction, or why there is none.
    fn run(
        &self,
        chosen: &[Chosen],
        job: &Job<'_>,
    ) -> Result<std::result::Result<CasePrediction, String>> {
        match *job {
            Job::Nccl(at, row) => {
                let (bytes, row) = (chosen[at].bytes, &chosen[at].candidates[row].price.row);
                let (algorithm, protocol) = (row.algorithm, row.protocol);
                match case_of(self.setup, self.collective, algorithm, protocol, bytes, self.options)
                {
                    Ok((case, options)) => Ok(Ok(case.predict(self.machine, bytes, &options)?)),
                    Err(reason) => Ok(Err(reason)),
                }
            }
            Job::Other(bytes, case) => Ok(Ok(case.predict(self.machine, bytes, self.options)?)),
        }
    }
}

/// Sizes for which NCCL's own choice is written where nothing was simulated.
const OWN_SIZES: std::ops::RangeInclusive<u32> = 10..=32;

/// Rules for NCCL's tuner plugin: at the simulated sizes the fastest that it may take, above them and
/// for all other collectives its own choice, since a call that no rule fits is given one channel.
///
/// # Errors
/// When the settings leave a collective no algorithm.
pub fn tuner_rules(setup: &Setup, collective: Collective, chosen: &[Chosen]) -> Result<Vec<Rule>> {
    let ranks = setup.system.gpus.len() as u32;
    let powers: Vec<u64> = OWN_SIZES.map(|power| 1 << power).collect();
    let mut all = Vec::new();
    for (each, _) in NcclCollective::ALL {
        let simulated: &[Chosen] =
            if NcclCollective::of(collective) == Some(each) { chosen } else { &[] };
        let last = simulated.last().map_or(0, |size| size.bytes);
        let mut picks: Vec<(u64, Pick)> = Vec::new();
        for size in simulated {
            let candidate = &size.candidates[size.best_of_nccl.unwrap_or(size.taken)];
            let row = &candidate.price.row;
            picks.push((size.bytes, (row.algorithm, row.protocol, candidate.channels)));
        }
        for &bytes in powers.iter().filter(|&&bytes| bytes > last) {
            let plan = setup.plan(each, bytes)?;
            let pick = (plan.choice.algorithm, plan.choice.protocol, plan.channels);
            picks.push((bytes, pick));
        }
        let sizes: Vec<u64> = picks.iter().map(|pick| pick.0).collect();
        let pick = |bytes| picks.iter().find(|pick| pick.0 == bytes).map(|pick| pick.1);
        all.extend(plugin::rules(each, 1, ranks, &sizes, pick));
    }
    Ok(all)
}

fn fastest_allowed(candidates: &[Candidate]) -> Option<usize> {
    let time = |at: &usize| candidates[*at].simulated.as_ref().map(|found| found.time_us.value);
    let allowed = |at: &usize| candidates[*at].price.row.off.is_none() && time(at).is_some();
    (0..candidates.len()).filter(allowed).min_by(|a, b| {
        time(a).unwrap_or(f64::INFINITY).total_cmp(&time(b).unwrap_or(f64::INFINITY))
    })
}
