//! What fitted latency-plus-rate lines achieve on rows that they were not fitted to, beside our own
//! predictions of the same rows.
//!
//! A line says that a call takes its steps times a latency plus its bytes on a bus over a rate, in two
//! pieces: one up to a size, another beyond. It is fitted to relative errors. Its band is conformal: as
//! wide as holds four in five of the rows that it was fitted to.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::check::CheckRow;
use super::score::interval_score;
use crate::measurement::Run;
use crate::schedule::Collective;
use crate::statistics::{conformal, median, quantile};

/// One way of holding rows out, and how both did on them.
#[derive(Clone, Debug, Serialize)]
pub struct Split {
    /// What was fitted and what was predicted.
    pub name: &'static str,
    /// Rows predicted.
    pub rows: usize,
    /// Machines that they are of.
    pub machines: usize,
    /// Our predictions, which used none of these rows.
    pub ours: Errors,
    /// The lines'.
    pub line: Errors,
}

/// Errors of one of them.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Errors {
    /// Median over machines of each machine's median |predicted / measured - 1|.
    pub median: f64,
    /// Median over machines of each machine's 90th percentile.
    pub p90: f64,
    /// Share of rows inside the 80 % range.
    pub coverage: f64,
    /// Mean interval score of the 80 % ranges, of logarithms: less is better.
    pub score: f64,
}

/// A row as a line sees it.
struct Point<'a> {
    row: &'a CheckRow,
    collective: Collective,
    ranks: usize,
    bytes: u64,
    /// What must be equal besides: implementation, algorithm and environment.
    family: String,
}

impl<'a> Point<'a> {
    fn of(row: &'a CheckRow) -> Option<Point<'a>> {
        let (collective, gpus, bytes, what) = match &row.run {
            Run::Nccl(call) => (call.collective, &call.gpus, call.bytes, String::new()),
            Run::Collective(call) => {
                let what = format!("{:?} {}", call.implementation, call.algorithm);
                (call.collective, &call.gpus, call.bytes, what)
            }
            _ => return None,
        };
        let family = format!("{what} {}", row.condition);
        (row.unit == "us" && !row.fit).then_some(Point {
            row,
            collective,
            ranks: gpus.len(),
            bytes,
            family,
        })
    }

    /// Steps of a ring and bytes on the bus.
    fn terms(&self) -> [f64; 2] {
        let laps = if self.collective == Collective::AllReduce { 2.0 } else { 1.0 };
        let steps = laps * self.ranks.saturating_sub(1) as f64;
        [steps, self.bytes as f64 * self.collective.bus_factor(self.ranks)]
    }
}

/// Latency of a step and time of a byte, in two pieces.
struct Line {
    /// From this size on the second piece holds.
    bytes: u64,
    pieces: [[f64; 2]; 2],
    /// Half of the band, of logarithms.
    band: f64,
}

/// Fewer points make no piece.
const POINTS_MIN: usize = 3;

impl Line {
    fn predict(&self, point: &Point<'_>) -> f64 {
        let piece = self.pieces[usize::from(point.bytes >= self.bytes)];
        let terms = point.terms();
        (piece[0] * terms[0] + piece[1] * terms[1]).max(1e-3)
    }

