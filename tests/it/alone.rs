//! Are the constants that one run of the probe tells, without any table of ours, good for another
//! program's measurements of such a machine?

use std::collections::BTreeMap;

use collsim::fabric::{Calibration, DeviceClass};
use collsim::input::calibration_json::parse;
use collsim::input::{folder, load_topology};
use collsim::statistics::{median, quantile};
use collsim::validation::check::CheckOptions;
use collsim::validation::fit::predict;
use collsim::validation::read::observations;
use collsim::validation::stages::{How, alone, recipe};

use crate::bless::file_text;
use crate::cli::simulate;

/// Constants of `simulate calibrate --from measured/h200-probe`.
const RECORD: &str = "measured/h200-probe/constants.json";

fn record() -> Calibration {
    parse(RECORD, &file_text(RECORD)).expect("reads")
}

/// Nothing of the machine slips through: each constant is withdrawn, or kept for a reason.
#[test]
fn every_constant_of_the_machine_is_withdrawn_or_kept() {
    let (recipe, known) = (recipe().expect("reads"), Calibration::embedded().expect("embedded"));
    let mut told: Vec<&str> = recipe.free.iter().map(|free| free.constant.as_str()).collect();
    told.extend(recipe.kept.values().flatten().map(String::as_str));
    told.sort_unstable();
    let machine = [
        (DeviceClass::Gpu, "h200", "gpu"),
        (DeviceClass::Socket, "xeon-emerald-rapids", "socket"),
        (DeviceClass::Link, "pcie", "link/pcie"),
        (DeviceClass::Library, "probe", "library/probe"),
    ];
    let mut all: Vec<String> = Vec::new();
    for (class, device, word) in machine {
        let own = known.iter().filter(|one| (one.0, one.1) == (class, device));
        all.extend(own.map(|one| format!("{word}/{}", one.2)));
    }
    all.sort_unstable();
    for name in &all {
        assert!(told.contains(&name.as_str()), "{name} is neither withdrawn nor kept");
    }
    let twice = told.windows(2).find(|pair| pair[0] == pair[1]);
    assert_eq!(twice, None);
    let names = |list: &[String]| list.iter().all(|name| told.contains(&name.as_str()));
    assert!(recipe.stages.iter().all(|stage| names(&stage.fits)));
}

/// What the table of constants gives within these limits, the probe alone gives too: h200-one-link was
/// measured weeks before by another program.
#[test]
fn the_probe_alone_predicts_another_programs_link() {
    let mut options = CheckOptions::new(record());
    options.machine = Some("h200-one-link".into());
    let mut rows = observations(&options).expect("reads").observations;
    // Experiment, its largest median and its largest error.
    let limits = [
        ("copy 64 MB and more", 0.01, 0.02),
        ("sm_write, saturated", 0.015, 0.02),
        ("sm_read, saturated", 0.01, 0.04),
        ("latency_under_load latency", 0.11, 0.30),
        ("shares both read", 0.03, 0.07),
        ("shares writer", 0.03, 0.04),
        ("virtual device", 0.08, 0.35),
    ];
    rows.retain(|row| limits.iter().any(|limit| limit.0 == row.experiment));
    let predicted = predict(&rows, &record()).expect("runs");
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (row, value) in rows.iter().zip(predicted) {
        let error = (value.expect("a figure") / row.measured - 1.0).abs();
        errors.entry(&row.experiment).or_default().push(error);
    }
    for (experiment, middle, most) in limits {
        let errors = &errors[experiment];
        let (seen, largest) =
            (median(errors.iter().copied()), quantile(errors.iter().copied(), 1.0));
        assert!(seen <= middle, "{experiment}: median {seen:.3}, at most {middle}");
        assert!(largest <= most, "{experiment}: worst {largest:.3}, at most {most}");
    }
}

/// The record is what the stages give: readings and two cheap stages are gone through again.
#[test]
fn a_part_is_fitted_again() {
    let mut recipe = recipe().expect("reads");
    recipe.stages.retain(|stage| matches!(stage.name.as_str(), "reads alone" | "flags"));
    assert_eq!(recipe.stages.len(), 2);
    let folder_name = "measured/h200-probe";
    let table = Calibration::embedded().expect("embedded");
    let own = Some((folder_name.to_owned(), "h200-host-link".to_owned()));
    let options = CheckOptions { own, ..CheckOptions::new(table.clone()) };
    let rows = folder::rows(folder_name).expect("reads");
    let seen = observations(&options).expect("reads").observations;
    let topology = load_topology("h200-host-link").expect("built in");
    let told = alone(&recipe, &topology, &rows, &seen, &table, &|_| {}).expect("fits");
    assert!(told.without_rows.is_empty(), "{:?}", told.without_rows);
    let record = record();
    let mut again = 0;
    for constant in told.constants.iter().filter(|constant| constant.how != How::Untold) {
        let (class, device, name) =
            collsim::input::calibration_json::find(&record, &constant.name).expect("known");
        let kept = record.value(class, &device, &name).expect("known");
        let off = (constant.alone / kept - 1.0).abs();
        // Stages between these two are left out here.
        assert!(off < 0.10, "{}: {} now, {kept} in the record", constant.name, constant.alone);
        again += 1;
    }
    assert!(again >= 8, "{again}");
}

#[test]
fn what_cannot_be_fitted_is_told() {
    let bare = simulate(&["calibrate"]);
    assert_eq!(bare.code, 2);
    assert!(bare.err.contains("--fit"), "{}", bare.err);
    let missing = simulate(&["calibrate", "--from", "no-such-folder", "--topo", "h200-host-link"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("docs/probe.md"), "{}", missing.err);
    let root = env!("CARGO_MANIFEST_DIR");
    let other = simulate(&["calibrate", "--from", &format!("{root}/measured/4090x6-tinybox")]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("tells a constant"), "{}", other.err);
    let page = format!("{root}/README.md");
    let file = simulate(&["calibrate", "--from", &page, "--topo", "h200-host-link"]);
    assert_eq!(file.code, 2);
    assert!(file.err.contains("is a file"), "{}", file.err);
}
