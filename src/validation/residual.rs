//! What no constant explains, learned from the rows of a check by regime.
//!
//! A residual is chosen so that ranges of the constants' and its own spread hold a share of the rows of
//! an average machine: machines count alike, however many rows they have. A regime that few machines
//! know leans on the wider one around it. Each machine's own rows are judged by what the others say,
//! and the share is such that machines which are left out in turn have 80 % of their rows in range: a
//! share of 80 % of the rows that were learned from would promise too much of those that were not.

use std::collections::{BTreeMap, BTreeSet};

use super::check::CheckRow;
use crate::prediction::range::SIGMAS_80;
use crate::prediction::regime::{Residual, Residuals};

/// Share of the rows of a machine that was left out which its ranges are to hold.
const SHARE: f64 = 0.8;
/// Shares of the rows learned from that are tried for it.
const TRIED: [f64; 10] = [0.80, 0.81, 0.82, 0.83, 0.84, 0.85, 0.86, 0.87, 0.88, 0.90];
/// So many machines does the wider regime count for: of 1 to 4, which differ little, the one whose
/// ranges of machines left out score best at the right share.
const LEANING: f64 = 2.0;
/// Least and largest residual.
const BOUNDS: (f64, f64) = (0.01, 0.9);

/// A row: its machine, and the least residual with which its range holds it.
type Needed<'a> = (&'a str, f64);

/// Rows of a regime.
struct Members<'a> {
    /// The regime around it.
    wider: Option<String>,
    rows: Vec<Needed<'a>>,
}

/// Residuals by regime: of all machines, and without each of them.
type Learned = BTreeMap<String, (f64, BTreeMap<String, Option<f64>>)>;

/// The table of all rows.
pub(super) fn table(rows: &[CheckRow]) -> Residuals {
    let members = members(rows);
    let tried: Vec<Learned> = TRIED.iter().map(|&share| learned(&members, share)).collect();
    let held: Vec<BTreeMap<&str, f64>> = tried.iter().map(|table| held(rows, table)).collect();
    // The first share by which machines other than this one, each left out in turn, come out right.
    let chosen = |machine: Option<&str>| {
        let right = |of: &BTreeMap<&str, f64>| {
            let others = of.iter().filter(|other| Some(*other.0) != machine);
            let others: Vec<f64> = others.map(|other| *other.1).collect();
            others.iter().sum::<f64>() >= SHARE * others.len() as f64
        };
        held.iter().position(right).unwrap_or(TRIED.len() - 1)
    };
    let all = &tried[chosen(None)];
    let regimes = members.iter().map(|(name, of)| {
        let machines: BTreeSet<&str> = of.rows.iter().map(|row| row.0).collect();
        let without = machines.iter().map(|&machine| {
            let sigma = tried[chosen(Some(machine))][name].1.get(machine).copied().flatten();
            (machine.to_owned(), sigma.map(rounded))
        });
        let residual = Residual {
            sigma: rounded(all[name].0),
            rows: of.rows.len(),
            machines: machines.len(),
            without: without.collect(),
        };
        (name.clone(), residual)
    });
    Residuals {
        comment:
            "What no constant explains: relative standard deviations by regime, from all rows \
                  of simulate check; written by the program"
                .to_owned(),
        regimes: regimes.collect(),
    }
}

/// Three digits: more would change with every other row.
fn rounded(sigma: f64) -> f64 {
    (sigma * 1e3).ceil() / 1e3
}

fn members(rows: &[CheckRow]) -> BTreeMap<String, Members<'_>> {
    let mut members: BTreeMap<String, Members<'_>> = BTreeMap::new();
    for row in rows {
        let mut names = row.regime.names().to_vec();
        names.dedup();
        let of_constants = row.constants_sigma;
        let wanted = row.log_error().abs() / SIGMAS_80;
        let needed = (wanted.powi(2) - of_constants.powi(2)).max(0.0).sqrt();
        for (index, name) in names.iter().enumerate() {
            let wider = names.get(index + 1).cloned();
            let of = members.entry(name.clone()).or_insert(Members { wider, rows: Vec::new() });
            of.rows.push((&row.machine, needed));
        }
    }
    for of in members.values_mut() {
        of.rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    }
    members
}

