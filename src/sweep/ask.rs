//! A classic question as a file: some sides, each a machine with edits, the sizes of a call, and what
//! was measured of such a change; its answer is every side's fastest call, and prediction beside
//! measurement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::in_parallel;
use super::plan::{Plan, Prepared, Terms, parse_edits};
use crate::engine::Fidelity;
use crate::error::{Error, Problem, Result};
use crate::fabric::Calibration;
use crate::prediction::{Case, Choice};
use crate::topology::Topology;
use crate::workload::{Scenario, Step, size_fault};

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// Where editors find the schema.
    #[serde(rename = "$schema", default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Version of this form: 1.
    pub schema_version: u32,
    /// Short name, the file's stem.
    pub name: String,
    /// In a person's words.
    pub question: String,
    /// The workload.
    pub scenario: String,
    /// Bytes of a call; left out: the steps of the scenario, as each side's edits make them.
    #[serde(default)]
    pub sizes: Vec<u64>,
    /// Network model: `packet`, `max_min` or `alpha_beta`.
    #[serde(default = "packet")]
    pub network_model: String,
    /// What is compared, the first as it is now.
    pub sides: Vec<AskSide>,
    /// What was measured of it.
    #[serde(default)]
    pub measured: Vec<Measured>,
    /// What the answer does not hold.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A side a thousand times as fast as another, or as slow, is a slip of the pen.
const RATIO_MAX: f64 = 1000.0;

fn packet() -> String {
    Fidelity::Packet.name().to_owned()
}

/// One side of a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskSide {
    /// What to call it.
    pub name: String,
    /// The machine.
    pub machine: String,
    /// Edits of machine and workload, `;` between them.
    #[serde(default)]
    pub edits: String,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Measured {
    /// A call's time on a side over that on the first.
    Ratio(MeasuredRatio),
    /// The size up to which a side is faster than the first.
    Crossover(MeasuredCrossover),
}

/// A call's time on a side over that on the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredRatio {
    /// Bytes of the call.
    pub bytes: u64,
    /// Name of the side.
    pub side: String,
    /// The ratio.
    pub ratio: f64,
    /// Folder of `measured/` and what stands there.
    pub source: String,
    /// Why prediction and measurement differ, where they do.
    #[serde(default)]
    pub unexplained: Option<String>,
}

/// The size up to which a side is faster than the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MeasuredCrossover {
    /// The largest size at which the side is faster.
    pub bytes: u64,
    /// Name of the side.
    pub side: String,
    /// Folder of `measured/` and what stands there.
    pub source: String,
    /// Why prediction and measurement differ, where they do.
    #[serde(default)]
    pub unexplained: Option<String>,
}

/// The fastest call of a side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fastest {
    /// Bytes of the call.
    pub bytes: u64,
    /// Calls of a step.
    pub calls: u32,
    /// A call, us.
    pub us: f64,
    /// By which implementation.
    pub by: String,
}

/// Measured and predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// What of.
    pub what: String,
    /// Measured: a ratio, or bytes.
    pub measured: f64,
    /// Predicted, where the sizes show it.
    pub predicted: Option<f64>,
    /// Both say faster, or both say slower; of a crossover, that there is one.
    pub sign: bool,
    /// Where it stands.
    pub source: String,
    /// Why they differ, where they do.
    pub unexplained: Option<String>,
}

/// An answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answered {
    /// `[size][side]`.
    pub rows: Vec<Vec<Fastest>>,
    /// Measured beside predicted.
    pub held: Vec<Held>,
}

impl Ask {
    /// Answers it. `machine` finds the sides' machines.
    ///
    /// # Errors
    /// Fewer than two sides, measurements of a side or size that there is not, edits that cannot be,
    /// and those of the engine.
    pub fn answer(
        &self,
        scenario: &Scenario,
        machine: impl Fn(&str) -> Result<Topology>,
        calibration: &Calibration,
    ) -> Result<Answered> {
        self.check()?;
        let fidelity = Fidelity::named(&self.network_model)?;
        let terms = Terms { regimes: true, ranges: false, fidelity };
        let mut sides: Vec<(Prepared, Vec<Case>)> = Vec::new();
        for side in &self.sides {
            let topology = machine(&side.machine)?;
            let plan = Plan { topology, scenario: self.calls(scenario), choice: Choice::default() };
            let edits = parse_edits(std::slice::from_ref(&side.edits))?;
            let prepared = plan.edited(&edits, calibration)?.0.prepared(calibration, terms)?;
            let cases = prepared.cases()?;
            sides.push((prepared, cases));
        }
        let steps = sides[0].0.scenario.steps.len();
        let mut jobs = Vec::new();
        for (side, (_, cases)) in sides.iter().enumerate() {
            jobs.extend((0..steps).flat_map(|s| (0..cases.len()).map(move |c| (side, s, c))));
        }
        let times = in_parallel(&jobs, |&(side, step, case)| {
            let (prepared, cases) = &sides[side];
            let bytes = prepared.scenario.steps[step].bytes;
            cases[case].nominal_us(&prepared.machine, bytes, &prepared.options)
        })?;
        let mut rows: Vec<Vec<Fastest>> = vec![Vec::new(); steps];
        for (&(side, step, case), us) in jobs.iter().zip(times) {
            let (prepared, cases) = &sides[side];
            let Step { bytes, calls, .. } = prepared.scenario.steps[step];
            let by = cases[case].title_at(bytes, &prepared.options);
            let one = Fastest { bytes, calls, us, by };
            match rows[step].get_mut(side) {
                None => rows[step].push(one),
                Some(best) if us < best.us => *best = one,
                Some(_) => {}
            }
        }
        let held = self.measured.iter().map(|measured| self.held(measured, &rows)).collect();
        Ok(Answered { rows, held })
    }

