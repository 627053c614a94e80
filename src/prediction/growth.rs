//! How the time of a call grows beyond what is run packet by packet.
//!
//! The packet model is run up to a size; beyond, what the max-min model adds for the very schedule of
//! the larger call is added to its time, stretched by what packets cost over max-min at that size
//! where they cost more. Chunks, slots and loops of the larger call are thereby the real ones, and no
//! wire is exceeded, which a straight line through two smaller calls does not promise. From 128 MiB
//! on the loops of all schedules repeat, and the last doubling is continued.

use std::collections::BTreeMap;

use crate::engine::{Fidelity, Outcome, RunOptions, simulate};
use crate::error::Result;
use crate::fabric::Fabric;
use crate::schedule::Schedule;

/// Largest call whose growth is computed; beyond, a straight line.
const LINE_FROM: u64 = 128 << 20;

/// What the time of a call is the mean of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Mean {
    /// Calls back to back.
    pub calls: u32,
    /// All of them count, from the start of the first; otherwise those after the first.
    pub from_first: bool,
}

/// Calls of more bytes than this are long against what varies between them.
const LONG_BYTES: u64 = 256 << 10;
/// Long calls that are run for a mean of more: the first, and how the later ones follow each other.
const LONG_CALLS: u32 = 3;

impl Mean {
    /// How many calls of `bytes` are run for it: later ones take as long as the last of these.
    pub fn simulated(self, bytes: u64) -> u32 {
        let long = self.from_first && bytes > LONG_BYTES;
        if long { self.calls.min(LONG_CALLS) } else { self.calls }
    }

    /// The mean, us.
    pub fn of_us(self, outcome: &Outcome) -> f64 {
        match self.from_first {
            true => {
                let rest = f64::from(self.calls.saturating_sub(outcome.calls));
                let last = outcome.call_time(outcome.call_ends.len() - 1).as_us();
                (outcome.ended.as_us() + rest * last) / f64::from(self.calls.max(1))
            }
            false => outcome.mean_call_time().as_us(),
        }
    }
}

/// Growth of calls larger than an exact one.
#[derive(Clone, Debug)]
pub struct Growth {
    exact: u64,
    /// Max-min times by size, us, the exact size among them.
    times: BTreeMap<u64, f64>,
}

impl Growth {
    /// The growth from `exact` bytes to each of `sizes`.
    ///
    /// # Errors
    /// Those of `build` and of the engine.
    pub fn of(
        fabric: &Fabric,
        exact: u64,
        sizes: &[u64],
        build: impl Fn(u64) -> Result<Schedule>,
    ) -> Result<Growth> {
        Growth::of_calls(fabric, exact, sizes, Mean { calls: 1, from_first: true }, build)
    }

    /// The same for the mean of several calls, where calls overlap.
    ///
    /// # Errors
    /// As [`Growth::of`].
    pub fn of_calls(
        fabric: &Fabric,
        exact: u64,
        sizes: &[u64],
        mean: Mean,
        build: impl Fn(u64) -> Result<Schedule>,
    ) -> Result<Growth> {
        let mut times = BTreeMap::new();
        let larger = sizes.iter().copied().filter(|&size| size > exact);
        let mut wanted: Vec<u64> = larger.map(|size| size.min(LINE_FROM)).collect();
        if wanted.contains(&LINE_FROM) {
            wanted.push(LINE_FROM / 2);
        }
        if !wanted.is_empty() {
            wanted.push(exact);
        }
        wanted.sort_unstable();
        wanted.dedup();
        for size in wanted {
            let options = RunOptions { calls: mean.simulated(size), ..RunOptions::default() };
            let outcome = simulate(fabric, &build(size)?, Fidelity::MaxMin, options)?;
            times.insert(size, mean.of_us(&outcome));
        }
        Ok(Growth { exact, times })
    }

    /// The size from which times grow, bytes.
    pub fn exact(&self) -> u64 {
        self.exact
    }

    /// Time of a call of `bytes`, us, when one of the exact size takes `exact_us`; the same up to
    /// there, and for sizes that were not asked for.
    pub fn time_us(&self, exact_us: f64, bytes: u64) -> f64 {
        let time = |size: u64| self.times.get(&size).copied();
        let Some(base) = time(self.exact).filter(|_| bytes > self.exact) else { return exact_us };
        let near = time(bytes.min(LINE_FROM)).unwrap_or(base);
        let further = match time(LINE_FROM / 2) {
            Some(half) if bytes > LINE_FROM => {
                (near - half) / (LINE_FROM / 2) as f64 * (bytes - LINE_FROM) as f64
            }
            _ => 0.0,
        };
        exact_us + (near + further - base) * (exact_us / base).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contention_stretches_and_speed_does_not() {
        // Max-min 100 us at the exact size and 180 us for the larger call: 80 us more. Packets that
        // take 150 us stretch them by 1.5 to 120; packets that take 90 us do not shrink them.
        let times = BTreeMap::from([(4 << 20, 100.0), (8 << 20, 180.0)]);
        let growth = Growth { exact: 4 << 20, times };
        assert!((growth.time_us(150.0, 8 << 20) - 270.0).abs() < 1e-9);
        assert!((growth.time_us(90.0, 8 << 20) - 170.0).abs() < 1e-9);
        assert!((growth.time_us(90.0, 4 << 20) - 90.0).abs() < 1e-9);
    }
}
