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
use crate::sweep::environments::Environment;
use crate::sweep::spread::spreads;
use crate::sweep::{Answer, Question};

/// Version of this form; a later incompatible one counts up.
pub const SCHEMA_VERSION: u32 = 1;

/// The answer of the first screen.
///
/// # Errors
/// A topology that JSON cannot hold, or a damaged table of spreads.
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
    value["spread"] = json!(spreads(question, answer, seed)?);
    value["in_place"] = json!(answer.in_place);
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
pub fn choose(
    choosing: &Choosing<'_>,
    sizes: &[Chosen],
    environments: &[Environment],
    cure: Option<&Cure>,
) -> Result<Value> {
    let setup = choosing.setup;
    let mut value = made_from(choosing.machine)?;
    value["inputs"]["nccl"] = json!(setup.version.to_string());
    value["inputs"]["collective"] = json!(choosing.collective);
    value["inputs"]["gpus"] = json!(choosing.options.gpus);
    value["assumed"] = json!(setup.inventory.assumed);
    value["not_modelled"] = json!(setup.graphs.not_modelled);
    value["graphs"] = json!(setup.graphs);
    value["channels"] = json!(setup.channels);
    value["ring_hops"] = json!(setup.ring_hops);
    value["tree_hops"] = json!(setup.tree_hops);
    value["search_fails"] = json!(setup.graphs.ring.fallback);
    value["cure"] = json!(cure.map(|cure| json!({
        "believed_between_cpus_gb_per_s": cure.believed,
        "slowest_trial_gb_per_s": cure.slowest_trial,
        "graphs": cure.graphs,
        "graphs_below_one_cpu": cure.with_one_cpu,
    })));
    value["sizes"] = json!(sizes);
    value["environments"] = json!(environments);
    Ok(value)
}

/// What a serving engine would take.
///
/// # Errors
/// As [`answer`].
pub fn dispatch(machine: &Machine, sizes: &[Dispatched]) -> Result<Value> {
    let mut value = made_from(machine)?;
    value["sizes"] = json!(sizes);
    Ok(value)
}

/// What every answer of the main job is made from.
fn head(question: &Question<'_>, seed: u64) -> Result<Value> {
    let topology = &question.machine.topology;
    let options = question.options;
    let mut value = made_from(question.machine)?;
    value["inputs"]["scenario"] = json!(question.scenario);
    value["inputs"]["gpus"] = json!(options.gpus);
    value["inputs"]["fidelity"] = json!(options.fidelity.name());
    value["inputs"]["flags"] = json!(match options.flags {
        Flags::Peer => "peer",
        Flags::Host => "host",
    });
    value["inputs"]["seed"] = json!(seed);
    value["assumptions"] =
        json!(topology.assumptions.iter().chain(&of_the_model()).collect::<Vec<_>>());
    value["declared_regimes"] = json!(topology.regimes);
    Ok(value)
}

/// The program, the machine and the constants.
pub(super) fn made_from(machine: &Machine) -> Result<Value> {
    let text = topology_json::write(&machine.topology)?;
    Ok(json!({
        "schema_version": SCHEMA_VERSION,
        "program": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
        "inputs": {
            "topology": machine.topology.name,
            "topology_fnv1a": hex(fnv1a(&[&text])),
            "calibration_fnv1a": hex(calibration_hash(&machine.nominal.calibration)),
            "declared_regimes_applied": machine.without_regimes.is_some(),
        },
    }))
}
