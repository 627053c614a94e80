//! How the time of a call grows beyond what is run packet by packet.
//!
//! The packet model is run up to a size; beyond, what the max-min model adds for the very schedule of
//! the larger call is added to its time, in the proportion of both at that size where the bytes already
//! make the time there, and as it is where they do not: what packets cost over max-min in starts and
//! steps says nothing of larger calls. Chunks, slots and loops of the larger call are thereby the real
//! ones, which a straight line through two smaller calls does not promise. Once the loops of a schedule
//! repeat, so that doublings of the size double what is done and add the same time a byte, the last one
//! is continued; from 128 MiB on the loops of all schedules do.

use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use super::machine::Machine;
use super::options::CaseOptions;
use crate::engine::{Fidelity, Outcome, RunOptions, simulate};
use crate::error::Result;
use crate::fabric::Fabric;
use crate::schedule::{Collective, Schedule};

/// What all ranks of a call that is run packet by packet load and store, roughly, bytes.
const EXACT_TRAFFIC: u64 = 640 << 20;
/// Bounds of the largest call that is run packet by packet.
const EXACT_RANGE: (u64, u64) = (4 << 20, 64 << 20);

/// Largest call of an algorithm on so many ranks that is run packet by packet.
pub fn exact_bytes(algorithm: &str, ranks: usize) -> u64 {
    let ranks = ranks.max(1) as u64;
    let each = match algorithm {
        // All buffers go to all ranks.
        "one_shot_pull" | "one_shot_push" | "allpair_packet" => ranks * ranks,
        // A rank loads and stores every byte about twice.
        _ => 4 * ranks,
    };
    let (least, most) = EXACT_RANGE;
    (1 << (EXACT_TRAFFIC / each).max(1).ilog2()).clamp(least, most)
}

/// Largest call whose growth is computed; beyond, a straight line.
const LINE_FROM: u64 = 128 << 20;
/// Times a byte of two doublings that differ by less, relative, are alike.
const ALIKE: f64 = 1e-3;
/// How many times longer a call takes than one of half the bytes where these make its time.
const PROPORTIONAL: f64 = 1.8;
/// Doublings in a row whose loops repeat, after which a line is followed.
const REPEATS: u32 = 2;

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
    /// Whether the bytes make most of the time at the exact size.
    proportional: bool,
    /// Max-min times by size, us, the exact size among them; beyond the last two doublings a line.
    times: BTreeMap<u64, f64>,
    /// From here on time grows along a line, bytes, by so many us a byte.
    line: Option<(u64, f64)>,
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
        let ran = |size: u64| {
            let options = RunOptions { calls: mean.simulated(size), ..RunOptions::default() };
            let schedule = build(size)?;
            let outcome = simulate(fabric, &schedule, Fidelity::MaxMin, options)?;
            Ok((mean.of_us(&outcome), operations(&schedule)))
        };
        Growth::by(exact, sizes, ran)
    }

    /// The growth of calls of which a function tells time and operations.
    fn by(
        exact: u64,
        sizes: &[u64],
        ran: impl Fn(u64) -> Result<(f64, Option<usize>)>,
    ) -> Result<Growth> {
        let wanted: BTreeSet<u64> = sizes.iter().copied().filter(|&size| size > exact).collect();
        let mut growth = Growth { exact, proportional: false, times: BTreeMap::new(), line: None };
        let Some(&largest) = wanted.last() else { return Ok(growth) };
        let (mut from, mut before) = (exact, ran(exact)?);
        growth.times.insert(exact, before.0);
        growth.proportional = before.0 > PROPORTIONAL * ran(exact / 2)?.0;
        let (mut slope, mut repeats) = (f64::NAN, 0);
        while from < largest {
            let to = 2 * from;
            // Between two doublings, what is asked for.
            for &size in wanted.range(from + 1..to) {
                growth.times.insert(size, ran(size)?.0);
            }
            if largest < to {
                break;
            }
            let now = ran(to)?;
            growth.times.insert(to, now.0);
            let added = (now.0 - before.0) / from as f64;
            let alike = (added / slope - 1.0).abs() < ALIKE && doubled(before.1, now.1);
            repeats = if alike { repeats + 1 } else { 0 };
            if repeats >= REPEATS || to >= LINE_FROM {
                growth.line = Some((to, added));
                break;
            }
            (from, before, slope) = (to, now, added);
        }
        Ok(growth)
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
        let grown = match self.line {
            Some((from, slope)) if bytes > from => {
                time(from).map(|near| near + slope * (bytes - from) as f64)
            }
            _ => time(bytes),
        };
        let packets = if self.proportional { exact_us / base } else { 1.0 };
        exact_us + (grown.unwrap_or(base) - base) * packets
    }
}

/// How times grow beyond the exact size: with what holds for the machine, and without its declared
/// regimes.
pub(super) struct Growths {
    pub(super) nominal: Growth,
    pub(super) bare: Option<Growth>,
}

