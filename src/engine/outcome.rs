//! What a run leaves behind, as plain data.

use super::arrival::{Arrivals, Stay};
use super::network::LinkUse;
use crate::units::Time;

/// What one block moved.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockUse {
    /// Payload loaded, after the warm-up.
    pub loaded: u64,
    /// Payload stored, after the warm-up.
    pub stored: u64,
    /// When its last operation of the last call ended.
    pub ended: Time,
}

/// What happened.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How long each rank computed before each call.
    pub arrivals: Arrivals,
    /// When each rank ended each call: `[call][rank]`.
    pub call_ends: Vec<Vec<Time>>,
    /// Calls simulated.
    pub calls: u32,
    /// Use of each directed link.
    pub links: Vec<LinkUse>,
    /// By rank and block.
    pub blocks: Vec<Vec<BlockUse>>,
    /// From when bytes were counted in `blocks`.
    pub counted_from: Time,
    /// End of the run.
    pub ended: Time,
    /// Events handled.
    pub events: u64,
    /// Packets sent over links, each link counted.
    pub hops: u64,
}

impl Outcome {
    /// When a rank came to a call: when it had ended the call before and computed.
    pub fn arrived(&self, call: usize, rank: usize) -> Time {
        let before = if call == 0 { Time::ZERO } else { self.call_ends[call - 1][rank] };
        before + self.arrivals.gap(call, rank)
    }

    /// Every rank's stay in a call.
    pub fn stays(&self, call: usize) -> Vec<Stay> {
        let ranks = 0..self.call_ends[call].len();
        let last = ranks.clone().map(|rank| self.arrived(call, rank)).max().unwrap_or_default();
        let ends = &self.call_ends[call];
        ranks.map(|rank| Stay::new(self.arrived(call, rank), ends[rank], last)).collect()
    }

    /// When the last rank ended a call.
    pub fn call_end(&self, call: usize) -> Time {
        self.call_ends[call].iter().copied().max().unwrap_or_default()
    }

    /// Time from the end of call `call - 1` (or the start) to the end of call `call`.
    pub fn call_time(&self, call: usize) -> Time {
        let before = if call == 0 { Time::ZERO } else { self.call_end(call - 1) };
        self.call_end(call).saturating_sub(before)
    }

    /// Mean time of the calls after the first, or of the only one: the first also holds the filling
    /// of the pipeline.
    pub fn mean_call_time(&self) -> Time {
        let last = self.call_ends.len() - 1;
        if last == 0 {
            return self.call_time(0);
        }
        self.call_end(last).saturating_sub(self.call_end(0)) / last as u64
    }

    /// How far the last two calls differ, relative to the last; zero of fewer than three.
    pub fn spread(&self) -> f64 {
        let calls = self.call_ends.len();
        if calls < 3 {
            return 0.0;
        }
        let (last, before) = (self.call_time(calls - 1).as_us(), self.call_time(calls - 2).as_us());
        ((last - before) / last).abs()
    }

    /// Whether the last two calls of three or more took the same time to the picosecond.
    pub fn repeats(&self) -> bool {
        let calls = self.call_ends.len();
        calls >= 3 && {
            let (last, before) = (self.call_time(calls - 1), self.call_time(calls - 2));
            last.as_ps().abs_diff(before.as_ps()) <= 1
        }
    }
}
