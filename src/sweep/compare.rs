//! Two plans side by side: what each call takes on both, how sure the difference is, and where the
//! bottleneck went.

use serde::Serialize;

use super::plan::{Plan, Prepared, Terms};
use super::{Answer, Question};
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::fabric::bound::Bound;
use crate::prediction::case::regime_sigma;
use crate::prediction::nccl::newest;
use crate::prediction::range::ratio_sigma;
use crate::prediction::{Case, CaseOptions, CasePrediction, Machine, Range};
use crate::selection::nccl::Setup;
use crate::workload::{Scenario, Step};

/// A plan worked out.
pub struct Side {
    /// What to call it.
    pub name: String,
    /// The machine.
    pub machine: Machine,
    /// The calls.
    pub scenario: Scenario,
    /// How they may be done.
    pub cases: Vec<Case>,
    /// GPUs and options.
    pub options: CaseOptions,
    /// NCCL on these GPUs, where it can be said and nothing is laid down that it would choose.
    pub nccl: Option<Setup>,
    /// What to know about it.
    pub notes: Vec<String>,
}

impl Side {
    /// Works a plan out.
    ///
    /// # Errors
    /// A machine that does not compile, one GPU only, GPUs or algorithms that there are not.
    pub fn of(
        name: &str,
        plan: Plan,
        calibration: &Calibration,
        regimes: bool,
        fidelity: Fidelity,
    ) -> Result<Side> {
        let prepared = plan.prepared(calibration, Terms { regimes, ranges: true, fidelity })?;
        let cases = prepared.cases()?;
        if cases.is_empty() {
            return Err(Error::request(
                format!("no algorithm is left on {name}"),
                "drop the protocol or name an algorithm that has it",
            ));
        }
        let Prepared { machine, scenario, choice, options, notes } = prepared;
        let told = !choice.algorithms.is_empty()
            || choice.protocol.is_some()
            || choice.channels.is_some()
            || !choice.ring.is_empty();
        let nccl = if told { None } else { newest(&machine, &options.gpus) };
        Ok(Side { name: name.to_owned(), machine, scenario, cases, options, nccl, notes })
    }

    /// The question it asks.
    pub fn question(&self) -> Question<'_> {
        Question {
            machine: &self.machine,
            scenario: &self.scenario,
            cases: &self.cases,
            options: &self.options,
            nccl: self.nccl.as_ref(),
            wirings: &[],
            nearby: &[],
        }
    }
}

/// One way to do a call of one step, before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// What people call it; two names where it changes its own.
    pub title: String,
    /// Before, where it can be done.
    pub before: Option<CasePrediction>,
    /// After, where it can be done.
    pub after: Option<CasePrediction>,
    /// Time of a step after over before, less one, with its 80 % range.
    pub change: Option<Range>,
}

/// A step before and after.
#[derive(Clone, Debug, Serialize)]
pub struct StepDifference {
    /// Before.
    pub before: Step,
    /// After.
    pub after: Step,
    /// What the wires allow a call, us, before and after.
    pub bounds_us: [f64; 2],
    /// Which limit that is, before and after.
    pub limits: [String; 2],
    /// What NCCL takes by itself, where it can be said of both.
    pub nccl: Option<Difference>,
    /// Each way to do it.
    pub rows: Vec<Difference>,
    /// The fastest of each side.
    pub best: Difference,
}

/// Two plans side by side.
pub struct Comparison {
    /// Worked out before the edits, or the first machine.
    pub before: Side,
    /// After them, or the second machine.
    pub after: Side,
    /// Steps of the same place in both.
    pub steps: Vec<StepDifference>,
}

impl Comparison {
    /// Simulates both.
    ///
    /// # Errors
    /// Those of the algorithms and the engine; plans with different numbers of steps.
    pub fn of(before: Side, after: Side) -> Result<Comparison> {
        if before.scenario.steps.len() != after.scenario.steps.len() {
            return Err(Error::request("the two have different steps", "compare one scenario"));
        }
        let (first, second) = (before.question().answer()?, after.question().answer()?);
        let steps =
            (0..first.steps.len()).map(|index| step_difference(&first, &second, index)).collect();
        Ok(Comparison { before, after, steps })
    }
}

