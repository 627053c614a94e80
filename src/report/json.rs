//! Everything of an answer as JSON, with what it was made from.

use serde_json::{Value, json};

use super::assumptions::of_the_model;
use super::hash::{calibration_hash, fnv1a, hex};
use crate::algorithm::Flags;
use crate::error::Result;
use crate::input::topology_json;
use crate::prediction::CasePrediction;
use crate::sweep::{Answer, Question};

/// Version of this form; a later incompatible one counts up.
pub const SCHEMA_VERSION: u32 = 1;

/// The answer of the first screen.
///
/// # Errors
/// A topology that JSON cannot hold.
pub fn answer(question: &Question<'_>, answer: &Answer, seed: u64) -> Result<Value> {
    let mut value = head(question, seed)?;
    let steps: Vec<Value> = answer
        .steps
        .iter()
        .map(|step| {
            json!({
                "step": step.step,
                "bound_us": step.bound.time.as_us(),
                "bound_latency_us": step.bound.latency.as_us(),
                "bound_transfer_us": step.bound.transfer.as_us(),
                "bound_limit": step.bound.limit,
                "best": question.cases[step.best].title,
                "best_sure": step.sure,
            })
        })
        .collect();
    value["steps"] = Value::Array(steps);
    value["predictions"] = json!(answer.rows.iter().flatten().collect::<Vec<&CasePrediction>>());
    value["one_stage_sum"] = json!(answer.waterfall);
    value["exchanges"] = json!(answer.exchanges);
    value["other_wirings"] = json!(answer.wirings);
    value["measured_nearby"] = json!(answer.nearby);
    Ok(value)
}

/// Many sizes.
///
/// # Errors
/// As [`answer`].
pub fn sizes(question: &Question<'_>, rows: &[Vec<CasePrediction>], seed: u64) -> Result<Value> {
    let mut value = head(question, seed)?;
    value["predictions"] = json!(rows.iter().flatten().collect::<Vec<&CasePrediction>>());
    Ok(value)
}

/// What every answer is made from.
fn head(question: &Question<'_>, seed: u64) -> Result<Value> {
    let topology = &question.machine.topology;
    let text = topology_json::write(topology)?;
    Ok(json!({
        "schema_version": SCHEMA_VERSION,
        "program": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
        "inputs": {
            "topology": topology.name,
            "topology_fnv1a": hex(fnv1a(&[&text])),
            "calibration_fnv1a": hex(calibration_hash()),
            "scenario": question.scenario,
            "gpus": question.options.gpus,
            "fidelity": question.options.fidelity.name(),
            "flags": match question.options.flags {
                Flags::Peer => "peer",
                Flags::Host => "host",
            },
            "declared_regimes_applied": question.machine.without_regimes.is_some(),
            "seed": seed,
        },
        "assumptions": topology.assumptions.iter().chain(&of_the_model()).collect::<Vec<_>>(),
        "declared_regimes": topology.regimes,
    }))
}
