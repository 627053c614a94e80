//! A check as a page in Markdown: `docs/accuracy.md`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::{Result, Write};

use super::check::{BOUND, CheckReport, Verdict};
use super::left_out::LeftOut;
use super::page_misses::{causes, misses};
use super::render::{allowed, cells, percent, signed, verdict};
use super::score::Score;
use crate::statistics::median;

/// The page: by machine and regime first, then what is compared with it, then every group, every miss
/// with its reason, and what is left out.
pub fn markdown(report: &CheckReport) -> String {
    let mut out = String::new();
    let sections = [
        head, goals, machines, verdicts, without, lines, regrets, regimes, causes, groups, orders,
        misses, unmatched,
    ];
    for section in sections {
        // Writing to a text does not fail.
        let _ = section(&mut out, report);
    }
    out
}

fn head(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "# Accuracy\n\n\
         Written by the program: prediction against `measured/`. Errors in percent are\n\
         predicted / measured - 1. *fit*: constants were fitted to these rows; *check*:\n\
         they were not. Allowed values are in `measured/tolerances.json`. Ranges hold what\n\
         is known of the constants and what no constant explains, the latter learned by\n\
         regime from the other machines only (`calibration/residuals.json`).\n"
    )?;
    let inside = percent(report.coverage);
    writeln!(out, "{} predictions; {inside} % of check rows inside their 80 % range.\n", {
        report.rows.len()
    })
}

fn goals(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "## Targets\n\n\
         Of check rows, by machine, %. A target of errors is met when every machine is within, or the\n\
         worst one where that is said. Ranks have GPUs of their own.\n\n\
         | target | wanted | reached | | cause | what would mend it |\n\
         |---|---|---|---|---|---|"
    )?;
    for target in &report.targets {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            target.name,
            target.wanted,
            target.reached,
            if target.met { "met" } else { "MISSED" },
            target.cause.as_deref().unwrap_or(""),
            target.mend.as_deref().unwrap_or(""),
        )?;
    }
    writeln!(out)
}

/// A picture, by its place from the page.
fn picture(out: &mut String, file: &str, what: &str) -> Result {
    writeln!(out, "![{what}]({file})\n")
}

fn verdicts(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "## What would explain a row\n\n\
         Check rows. *outside*: not in the 80 % range, and constants that are off by at most {BOUND}\n\
         standard deviations would explain it. *not explained*: no such change does: the machine is not\n\
         what its topology says, or the model lacks something. Beside them the mechanism that most of\n\
         the prediction follows (its rows; how many times slower its constants would have to be, the\n\
         median; below 1: faster), where it holds a tenth of it and ten times would do.\n\n\
         | machine | within | outside | not explained | nearest mechanisms |\n\
         |---|---:|---:|---:|---|"
    )?;
    for score in report.scores.iter().filter(|score| score.regime.is_none()) {
        let own = || report.rows.iter().filter(|row| !row.fit && row.machine == score.machine);
        let count = |verdict: Verdict| own().filter(|row| row.verdict == verdict).count();
        let mut found: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for near in own().filter_map(|row| row.nearest.as_ref()) {
            found.entry(near.mechanism).or_default().push(near.slower);
        }
        let mut found: Vec<(&str, Vec<f64>)> = found.into_iter().collect();
        found.sort_by_key(|(_, factors)| Reverse(factors.len()));
        let told = found
            .into_iter()
            .map(|(name, factors)| format!("{name} ({}; x{:.2})", factors.len(), median(factors)));
        writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            score.machine,
            count(Verdict::InRange),
            count(Verdict::OutOfRange),
            count(Verdict::NotExplained),
            told.take(3).collect::<Vec<_>>().join(", "),
        )?;
    }
    writeln!(out)
}

fn without(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "## Each machine left out\n\n\
         Check rows. Refitted without the machine: the residuals of its ranges (*in 80 %* above), and, in\n\
         the last two columns, one factor a regime, the median error of the other machines. Where it\n\
         helps, machines err together and a constant is off for all of them. Constants stay: rows that\n\
         they were fitted to do not count here.\n\n\
         | machine | rows | median | p90 | by the others: median | p90 |\n\
         |---|---:|---:|---:|---:|---:|"
    )?;
    for machine in &report.left_out {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            machine.machine,
            machine.rows,
            percent(machine.median),
            percent(machine.p90),
            percent(machine.median_shifted),
            percent(machine.p90_shifted),
        )?;
    }
    let mean = |what: fn(&LeftOut) -> f64| {
        let all = report.left_out.iter().map(what);
        percent(all.sum::<f64>() / report.left_out.len().max(1) as f64)
    };
    writeln!(
        out,
        "| mean of {} machines | | {} | {} | {} | {} |\n",
        report.left_out.len(),
        mean(|machine| machine.median),
        mean(|machine| machine.p90),
        mean(|machine| machine.median_shifted),
        mean(|machine| machine.p90_shifted),
    )
}

fn score_row(out: &mut String, name: &str, score: &Score) -> Result {
    let noise = score.noise.map_or(String::new(), percent);
    writeln!(
        out,
        "| {name} | {} | {} | {} | {} | {} | {:.2} | {noise} |",
        score.rows,
        percent(score.median),
        percent(score.p90),
        signed(score.bias),
        percent(score.coverage),
        score.score,
    )
}

