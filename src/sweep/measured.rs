//! Changes whose effect somebody measured: before and after, beside what is predicted of both.

use serde::{Deserialize, Serialize};

use super::ask::same_sign;
use super::in_parallel;
use super::plan::{Plan, Prepared, Terms, parse_edits, some_left};
use crate::algorithm::streams::{Stream, all_pairs_reads, all_pairs_writes, streams};
use crate::engine::{Fidelity, RunOptions, simulate};
use crate::error::{self, Error, Result};
use crate::fabric::{Calibration, Fabric};
use crate::prediction::Choice;
use crate::prediction::nccl::{newest, taken};
use crate::topology::Topology;
use crate::workload::{Collective, Scenario};

/// All measured changes: `measured/what-if.json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredChanges {
    /// Version of this form: 1.
    pub schema_version: u32,
    /// The changes.
    pub changes: Vec<MeasuredChange>,
}

/// A change whose effect was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredChange {
    /// In a few words.
    pub what: String,
    /// What the change moves, which says how near a prediction is to be.
    pub kind: ChangeKind,
    /// What was measured.
    pub figure: Figure,
    /// Before.
    pub before: ChangeSide,
    /// After.
    pub after: ChangeSide,
    /// The figure before and after, in `unit`.
    pub measured: [f64; 2],
    /// `us`, `ns`, `GB/s` or `tok/s`.
    pub unit: String,
    /// Folders of `measured/`.
    pub source: String,
    /// Why prediction and measurement differ, where they do.
    #[serde(default)]
    pub unexplained: Option<String>,
}

/// What a change moves.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Rates.
    Bandwidth,
    /// Latencies.
    Latency,
}

impl ChangeKind {
    /// How far the predicted ratio of after to before may be from the measured one.
    pub fn allowed(self) -> f64 {
        match self {
            ChangeKind::Bandwidth => 0.15,
            ChangeKind::Latency => 0.30,
        }
    }
}

/// A machine with edits, and who chooses how its calls are done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSide {
    /// The machine.
    pub machine: String,
    /// Edits of machine and workload, `;` between them.
    #[serde(default)]
    pub edits: String,
    /// NCCL chooses by itself; otherwise the fastest of what the edits leave runs.
    #[serde(default)]
    pub nccl: bool,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Figure {
    /// An all-reduce of so many bytes, us.
    Call {
        /// Bytes of the call.
        bytes: u64,
    },
    /// Copies by the engines of the sending GPUs, all at once, GB/s together.
    Copies {
        /// From which GPU to which.
        flows: Vec<(u32, u32)>,
    },
    /// Every GPU with every other at once, GB/s together.
    AllPairs {
        /// Who moves the bytes.
        way: Way,
    },
    /// A dependent read of another GPU's memory, ns.
    Read {
        /// Who reads.
        gpu: u32,
        /// Whose memory.
        of: u32,
        /// Bytes of the read.
        bytes: u32,
    },
    /// Tokens a second at one a step. What a step takes beside its calls is the measured step before less
    /// its calls, so only after is predicted.
    TokPerS {
        /// The workload.
        scenario: String,
        /// Its step.
        step: String,
    },
}

/// How bytes are moved between GPUs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// A bulk copy kernel reads, as p2pmark does.
    Read,
    /// Copy engines write.
    Write,
}

/// A measured change beside its prediction.
#[derive(Clone, Debug, Serialize)]
pub struct Predicted {
    /// What was measured.
    pub change: MeasuredChange,
    /// Predicted before and after.
    pub predicted: [f64; 2],
    /// Predicted ratio of after to before over the measured one, less one.
    pub error: f64,
    /// Both say up, both say down, or both say no change.
    pub sign: bool,
}

impl Predicted {
    /// The sign is right and the size as near as it is to be.
    pub fn holds(&self) -> bool {
        self.sign && self.error.abs() <= self.change.kind.allowed()
    }
}

/// Bytes of one copy of a few, and of one of many.
const COPY_BYTES: u32 = 4 << 20;
const COPY_BYTES_OF_MANY: u32 = 512 << 10;

impl MeasuredChanges {
    /// Those that come with the program.
    ///
    /// # Errors
    /// When the embedded file is damaged, which a test excludes.
    pub fn embedded() -> Result<MeasuredChanges> {
        error::embedded("measured/what-if.json", include_str!("../../measured/what-if.json"))
    }

    /// Predicts all of them. `machine` and `scenario` find what the file names.
    ///
    /// # Errors
    /// Machines, edits and steps that there are not, and those of the engine.
    pub fn predicted(
        &self,
        machine: impl Fn(&str) -> Result<Topology> + Sync,
        scenario: impl Fn(&str) -> Result<Scenario> + Sync,
        calibration: &Calibration,
    ) -> Result<Vec<Predicted>> {
        let finder = Finder { machine: &machine, scenario: &scenario, calibration };
        in_parallel(&self.changes, |change| finder.predicted(change))
    }
}

