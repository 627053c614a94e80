//! Whether predictions stay as near to what was measured as they are known to be.

use crate::bless::same_as_file;
use collsim::fabric::Calibration;
use collsim::report::plot::gallery::ACCURACY;
use collsim::report::plot::{accuracy, scatter};
use collsim::validation::cause::Causes;
use collsim::validation::check::{CheckOptions, CheckReport, run};
use collsim::validation::target::missed;
use collsim::validation::tolerance::Tolerances;
use collsim::validation::{page, render};

fn check(machine: Option<&str>, experiment: Option<&str>) -> CheckReport {
    let mut options = CheckOptions::new(Calibration::embedded().expect("calibration"));
    options.machine = machine.map(str::to_owned);
    options.experiment = experiment.map(str::to_owned);
    run(&options, &|| {}).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_check_of_flags_says_what_it_did() {
    let report = check(Some("wrx90-7955wx-4x"), Some("flag"));
    assert_eq!(report.rows.len(), 15);
    assert_eq!(report.groups.len(), 1);
    let group = &report.groups[0];
    assert!(group.fit && group.count == 15 && group.median_abs_error <= group.p90_abs_error);
    for row in &report.rows {
        assert!(row.low < row.predicted && row.predicted < row.high, "{}", row.id);
        assert!((row.predicted / row.measured - 1.0 - row.error).abs() < 1e-12);
    }
    assert!(report.unmatched.iter().all(|entry| entry.count > 0 && !entry.reason.is_empty()));
    let json = serde_json::to_value(&report).expect("JSON");
    assert_eq!(json["schema_version"], 1);
    let text = render::text(&report, true);
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    assert!(text.contains("flag"));
    assert!(page::markdown(&report).starts_with("# Accuracy"));
}

#[test]
fn a_check_gives_the_same_report_every_time() {
    let once = || serde_json::to_string(&check(Some("h200-one-link"), Some("flag"))).expect("JSON");
    assert_eq!(once(), once());
}

/// All that was measured; the page of its results is kept in the tree.
#[test]
fn groups_outside_tolerance_are_the_known_ones() {
    let report = check(None, None);
    let residuals = report.residuals();
    let text = serde_json::to_string_pretty(&residuals).expect("JSON") + "\n";
    same_as_file("calibration/residuals.json", &text);
    let report = report.judged_by(&residuals).expect("tolerances");
    same_as_file("docs/accuracy.md", &page::markdown(&report));
    same_as_file("docs/accuracy-scatter.svg", &scatter::picture(&report.rows).svg());
    let picture = accuracy::picture(&report.rows).svg();
    same_as_file(&format!("plots/{ACCURACY}"), &picture);
    let mut missed: Vec<(String, String)> = Vec::new();
    let mut seen: Vec<(String, String)> = Vec::new();
    for group in &report.groups {
        let name = (group.machine.clone(), group.experiment.clone());
        seen.push(name.clone());
        missed.extend(group.misses.then_some(name));
    }
    for order in &report.orders {
        let name = (order.machine.clone(), format!("order: {}", order.experiment));
        seen.push(name.clone());
        missed.extend(order.misses.then_some(name));
    }
    let known = Tolerances::embedded().expect("tolerances").known_misses;
    let mut wrong = Vec::new();
    for (machine, experiment) in &missed {
        let listed = known.iter().any(|m| m.machine == *machine && m.experiment == *experiment);
        wrong.extend((!listed).then(|| format!("{machine}, {experiment}: newly outside")));
    }
    for miss in &known {
        let name = (miss.machine.clone(), miss.experiment.clone());
        let gone = seen.contains(&name) && !missed.contains(&name);
        wrong.extend(gone.then(|| format!("{name:?} is within: take it off the known misses")));
    }
    wrong.extend(untold(&report));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Misses without a cause, causes without a miss, and the same of targets.
fn untold(report: &CheckReport) -> Vec<String> {
    let mut wrong = Vec::new();
    let causes = Causes::embedded().expect("causes");
    for miss in report.misses.iter().filter(|miss| miss.cause.is_none()) {
        let (low, high) = (miss.low * 100.0, miss.high * 100.0);
        wrong.push(format!(
            "measured/causes.json has no cause for {}, {}, {}: {} of {} rows, {low:+.0} to {high:+.0} %",
            miss.machine, miss.experiment, miss.size, miss.over, miss.rows
        ));
    }
    for cause in causes.stale(&report.misses) {
        let (machines, experiments) = (&cause.machines, &cause.experiments);
        wrong.push(format!("measured/causes.json: {machines:?} {experiments:?}: no miss needs it"));
    }
    for target in report.targets.iter().filter(|target| !target.met && target.cause.is_none()) {
        wrong.push(format!("measured/targets.json does not say why {} is missed", target.name));
    }
    for told in missed().expect("targets") {
        let open = report.targets.iter().any(|target| target.name == told.name && !target.met);
        if !open {
            wrong.push(format!("measured/targets.json: {} is met, or gone", told.name));
        }
    }
    wrong
}
