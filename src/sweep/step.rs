//! What a step of a model costs on a machine by implementation, and what that means in tokens a second
//! under stated assumptions.

use serde::Serialize;

use super::compare::Side;
use super::in_parallel;
use crate::error::{Error, Result};
use crate::prediction::cases::cases;
use crate::prediction::nccl::{call, newest};
use crate::prediction::{Case, CaseOptions, Range};
use crate::schedule::Collective;
use crate::selection::nccl::Setup;
use crate::workload::model::{Group, Layout, Model, Pass};

/// What is asked.
pub struct Steps<'a> {
    /// The machine, its GPUs, and the ways to do an all-reduce.
    pub side: &'a Side,
    /// The model.
    pub model: &'a Model,
    /// How it is laid out.
    pub layout: Layout,
}

/// NCCL by its defaults, where its detection understands the machine.
struct Communicators {
    ranks: Option<Setup>,
    stages: Option<Setup>,
}

/// Communication of a pass by one implementation of the all-reduce, ms.
#[derive(Clone, Debug, Serialize)]
pub struct PassTime {
    /// Which pass.
    pub pass: Pass,
    /// All calls, ms, with the 80 % range.
    pub ms: Range,
    /// Of which not all-reduces: by what NCCL takes.
    pub others_ms: f64,
}

/// One implementation of the all-reduce.
#[derive(Clone, Debug, Serialize)]
pub struct StepRow {
    /// What people call it.
    pub title: String,
    /// Word on the command line.
    pub algorithm: &'static str,
    /// By pass, in the order asked.
    pub passes: Vec<PassTime>,
}

/// Where the time outside of calls comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compute {
    /// Stated, ms a pass of the target model.
    Stated(f64),
    /// What is left of a measured step when its calls are taken off, ms.
    Calibrated(f64),
}

impl Compute {
    /// ms a pass.
    pub fn ms(&self) -> f64 {
        match self {
            Compute::Stated(ms) | Compute::Calibrated(ms) => *ms,
        }
    }

    /// From tokens a second of one user, `accepted` of them a cycle of calls of `calls_ms`.
    ///
    /// # Errors
    /// When the calls alone take longer than the cycle.
    pub fn of_measured(tok_per_s: f64, accepted: f64, calls_ms: f64) -> Result<Compute> {
        let cycle = 1e3 * accepted / tok_per_s;
        if calls_ms >= cycle {
            return Err(Error::request(
                format!(
                    "{tok_per_s} tok/s leave {cycle:.2} ms a step, and its calls alone take {calls_ms:.2} ms"
                ),
                "another algorithm ran, or another machine: --measured-algo, --measured-on",
            ));
        }
        Ok(Compute::Calibrated(cycle - calls_ms))
    }
}

/// Tokens a second by one implementation, all users together.
#[derive(Clone, Debug, Serialize)]
pub struct Tokens {
    /// A decode step, ms: calls and compute.
    pub decode_ms: f64,
    /// Share of communication in it.
    pub share: f64,
    /// Without drafts.
    pub decode_tok_per_s: Range,
    /// With drafts, where there are any.
    pub drafted: Option<Drafted>,
}

/// What drafts make of it.
#[derive(Clone, Debug, Serialize)]
pub struct Drafted {
    /// A cycle, ms: draft passes, then a verify pass.
    pub cycle_ms: f64,
    /// Accepted length (the token of the verify pass among it) above which drafts pay.
    pub break_even: f64,
    /// Accepted length and tokens a second at it.
    pub at: Vec<(f64, Range)>,
}

