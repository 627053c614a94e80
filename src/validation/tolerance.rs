//! How far a prediction may be off, by machine and experiment: `measured/tolerances.json`.

use serde::Deserialize;

use crate::error::{self, Result};

/// The table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerances {
    /// For people.
    pub comment: String,
    /// The first entry that fits a group holds.
    pub groups: Vec<Tolerance>,
    /// Share of pairs of algorithms in the right order, by machine and experiment.
    pub orders: Vec<OrderTolerance>,
    /// Groups known to be outside, with the reason.
    pub known_misses: Vec<KnownMiss>,
}

/// What one kind of group may be off.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Folder of `measured/`, or its start followed by `*`.
    pub machine: String,
    /// Name of the experiment, or its start followed by `*`.
    pub experiment: String,
    /// Largest median of |predicted / measured - 1|.
    #[serde(default)]
    pub median: Option<f64>,
    /// Largest |predicted / measured - 1| that nine rows of ten must not exceed.
    #[serde(default)]
    pub p90: Option<f64>,
    /// Largest |predicted / measured - 1| of any row.
    #[serde(default)]
    pub worst: Option<f64>,
    /// Largest ratio of predicted and measured either way, of any row.
    #[serde(default)]
    pub factor: Option<f64>,
}

/// What share of pairs must be in order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderTolerance {
    /// As of [`Tolerance`].
    pub machine: String,
    /// As of [`Tolerance`].
    pub experiment: String,
    /// Least share.
    pub share: f64,
}

/// A group that is outside its tolerance.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownMiss {
    /// Folder of `measured/`.
    pub machine: String,
    /// Name of the experiment; `order: ` before it for an order.
    pub experiment: String,
    /// Why.
    pub reason: String,
}

/// Whether a name is a pattern, or starts as one that ends in `*`.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

impl Tolerances {
    /// The table that comes with the program.
    ///
    /// # Errors
    /// When the embedded file is damaged, which a test excludes.
    pub fn embedded() -> Result<Tolerances> {
        let text = include_str!("../../measured/tolerances.json");
        error::embedded("measured/tolerances.json", text)
    }

    /// What a group may be off, if anything is said of it.
    pub fn of(&self, machine: &str, experiment: &str) -> Option<&Tolerance> {
        self.groups
            .iter()
            .find(|entry| fits(&entry.machine, machine) && fits(&entry.experiment, experiment))
    }

    /// What share of pairs must be in order, if anything is said of it.
    pub fn order(&self, machine: &str, experiment: &str) -> Option<f64> {
        let found = self
            .orders
            .iter()
            .find(|entry| fits(&entry.machine, machine) && fits(&entry.experiment, experiment));
        found.map(|entry| entry.share)
    }

    /// Why a group is known to miss, if it is.
    pub fn known_miss(&self, machine: &str, experiment: &str) -> Option<&str> {
        let found = self
            .known_misses
            .iter()
            .find(|miss| miss.machine == machine && miss.experiment == experiment);
        found.map(|miss| miss.reason.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_table_reads_and_patterns_fit() {
        let table = Tolerances::embedded().expect("reads");
        assert!(table.of("h200-one-link", "sm_read, saturated").is_some());
        assert!(table.of("h200-one-link", "no such experiment").is_none());
        assert!(fits("*", "anything") && fits("wrx90*", "wrx90-x") && !fits("wrx", "wrx90"));
        assert!(table.known_misses.iter().all(|miss| !miss.reason.is_empty()));
    }
}
