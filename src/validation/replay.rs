//! Traces replayed: the ranks of a simulated step come to its calls as the measured ones came, and
//! each call's end, waiting and moving are compared.

use serde::Serialize;

use super::experiment::Machine;
use super::predict;
use crate::engine::{Arrivals, Outcome};
use crate::error::{Error, Result};
use crate::fabric::DeviceClass;
use crate::measurement::trace::{Stamp, Trace};
use crate::statistics::median;
use crate::units::Time;

/// One call of one rank, us from the first arrival of the step.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct StaySpan {
    /// It came.
    pub ready: f64,
    /// The last rank was there, or it had ended before.
    pub together: f64,
    /// It ended.
    pub end: f64,
}

/// One call.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedCall {
    /// From the last rank's arrival to the last rank's end, us: measured.
    pub measured: f64,
    /// The same, simulated.
    pub predicted: f64,
    /// Every rank's stay, measured.
    pub measured_stays: Vec<StaySpan>,
    /// Every rank's stay, simulated.
    pub predicted_stays: Vec<StaySpan>,
}

/// A step.
#[derive(Clone, Debug, Serialize)]
pub struct Replayed {
    /// Kernel, carrier, size and kind of arrival.
    pub name: String,
    /// Median of |predicted / measured - 1| over the calls, each from the last arrival to the last end.
    pub call_error: f64,
    /// Median of the measured calls, us.
    pub call_measured: f64,
    /// Median of the simulated ones.
    pub call_predicted: f64,
    /// Whole step, us: measured.
    pub step_measured: f64,
    /// Simulated.
    pub step_predicted: f64,
    /// Share of the ranks' time in calls that is waiting for the last rank: measured.
    pub waiting_measured: f64,
    /// Simulated.
    pub waiting_predicted: f64,
    /// The calls.
    pub calls: Vec<ReplayedCall>,
}

impl Replayed {
    /// predicted / measured - 1 of the step.
    pub fn step_error(&self) -> f64 {
        self.step_predicted / self.step_measured - 1.0
    }
}

/// Replays a trace.
///
/// # Errors
/// A trace of a run that is no collective, and those of the engine.
pub fn replay(machine: &Machine<'_>, trace: &Trace) -> Result<Replayed> {
    let (run, _) = predict::call_of(machine, &trace.run)
        .ok_or_else(|| Error::request("a trace is of a collective", "report this"))??;
    // The stamp after a call is that of a kernel which starts a node gap later.
    let late = match trace.nodes {
        true => machine.calibration.value(DeviceClass::Gpu, machine.gpu_model(), "graph_node")?,
        false => 0.0,
    };
    let calls: Vec<Vec<Stamp>> = trace.calls.iter().map(|call| ended_earlier(call, late)).collect();
    let outcome = machine.step(&run, calls.len() as u32, arrivals(&calls))?;
    let zero = calls[0].iter().map(|stamp| stamp.ready).fold(f64::INFINITY, f64::min);
    let measured: Vec<Vec<StaySpan>> = calls.iter().map(|call| spans(call, zero)).collect();
    let predicted: Vec<Vec<StaySpan>> =
        (0..calls.len()).map(|call| spans(&stamps(&outcome, call), 0.0)).collect();
    let calls: Vec<ReplayedCall> = measured
        .into_iter()
        .zip(predicted)
        .map(|(measured, predicted)| ReplayedCall {
            measured: moving(&measured),
            predicted: moving(&predicted),
            measured_stays: measured,
            predicted_stays: predicted,
        })
        .collect();
    let of = |pick: fn(&ReplayedCall) -> f64| median(calls.iter().map(pick));
    Ok(Replayed {
        name: trace.name.clone(),
        call_error: of(|call| (call.predicted / call.measured - 1.0).abs()),
        call_measured: of(|call| call.measured),
        call_predicted: of(|call| call.predicted),
        step_measured: last_end(calls.last().map(|call| &call.measured_stays)),
        step_predicted: last_end(calls.last().map(|call| &call.predicted_stays)),
        waiting_measured: waiting(calls.iter().flat_map(|call| &call.measured_stays)),
        waiting_predicted: waiting(calls.iter().flat_map(|call| &call.predicted_stays)),
        calls,
    })
}

fn ended_earlier(call: &[Stamp], ns: f64) -> Vec<Stamp> {
    call.iter().map(|stamp| Stamp { end: (stamp.end - ns).max(stamp.ready), ..*stamp }).collect()
}

/// From a rank's end of the call before to its arrival; before the first call, from the first rank's
/// arrival.
fn arrivals(calls: &[Vec<Stamp>]) -> Arrivals {
    let zero = calls[0].iter().map(|stamp| stamp.ready).fold(f64::INFINITY, f64::min);
    let gap = |call: usize, rank: usize| {
        let before = if call == 0 { zero } else { calls[call - 1][rank].end };
        Time::from_ns((calls[call][rank].ready - before).max(0.0))
    };
    let ranks = calls[0].len();
    Arrivals::after(
        (0..calls.len()).map(|call| (0..ranks).map(|rank| gap(call, rank)).collect()).collect(),
    )
}

fn stamps(outcome: &Outcome, call: usize) -> Vec<Stamp> {
    let stays = outcome.stays(call);
    stays.iter().map(|s| Stamp { ready: s.arrived.as_ns(), end: s.ended.as_ns() }).collect()
}

fn spans(call: &[Stamp], zero: f64) -> Vec<StaySpan> {
    let last = call.iter().map(|stamp| stamp.ready).fold(f64::NEG_INFINITY, f64::max);
    let us = |ns: f64| (ns - zero) / 1e3;
    call.iter()
        .map(|stamp| StaySpan {
            ready: us(stamp.ready),
            together: us(last.min(stamp.end)),
            end: us(stamp.end),
        })
        .collect()
}

/// From the last arrival to the last end.
fn moving(call: &[StaySpan]) -> f64 {
    let last = call.iter().map(|stay| stay.ready).fold(f64::NEG_INFINITY, f64::max);
    call.iter().map(|stay| stay.end).fold(f64::NEG_INFINITY, f64::max) - last
}

fn last_end(call: Option<&Vec<StaySpan>>) -> f64 {
    call.into_iter().flatten().map(|stay| stay.end).fold(0.0, f64::max)
}

fn waiting<'a>(stays: impl Iterator<Item = &'a StaySpan>) -> f64 {
    let (mut waiting, mut all) = (0.0, 0.0);
    for stay in stays {
        waiting += stay.together - stay.ready;
        all += stay.end - stay.ready;
    }
    if all == 0.0 { 0.0 } else { waiting / all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_told_from_moving() {
        let call = [Stamp { ready: 100.0, end: 3000.0 }, Stamp { ready: 2100.0, end: 3100.0 }];
        let spans = spans(&call, 100.0);
        assert!((moving(&spans) - 1.0).abs() < 1e-9);
        // 2.0 of 2.9 us and nothing of 1.0.
        assert!((waiting(spans.iter()) - 2.0 / 3.9).abs() < 1e-9);
        let gaps = arrivals(&[
            call.to_vec(),
            call.iter().map(|s| Stamp { ready: s.end + 50.0, end: s.end + 90.0 }).collect(),
        ]);
        assert_eq!((gaps.gap(0, 0), gaps.gap(0, 1)), (Time::ZERO, Time::from_ns(2000.0)));
        assert_eq!((gaps.gap(1, 0), gaps.gap(1, 1)), (Time::from_ns(50.0), Time::from_ns(50.0)));
    }
}
