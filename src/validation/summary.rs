//! Errors by group, order of algorithms, coverage, and what was left out.

use std::collections::BTreeMap;

use serde::Serialize;

use super::check::{CheckRow, Verdict};
use super::tolerance::Tolerances;
use crate::algorithm::Implementation;
use crate::measurement::{KernelCall, Run, Skipped};
use crate::schedule::Collective;
use crate::statistics::{median, quantile};

/// Rows of one experiment on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Folder of `measured/`.
    pub machine: String,
    /// Experiment.
    pub experiment: String,
    /// Constants were fitted to these rows.
    pub fit: bool,
    /// Number of rows.
    pub count: usize,
    /// Median of |predicted / measured - 1|.
    pub median_abs_error: f64,
    /// 90th percentile of the same.
    pub p90_abs_error: f64,
    /// Signed error of the worst row.
    pub worst_error: f64,
    /// Which row that is.
    pub worst: String,
    /// Median of the signed errors.
    pub bias: f64,
    /// Share of rows inside their 80 % range.
    pub coverage: f64,
    /// Largest allowed median, if any.
    pub allowed_median: Option<f64>,
    /// Largest 90th percentile allowed, if any.
    pub allowed_p90: Option<f64>,
    /// Largest allowed error of a row, if any.
    pub allowed_worst: Option<f64>,
    /// Largest allowed ratio either way, if any.
    pub allowed_factor: Option<f64>,
    /// Whether the group is outside of what is allowed.
    pub misses: bool,
    /// Why it is known to be outside, if it is listed.
    pub known_miss: Option<String>,
}

/// Pairs of algorithms at the same machine, ranks, bytes and blocks whose measured times differ by
/// more than a tenth.
#[derive(Clone, Debug, Serialize)]
pub struct Order {
    /// Folder of `measured/`.
    pub machine: String,
    /// Experiment, or `libraries` for several together.
    pub experiment: String,
    /// Number of pairs.
    pub pairs: usize,
    /// Of these, predicted in the measured order.
    pub right: usize,
    /// Least allowed share of right ones, if any.
    pub allowed: Option<f64>,
    /// Whether the share is less than allowed.
    pub misses: bool,
    /// Some pairs in the wrong order.
    pub wrong: Vec<String>,
    /// Why it is known to miss, if it is listed.
    pub known_miss: Option<String>,
}

/// Rows without a prediction.
#[derive(Clone, Debug, Serialize)]
pub struct Unmatched {
    /// Folder of `measured/`.
    pub machine: String,
    /// Why.
    pub reason: String,
    /// How many.
    pub count: usize,
    /// The first of them.
    pub first: String,
}

/// Difference from which an order must be right.
const CLEARLY: f64 = 1.10;
/// Pairs named.
const WRONG_NAMED: usize = 5;

/// Share of rows inside their range; 1 of none.
pub fn coverage<'a>(rows: impl Iterator<Item = &'a CheckRow>) -> f64 {
    let (mut inside, mut all) = (0_u32, 0_u32);
    for row in rows {
        all += 1;
        inside += u32::from(row.verdict == Verdict::InRange);
    }
    if all == 0 { 1.0 } else { f64::from(inside) / f64::from(all) }
}

/// By machine and experiment, in the order of the rows.
pub fn groups(rows: &[CheckRow], tolerances: &Tolerances) -> Vec<Group> {
    let mut keys: Vec<(&str, &str, bool)> = Vec::new();
    let mut members: BTreeMap<(&str, &str, bool), Vec<&CheckRow>> = BTreeMap::new();
    for row in rows {
        let key = (row.machine.as_str(), row.experiment.as_str(), row.fit);
        let list = members.entry(key).or_default();
        if list.is_empty() {
            keys.push(key);
        }
        list.push(row);
    }
    keys.iter().map(|key| group(*key, &members[key], tolerances)).collect()
}

fn group(
    (machine, experiment, fit): (&str, &str, bool),
    rows: &[&CheckRow],
    tolerances: &Tolerances,
) -> Group {
    let errors = || rows.iter().map(|row| row.error.abs());
    let worst = rows
        .iter()
        .max_by(|a, b| a.error.abs().total_cmp(&b.error.abs()))
        .expect("a group has a row");
    let factor =
        rows.iter().map(|row| (1.0 + row.error).max(1.0 / (1.0 + row.error))).fold(1.0, f64::max);
    let allowed = tolerances.of(machine, experiment);
    let median_abs_error = median(errors());
    let p90_abs_error = quantile(errors(), 0.9);
    let misses = allowed.is_some_and(|allowed| {
        allowed.median.is_some_and(|most| median_abs_error > most)
            || allowed.p90.is_some_and(|most| p90_abs_error > most)
            || allowed.worst.is_some_and(|most| worst.error.abs() > most)
            || allowed.factor.is_some_and(|most| factor > most)
    });
    Group {
        machine: machine.to_owned(),
        experiment: experiment.to_owned(),
        fit,
        count: rows.len(),
        median_abs_error,
        p90_abs_error,
        worst_error: worst.error,
        worst: worst.id.clone(),
        bias: median(rows.iter().map(|row| row.error)),
        coverage: coverage(rows.iter().copied()),
        allowed_median: allowed.and_then(|allowed| allowed.median),
        allowed_p90: allowed.and_then(|allowed| allowed.p90),
        allowed_worst: allowed.and_then(|allowed| allowed.worst),
        allowed_factor: allowed.and_then(|allowed| allowed.factor),
        misses,
        known_miss: tolerances.known_miss(machine, experiment).map(str::to_owned),
    }
}

