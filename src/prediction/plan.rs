//! A plan on a machine: proved first, then timed.

use super::Machine;
use crate::algorithm::plan::{Plan, build};
use crate::algorithm::{Flags, Kernel, Request, Transport};
use crate::engine::{Fidelity, RunOptions, simulate};
use crate::error::{Error, Result};
use crate::schedule::Schedule;
use crate::schedule::proof::prove;

/// Calls of which the mean time is taken, the first left out.
const CALLS: u32 = 4;

/// The schedule of a plan on a machine.
///
/// # Errors
/// As [`build`].
pub fn schedule(plan: &Plan, machine: &Machine, gpus: &[u32], bytes: u64) -> Result<Schedule> {
    let variant = &machine.nominal;
    let kernel = Kernel::of(plan.implementation(), &variant.calibration, &machine.gpu_model)?;
    let request = Request {
        fabric: &variant.fabric,
        gpus: gpus.to_vec(),
        bytes,
        protocol: plan.protocol,
        kernel,
        transport: Transport::Peer,
        flags: Flags::default(),
        blocks: None,
        settled: None,
        orders: Vec::new(),
        islands: Vec::new(),
    };
    build(plan, &request)
}

/// Proves that a plan does what its collective asks for, at its smallest size.
///
/// # Errors
/// [`Error::Request`] with the first flaw, and those of [`schedule`].
pub fn prove_plan(plan: &Plan, machine: &Machine, gpus: &[u32]) -> Result<()> {
    let schedule = schedule(plan, machine, gpus, plan.round_up(1))?;
    prove(&schedule).map_err(|flaw| {
        Error::request(
            format!("{} is no {}: {flaw}", plan.name, plan.title()),
            "an element is 16 bytes of a chunk; bit r of a set of contributions is rank r",
        )
    })
}

/// Time of a call of `bytes`, us; the size is one that the plan's chunks divide.
///
/// # Errors
/// As [`schedule`], and those of the engine.
pub fn plan_us(
    plan: &Plan,
    machine: &Machine,
    gpus: &[u32],
    bytes: u64,
    fidelity: Fidelity,
) -> Result<f64> {
    let schedule = schedule(plan, machine, gpus, bytes)?;
    let options = RunOptions { calls: CALLS, ..RunOptions::default() };
    let outcome = simulate(&machine.nominal.fabric, &schedule, fidelity, options)?;
    Ok(outcome.mean_call_time().as_us())
}
