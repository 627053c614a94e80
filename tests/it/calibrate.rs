//! Does a fit find constants that are known, and say which ones the rows do not tell?

use collsim::fabric::Calibration;
use collsim::input::calibration_json::find;
use collsim::measurement::Observation;
use collsim::validation::check::CheckOptions;
use collsim::validation::fit::{Name, fit, predict};
use collsim::validation::read::observations;
use collsim::workload::uniform;
use statrs::distribution::{ContinuousCDF, Normal};

use crate::bless::file_text;
use crate::cli::simulate;

const NAMES: [&str; 4] = [
    "pcie_switch/pm50100/traversal",
    "socket/threadripper-pro-7000/traversal",
    "gpu/rtx-pro-6000/completer",
    "library/nccl/kernel_start",
];

/// Flags and reads of 128 bytes between 16 GPUs below four switches.
fn rows() -> Vec<Observation> {
    let mut options = CheckOptions::new(Calibration::embedded().expect("embedded"));
    options.machine = Some("wrx90-7955wx-4x".into());
    let all = observations(&options).expect("reads").observations;
    let wanted = |row: &Observation| row.experiment == "flag" || row.experiment.starts_with("read");
    all.into_iter().filter(wanted).collect()
}

fn names(start: &Calibration) -> Vec<Name> {
    NAMES.iter().map(|name| find(start, name).expect("known")).collect()
}

/// A machine whose constants differ by up to a fifth from where the fit starts, measured with one
/// percent of noise: the constants come back within their intervals, and the one that no row depends
/// on stays.
#[test]
fn known_constants_come_back() {
    let start = Calibration::embedded().expect("embedded");
    let names = names(&start);
    let normal = Normal::new(0.0, 1.0).expect("a normal");
    let (mut inside, mut all) = (0, 0);
    for seed in 0..4 {
        let mut truth = start.clone();
        for (index, (class, device, name)) in names.iter().enumerate() {
            let by = 0.4 * (uniform(seed, index as u64, 0) - 0.5);
            let value = truth.value(*class, device, name).expect("known") * by.exp();
            truth.set(*class, device, name, value).expect("known");
        }
        let mut rows = rows();
        let measured = predict(&rows, &truth).expect("runs");
        for (index, (row, value)) in rows.iter_mut().zip(measured).enumerate() {
            let noise = 0.01 * normal.inverse_cdf(uniform(seed, index as u64, 1));
            row.measured = value.expect("a figure") * noise.exp();
        }
        let (held_out, fitted): (Vec<_>, Vec<_>) =
            rows.into_iter().enumerate().partition(|(index, _)| index % 5 == 4);
        let plain = |rows: Vec<(usize, Observation)>| rows.into_iter().map(|row| row.1).collect();
        let (held_out, fitted): (Vec<Observation>, Vec<Observation>) =
            (plain(held_out), plain(fitted));
        let fit = fit(&fitted, &held_out, &names, &start).expect("fits");
        for (constant, (class, device, name)) in fit.constants.iter().zip(&names).take(3) {
            assert!(constant.identifiable, "seed {seed}: {}", constant.name);
            let truth = truth.value(*class, device, name).expect("known");
            all += 1;
            inside += u32::from((constant.low..=constant.high).contains(&truth));
            // Three standard deviations where the interval has 1.28.
            let spread = (constant.high / constant.low).ln() / 2.0 / 1.2816;
            let off = (constant.after / truth).ln();
            assert!(off.abs() < 3.0 * spread + 0.01, "seed {seed}: {constant:?}, truth {truth}");
        }
        let untold = &fit.constants[3];
        assert!(!untold.identifiable && untold.after == untold.before, "{untold:?}");
        let held_out = fit.held_out.expect("rows were held out");
        assert!(held_out.median_after < 0.03, "seed {seed}: {held_out:?}");
        assert!(held_out.median_after <= held_out.median_before, "seed {seed}: {held_out:?}");
    }
    // 80 % intervals of twelve: ten on average, and fewer than seven in one of twenty.
    assert!(inside >= 7, "{inside} of {all} inside");
}