    /// Figures that cannot be, with the places of their file.
    pub fn faults(&self) -> Vec<Problem> {
        let sizes = self.sizes.iter().enumerate();
        let mut faults: Vec<Problem> =
            sizes.filter_map(|(at, &bytes)| size_fault(bytes, format!("sizes[{at}]"))).collect();
        for (at, measured) in self.measured.iter().enumerate() {
            let (kind, bytes) = match measured {
                Measured::Ratio(told) => ("ratio", told.bytes),
                Measured::Crossover(told) => ("crossover", told.bytes),
            };
            let path = |key: &str| format!("measured[{at}].{kind}.{key}");
            faults.extend(size_fault(bytes, path("bytes")));
            if let Measured::Ratio(MeasuredRatio { ratio, .. }) = measured
                && !(1.0 / RATIO_MAX..=RATIO_MAX).contains(ratio)
            {
                let message = format!("a ratio of {ratio} is out of range");
                let help = format!("of two times, {} to {RATIO_MAX}", 1.0 / RATIO_MAX);
                faults.push(Problem::new(message, path("ratio")).help(help));
            }
        }
        faults
    }

    fn check(&self) -> Result<()> {
        let wrong = |message: String| Err(Error::request(message, "see docs/what-if.md"));
        if self.sides.len() < 2 {
            return wrong(format!("question `{}` has no two sides to compare", self.name));
        }
        for measured in &self.measured {
            let (side, bytes) = match measured {
                Measured::Ratio(told) => (&told.side, Some(told.bytes)),
                Measured::Crossover(told) => (&told.side, None),
            };
            if !self.sides[1..].iter().any(|one| one.name == *side) {
                return wrong(format!("question `{}`: no later side is `{side}`", self.name));
            }
            if bytes.is_some_and(|bytes| !self.sizes.contains(&bytes)) {
                return wrong(format!("question `{}`: measured of a size not asked", self.name));
            }
        }
        Ok(())
    }

    /// The scenario's steps, or a call of each size.
    fn calls(&self, scenario: &Scenario) -> Scenario {
        let mut scenario = scenario.clone();
        if !self.sizes.is_empty() {
            let first = scenario.steps[0].clone();
            let step = |&bytes: &u64| Step { name: bytes.to_string(), bytes, ..first.clone() };
            scenario.steps = self.sizes.iter().map(step).collect();
        }
        scenario
    }

    fn held(&self, measured: &Measured, rows: &[Vec<Fastest>]) -> Held {
        let side = |name: &String| self.sides.iter().position(|side| side.name == *name);
        match measured {
            Measured::Ratio(MeasuredRatio { bytes, side: name, ratio, source, unexplained }) => {
                let row = rows.iter().find(|row| row[0].bytes == *bytes);
                let predicted = row.zip(side(name)).map(|(row, side)| row[side].us / row[0].us);
                Held {
                    what: format!("{name}, {bytes} B, time against {}", self.sides[0].name),
                    measured: *ratio,
                    predicted,
                    sign: predicted.is_some_and(|found| same_sign(found, *ratio)),
                    source: source.clone(),
                    unexplained: unexplained.clone(),
                }
            }
            Measured::Crossover(MeasuredCrossover { bytes, side: name, source, unexplained }) => {
                let predicted = side(name).and_then(|side| crossover(rows, side));
                Held {
                    what: format!("{name} faster than {} up to, B", self.sides[0].name),
                    measured: *bytes as f64,
                    predicted,
                    sign: predicted.is_some(),
                    source: source.clone(),
                    unexplained: unexplained.clone(),
                }
            }
        }
    }
}

/// The JSON Schema of a question, as text.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Ask);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Ratios nearer to one than this are no change: nccl-tests repeats itself as well as that.
const NO_CHANGE: f64 = 0.02;

/// Whether both ratios say faster, both slower, or both no change.
pub(super) fn same_sign(a: f64, b: f64) -> bool {
    let sign = |ratio: f64| match ratio - 1.0 {
        change if change.abs() <= NO_CHANGE => 0,
        change if change < 0.0 => -1,
        _ => 1,
    };
    sign(a) == sign(b)
}

/// The size at which a side stops being faster than the first, between two that were run: where the
/// logarithm of the ratio crosses zero over the logarithm of the size.
fn crossover(rows: &[Vec<Fastest>], side: usize) -> Option<f64> {
    let point = |row: &Vec<Fastest>| ((row[0].bytes as f64).ln(), (row[side].us / row[0].us).ln());
    rows.windows(2).find_map(|pair| {
        let ((x0, y0), (x1, y1)) = (point(&pair[0]), point(&pair[1]));
        (y0 < 0.0 && y1 >= 0.0).then(|| (x0 + (x1 - x0) * y0 / (y0 - y1)).exp())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: u64, us: [f64; 2]) -> Vec<Fastest> {
        us.map(|us| Fastest { bytes, calls: 1, us, by: String::new() }).to_vec()
    }

    #[test]
    fn a_crossover_lies_between_the_sizes_around_it() {
        // From half to double over a factor of four: in the middle, at double the first size.
        let rows = [row(1000, [2.0, 1.0]), row(4000, [2.0, 4.0])];
        assert!((crossover(&rows, 1).expect("crosses") - 2000.0).abs() < 1e-6);
        assert_eq!(crossover(&rows[..1], 1), None);
        assert_eq!(crossover(&[row(1000, [1.0, 2.0]), row(4000, [1.0, 3.0])], 1), None);
    }
}