impl Steps<'_> {
    /// The calls of a pass.
    ///
    /// # Errors
    /// As [`Model::calls`].
    pub fn calls(&self, pass: Pass) -> Result<Vec<Group>> {
        self.model.calls(&self.layout, pass)
    }

    /// Communication of these passes, by each implementation of the all-reduce that the side has, and
    /// first by what NCCL takes, where nothing is laid down.
    ///
    /// # Errors
    /// Those of the model, the algorithms and the engine.
    pub fn rows(&self, passes: &[Pass]) -> Result<Vec<StepRow>> {
        let calls = passes.iter().map(|&pass| self.calls(pass)).collect::<Result<Vec<_>>>()?;
        let nccl = self.communicators()?;
        let chosen = self.side.nccl.as_ref().and(nccl.ranks.as_ref()).map(|_| None);
        let ways: Vec<Option<&Case>> =
            chosen.into_iter().chain(self.side.cases.iter().map(Some)).collect();
        let mut jobs: Vec<(usize, usize)> = Vec::new();
        for way in 0..ways.len() {
            jobs.extend((0..passes.len()).map(|pass| (way, pass)));
        }
        let times = in_parallel(&jobs, |&(way, pass)| {
            self.time(ways[way], &nccl, passes[pass], &calls[pass])
        })?;
        let rows = ways.iter().zip(times.chunks(passes.len().max(1)));
        let row = |(way, times): (&Option<&Case>, &[PassTime])| StepRow {
            title: way.map_or_else(|| "what NCCL takes".to_owned(), |case| case.title.clone()),
            algorithm: way.map_or("nccl", |case| case.algorithm.name),
            passes: times.to_vec(),
        };
        Ok(rows.map(row).collect())
    }

    /// Communication of a pass by what NCCL takes.
    ///
    /// # Errors
    /// As [`Steps::rows`].
    pub fn by_nccl(&self, pass: Pass) -> Result<PassTime> {
        self.time(None, &self.communicators()?, pass, &self.calls(pass)?)
    }

    /// NCCL among the ranks of a stage, and between those of two.
    fn communicators(&self) -> Result<Communicators> {
        let (machine, gpus) = (&self.side.machine, &self.side.options.gpus);
        let stages = match self.layout.pipeline {
            0 | 1 => None,
            _ => newest(machine, &[gpus[0], self.next_stage(self.layout.tensor)?]),
        };
        Ok(Communicators { ranks: newest(machine, gpus), stages })
    }

    fn time(
        &self,
        case: Option<&Case>,
        nccl: &Communicators,
        pass: Pass,
        groups: &[Group],
    ) -> Result<PassTime> {
        let (mut sum, mut others_ms) = ([0.0; 3], 0.0);
        for group in groups {
            let range = self.group(case, nccl, group)?;
            for (sum, us) in sum.iter_mut().zip([range.value, range.low, range.high]) {
                *sum += us * f64::from(group.step.calls) / 1e3;
            }
            if group.step.collective != Collective::AllReduce {
                others_ms += range.value * f64::from(group.step.calls) / 1e3;
            }
        }
        let [value, low, high] = sum;
        Ok(PassTime { pass, ms: Range { value, low, high }, others_ms })
    }

    /// A call, us: all-reduces by the case where there is one, everything else by what NCCL takes; where
    /// no schedule stands for that, by the first way that there is.
    fn group(&self, case: Option<&Case>, nccl: &Communicators, group: &Group) -> Result<Range> {
        let (machine, options) = (&self.side.machine, &self.side.options);
        let (collective, bytes) = (group.step.collective, group.step.bytes);
        if let Some(case) = case.filter(|_| collective == Collective::AllReduce) {
            return Ok(case.predict(machine, bytes, options)?.time_us);
        }
        let (gpus, setup) = match collective {
            // From the first rank of a stage to that of the next.
            Collective::Broadcast => {
                (vec![options.gpus[0], self.next_stage(self.layout.tensor)?], &nccl.stages)
            }
            _ => (options.gpus.clone(), &nccl.ranks),
        };
        let options = CaseOptions {
            beside: options.beside.clone(),
            ..CaseOptions::of(gpus, options.fidelity)
        };
        let taken =
            setup.as_ref().and_then(|setup| call(setup, machine, collective, bytes, &options).ok());
        if let Some((case, options)) = taken {
            return Ok(case.predict(machine, bytes, &options)?.time_us);
        }
        let all = cases(collective, machine, &options.gpus)?;
        let Some(first) = all.first() else {
            let what = collective.title();
            return Err(Error::request(format!("nothing does an {what} here"), ""));
        };
        Ok(first.predict(machine, bytes, &options)?.time_us)
    }

    fn next_stage(&self, ranks: u32) -> Result<u32> {
        let count = self.side.machine.nominal.fabric.gpu_count as u32;
        let wanted = ranks * self.layout.pipeline;
        if wanted > count {
            return Err(Error::request(
                format!("TP {ranks} in {} stages wants {wanted} GPUs", self.layout.pipeline),
                format!("{} has {count}", self.side.machine.topology.name),
            ));
        }
        Ok(ranks)
    }

    /// Tokens a second of a row whose passes are decode, then verify and draft where there are drafts.
    pub fn tokens(&self, row: &StepRow, compute: &Compute, accepted: &[f64]) -> Tokens {
        let users = self.layout.batch as f64;
        let find = |wanted: Pass| row.passes.iter().find(|time| time.pass == wanted);
        let with = |calls: Range, tokens: f64| {
            let rate = |calls: f64| 1e3 * tokens / (calls + compute.ms()).max(1e-9);
            // Compute is taken as known; what is uncertain are the calls.
            Range { value: rate(calls.value), low: rate(calls.high), high: rate(calls.low) }
        };
        let zero = Range::around(0.0, 0.0);
        let decode = find(Pass::Decode).map_or(zero, |time| time.ms);
        let decode_ms = decode.value + compute.ms();
        let drafted = find(Pass::Verify).zip(find(Pass::Draft)).map(|(verify, draft)| {
            let passes = f64::from(self.layout.drafts);
            let part = |of: fn(Range) -> f64| of(verify.ms) + passes * of(draft.ms);
            let calls =
                Range { value: part(|r| r.value), low: part(|r| r.low), high: part(|r| r.high) };
            let cycle_ms = calls.value + compute.ms();
            let at = accepted.iter().map(|&length| (length, with(calls, length * users)));
            Drafted { cycle_ms, break_even: cycle_ms / decode_ms, at: at.collect() }
        });
        Tokens {
            decode_ms,
            share: decode.value / decode_ms,
            decode_tok_per_s: with(decode, users),
            drafted,
        }
    }
}