struct Finder<'a> {
    machine: &'a (dyn Fn(&str) -> Result<Topology> + Sync),
    scenario: &'a (dyn Fn(&str) -> Result<Scenario> + Sync),
    calibration: &'a Calibration,
}

/// The workload of figures that are no step.
const SCENARIO: &str = "kimi-k25-tp8";

impl Finder<'_> {
    fn predicted(&self, change: &MeasuredChange) -> Result<Predicted> {
        let before = self.figure(change, &change.before)?;
        let after = self.figure(change, &change.after)?;
        let predicted = match &change.figure {
            Figure::TokPerS { .. } => {
                // The two are ms of calls.
                let step = 1e3 / change.measured[0];
                [change.measured[0], 1e3 / (step - before + after)]
            }
            _ => [before, after],
        };
        let [was, is] = [change.measured, predicted].map(|[before, after]| after / before);
        Ok(Predicted {
            change: change.clone(),
            predicted,
            error: is / was - 1.0,
            sign: same_sign(is, was),
        })
    }

    /// The figure of one side; of tokens a second the ms of calls a step.
    fn figure(&self, change: &MeasuredChange, side: &ChangeSide) -> Result<f64> {
        let name = match &change.figure {
            Figure::TokPerS { scenario, .. } => scenario,
            _ => SCENARIO,
        };
        let (topology, scenario) = ((self.machine)(&side.machine)?, (self.scenario)(name)?);
        let plan = Plan { topology, scenario, choice: Choice::default() };
        let edits = parse_edits(std::slice::from_ref(&side.edits))?;
        let terms = Terms { regimes: true, ranges: false, fidelity: Fidelity::Packet };
        let prepared =
            plan.edited(&edits, self.calibration)?.0.prepared(self.calibration, terms)?;
        let fabric = &prepared.machine.nominal.fabric;
        match &change.figure {
            Figure::Call { bytes } if side.nccl => nccl_us(&prepared, *bytes),
            Figure::Call { bytes } => fastest_us(&prepared, *bytes),
            Figure::Copies { flows } => {
                let copies: Vec<Stream> =
                    flows.iter().map(|&(a, b)| Stream::write(a, b, COPY_BYTES)).collect();
                total_rate(fabric, &copies)
            }
            Figure::AllPairs { way } => {
                let gpus = &prepared.options.gpus;
                total_rate(fabric, &all_pairs(gpus, *way))
            }
            Figure::Read { gpu, of, bytes } => {
                let idle = fabric.read_latency(*gpu as usize, *of, *bytes);
                let idle = idle.ok_or_else(|| Error::request("no way between the two GPUs", ""))?;
                Ok(idle.as_ns())
            }
            Figure::TokPerS { step, .. } => {
                let found = prepared.scenario.step(step).ok_or_else(|| {
                    Error::request(format!("scenario `{name}` has no step `{step}`"), "")
                })?;
                Ok(fastest_us(&prepared, found.bytes)? * f64::from(found.calls) / 1e3)
            }
        }
    }
}

/// What NCCL takes by itself, us.
fn nccl_us(prepared: &Prepared, bytes: u64) -> Result<f64> {
    let (machine, options) = (&prepared.machine, &prepared.options);
    let setup = newest(machine, &options.gpus).ok_or_else(|| {
        Error::request(format!("NCCL would not understand {}", machine.topology.name), "")
    })?;
    let chosen = taken(&setup, Collective::AllReduce, bytes, options)?;
    let (case, options) = chosen.case.map_err(|reason| Error::request(reason, ""))?;
    case.nominal_us(machine, bytes, &options)
}

fn fastest_us(prepared: &Prepared, bytes: u64) -> Result<f64> {
    Ok(some_left(prepared.fastest(bytes)?)?.1)
}

fn all_pairs(gpus: &[u32], way: Way) -> Vec<Stream> {
    match way {
        Way::Write => all_pairs_writes(gpus, COPY_BYTES_OF_MANY),
        Way::Read => {
            let reads = all_pairs_reads(gpus, COPY_BYTES_OF_MANY);
            reads.into_iter().map(|stream| Stream { kernel: true, ..stream }).collect()
        }
    }
}

/// All bytes over the end of the last copy, GB/s, without what copies need to get going: from the
/// difference to copies of half as many bytes.
fn total_rate(fabric: &Fabric, copies: &[Stream]) -> Result<f64> {
    let ended = |share: u32| {
        let some: Vec<Stream> =
            copies.iter().map(|copy| Stream { bytes: copy.bytes / share, ..*copy }).collect();
        let options = RunOptions::default();
        Ok::<f64, Error>(
            simulate(fabric, &streams(&some), Fidelity::Packet, options)?.ended.as_ns(),
        )
    };
    let total: u64 = copies.iter().map(|copy| u64::from(copy.bytes)).sum();
    Ok(total as f64 / 2.0 / (ended(1)? - ended(2)?))
}
