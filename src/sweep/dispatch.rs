//! What a serving engine would take for an all-reduce at each size, what it refuses, and what every
//! candidate would take, refused ones too: that is what an upgrade or a forced flag would buy.

use serde::Serialize;

use super::in_parallel;
use crate::error::{Error, Result};
use crate::prediction::cases::by_name;
use crate::prediction::nccl::taken;
use crate::prediction::{CaseOptions, CasePrediction, Machine};
use crate::selection::nccl::Setup;
use crate::selection::serving::{Dispatch, Facts, Query, Rules, Verdict};
use crate::workload::Collective;

/// The candidate whose choice NCCL makes itself.
const NCCL: &str = "nccl";

/// What is asked.
pub struct Dispatching<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// NCCL on it.
    pub setup: &'a Setup,
    /// The engines' rules.
    pub rules: &'a Rules,
    /// What the rules ask of the machine.
    pub facts: &'a Facts,
    /// The engine, its version and settings; the size is filled in.
    pub query: Query<'a>,
    /// GPUs, and how to simulate.
    pub options: &'a CaseOptions,
}

/// One size.
#[derive(Clone, Debug, Serialize)]
pub struct Dispatched {
    /// What the engine says.
    #[serde(flatten)]
    pub dispatch: Dispatch,
    /// What each of its candidates would take, in their order.
    pub times: Vec<Timed>,
}

/// What a candidate would take.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Timed {
    /// Simulated.
    Simulated(Box<CasePrediction>),
    /// Not, with the reason.
    Not(String),
}

impl Dispatching<'_> {
    /// Asks the engine at every size and simulates its candidates.
    ///
    /// # Errors
    /// An unknown engine, version or setting, and those of the engine that simulates.
    pub fn answer(&self, sizes: &[u64], progress: &(dyn Fn() + Sync)) -> Result<Vec<Dispatched>> {
        let ask = |&bytes: &u64| {
            let query = Query { bytes, ..self.query.clone() };
            self.rules.dispatch(&query, self.facts)
        };
        let asked = sizes.iter().map(ask).collect::<Result<Vec<Dispatch>>>()?;
        let jobs: Vec<(u64, &Verdict)> = asked
            .iter()
            .flat_map(|dispatch| dispatch.candidates.iter().map(|one| (dispatch.bytes, one)))
            .collect();
        let done = in_parallel(&jobs, |&(bytes, verdict)| {
            let timed = self.time(bytes, verdict);
            progress();
            timed
        })?;
        let mut done = done.into_iter();
        let with_times = |dispatch: Dispatch| {
            let times = done.by_ref().take(dispatch.candidates.len()).collect();
            Dispatched { dispatch, times }
        };
        Ok(asked.into_iter().map(with_times).collect())
    }

    /// What a candidate would take, also where the engine refuses it.
    fn time(&self, bytes: u64, verdict: &Verdict) -> Result<Timed> {
        let gpus = &self.options.gpus;
        let (name, kernel) = (verdict.algorithm.as_str(), verdict.implementation.as_str());
        if kernel == NCCL && name == "ring" {
            return match taken(self.setup, Collective::AllReduce, bytes, self.options)?.case {
                Ok((case, options)) => {
                    let prediction = case.predict(self.machine, bytes, &options)?;
                    Ok(Timed::Simulated(Box::new(prediction)))
                }
                Err(reason) => Ok(Timed::Not(reason)),
            };
        }
        let Some(case) = by_name(name, kernel, self.machine, gpus) else {
            return Ok(Timed::Not("not modelled".to_owned()));
        };
        match case.predict(self.machine, bytes, self.options) {
            Ok(prediction) => Ok(Timed::Simulated(Box::new(prediction))),
            // What the machine cannot do is an answer here, not an end.
            Err(Error::Request { message, .. }) => Ok(Timed::Not(message)),
            Err(other) => Err(other),
        }
    }
}
