//! Every miss over a quarter, by machine, experiment and size, with its suspected cause:
//! `measured/causes.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::check::CheckRow;
use super::tolerance::{Tolerances, fits};
use crate::error::{self, Result};

/// A row is listed as a miss from here on, |predicted / measured - 1|.
pub const MISS: f64 = 0.25;

/// Rows of one machine, experiment and class of size, some of which miss.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Miss {
    /// Folder of `measured/`.
    pub machine: String,
    /// Experiment.
    pub experiment: String,
    /// Class of size, empty for what has none.
    pub size: String,
    /// Rows that miss.
    pub over: usize,
    /// Of so many.
    pub rows: usize,
    /// Lowest error of those that miss.
    pub low: f64,
    /// Highest.
    pub high: f64,
    /// Suspected cause; `None` where nobody looked.
    pub cause: Option<String>,
}

/// The table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Causes {
    /// For people.
    pub comment: String,
    /// The first entry that fits holds; then the reason of the group's known miss.
    pub causes: Vec<Cause>,
}

/// One cause and where it is suspected.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Folders of `measured/`, or their starts followed by `*`.
    pub machines: Vec<String>,
    /// Experiments, or their starts followed by `*`.
    pub experiments: Vec<String>,
    /// Classes of size; all when left out.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// What is suspected, and from what.
    pub cause: String,
}

impl Cause {
    fn holds(&self, miss: &Miss) -> bool {
        let one = |patterns: &[String], name: &str| patterns.iter().any(|p| fits(p, name));
        one(&self.machines, &miss.machine)
            && one(&self.experiments, &miss.experiment)
            && (self.sizes.is_empty() || self.sizes.contains(&miss.size))
    }
}

impl Causes {
    /// The table that comes with the program.
    ///
    /// # Errors
    /// When the embedded file is damaged, which a test excludes.
    pub fn embedded() -> Result<Causes> {
        error::embedded("measured/causes.json", include_str!("../../measured/causes.json"))
    }

    /// Entries that no miss needs any more.
    pub fn stale(&self, misses: &[Miss]) -> Vec<&Cause> {
        let first = |miss: &Miss| self.causes.iter().position(|cause| cause.holds(miss));
        let used: Vec<Option<usize>> = misses.iter().map(first).collect();
        let entries = self.causes.iter().enumerate();
        entries.filter(|(index, _)| !used.contains(&Some(*index))).map(|entry| entry.1).collect()
    }
}

/// All groups in which a row misses, in the order of the rows.
pub(super) fn misses(rows: &[CheckRow], causes: &Causes, tolerances: &Tolerances) -> Vec<Miss> {
    let mut order: Vec<(&str, &str, &str)> = Vec::new();
    let mut members: BTreeMap<(&str, &str, &str), Vec<f64>> = BTreeMap::new();
    for row in rows {
        let key = (row.machine.as_str(), row.experiment.as_str(), row.regime.size());
        let errors = members.entry(key).or_default();
        if errors.is_empty() {
            order.push(key);
        }
        errors.push(row.error);
    }
    let miss = |key: &(&str, &str, &str)| {
        let errors = &members[key];
        let over: Vec<f64> = errors.iter().copied().filter(|error| error.abs() > MISS).collect();
        let mut miss = Miss {
            machine: key.0.to_owned(),
            experiment: key.1.to_owned(),
            size: key.2.to_owned(),
            over: over.len(),
            rows: errors.len(),
            low: over.iter().copied().fold(f64::INFINITY, f64::min),
            high: over.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            cause: None,
        };
        let told = causes.causes.iter().find(|cause| cause.holds(&miss));
        let told = told.map(|cause| cause.cause.as_str());
        miss.cause = told.or_else(|| tolerances.known_miss(key.0, key.1)).map(str::to_owned);
        miss
    };
    order.iter().map(miss).filter(|miss| miss.over > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_that_fits_holds_and_others_are_stale() {
        let cause = |machine: &str, sizes: &[&str], text: &str| Cause {
            machines: vec![machine.to_owned()],
            experiments: vec!["NCCL *".to_owned()],
            sizes: sizes.iter().map(|&size| size.to_owned()).collect(),
            cause: text.to_owned(),
        };
        let list = [cause("a", &["to 4 MiB"], "one"), cause("a*", &[], "two"), cause("b", &[], "")];
        let causes = Causes { comment: String::new(), causes: list.to_vec() };
        let miss = |size: &str| Miss {
            machine: "a".into(),
            experiment: "NCCL all-reduce".into(),
            size: size.into(),
            over: 1,
            rows: 1,
            low: 0.3,
            high: 0.3,
            cause: None,
        };
        let of = |miss: &Miss| causes.causes.iter().find(|c| c.holds(miss)).map(|c| &*c.cause);
        assert_eq!([of(&miss("to 4 MiB")), of(&miss(""))], [Some("one"), Some("two")]);
        let stale = causes.stale(&[miss("to 4 MiB"), miss("")]);
        assert_eq!(stale.iter().map(|cause| &*cause.machines[0]).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn the_embedded_table_reads_and_says_something() {
        let table = Causes::embedded().expect("reads");
        assert!(table.causes.iter().all(|cause| cause.cause.len() > 10));
    }
}
