//! A call among ranks that do not come together: how long it is in a profile, and what of that is
//! waiting for the last rank.

use serde::Serialize;

use super::{Case, CaseOptions, Machine};
use crate::engine::{Arrivals, RunOptions, Stay, simulate};
use crate::error::{Error, Result};
use crate::units::Time;
use crate::workload::{Arrival, Step};

/// Means over ranks and calls, us.
#[derive(Clone, Debug, Serialize)]
pub struct InPlace {
    /// Calls simulated.
    pub calls: u32,
    /// From a rank's arrival to its end: the length of the kernel in a profile.
    pub in_place_us: f64,
    /// Of it, waiting for the last rank to come.
    pub waiting_us: f64,
    /// Of it, what the call takes once all are there.
    pub moving_us: f64,
    /// Shortest stay of a rank in a call, the mean over calls: what a profile of the last rank shows.
    pub last_rank_us: f64,
    /// From the end of a call on the last rank to the end of the next, the computing between them
    /// included.
    pub call_to_call_us: f64,
}

/// Most calls simulated: means of more differ little.
const CALLS_MAX: u32 = 32;

impl InPlace {
    /// The calls of a step by one case.
    ///
    /// # Errors
    /// Arrivals of another number of ranks, and those of the algorithm and the engine.
    pub fn of(
        case: &Case,
        machine: &Machine,
        step: &Step,
        arrival: &Arrival,
        options: &CaseOptions,
    ) -> Result<InPlace> {
        let calls = step.calls.min(CALLS_MAX);
        let ranks = options.gpus.len() as u32;
        if let Some(fault) = arrival.fault(ranks) {
            let message = format!("the arrival of step `{}`: {fault}", step.name);
            return Err(Error::request(message, "list a time for each GPU that takes part"));
        }
        let gaps = arrival.gaps_us(calls, ranks);
        let times = |ranks: Vec<f64>| ranks.into_iter().map(Time::from_us).collect();
        let arrivals = Arrivals::after(gaps.into_iter().map(times).collect());
        let schedule = case.schedule(machine, step.bytes, options)?;
        let run = RunOptions { calls, arrivals, ..RunOptions::default() };
        let outcome = simulate(&machine.nominal.fabric, &schedule, options.fidelity, run)?;
        // Ranks after those of the call are traffic beside it.
        let of_ranks = |call: usize| outcome.stays(call)[..ranks as usize].to_vec();
        let stays: Vec<Vec<Stay>> = (0..calls as usize).map(of_ranks).collect();
        let mean = |what: fn(&Stay) -> Time| {
            let all = stays.iter().flatten().map(what);
            all.map(Time::as_us).sum::<f64>() / stays.iter().flatten().count().max(1) as f64
        };
        let shortest = stays.iter().filter_map(|call| call.iter().map(Stay::in_place).min());
        Ok(InPlace {
            calls,
            in_place_us: mean(Stay::in_place),
            waiting_us: mean(|stay| stay.waiting),
            moving_us: mean(|stay| stay.moving),
            last_rank_us: shortest.map(Time::as_us).sum::<f64>() / f64::from(calls),
            call_to_call_us: outcome.ended.as_us() / f64::from(calls),
        })
    }
}