/// Where an order is asked for: (machine, experiment) and (GPUs, bytes, blocks, condition).
pub(super) type Place = (String, String, Vec<u32>, u64, Option<u32>);

/// Rows by place, each with the name of what ran there.
pub(super) fn places<'a>(
    rows: impl Iterator<Item = &'a CheckRow>,
) -> BTreeMap<Place, Vec<(String, &'a CheckRow)>> {
    let mut places: BTreeMap<Place, Vec<(String, &CheckRow)>> = BTreeMap::new();
    for row in rows {
        if let Some((place, name)) = place(row) {
            places.entry(place).or_default().push((name, row));
        }
    }
    places
}

fn place(row: &CheckRow) -> Option<(Place, String)> {
    let call = match &row.run {
        Run::Collective(call) if call.collective == Collective::AllReduce => call,
        Run::Nccl(call) if call.collective == Collective::AllReduce => {
            let place = (row.machine.clone(), "libraries".to_owned(), call.gpus.clone());
            return Some(((place.0, place.1, place.2, call.bytes, None), "Nccl".to_owned()));
        }
        _ => return None,
    };
    let KernelCall { algorithm, protocol, implementation, carrier, .. } = call;
    let probe = matches!(implementation, Implementation::Probe | Implementation::PairProbe);
    let experiment = if probe { row.experiment.clone() } else { "libraries".to_owned() };
    let name = if probe {
        (*algorithm).to_owned()
    } else {
        format!("{implementation:?} {algorithm} {} {carrier:?}", protocol.name())
    };
    Some(((row.machine.clone(), experiment, call.gpus.clone(), call.bytes, call.blocks), name))
}

/// Whether algorithms come out in the measured order.
pub fn orders(rows: &[CheckRow], tolerances: &Tolerances) -> Vec<Order> {
    let places = places(rows.iter());
    let mut orders: BTreeMap<(String, String), Order> = BTreeMap::new();
    for ((machine, experiment, _, bytes, _), rows) in &places {
        for (index, (a_name, a)) in rows.iter().enumerate() {
            for (b_name, b) in &rows[index + 1..] {
                let ratio = a.measured / b.measured;
                if a_name == b_name || (ratio < CLEARLY && ratio > 1.0 / CLEARLY) {
                    continue;
                }
                let order =
                    orders.entry((machine.clone(), experiment.clone())).or_insert_with(|| Order {
                        machine: machine.clone(),
                        experiment: experiment.clone(),
                        pairs: 0,
                        right: 0,
                        allowed: tolerances.order(machine, experiment),
                        misses: false,
                        wrong: Vec::new(),
                        known_miss: None,
                    });
                order.pairs += 1;
                if (a.predicted < b.predicted) == (ratio < 1.0) {
                    order.right += 1;
                } else if order.wrong.len() < WRONG_NAMED {
                    order.wrong.push(format!(
                        "{a_name} / {b_name}, {bytes} B: measured {:.1} / {:.1}, predicted {:.1} / {:.1}",
                        a.measured, b.measured, a.predicted, b.predicted
                    ));
                }
            }
        }
    }
    let mut orders: Vec<Order> = orders.into_values().collect();
    for order in &mut orders {
        let share = order.right as f64 / order.pairs as f64;
        order.misses = order.allowed.is_some_and(|least| share < least);
        let name = format!("order: {}", order.experiment);
        order.known_miss = tolerances.known_miss(&order.machine, &name).map(str::to_owned);
    }
    orders
}

/// Counts by machine and reason.
pub fn unmatched(skipped: &[Skipped]) -> Vec<Unmatched> {
    let mut counts: BTreeMap<(&str, &str), (usize, &str)> = BTreeMap::new();
    for row in skipped {
        let key = (row.machine.as_str(), row.reason.as_str());
        counts.entry(key).or_insert((0, row.id.as_str())).0 += 1;
    }
    counts
        .into_iter()
        .map(|((machine, reason), (count, first))| Unmatched {
            machine: machine.to_owned(),
            reason: reason.to_owned(),
            count,
            first: first.to_owned(),
        })
        .collect()
}
