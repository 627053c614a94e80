//! What predictions are to reach on machines that nothing was fitted to, and what they reach:
//! `measured/targets.json` says what a missed one needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::check::{CheckReport, CheckRow};
use crate::error::{Result, embedded};
use crate::measurement::Run;
use crate::prediction::regime::Medium;
use crate::schedule::Collective;
use crate::statistics::{median, quantile};

/// A target and what was reached.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// What it is of.
    pub name: &'static str,
    /// What is asked for.
    pub wanted: String,
    /// What was reached.
    pub reached: String,
    /// Whether it was.
    pub met: bool,
    /// Why not, as far as known.
    pub cause: Option<String>,
    /// What would mend it.
    pub mend: Option<String>,
}

/// A target of errors by machine.
struct Errors {
    name: &'static str,
    holds: fn(&CheckRow) -> bool,
    /// Largest median, and largest of the second figure.
    most: [f64; 2],
    /// The second figure is the largest median of a machine, not each machine's 90th percentile.
    worst_machine: bool,
}

const ERRORS: &[Errors] = &[
    Errors {
        name: "copies between GPUs, alone and with others",
        holds: |row| matches!(row.run, Run::Copies(_)),
        most: [0.05, 0.15],
        worst_machine: false,
    },
    Errors {
        name: "latencies of reads and flags",
        holds: |row| matches!(row.run, Run::PeerRead { .. } | Run::Flag { .. } | Run::Chase { .. }),
        most: [0.08, 0.20],
        worst_machine: false,
    },
    Errors {
        name: "all-reduce, 1 KB to 1 GB",
        holds: |row| {
            call(row).is_some_and(|(collective, gpus, bytes)| {
                let sizes = 1 << 10..=1 << 30;
                collective == Collective::AllReduce && gpus > 0 && sizes.contains(&bytes)
            })
        },
        most: [0.12, 0.30],
        worst_machine: false,
    },
    Errors {
        name: "all-reduce of 8 GPUs without NVLink, 4 to 256 KB",
        holds: |row| {
            call(row).is_some_and(|(collective, gpus, bytes)| {
                let sizes = 4 << 10..=256 << 10;
                let wires = row.regime.medium != Medium::Nvlink;
                collective == Collective::AllReduce && gpus == 8 && wires && sizes.contains(&bytes)
            })
        },
        most: [0.12, 0.25],
        worst_machine: true,
    },
    Errors {
        name: "other collectives",
        holds: |row| call(row).is_some_and(|(what, ..)| what != Collective::AllReduce),
        most: [0.15, 0.35],
        worst_machine: false,
    },
];

/// Collective, GPUs and bytes of a call whose ranks have GPUs of their own.
fn call(row: &CheckRow) -> Option<(Collective, usize, u64)> {
    let (collective, gpus, bytes) = match &row.run {
        Run::Nccl(call) => (call.collective, &call.gpus, call.bytes),
        Run::Collective(call) => (call.collective, &call.gpus, call.bytes),
        _ => return None,
    };
    let alone = gpus.iter().collect::<BTreeSet<_>>().len() == gpus.len();
    alone.then_some((collective, gpus.len(), bytes))
}

/// What a missed target needs, by its name.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// Name of the target.
    pub name: String,
    /// Why it is missed.
    pub cause: String,
    /// What would mend it.
    pub mend: String,
}

/// The table of what missed targets need.
///
/// # Errors
/// When the embedded file is damaged, which a test excludes.
pub fn missed() -> Result<Vec<Missed>> {
    embedded("measured/targets.json", include_str!("../../measured/targets.json"))
}

