//! What a user loses who takes what is predicted to be fastest, against what was measured fastest.

use std::collections::BTreeMap;

use serde::Serialize;

use super::check::CheckRow;
use super::summary::places;
use crate::statistics::{median, quantile};

/// Choices on one machine.
#[derive(Clone, Debug, Serialize)]
pub struct Regret {
    /// Folder of `measured/`.
    pub machine: String,
    /// Choices: one for each size and set of GPUs at which several algorithms were measured.
    pub choices: usize,
    /// Median loss, a share of the best time.
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// Largest.
    pub worst: f64,
    /// Which that is.
    pub worst_at: String,
}

/// By machine.
pub(super) fn regrets(rows: &[CheckRow]) -> Vec<Regret> {
    let places = places(rows.iter().filter(|row| !row.fit));
    let mut losses: BTreeMap<String, Vec<(f64, String)>> = BTreeMap::new();
    for ((machine, _, _, bytes, _), rows) in places {
        let names: std::collections::BTreeSet<&String> = rows.iter().map(|row| &row.0).collect();
        if names.len() < 2 {
            continue;
        }
        let by = |what: fn(&CheckRow) -> f64| {
            rows.iter().min_by(|a, b| what(a.1).total_cmp(&what(b.1))).expect("two at least")
        };
        let (chosen, best) = (by(|row| row.predicted), by(|row| row.measured));
        let loss = chosen.1.measured / best.1.measured - 1.0;
        let at = format!("{bytes} B: {} instead of {}", chosen.0, best.0);
        losses.entry(machine).or_default().push((loss, at));
    }
    let of = |(machine, losses): (String, Vec<(f64, String)>)| {
        let each = || losses.iter().map(|loss| loss.0).collect::<Vec<f64>>();
        let worst = losses.iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("one at least");
        Regret {
            machine,
            choices: losses.len(),
            median: median(each()),
            p90: quantile(each(), 0.9),
            worst: worst.0,
            worst_at: worst.1.clone(),
        }
    };
    losses.into_iter().map(of).collect()
}