    /// The line of least squares of relative errors, over all places of the break.
    fn fit(points: &[&Point<'_>]) -> Option<Line> {
        let sizes: BTreeSet<u64> = points.iter().map(|point| point.bytes).collect();
        let mut best: Option<(f64, Line)> = None;
        for bytes in sizes {
            let (low, high): (Vec<&Point<'_>>, Vec<&Point<'_>>) =
                points.iter().partition(|point| point.bytes < bytes);
            let whole = low.is_empty();
            if high.len() < POINTS_MIN || (!whole && low.len() < POINTS_MIN) {
                continue;
            }
            let second = piece(&high);
            let first = if whole { second } else { piece(&low) };
            let line = Line { bytes, pieces: [first, second], band: 0.0 };
            let error = points.iter().map(|point| line.log_error(point).powi(2)).sum::<f64>();
            if best.as_ref().is_none_or(|(least, _)| error < *least) {
                best = Some((error, line));
            }
        }
        let (_, line) = best?;
        let errors = points.iter().map(|point| line.log_error(point).abs());
        Some(Line { band: conformal(errors, 0.8), ..line })
    }

    fn log_error(&self, point: &Point<'_>) -> f64 {
        (self.predict(point) / point.row.measured).ln()
    }
}

/// Least squares of `a x + b y = 1` with x and y over the measured time; neither below zero.
fn piece(points: &[&Point<'_>]) -> [f64; 2] {
    let (mut xx, mut xy, mut yy, mut x1, mut y1) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for point in points {
        let [x, y] = point.terms().map(|term| term / point.row.measured);
        xx += x * x;
        xy += x * y;
        yy += y * y;
        x1 += x;
        y1 += y;
    }
    let determinant = xx * yy - xy * xy;
    let (a, b) = ((x1 * yy - y1 * xy) / determinant, (y1 * xx - x1 * xy) / determinant);
    match (a.is_finite() && a >= 0.0, b.is_finite() && b >= 0.0) {
        (true, true) => [a, b],
        (false, _) => [0.0, y1 / yy],
        (_, false) => [x1 / xx, 0.0],
    }
}

/// What a row is fitted or predicted with: points of one key, some of which are held out.
type Groups<'a, 'b> = BTreeMap<String, (Vec<&'b Point<'a>>, Vec<&'b Point<'a>>)>;

/// All splits.
pub(super) fn splits(rows: &[CheckRow]) -> Vec<Split> {
    let points: Vec<Point<'_>> = rows.iter().filter_map(Point::of).collect();
    let mut by_ranks = Groups::new();
    let mut by_collective = Groups::new();
    for point in &points {
        let machine = &point.row.machine;
        let key = format!("{machine} {} {}", point.collective.name(), point.family);
        let (fitted, held) = by_ranks.entry(key).or_default();
        match point.ranks {
            2 | 4 => fitted.push(point),
            8 => held.push(point),
            _ => {}
        }
        let key = format!("{machine} {} {}", point.ranks, point.family);
        let (fitted, held) = by_collective.entry(key).or_default();
        let first = point.collective == Collective::AllReduce;
        if first { fitted.push(point) } else { held.push(point) }
    }
    let told = [
        ("fitted to 2 and 4 GPUs, 8 predicted", by_ranks),
        ("fitted to all-reduce, other collectives predicted", by_collective),
        ("fitted to one host, others of its kind predicted", by_host(&points)),
    ];
    told.into_iter().filter_map(|(name, groups)| split(name, &groups)).collect()
}

/// The first host with a topology, and the others.
fn by_host<'a, 'b>(points: &'b [Point<'a>]) -> Groups<'a, 'b> {
    let mut groups = Groups::new();
    let mut first: BTreeMap<String, &str> = BTreeMap::new();
    for point in points {
        let Run::Nccl(_) = &point.row.run else { continue };
        let key = format!("{} {} {}", point.row.topology, point.collective.name(), point.ranks);
        let host = *first.entry(key.clone()).or_insert(&point.row.machine);
        let (fitted, held) = groups.entry(key).or_default();
        if host == point.row.machine { fitted.push(point) } else { held.push(point) }
    }
    groups
}

fn split(name: &'static str, groups: &Groups<'_, '_>) -> Option<Split> {
    let mut by_machine: BTreeMap<&str, Vec<(&CheckRow, f64, f64)>> = BTreeMap::new();
    for (fitted, held) in groups.values().filter(|group| !group.1.is_empty()) {
        let Some(line) = Line::fit(fitted) else { continue };
        for point in held {
            let judged = (point.row, line.log_error(point), line.band);
            by_machine.entry(&point.row.machine).or_default().push(judged);
        }
    }
    let machines: Vec<&Vec<(&CheckRow, f64, f64)>> = by_machine.values().collect();
    let own = |&(row, ..): &(&CheckRow, f64, f64)| (row.log_error(), row.half_range());
    let of_line = |&(_, error, band): &(&CheckRow, f64, f64)| (error, band);
    let rows = machines.iter().map(|rows| rows.len()).sum();
    (rows > 0).then(|| Split {
        name,
        rows,
        machines: machines.len(),
        ours: errors(&machines, own),
        line: errors(&machines, of_line),
    })
}

fn errors<T>(machines: &[&Vec<T>], judged: impl Fn(&T) -> (f64, f64)) -> Errors {
    let over = |share: f64| {
        let each = machines
            .iter()
            .map(|rows| quantile(rows.iter().map(|row| judged(row).0.exp_m1().abs()), share));
        median(each)
    };
    let mean = |what: &dyn Fn((f64, f64)) -> f64| {
        let each = machines
            .iter()
            .map(|rows| rows.iter().map(|row| what(judged(row))).sum::<f64>() / rows.len() as f64);
        each.sum::<f64>() / machines.len() as f64
    };
    Errors {
        median: over(0.5),
        p90: over(0.9),
        coverage: mean(&|(error, half)| f64::from(u8::from(error.abs() <= half))),
        score: mean(&|(error, half)| interval_score(error, half)),
    }
}