fn step_difference(before: &Answer, after: &Answer, index: usize) -> StepDifference {
    let (a, b) = (&before.steps[index], &after.steps[index]);
    let difference = |first: Option<&CasePrediction>, second: Option<&CasePrediction>| {
        Difference::of([(first, &a.step), (second, &b.step)])
    };
    let mut rows = Vec::new();
    for row in &before.rows {
        let other = after.rows.iter().find(|other| other[index].same_way(&row[index]));
        rows.push(difference(Some(&row[index]), other.map(|other| &other[index])));
    }
    for row in &after.rows {
        if !before.rows.iter().any(|other| other[index].same_way(&row[index])) {
            rows.push(difference(None, Some(&row[index])));
        }
    }
    let picked = |answer: &'_ Answer| answer.picks.get(index)?.prediction.clone();
    let nccl = picked(before).zip(picked(after));
    let bound = |bound: &Bound| (bound.time.as_us(), bound.limit.clone());
    let (first, second) = (bound(&a.bound), bound(&b.bound));
    StepDifference {
        before: a.step.clone(),
        after: b.step.clone(),
        bounds_us: [first.0, second.0],
        limits: [first.1, second.1],
        nccl: nccl.map(|(first, second)| difference(Some(&first), Some(&second))),
        rows,
        best: difference(Some(&before.rows[a.best][index]), Some(&after.rows[b.best][index])),
    }
}

impl CasePrediction {
    /// Whether it is the same kernel of the same library.
    fn same_way(&self, other: &CasePrediction) -> bool {
        self.algorithm == other.algorithm && library(&self.title) == library(&other.title)
    }
}

/// A title without the number of reads at once, which follows the number of GPUs, and without the
/// protocol, which follows the size.
fn library(title: &str) -> String {
    let words = title.split_whitespace().filter(|word| !matches!(*word, "LL" | "Simple" | "LL128"));
    let words = words.filter(|word| !word.trim_matches('(').bytes().all(|b| b.is_ascii_digit()));
    words.collect::<Vec<_>>().join(" ")
}

impl Difference {
    fn of(sides: [(Option<&CasePrediction>, &Step); 2]) -> Difference {
        let [(before, step_before), (after, step_after)] = sides;
        let change = before.zip(after).map(|(before, after)| {
            let calls = f64::from(step_after.calls) / f64::from(step_before.calls);
            change(before, after, calls)
        });
        let titles: Vec<&str> = [before, after].into_iter().flatten().map(|p| &*p.title).collect();
        let title = match titles[..] {
            [before, after] if before != after => format!("{before} => {after}"),
            [title, ..] => title.to_owned(),
            [] => String::new(),
        };
        Difference { title, before: before.cloned(), after: after.cloned(), change }
    }
}

/// How a step changes whose calls are so many times those before. What moves both alike cancels; of
/// declared regimes the part that one has and the other has not is an estimate.
pub(super) fn change(before: &CasePrediction, after: &CasePrediction, calls: f64) -> Range {
    let ratio = calls * after.time_us.value / before.time_us.value;
    if before.time_us == after.time_us && before.bottleneck == after.bottleneck {
        // Nothing that this call sees was changed.
        let value = ratio - 1.0;
        return Range { value, low: value, high: value };
    }
    let regime = |prediction: &CasePrediction| {
        let bare = prediction.without_regimes_us.map(|bare| bare.value);
        regime_sigma(prediction.time_us.value, bare)
    };
    let sigma = ratio_sigma(&before.shifts, &after.shifts).hypot(regime(before) - regime(after));
    let Range { value, low, high } = Range::around(ratio, sigma);
    Range { value: value - 1.0, low: low - 1.0, high: high - 1.0 }
}
