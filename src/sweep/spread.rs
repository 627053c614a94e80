//! How calls and steps vary when they are repeated.

use serde::Serialize;

use super::{Answer, Question};
use crate::error::Result;
use crate::prediction::jitter::{Jitter, Percentiles};
use crate::prediction::regime::Medium;

/// How the calls of a step by one case vary.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// The case.
    pub title: String,
    /// The step.
    pub step: String,
    /// Of a call, us.
    pub call_us: Percentiles,
    /// Of all calls of a step, ms.
    pub step_ms: Percentiles,
}

/// By case, then by step.
///
/// # Errors
/// When the embedded table of spreads is damaged, which a test excludes.
pub fn spreads(question: &Question<'_>, answer: &Answer, seed: u64) -> Result<Vec<Spread>> {
    let fabric = &question.machine.nominal.fabric;
    let mut spreads = Vec::new();
    for (case, row) in question.cases.iter().zip(&answer.rows) {
        let medium = Medium::of(fabric, &question.options.gpus, &case.transport);
        let jitter = Jitter::of(medium)?;
        for (prediction, step) in row.iter().zip(&answer.steps) {
            let us = prediction.time_us.value;
            spreads.push(Spread {
                title: prediction.title.clone(),
                step: step.step.name.clone(),
                call_us: jitter.call(us),
                step_ms: jitter.step(us / 1e3, step.step.calls, seed),
            });
        }
    }
    Ok(spreads)
}
