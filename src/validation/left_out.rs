//! Each machine of the library left out in turn: what the others say of it.
//!
//! Refitted without the machine are the residuals of ranges, and one factor a regime: the median error
//! of the other machines, by which predictions are divided. Constants are not refitted here: rows that
//! they were fitted to do not count (`measured/README.md`), and `simulate calibrate` holds out machines
//! for a set of constants.

use std::collections::BTreeMap;

use serde::Serialize;

use super::check::CheckRow;
use crate::statistics::{median, quantile};

/// A machine, and how it is predicted with and without what the others say.
#[derive(Clone, Debug, Serialize)]
pub struct LeftOut {
    /// Folder of `measured/`.
    pub machine: String,
    /// Check rows.
    pub rows: usize,
    /// Median of |predicted / measured - 1| as predicted.
    pub median: f64,
    /// Its 90th percentile.
    pub p90: f64,
    /// Median with the factors of the other machines.
    pub median_shifted: f64,
    /// 90th percentile with them.
    pub p90_shifted: f64,
}

/// Fewer machines say nothing of a further one.
const MACHINES_MIN: usize = 3;

/// By machine, in the order of the rows.
pub(super) fn left_out(rows: &[CheckRow]) -> Vec<LeftOut> {
    let mut order: Vec<&str> = Vec::new();
    // By regime and machine: errors of all rows, also of those that constants were fitted to.
    let mut errors: BTreeMap<String, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for row in rows {
        if !row.fit && !order.contains(&row.machine.as_str()) {
            order.push(&row.machine);
        }
        let [exact, ..] = row.regime.names();
        let of_machine = errors.entry(exact).or_default().entry(&row.machine).or_default();
        of_machine.push(row.log_error());
    }
    let shifts: BTreeMap<&String, BTreeMap<&str, f64>> = errors
        .iter()
        .map(|(regime, machines)| {
            let each = machines.iter().map(|(&machine, errors)| (machine, of(errors)));
            (regime, each.collect())
        })
        .collect();
    order.into_iter().map(|machine| judged(machine, rows, &shifts)).collect()
}

fn of(errors: &[f64]) -> f64 {
    median(errors.iter().copied())
}

fn judged(
    machine: &str,
    rows: &[CheckRow],
    shifts: &BTreeMap<&String, BTreeMap<&str, f64>>,
) -> LeftOut {
    let shift = |row: &CheckRow| {
        let [exact, ..] = row.regime.names();
        let others = shifts[&exact].iter().filter(|(other, _)| **other != machine);
        let others: Vec<f64> = others.map(|other| *other.1).collect();
        if others.len() < MACHINES_MIN { 0.0 } else { of(&others) }
    };
    let own: Vec<&CheckRow> =
        rows.iter().filter(|row| !row.fit && row.machine == machine).collect();
    let plain = || own.iter().map(|row| row.error.abs());
    let shifted = || own.iter().map(|row| (row.log_error() - shift(row)).exp_m1().abs());
    LeftOut {
        machine: machine.to_owned(),
        rows: own.len(),
        median: median(plain()),
        p90: quantile(plain(), 0.9),
        median_shifted: median(shifted()),
        p90_shifted: quantile(shifted(), 0.9),
    }
}
