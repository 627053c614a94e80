//! How well each machine is predicted, by regime and as a whole.

use std::collections::BTreeMap;

use serde::Serialize;

use super::check::CheckRow;
use super::summary::coverage;
use crate::statistics::{median, quantile};

/// Rows of a machine, or those of one regime of it.
#[derive(Clone, Debug, Serialize)]
pub struct Score {
    /// Folder of `measured/`.
    pub machine: String,
    /// Regime; `None` for all of the machine's rows.
    pub regime: Option<String>,
    /// Rows.
    pub rows: usize,
    /// Median of |predicted / measured - 1|.
    pub median: f64,
    /// Its 90th percentile.
    pub p90: f64,
    /// Median of the signed errors.
    pub bias: f64,
    /// Share of rows inside their 80 % range.
    pub coverage: f64,
    /// Mean interval score of the 80 % ranges, of logarithms.
    pub score: f64,
    /// Median of half of what lies between the lowest and the highest of repeated measurements,
    /// relative; `None` where none was repeated.
    pub noise: Option<f64>,
}

/// Share of rows that a range may miss.
const MISSED: f64 = 0.2;

/// Width of a range plus what a value outside of it costs (Gneiting and Raftery, Strictly Proper
/// Scoring Rules, JASA 102, 2007), of logarithms.
pub(super) fn interval_score(error: f64, half: f64) -> f64 {
    2.0 * half + 2.0 / MISSED * (error.abs() - half).max(0.0)
}

/// Check rows by machine, and by machine and regime, in the order of the rows.
pub(super) fn scores(rows: &[CheckRow]) -> Vec<Score> {
    let mut order: Vec<&str> = Vec::new();
    let mut members: BTreeMap<(&str, Option<String>), Vec<&CheckRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.fit) {
        if !order.contains(&row.machine.as_str()) {
            order.push(&row.machine);
        }
        for regime in [None, Some(row.regime.names()[0].clone())] {
            members.entry((&row.machine, regime)).or_default().push(row);
        }
    }
    let of = |machine: &str| {
        let own = members.iter().filter(|(key, _)| key.0 == machine);
        own.map(|(key, rows)| score(key.0, key.1.clone(), rows)).collect::<Vec<Score>>()
    };
    order.iter().flat_map(|machine| of(machine)).collect()
}

fn score(machine: &str, regime: Option<String>, rows: &[&CheckRow]) -> Score {
    let errors = || rows.iter().map(|row| row.error);
    let scores = rows.iter().map(|row| interval_score(row.log_error(), row.half_range()));
    let noise: Vec<f64> = rows.iter().filter_map(|row| row.noise).collect();
    Score {
        machine: machine.to_owned(),
        regime,
        rows: rows.len(),
        median: median(errors().map(f64::abs)),
        p90: quantile(errors().map(f64::abs), 0.9),
        bias: median(errors()),
        coverage: coverage(rows.iter().copied()),
        score: scores.sum::<f64>() / rows.len() as f64,
        noise: (!noise.is_empty()).then(|| median(noise)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_costs_ten_times_its_distance() {
        assert!((interval_score(0.1, 0.2) - 0.4).abs() < 1e-12);
        assert!((interval_score(-0.3, 0.2) - 1.4).abs() < 1e-12);
    }
}