fn percent(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

impl Errors {
    fn target(&self, rows: &[CheckRow]) -> Option<Target> {
        let mut machines: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row.fit && (self.holds)(row)) {
            machines.entry(&row.machine).or_default().push(row.error.abs());
        }
        let each = |share: f64| {
            machines.values().map(move |errors| quantile(errors.iter().copied(), share))
        };
        if machines.is_empty() {
            return None;
        }
        let [most, second] = self.most;
        let medians = || each(0.5);
        let others: Vec<f64> = if self.worst_machine { medians() } else { each(0.9) }.collect();
        let within = medians().zip(&others).filter(|(a, b)| *a <= most && **b <= second).count();
        let name = if self.worst_machine { "worst machine" } else { "p90" };
        let worst = others.iter().copied().fold(0.0, f64::max);
        let told = if self.worst_machine { worst } else { median(others.iter().copied()) };
        let met = match self.worst_machine {
            true => median(medians()) <= most && worst <= second,
            false => within == machines.len(),
        };
        Some(Target {
            name: self.name,
            wanted: format!("median {:.0}, {name} {:.0}", most * 100.0, second * 100.0),
            reached: format!(
                "median {}, {name} {}; {within} of {} machines",
                percent(median(medians())),
                percent(told),
                machines.len()
            ),
            met,
            cause: None,
            mend: None,
        })
    }
}

/// All targets of which there are rows.
///
/// # Errors
/// As [`missed`].
pub fn targets(report: &CheckReport) -> Result<Vec<Target>> {
    let mut all: Vec<Target> =
        ERRORS.iter().filter_map(|errors| errors.target(&report.rows)).collect();
    all.extend(
        [regret(report), lines(report), coverage(report), bands(report)].into_iter().flatten(),
    );
    let told = missed()?;
    for target in all.iter_mut().filter(|target| !target.met) {
        if let Some(missed) = told.iter().find(|missed| missed.name == target.name) {
            target.cause = Some(missed.cause.clone());
            target.mend = Some(missed.mend.clone());
        }
    }
    Ok(all)
}

fn plain(name: &'static str, wanted: &str, reached: String, met: bool) -> Target {
    Target { name, wanted: wanted.to_owned(), reached, met, cause: None, mend: None }
}

fn regret(report: &CheckReport) -> Option<Target> {
    let regrets = &report.regrets;
    let worst = regrets.iter().max_by(|a, b| a.worst.total_cmp(&b.worst))?;
    let middle = median(regrets.iter().map(|regret| regret.median));
    let within = regrets.iter().filter(|r| r.median <= 0.03 && r.worst <= 0.15).count();
    let reached = format!(
        "median {}, worst {} ({}); {within} of {} machines",
        percent(middle),
        percent(worst.worst),
        worst.machine,
        regrets.len()
    );
    let met = within == regrets.len();
    Some(plain("regret of a choice", "median 3, worst 15", reached, met))
}

fn lines(report: &CheckReport) -> Option<Target> {
    let better = |ours: f64, line: f64| ours < line;
    let won = |split: &&super::line::Split| better(split.ours.median, split.line.median);
    let all = report.splits.len();
    let won = report.splits.iter().filter(won).count();
    let met = won == all;
    let told = report.splits.iter().map(|split| {
        format!("{} against {}", percent(split.ours.median), percent(split.line.median))
    });
    let reached = format!("{won} of {all}: {}", told.collect::<Vec<_>>().join(", "));
    let wanted = "a smaller median error on every split";
    (all > 0).then(|| plain("against fitted lines", wanted, reached, met))
}

fn coverage(report: &CheckReport) -> Option<Target> {
    let machines: Vec<f64> = report
        .scores
        .iter()
        .filter(|score| score.regime.is_none())
        .map(|score| score.coverage)
        .collect();
    let within = machines.iter().filter(|share| (0.7..=0.9).contains(*share)).count();
    let mean = machines.iter().sum::<f64>() / machines.len().max(1) as f64;
    let reached = format!("{within} of {} machines; mean {}", machines.len(), percent(mean));
    let met = within == machines.len();
    (!machines.is_empty())
        .then(|| plain("80 % ranges", "hold 70 to 90 of the rows of each machine", reached, met))
}

fn bands(report: &CheckReport) -> Option<Target> {
    let all = report.splits.len();
    let won = report.splits.iter().filter(|split| split.ours.score < split.line.score).count();
    let told = report
        .splits
        .iter()
        .map(|split| format!("{:.2} against {:.2}", split.ours.score, split.line.score));
    let reached = format!("{won} of {all}: {}", told.collect::<Vec<_>>().join(", "));
    let wanted = "a lower interval score than conformal bands";
    (all > 0).then(|| plain("scores of ranges", wanted, reached, won == all))
}