impl Growths {
    pub(super) fn of(
        case: &Case,
        machine: &Machine,
        sizes: &[u64],
        options: &CaseOptions,
        bare: bool,
    ) -> Result<Growths> {
        let sizes: Vec<u64> = sizes.iter().map(|&bytes| case.round_up(bytes, options)).collect();
        let nominal = case.growth(&machine.nominal, machine, &sizes, options)?;
        let bare = match &machine.without_regimes {
            Some(variant) if bare => Some(case.growth(variant, machine, &sizes, options)?),
            _ => None,
        };
        Ok(Growths { nominal, bare })
    }
}

/// Operations of a schedule; `None` where more bytes also go to more blocks, so that its loops do not
/// tell how larger ones go on.
fn operations(schedule: &Schedule) -> Option<usize> {
    let blocks = schedule.ranks.iter().flat_map(|rank| &rank.blocks);
    let fixed = schedule.collective != Some(Collective::AllToAll);
    fixed.then(|| blocks.map(|block| block.ops.len()).sum())
}

/// Whether twice the bytes take twice the operations, but for what a call takes once: pieces of a call
/// that are cut smaller do not.
fn doubled(before: Option<usize>, after: Option<usize>) -> bool {
    let both = before.zip(after);
    both.is_some_and(|(before, after)| (19 * before..=21 * before).contains(&(10 * after)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_say_how_bytes_go_on_and_not_how_starts_do() {
        // Max-min 100 us at the exact size and 180 us for the larger call: 80 us more. Packets that
        // take 150 us make them 120, those that take 90 us 72; where a call of half the bytes took
        // more than 100 / 1.8 us, they stay 80.
        let times = BTreeMap::from([(4 << 20, 100.0), (8 << 20, 180.0)]);
        let growth = Growth { exact: 4 << 20, proportional: true, times, line: None };
        assert!((growth.time_us(150.0, 8 << 20) - 270.0).abs() < 1e-9);
        assert!((growth.time_us(90.0, 8 << 20) - 162.0).abs() < 1e-9);
        assert!((growth.time_us(90.0, 4 << 20) - 90.0).abs() < 1e-9);
        let starts = Growth { proportional: false, ..growth };
        assert!((starts.time_us(150.0, 8 << 20) - 230.0).abs() < 1e-9);
        // 10 us and 1 us a MiB: 14 us and 12; 0 us and 1 us a MiB: 4 and 2.
        let of = |start: f64| {
            let time = |size: u64| start + (size >> 20) as f64;
            Growth::by(4 << 20, &[8 << 20], |size| Ok((time(size), None))).expect("times")
        };
        assert_eq!([of(10.0), of(0.0)].map(|growth| growth.proportional), [false, true]);
    }

    #[test]
    fn exact_calls_are_larger_where_fewer_bytes_move() {
        // 640 MiB over 4 times two, eight and sixteen ranks: 80 (but 64 at most), 20 and 10 MiB; where
        // all go to all, 10 of eight and 2.5 of sixteen (but 4 at least).
        let of = |algorithm, ranks| exact_bytes(algorithm, ranks) >> 20;
        assert_eq!([2, 8, 16].map(|ranks| of("ring", ranks)), [64, 16, 8]);
        assert_eq!([8, 16].map(|ranks| of("one_shot_pull", ranks)), [8, 4]);
    }

    /// Sizes that a growth ran, MiB, and its time of the largest of `sizes` where the exact size takes
    /// as long as max-min says. Operations are of 64 KiB, or of an eighth of the call.
    fn ran(sizes: &[u64], fixed: bool, time: impl Fn(u64) -> f64) -> (Vec<u64>, f64) {
        let operations = |size: u64| if fixed { (size >> 16) as usize } else { 8 };
        let ran = |size| Ok((time(size), Some(operations(size))));
        let growth = Growth::by(4 << 20, sizes, ran).expect("times");
        let largest = sizes.iter().copied().max().unwrap_or_default();
        let us = growth.time_us(time(4 << 20), largest);
        (growth.times.keys().map(|size| size >> 20).collect(), us)
    }

    #[test]
    fn a_line_is_followed_once_loops_repeat() {
        // 10 us and 1 us a MiB: three doublings show it.
        let line = |size: u64| 10.0 + (size >> 20) as f64;
        let (sizes, us) = ran(&[12 << 20, 512 << 20], true, line);
        assert_eq!(sizes, [4, 8, 12, 16, 32]);
        assert!((us - 522.0).abs() < 1e-9, "{us}");
        // Pieces that grow with the call say nothing of those of larger calls.
        assert_eq!(ran(&[512 << 20], false, line).0, [4, 8, 16, 32, 64, 128]);
        // A loop of 64 MiB that costs its whole for every part never repeats below 128 MiB.
        let loops = |size: u64| 10.0 + size.div_ceil(64 << 20) as f64 * 64.0 + (size >> 22) as f64;
        let (sizes, us) = ran(&[1 << 30], false, loops);
        assert_eq!(sizes, [4, 8, 16, 32, 64, 128]);
        assert!((us - loops(1 << 30)).abs() < 1e-6, "{us}");
        assert_eq!(ran(&[6 << 20], true, line).0, [4, 6]);
        assert!(ran(&[4 << 20], true, line).0.is_empty());
    }
}
