//! What pictures and reports are drawn from: a question, answered part by part as parts are wanted,
//! and each part once.

use std::cell::OnceCell;

use super::answer::{Answer, Question};
use super::in_parallel;
use super::sizes::sweep;
use crate::engine::{Outcome, RunOptions, Timeline, record};
use crate::error::{Error, Result};
use crate::measurement::{self, Observation, Run, library};
use crate::prediction::breakdown::{Parts, Recorded, breakdown};
use crate::prediction::{Case, CasePrediction};
use crate::schedule::Schedule;
use crate::units::Time;
use crate::validation::check::{self, CheckOptions, CheckRow};

/// A question and what was found out so far.
pub struct Study<'a> {
    /// What is asked.
    pub question: Question<'a>,
    /// Sizes of the pictures over sizes, bytes.
    pub sizes: Vec<u64>,
    /// Size of the call that is looked at closely, bytes.
    pub bytes: u64,
    answer: OnceCell<Answer>,
    sized: OnceCell<SizeTable>,
    batches: OnceCell<SizeTable>,
    check: OnceCell<Vec<CheckRow>>,
    measured: OnceCell<Vec<Measured>>,
    looked_at: OnceCell<Vec<CasePrediction>>,
    calls: Vec<OnceCell<RecordedCall>>,
}

/// Predictions over sizes.
#[derive(Clone, Debug)]
pub struct SizeTable {
    /// Bytes.
    pub sizes: Vec<u64>,
    /// `[size][case]`.
    pub rows: Vec<Vec<CasePrediction>>,
}

/// A measured call.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What ran: an algorithm of the table and its protocol; `None` when NCCL chose.
    pub ran: Option<(&'static str, &'static str)>,
    /// Bytes of the call.
    pub bytes: u64,
    /// Time of the call, us.
    pub us: f64,
    /// File and line.
    pub id: String,
}

/// A call that was recorded: the second of two, so that it begins as every later one does.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// What people call it.
    pub title: String,
    /// Bytes.
    pub bytes: u64,
    /// What the ranks did.
    pub schedule: Schedule,
    /// What happened.
    pub outcome: Outcome,
    /// When.
    pub timeline: Timeline,
    /// Start of the call.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// What its time is made of.
    pub parts: Parts,
}

/// Sizes of [`Study::batches`]: 1 to 16 users.
const BATCHES: u32 = 5;
/// Calls that are recorded.
const CALLS: u32 = 2;

impl<'a> Study<'a> {
    /// Of a question, with nothing found out yet.
    pub fn new(question: Question<'a>, sizes: Vec<u64>, bytes: u64) -> Study<'a> {
        Study {
            calls: question.cases.iter().map(|_| OnceCell::new()).collect(),
            question,
            sizes,
            bytes,
            answer: OnceCell::new(),
            sized: OnceCell::new(),
            batches: OnceCell::new(),
            check: OnceCell::new(),
            measured: OnceCell::new(),
            looked_at: OnceCell::new(),
        }
    }

    /// Everything of the first screen.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn answer(&self) -> Result<&Answer> {
        once(&self.answer, || self.question.answer())
    }

    /// All cases over all sizes.
    ///
    /// # Errors
    /// Those of the algorithms and the engine.
    pub fn sized(&self) -> Result<&SizeTable> {
        once(&self.sized, || self.table(self.sizes.clone()))
    }

    /// All cases over calls of the first step by 1, 2, 4, .. users.
    ///
    /// # Errors
    /// As [`Study::sized`].
    pub fn batches(&self) -> Result<&SizeTable> {
        let bytes = self.question.scenario.steps[0].bytes;
        let sizes = (0..BATCHES).map(|power| bytes << power).collect();
        once(&self.batches, || self.table(sizes))
    }

    fn table(&self, sizes: Vec<u64>) -> Result<SizeTable> {
        let Question { machine, cases, options, .. } = self.question;
        let rows = sweep(machine, cases, &sizes, options, &|| {})?;
        Ok(SizeTable { sizes, rows })
    }

    /// Everything that was measured on this machine, predicted.
    ///
    /// # Errors
    /// As [`check::run`].
    pub fn check(&self) -> Result<&[CheckRow]> {
        let found = once(&self.check, || {
            let topology = Some(self.question.machine.topology.name.clone());
            let calibration = self.question.machine.nominal.calibration.clone();
            Ok(check::run(&CheckOptions { topology, ..CheckOptions::new(calibration) })?.rows)
        })?;
        Ok(found)
    }