#[test]
fn the_program_fits_and_takes_what_it_fitted() {
    let file = std::env::temp_dir().join(format!("collsim-fit-{}.json", std::process::id()));
    let path = file.to_str().expect("UTF-8");
    let wanted = ["--machine", "wrx90-7955wx-4x", "--experiment", "flag"];
    let fit = ["--fit", "pcie_switch/pm50100/traversal,gpu/rtx-pro-6000/fence", "--out", path];
    let told = simulate(&[&["calibrate"], &wanted[..], &fit[..]].concat());
    assert_eq!((told.code, told.err.as_str()), (0, ""));
    assert!(told.out.contains("pcie_switch/pm50100/traversal"), "{}", told.out);
    assert!(told.out.contains("not identifiable from these rows"), "{}", told.out);
    let text = std::fs::read_to_string(&file).expect("written");
    assert!(text.contains("traversal") && !text.contains("fence"), "{text}");
    let before = simulate(&[&["check", "--json"], &wanted[..]].concat());
    let after = simulate(&[&["check", "--json", "--calibration", path], &wanted[..]].concat());
    let median = |out: &str| {
        let report: serde_json::Value = serde_json::from_str(out).expect("JSON");
        report["groups"][0]["median_abs_error"].as_f64().expect("a figure")
    };
    assert!(median(&after.out) <= median(&before.out), "{} {}", after.out, before.out);
    let one = ["--topo", "rtxpro6000x8-flat", "--algo", "ring", "-b", "8K", "--format", "csv"];
    let plain = simulate(&one);
    let fitted = simulate(&[&one[..], &["--calibration", path]].concat());
    assert_eq!((plain.code, fitted.code), (0, 0));
    assert_ne!(plain.out, fitted.out);
    std::fs::remove_file(&file).expect("ours");
    let refused = simulate(&["calibrate", "--fit", "gpu/h200/fense"]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("fence"), "{}", refused.err);
}

/// A folder with a topology of its own and rows that make no sense, as a user has it.
#[test]
fn a_folder_of_ones_own_is_checked_and_bad_rows_are_counted() {
    let folder = std::env::temp_dir().join(format!("collsim-own-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("writable");
    let head = "experiment,implementation,algorithm,protocol,channels,ranks,nodes,flows,size_bytes,\
                dtype,placement,condition,run,metric,value,unit,confidence,note,source\n";
    let row = |value: &str, unit: &str| {
        format!("all_reduce,nccl,,,,2,1,,14336,,out_of_place,NCCL 2.27.7,,time,{value},{unit},,,\n")
    };
    let text = [head.to_owned(), row("14", "us"), row("NaN", "us"), row("1", "us"), row("9", "ms")];
    std::fs::write(folder.join("observations.csv"), text.concat()).expect("writable");
    let path = folder.to_str().expect("UTF-8");
    let refused = simulate(&["check", "--measured", path]);
    assert_eq!(refused.code, 2);
    assert!(refused.err.contains("name it with --topo"), "{}", refused.err);
    let topology = file_text("topologies/h200x2-nvlink-pair.json");
    std::fs::write(folder.join("topology.json"), topology).expect("writable");
    let told = simulate(&["check", "--measured", path]);
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{}", told.out);
    assert!(told.out.contains("3 rows set aside"), "{}", told.out);
    assert!(told.out.contains("observations.csv:3 `NaN` is no number"), "{}", told.out);
    let rows = simulate(&["check", "--measured", path, "--format", "csv"]);
    assert_eq!(rows.out.lines().count(), 2, "{}", rows.out);
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[test]
fn a_log_of_nccl_tests_is_checked() {
    let file = std::env::temp_dir().join(format!("collsim-log-{}.txt", std::process::id()));
    let log = "# nThread 1 nGpus 2 minBytes 8192 maxBytes 8192 step: 2(factor) warmup iters: 5 iters: 20\n\
               #  Rank  0 Group  0 Pid  1 on box device  0 [0x18] NVIDIA H200\n\
               #  Rank  1 Group  0 Pid  1 on box device  1 [0x2a] NVIDIA H200\n\
               #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n\
               #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n\
               \x20       8192          2048     float     sum      -1     9.50    0.86    0.86      0     9.40    0.87    0.87      0\n";
    std::fs::write(&file, log).expect("writable");
    let path = file.to_str().expect("UTF-8");
    let told = simulate(&["check", "--measured", path, "--topo", "h200x2-nvlink-pair"]);
    std::fs::remove_file(&file).expect("ours");
    assert_eq!((told.code, told.err.as_str()), (0, ""), "{}", told.out);
    assert!(told.out.contains("nccl-tests") && told.out.contains("predictions"), "{}", told.out);
}
