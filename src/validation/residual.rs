//! What no constant explains, learned from the rows of a check by regime.
//!
//! A residual is chosen so that ranges of the constants' and its own spread hold 80 % of the rows of an
//! average machine: machines count alike, however many rows they have. Each machine's own rows are
//! judged by what the others say.

use std::collections::{BTreeMap, BTreeSet};

use super::check::CheckRow;
use crate::prediction::range::SIGMAS_80;
use crate::prediction::regime::{Residual, Residuals};

/// Share of rows that a range is to hold.
const SHARE: f64 = 0.8;
/// Fewer machines say nothing of others.
const MACHINES_MIN: usize = 3;
/// Least and largest residual.
const BOUNDS: (f64, f64) = (0.01, 0.9);
/// Halvings of the interval between them: it is known to better than a thousandth after these.
const HALVINGS: u32 = 20;

/// The table of all rows.
pub(super) fn table(rows: &[CheckRow]) -> Residuals {
    let mut members: BTreeMap<String, Vec<&CheckRow>> = BTreeMap::new();
    for row in rows {
        let names: BTreeSet<String> = row.regime.names().into_iter().collect();
        for name in names {
            members.entry(name).or_default().push(row);
        }
    }
    let regimes = members.into_iter().filter_map(|(name, rows)| {
        let machines: BTreeSet<&str> = rows.iter().map(|row| row.machine.as_str()).collect();
        let sigma = solve(&rows)?;
        let without = machines.iter().map(|&machine| {
            let others: Vec<&CheckRow> =
                rows.iter().copied().filter(|row| row.machine != machine).collect();
            (machine.to_owned(), solve(&others))
        });
        let without = without.collect();
        Some((name, Residual { sigma, rows: rows.len(), machines: machines.len(), without }))
    });
    Residuals {
        comment:
            "What no constant explains: relative standard deviations by regime, from all rows \
                  of simulate check; written by the program"
                .to_owned(),
        regimes: regimes.collect(),
    }
}

/// The residual of these rows, if enough machines stand behind them.
fn solve(rows: &[&CheckRow]) -> Option<f64> {
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        *counts.entry(&row.machine).or_default() += 1.0;
    }
    if counts.len() < MACHINES_MIN {
        return None;
    }
    let all = counts.len() as f64;
    let held = |sigma: f64| {
        let inside = rows
            .iter()
            .filter(|row| row.log_error().abs() <= SIGMAS_80 * row.constants_sigma.hypot(sigma));
        inside.map(|row| 1.0 / counts[row.machine.as_str()]).sum::<f64>() / all
    };
    let (mut low, mut high) = BOUNDS;
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt();
        if held(middle) < SHARE { low = middle } else { high = middle }
    }
    // Three digits: more would change with every other row.
    Some((high * 1e3).ceil() / 1e3)
}