    /// All cases at the size that is looked at, in their order.
    ///
    /// # Errors
    /// Those of the algorithms and the engine.
    pub fn looked_at(&self) -> Result<&[CasePrediction]> {
        let found = once(&self.looked_at, || {
            let Question { machine, cases, options, .. } = self.question;
            let (cases, bytes): (Vec<&Case>, u64) = (cases.iter().collect(), self.bytes);
            in_parallel(&cases, |case| case.predict(machine, bytes, options))
        })?;
        Ok(found)
    }

    /// What was measured of such calls on this machine, with as many GPUs.
    ///
    /// # Errors
    /// A malformed table of measurements, which a test excludes.
    pub fn measured(&self) -> Result<&[Measured]> {
        let found = once(&self.measured, || {
            let name = &self.question.machine.topology.name;
            let mut all = Vec::new();
            for machine in library::MACHINES.iter().filter(|machine| machine.topology == name) {
                let record = measurement::read_machine(machine)?;
                all.extend(record.observations.iter().filter_map(|one| self.measured_call(one)));
            }
            all.sort_by_key(|one: &Measured| one.bytes);
            Ok(all)
        })?;
        Ok(found)
    }

    fn measured_call(&self, observation: &Observation) -> Option<Measured> {
        let wanted = self.question.scenario.steps[0].collective;
        let ranks = self.question.options.gpus.len();
        let (collective, gpus, bytes, ran) = match &observation.run {
            Run::Collective(call) => {
                let ran = Some((call.algorithm, call.protocol.name()));
                (call.collective, &call.gpus, call.bytes, ran)
            }
            // Other settings than NCCL's own are other questions.
            Run::Nccl(call) if call.peer_to_peer && call.settings.is_empty() => {
                (call.collective, &call.gpus, call.bytes, None)
            }
            _ => return None,
        };
        (collective == wanted && gpus.len() == ranks).then(|| Measured {
            ran,
            bytes,
            us: observation.measured,
            id: observation.id.clone(),
        })
    }

    /// The fastest case at the size that is looked at.
    ///
    /// # Errors
    /// As [`Study::looked_at`].
    pub fn fastest(&self) -> Result<usize> {
        let found = self.looked_at()?;
        let time = |&case: &usize| found[case].time_us.value;
        Ok((0..found.len()).min_by(|a, b| time(a).total_cmp(&time(b))).unwrap_or(0))
    }

    /// The case that waits longest for links at that size.
    ///
    /// # Errors
    /// As [`Study::looked_at`].
    pub fn most_contended(&self) -> Result<usize> {
        let found = self.looked_at()?;
        let waits = |&case: &usize| found[case].waiting * found[case].time_us.value;
        Ok((0..found.len()).rev().max_by(|a, b| waits(a).total_cmp(&waits(b))).unwrap_or(0))
    }

    /// A call of a case at that size, recorded packet by packet.
    ///
    /// # Errors
    /// Those of the algorithm and the engine; a case that there is not.
    pub fn call(&self, case: usize) -> Result<&RecordedCall> {
        let Some(cell) = self.calls.get(case) else {
            return Err(Error::request("no algorithm is left", "drop --algo or --proto"));
        };
        once(cell, || self.record(case))
    }

    fn record(&self, case: usize) -> Result<RecordedCall> {
        let Question { machine, cases, options, .. } = self.question;
        let case = &cases[case];
        let schedule = case.schedule(machine, self.bytes, options)?;
        let run = RunOptions { calls: CALLS, ..RunOptions::default() };
        let fabric = &machine.nominal.fabric;
        let (outcome, timeline) = record(fabric, &schedule, run)?;
        let last = outcome.call_ends.len() - 1;
        let parts = breakdown(&Recorded {
            fabric,
            schedule: &schedule,
            outcome: &outcome,
            timeline: &timeline,
        });
        Ok(RecordedCall {
            title: case.title_at(self.bytes, options.gpus.len()),
            bytes: self.bytes,
            start: outcome.call_end(last - 1),
            end: outcome.call_end(last),
            parts,
            schedule,
            outcome,
            timeline,
        })
    }
}

/// The value of a cell, made when it is first wanted.
fn once<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}
