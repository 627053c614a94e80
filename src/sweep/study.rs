//! What pictures and reports are drawn from: a question, answered part by part as parts are wanted,
//! and each part once.

use std::sync::OnceLock;

use super::answer::{Answer, Question};
use super::in_parallel;
use super::sizes::sweep;
use crate::engine::{Outcome, RunOptions, Timeline, record};
use crate::error::{Error, Result};
use crate::measurement::{self, Launches, Observation, Run, library};
use crate::prediction::breakdown::{Parts, Recorded, breakdown};
use crate::prediction::nccl::{taken, tuned};
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
    /// Told after each simulation that takes long.
    progress: &'a (dyn Fn() + Sync),
    answer: OnceLock<Answer>,
    sized: OnceLock<SizeTable>,
    batches: OnceLock<SizeTable>,
    check: OnceLock<Vec<CheckRow>>,
    measured: OnceLock<Vec<Measured>>,
    looked_at: OnceLock<Vec<CasePrediction>>,
    calls: Vec<OnceLock<RecordedCall>>,
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
    /// One process launched it on one GPU after another, outside a graph, which takes a time of its own.
    pub in_turn: bool,
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

/// What a report shows, found out together.
enum Part {
    Sized,
    Batches,
    Answer,
    Call(usize),
}

/// What people call what NCCL takes by itself.
pub const CHOICE: &str = "NCCL's choice";
/// Predictions nearer than this at every size are one line.
const ALIKE: f64 = 0.05;
/// Sizes of [`Study::batches`]: 1 to 16 users.
const BATCHES: u32 = 5;
/// Calls that are recorded.
const CALLS: u32 = 2;

impl<'a> Study<'a> {
    /// Of a question, with nothing found out yet; `progress` is told after each simulation.
    pub fn new(
        question: Question<'a>,
        sizes: Vec<u64>,
        bytes: u64,
        progress: &'a (dyn Fn() + Sync),
    ) -> Study<'a> {
        Study {
            calls: question.cases.iter().map(|_| OnceLock::new()).collect(),
            question,
            sizes,
            bytes,
            progress,
            answer: OnceLock::new(),
            sized: OnceLock::new(),
            batches: OnceLock::new(),
            check: OnceLock::new(),
            measured: OnceLock::new(),
            looked_at: OnceLock::new(),
        }
    }

    /// Finds out, all at once and so as fast as there are processors, what a whole report shows.
    ///
    /// # Errors
    /// Those of the parts.
    pub fn prepare(&self) -> Result<()> {
        // What takes longest first.
        let mut parts = vec![Part::Sized, Part::Batches, Part::Answer];
        parts.extend((0..self.calls.len()).map(Part::Call));
        in_parallel(&parts, |part| match *part {
            Part::Sized => self.sized().map(drop),
            Part::Batches => self.batches().map(drop),
            Part::Answer => self.answer().map(drop),
            Part::Call(case) => self.call(case).map(drop),
        })?;
        Ok(())
    }

    /// Everything of the first screen.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub fn answer(&self) -> Result<&Answer> {
        once(&self.answer, || {
            let answer = self.question.answer();
            (self.progress)();
            answer
        })
    }

    /// All cases over all sizes, and what NCCL takes by itself where that is none of them.
    ///
    /// # Errors
    /// Those of the algorithms and the engine.
    pub fn sized(&self) -> Result<&SizeTable> {
        once(&self.sized, || {
            let mut table = self.table(self.sizes.clone())?;
            let Some(taken) = self.taken()? else { return Ok(table) };
            let near = |(row, own): (&Vec<CasePrediction>, &CasePrediction), case: usize| {
                (row[case].time_us.value / own.time_us.value - 1.0).abs() < ALIKE
            };
            let cases = table.rows.first().map_or(0, Vec::len);
            let shown = |case| table.rows.iter().zip(&taken).all(|pair| near(pair, case));
            if !(0..cases).any(shown) {
                table.rows.iter_mut().zip(taken).for_each(|(row, own)| row.push(own));
            }
            Ok(table)
        })
    }

    /// What NCCL takes at each size; nothing where that cannot be said of all of them.
    fn taken(&self) -> Result<Option<Vec<CasePrediction>>> {
        let Question { machine, scenario, options, nccl, .. } = self.question;
        let collective = scenario.steps[0].collective;
        let Some(setup) = nccl.filter(|_| tuned(collective).is_ok()) else { return Ok(None) };
        let one = |&bytes: &u64| -> Result<Option<CasePrediction>> {
            let Ok((case, options)) = taken(setup, collective, bytes, options)?.case else {
                return Ok(None);
            };
            let prediction = case.predict(machine, bytes, &options)?;
            (self.progress)();
            Ok(Some(CasePrediction { title: CHOICE.to_owned(), ..prediction }))
        };
        Ok(in_parallel(&self.sizes, one)?.into_iter().collect())
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
        let rows = sweep(machine, cases, &sizes, options, self.progress)?;
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
            let options = CheckOptions { topology, ..CheckOptions::new(calibration) };
            Ok(check::run(&options, self.progress)?.rows)
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
            if let Some(known) = self.known_at(self.bytes) {
                return Ok(known);
            }
            let (cases, bytes): (Vec<&Case>, u64) = (cases.iter().collect(), self.bytes);
            in_parallel(&cases, |case| case.predict(machine, bytes, options))
        })?;
        Ok(found)
    }

    /// All cases at the size of a step, where the first screen was asked for before.
    fn known_at(&self, bytes: u64) -> Option<Vec<CasePrediction>> {
        let answer = self.answer.get().filter(|_| self.question.options.every_call.is_none())?;
        let step = answer.steps.iter().position(|step| step.step.bytes == bytes)?;
        Some(answer.rows.iter().map(|row| row[step].clone()).collect())
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
        let (collective, gpus, bytes, ran, launches) = match &observation.run {
            Run::Collective(call) => {
                let ran = Some((call.algorithm, call.protocol.name()));
                (call.collective, &call.gpus, call.bytes, ran, call.launches)
            }
            // Other settings than NCCL's own are other questions.
            Run::Nccl(call) if call.peer_to_peer && call.settings.is_empty() => {
                (call.collective, &call.gpus, call.bytes, None, call.launches)
            }
            _ => return None,
        };
        (collective == wanted && gpus.len() == ranks).then(|| Measured {
            ran,
            bytes,
            us: observation.measured,
            in_turn: matches!(launches, Launches::InTurn(_)),
            id: observation.id.clone(),
        })
    }

    /// What launching a kernel on every GPU in turn takes, us.
    pub fn launches_us(&self) -> f64 {
        let Question { machine, options, .. } = self.question;
        machine.nominal.fabric.launches_in_turn(&options.gpus).as_us()
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
        (self.progress)();
        let last = outcome.call_ends.len() - 1;
        let parts = breakdown(&Recorded {
            fabric,
            schedule: &schedule,
            outcome: &outcome,
            timeline: &timeline,
        });
        Ok(RecordedCall {
            title: case.title_at(self.bytes, options),
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
///
/// Two threads that want it at once both make it: none waits for another, which could be the one that
/// it is to help.
fn once<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}
