//! Everything of an answer as JSON, with what it was made from.

use serde_json::{Value, json};

use super::assumptions::of_the_model;
use super::hash::{calibration_hash, fnv1a, hex};
use crate::algorithm::Flags;
use crate::error::Result;
use crate::input::topology_json;
use crate::prediction::{CasePrediction, Machine};
use crate::selection::nccl::cure::Cure;
use crate::sweep::choose::{Choosing, Chosen};
use crate::sweep::dispatch::Dispatched;
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
    value["nccl_takes"] = json!(answer.picks);
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

/// What NCCL would choose.
///
/// # Errors
/// As [`answer`].
pub fn choose(choosing: &Choosing<'_>, sizes: &[Chosen], cure: Option<&Cure>) -> Result<Value> {
    let setup = choosing.setup;
    let topology = &choosing.machine.topology;
    let text = topology_json::write(topology)?;
    Ok(json!({
        "schema_version": SCHEMA_VERSION,
        "program": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
        "inputs": {
            "topology": topology.name,
            "topology_fnv1a": hex(fnv1a(&[&text])),
            "calibration_fnv1a": hex(calibration_hash()),
            "nccl": setup.version.to_string(),
            "collective": choosing.collective,
            "gpus": choosing.options.gpus,
            "declared_regimes_applied": choosing.machine.without_regimes.is_some(),
        },
        "assumed": setup.inventory.assumed,
        "not_modelled": setup.graphs.not_modelled,
        "graphs": setup.graphs,
        "channels": setup.channels,
        "ring_hops": setup.ring_hops,
        "tree_hops": setup.tree_hops,
        "search_fails": setup.graphs.ring.fallback,
        "cure": cure.map(|cure| json!({
            "believed_between_cpus_gb_per_s": cure.believed,
            "slowest_trial_gb_per_s": cure.slowest_trial,
            "graphs": cure.graphs,
            "graphs_below_one_cpu": cure.with_one_cpu,
        })),
        "sizes": sizes,
    }))
}

/// What a serving engine would take.
///
/// # Errors
/// As [`answer`].
pub fn dispatch(machine: &Machine, sizes: &[Dispatched]) -> Result<Value> {
    let text = topology_json::write(&machine.topology)?;
    Ok(json!({
        "schema_version": SCHEMA_VERSION,
        "program": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
        "inputs": {
            "topology": machine.topology.name,
            "topology_fnv1a": hex(fnv1a(&[&text])),
            "calibration_fnv1a": hex(calibration_hash()),
            "declared_regimes_applied": machine.without_regimes.is_some(),
        },
        "sizes": sizes,
    }))
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