fn machines(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "## By machine\n\n\
         Check rows. *in 80 %*: share inside the range. *score*: interval score of the range,\n\
         of logarithms, less is better. *noise*: half of what lies between the lowest and the\n\
         highest of repeated measurements, the median. The last row counts machines alike.\n"
    )?;
    picture(out, "../plots/accuracy.svg", "Predicted over measured, by machine and regime")?;
    picture(out, "accuracy-scatter.svg", "Predicted against measured, every call")?;
    writeln!(
        out,
        "| machine | rows | median | p90 | bias | in 80 % | score | noise |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    let all: Vec<&Score> = report.scores.iter().filter(|score| score.regime.is_none()).collect();
    for score in &all {
        score_row(out, &score.machine, score)?;
    }
    let mean = |what: fn(&Score) -> f64| {
        all.iter().map(|score| what(score)).sum::<f64>() / all.len().max(1) as f64
    };
    writeln!(
        out,
        "| mean of {} machines | {} | {} | {} | {} | {} | {:.2} | |",
        all.len(),
        all.iter().map(|score| score.rows).sum::<usize>(),
        percent(mean(|score| score.median)),
        percent(mean(|score| score.p90)),
        signed(mean(|score| score.bias)),
        percent(mean(|score| score.coverage)),
        mean(|score| score.score),
    )?;
    let within = all.iter().filter(|score| (0.7..=0.9).contains(&score.coverage)).count();
    let above = all.iter().filter(|score| score.coverage > 0.9).count();
    writeln!(
        out,
        "\nRanges hold 70 to 90 % of the rows of {within} machines, more of {above}, less of {}.\n",
        all.len() - within - above
    )
}

fn lines(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "## Against fitted lines\n\n\
         A latency a step and a rate, in two pieces, fitted to some rows of a machine, predict\n\
         others; our predictions used none of either. Medians over machines, %; bands of the\n\
         lines are conformal.\n\n\
         | rows held out | rows | machines | ours: median | p90 | in 80 % | score | lines: median | p90 | in 80 % | score |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    )?;
    for split in &report.splits {
        write!(out, "| {} | {} | {} |", split.name, split.rows, split.machines)?;
        for errors in [&split.ours, &split.line] {
            write!(
                out,
                " {} | {} | {} | {:.2} |",
                percent(errors.median),
                percent(errors.p90),
                percent(errors.coverage),
                errors.score
            )?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn regrets(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "## Regret\n\n\
         What is lost by taking the algorithm that is predicted to be fastest instead of the\n\
         one that was measured fastest, %.\n\n\
         | machine | choices | median | p90 | worst | at |\n|---|---:|---:|---:|---:|---|"
    )?;
    for regret in &report.regrets {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            regret.machine,
            regret.choices,
            percent(regret.median),
            percent(regret.p90),
            percent(regret.worst),
            if regret.worst > 0.0 { regret.worst_at.as_str() } else { "" },
        )?;
    }
    writeln!(out)
}

fn regimes(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "## By regime\n\n\
         Each figure is a median over machines of that figure of a machine's rows.\n\n\
         | regime | machines | rows | median | p90 | in 80 % |\n|---|---:|---:|---:|---:|---:|"
    )?;
    let names = report.scores.iter().filter_map(|score| score.regime.clone());
    let names: std::collections::BTreeSet<String> = names.collect();
    for name in names {
        let own: Vec<&Score> =
            report.scores.iter().filter(|score| score.regime.as_ref() == Some(&name)).collect();
        let over = |what: fn(&Score) -> f64| percent(median(own.iter().map(|score| what(score))));
        writeln!(
            out,
            "| {name} | {} | {} | {} | {} | {} |",
            own.len(),
            own.iter().map(|score| score.rows).sum::<usize>(),
            over(|score| score.median),
            over(|score| score.p90),
            over(|score| score.coverage),
        )?;
    }
    writeln!(out)
}

fn groups(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "## By experiment\n\n\
         | machine | experiment | data | rows | median | p90 | worst | bias | allowed | |\n\
         |---|---|---|---:|---:|---:|---:|---:|---|---|"
    )?;
    for group in &report.groups {
        let told = allowed(group);
        writeln!(
            out,
            "| {} | {} | {} | {told} | {} |",
            group.machine,
            group.experiment,
            cells(group).join(" | "),
            verdict(group.misses, false, !told.is_empty()),
        )?;
    }
    Ok(())
}

fn orders(out: &mut String, report: &CheckReport) -> Result {
    writeln!(
        out,
        "\n## Order of algorithms\n\n| machine | experiment | pairs | right |\n\
         |---|---|---:|---:|"
    )?;
    for order in &report.orders {
        let (machine, experiment) = (&order.machine, &order.experiment);
        writeln!(out, "| {machine} | {experiment} | {} | {} |", order.pairs, order.right)?;
    }
    Ok(())
}

fn unmatched(out: &mut String, report: &CheckReport) -> Result {
    writeln!(out, "\n## Rows without a prediction\n\n| machine | reason | rows |\n|---|---|---:|")?;
    for entry in &report.unmatched {
        writeln!(out, "| {} | {} | {} |", entry.machine, entry.reason, entry.count)?;
    }
    Ok(())
}
