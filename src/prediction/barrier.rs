//! What a barrier of the GPUs costs by the memory that holds its flags. It shows whether a barrier
//! over PCIe has to go through host memory.

use serde::Serialize;

use super::machine::Machine;
use super::options::CaseOptions;
use crate::algorithm::barrier::{FlagPlace, barrier};
use crate::engine::{RunOptions, simulate};
use crate::error::Result;

/// A barrier, us.
#[derive(Clone, Debug, Serialize)]
pub struct BarrierTimes {
    /// GPUs that meet.
    pub gpus: usize,
    /// Blocks of each.
    pub blocks: u32,
    /// Flags where the waiting GPU polls its own memory.
    pub waiting_us: f64,
    /// Flags where the arriving GPU stores at home and its peers poll across the links.
    pub arrived_us: f64,
    /// Flags in host memory; none where the machine has none.
    pub host_us: Option<f64>,
}

/// Barriers in a row, for a mean that the start does not show in.
const CALLS: u32 = 8;

impl BarrierTimes {
    /// Of the GPUs of a question, with `blocks` blocks each.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn of(machine: &Machine, options: &CaseOptions, blocks: u32) -> Result<BarrierTimes> {
        let fabric = &machine.nominal.fabric;
        let time = |place| -> Result<f64> {
            let schedule = barrier(fabric, &options.gpus, blocks as usize, place)?;
            let run_options = RunOptions { calls: CALLS, ..RunOptions::default() };
            let outcome = simulate(fabric, &schedule, options.fidelity, run_options)?;
            Ok(outcome.mean_call_time().as_us())
        };
        let has_host = |&gpu: &u32| fabric.home_memory[gpu as usize].is_some();
        let host = options.gpus.iter().all(has_host);
        Ok(BarrierTimes {
            gpus: options.gpus.len(),
            blocks,
            waiting_us: time(FlagPlace::Waiting)?,
            arrived_us: time(FlagPlace::Arrived)?,
            host_us: host.then(|| time(FlagPlace::Host)).transpose()?,
        })
    }
}
