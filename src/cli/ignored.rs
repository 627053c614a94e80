//! Flags of a prediction that say nothing where they stand: they are refused, not ignored.

use super::arguments::{FlagMemory, Model, Predict, Stage};
use crate::error::{Error, Result};

/// A flag, and whether it is given.
type Flag = (&'static str, fn(&Predict) -> bool);

/// Flags that some use of a prediction's options leaves without effect.
const FLAGS: &[Flag] = &[
    ("--json", |predict| predict.json),
    ("--explain", |predict| predict.explain),
    ("--assumptions", |predict| predict.assumptions),
    ("--format", |predict| predict.format.is_some()),
    ("--stop-after", |predict| predict.stop_after.is_some()),
    ("--every-call", |predict| predict.every_call),
    ("--trace", |predict| predict.trace.is_some()),
    ("--what-if", |predict| !predict.what_if.is_empty()),
    ("--seed", |predict| predict.seed.is_some()),
    ("--algo", |predict| !predict.algo.is_empty()),
    ("--proto", |predict| predict.proto.is_some()),
    ("--blocks", |predict| predict.blocks.is_some()),
    ("--flags", |predict| predict.flags != FlagMemory::Peer),
    ("--fidelity", |predict| predict.fidelity != Model::Packet),
    ("--gpus", |predict| !predict.gpus.is_empty()),
    ("--calls", |predict| predict.calls.is_some()),
    ("--beside", |predict| !predict.beside.is_empty()),
    ("--collective", |predict| predict.collective.is_some()),
    ("--all", |predict| predict.all),
    ("-b", |predict| predict.begin.is_some()),
    ("-e", |predict| predict.end.is_some()),
    ("-f", |predict| predict.factor.is_some()),
];

/// What no stage has: words around predictions.
const OF_NO_STAGE: &[&str] = &["--explain", "--assumptions", "--seed", "--format"];
/// What is laid down about calls, and which calls.
const OF_CALLS: &[&str] = &[
    "--algo",
    "--proto",
    "--blocks",
    "--flags",
    "--fidelity",
    "--gpus",
    "--calls",
    "--beside",
    "--collective",
    "--all",
    "-b",
    "-e",
    "-f",
];
/// What no picture and no report shows.
const OF_NO_PICTURE: &[&str] = &[
    "--json",
    "--explain",
    "--assumptions",
    "--format",
    "--stop-after",
    "--every-call",
    "--trace",
    "--what-if",
    "--seed",
];
/// Pictures by name, and what has no effect on them beside [`OF_NO_PICTURE`].
const OF_PICTURES: &[(&[&str], &[&str])] = &[
    (&["peers", "errors"], OF_CALLS),
    // They show packets of one call.
    (&["machine", "latency", "timeline", "contention"], &["--calls", "-e", "-f", "--fidelity"]),
    (&["waterfall"], &["--calls", "-b", "-e", "-f"]),
    (&["step", "distribution", "pareto"], &["-b", "-e", "-f"]),
    (&["time", "bus-bandwidth"], &["--calls"]),
];

/// The first of these flags that is given.
fn given(predict: &Predict, names: &[&str]) -> Option<&'static str> {
    let found = FLAGS.iter().find(|flag| names.contains(&flag.0) && (flag.1)(predict));
    found.map(|flag| flag.0)
}

/// That no flag of the prediction is given that its form leaves without effect.
///
/// # Errors
/// The flag, and what it belongs to.
pub(super) fn of_prediction(predict: &Predict) -> Result<()> {
    let sizes = predict.begin.is_some() || predict.end.is_some();
    if let Some(stage) = predict.stop_after {
        let (stage, others) = match stage {
            Stage::Topology => ("topology", [OF_CALLS, &["--every-call"]].concat()),
            Stage::Fabric => ("fabric", [OF_CALLS, &["--every-call"]].concat()),
            // Of the first size.
            Stage::Schedule => ("schedule", vec!["-e", "-f"]),
        };
        if let Some(flag) = given(predict, OF_NO_STAGE).or_else(|| given(predict, &others)) {
            return Err(Error::request(
                format!("{flag} changes nothing of what --stop-after {stage} prints"),
                "drop one of the two",
            ));
        }
    }
    if sizes && let Some(flag) = given(predict, &["--calls"]) {
        return Err(Error::request(
            format!("{flag} is for steps, and -b and -e ask for single calls"),
            "drop it, or drop -b and -e",
        ));
    }
    if predict.seed.is_some() && !predict.explain && !predict.json {
        return Err(Error::request(
            "--seed is of what --explain and --json tell of steps of many calls",
            "add --explain or --json, or drop it",
        ));
    }
    Ok(())
}

/// That no flag is given that says nothing about a picture of this kind; of no kind: about a report.
///
/// # Errors
/// The flag.
pub(super) fn of_picture(predict: &Predict, kind: Option<&str>) -> Result<()> {
    if let Some(flag) = given(predict, OF_NO_PICTURE) {
        return Err(Error::request(
            format!("{flag} is for a prediction, not for a picture"),
            "drop it, or drop the subcommand",
        ));
    }
    let Some(kind) = kind else { return Ok(()) };
    let of_kind = OF_PICTURES.iter().filter(|entry| entry.0.contains(&kind));
    match of_kind.flat_map(|entry| given(predict, entry.1)).next() {
        Some(flag) => Err(Error::request(
            format!("{flag} changes nothing of the picture `{kind}`"),
            "drop it; `simulate plot list` tells what each picture shows",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_and_picture_that_the_tables_name_is_there() {
        let names: Vec<&str> = FLAGS.iter().map(|flag| flag.0).collect();
        let of_kinds = OF_PICTURES.iter().flat_map(|entry| entry.1);
        for name in [OF_NO_STAGE, OF_CALLS, OF_NO_PICTURE].into_iter().flatten().chain(of_kinds) {
            assert!(names.contains(name), "{name}");
        }
        let kinds = || crate::report::plot::KINDS.iter().map(|kind| kind.name);
        let told: Vec<&str> = OF_PICTURES.iter().flat_map(|entry| entry.0).copied().collect();
        assert!(
            kinds().all(|kind| told.contains(&kind)),
            "a picture that ignores nobody knows what"
        );
        assert!(told.iter().all(|name| kinds().any(|kind| kind == *name)));
    }
}