fn learned(members: &BTreeMap<String, Members<'_>>, share: f64) -> Learned {
    let mut table = Learned::new();
    for name in members.keys() {
        learn(name, members, share, &mut table);
    }
    table
}

/// Fills in a regime, the wider ones around it first.
fn learn(name: &str, members: &BTreeMap<String, Members<'_>>, share: f64, table: &mut Learned) {
    if table.contains_key(name) {
        return;
    }
    let of = &members[name];
    if let Some(wider) = &of.wider {
        learn(wider, members, share, table);
    }
    let around = |machine: Option<&str>| {
        let wider = &table[of.wider.as_ref()?];
        machine.map_or(Some(wider.0), |machine| wider.1.get(machine).copied().flatten())
    };
    let leaning = |machine: Option<&str>| {
        let (own, count) = solve(&of.rows, machine, share)?;
        let around = around(machine).unwrap_or(own);
        let count = count as f64;
        Some(((count * own.ln() + LEANING * around.ln()) / (count + LEANING)).exp())
    };
    let machines: BTreeSet<&str> = of.rows.iter().map(|row| row.0).collect();
    let without = machines.iter().map(|&m| (m.to_owned(), leaning(Some(m)))).collect();
    let all = leaning(None).unwrap_or(BOUNDS.1);
    table.insert(name.to_owned(), (all, without));
}

/// The least residual with which ranges hold a share of the rows of an average machine, and how many
/// machines that is; `rows` are in the order of what they need.
fn solve(rows: &[Needed<'_>], without: Option<&str>, share: f64) -> Option<(f64, usize)> {
    let others = || rows.iter().filter(|row| Some(row.0) != without);
    let mut counts: BTreeMap<&str, f64> = BTreeMap::new();
    for row in others() {
        *counts.entry(row.0).or_default() += 1.0;
    }
    let wanted = share * counts.len() as f64 - 1e-9;
    let mut inside = 0.0;
    let found = others().find(|row| {
        inside += 1.0 / counts[row.0];
        inside >= wanted
    });
    found.map(|row| (row.1.clamp(BOUNDS.0, BOUNDS.1), counts.len()))
}

/// Share of each machine's check rows that the others' residuals hold.
fn held<'a>(rows: &'a [CheckRow], table: &Learned) -> BTreeMap<&'a str, f64> {
    let mut counts: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| !row.fit) {
        let names = row.regime.names();
        let sigma = names.iter().find_map(|name| table.get(name)?.1.get(&row.machine)?.to_owned());
        let half = SIGMAS_80 * row.constants_sigma.hypot(sigma.unwrap_or(BOUNDS.1));
        let of = counts.entry(&row.machine).or_default();
        of.0 += f64::from(u8::from(row.log_error().abs() <= half));
        of.1 += 1.0;
    }
    counts.into_iter().map(|(machine, (inside, all))| (machine, inside / all)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_count_alike_however_many_rows_they_have() {
        // Nine rows of one machine need 0.1, one row each of two others 0.2 and 0.3: two of three
        // machines are held by 0.2.
        let mut rows = vec![("a", 0.1); 9];
        rows.extend([("b", 0.2), ("c", 0.3)]);
        assert_eq!(solve(&rows, None, 0.5), Some((0.2, 3)));
        assert_eq!(solve(&rows, Some("c"), 0.5), Some((0.1, 2)));
        assert_eq!(solve(&rows[..9], Some("a"), 0.5), None);
    }

    #[test]
    fn a_regime_of_few_machines_leans_on_the_wider_one() {
        let all = vec![("a", 0.1), ("b", 0.1), ("c", 0.1), ("d", 0.4)];
        let narrow = Members { wider: Some("all".into()), rows: vec![("d", 0.4)] };
        let wide = Members { wider: None, rows: all };
        let members = BTreeMap::from([("all".to_owned(), wide), ("narrow".to_owned(), narrow)]);
        let table = learned(&members, 0.7);
        assert!((table["all"].0 - 0.1).abs() < 1e-12, "{table:?}");
        // One machine against the weight of two: a third of the way, of logarithms.
        assert!((table["narrow"].0 - 0.1 * 4_f64.powf(1.0 / 3.0)).abs() < 1e-12, "{table:?}");
        assert_eq!(table["narrow"].1["d"], None);
    }
}
