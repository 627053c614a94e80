//! The cheapest list of edits that meets a target.

use serde::Serialize;

use super::in_parallel;
use super::plan::{Plan, Terms, some_left};
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::topology::edit::{Edit, agree};
use crate::units::is_time_us;

/// What is to be met: `verify < 2 ms`, or `decode > 90 tok/s` with what a step takes beside its calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Target {
    /// The step.
    pub step: String,
    /// Most ms of calls a step.
    pub most_ms: f64,
}

/// An edit that may be made, and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// One edit, or several that go together.
    pub edits: Vec<Edit>,
    /// In whatever unit; without prices each counts one.
    pub price: f64,
}

/// A list of edits that was tried.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// In words; empty for the machine as it is.
    pub edits: Vec<String>,
    /// What they cost together.
    pub price: f64,
    /// Calls of a step by the fastest implementation, ms, and which that is; or why it cannot be.
    pub found: std::result::Result<(f64, String), String>,
}

/// More offers than this make too many lists.
pub const OFFERS_MAX: usize = 16;
/// More edits than this in one list are not tried.
pub const TOGETHER_MAX: u32 = 4;

impl Target {
    /// Reads `verify < 2 ms` or `decode > 90 tok/s`; the latter needs `compute_ms` a step.
    ///
    /// # Errors
    /// When it is neither, or cannot be met by any calls.
    pub fn parse(text: &str, compute_ms: Option<f64>) -> Result<Target> {
        let wrong = |reason: &str| {
            let help = "write \"verify < 2 ms\", or \"decode > 90 tok/s\" with --compute-ms";
            Error::request(format!("`{text}` is no target: {reason}"), help)
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [step, sign, number, unit] = words[..] else {
            return Err(wrong("it has four words"));
        };
        let number = number.parse::<f64>().ok().filter(|n| *n > 0.0 && is_time_us(n * 1e3));
        let number =
            number.ok_or_else(|| wrong("its third word is a number above 0, up to 1e9"))?;
        let most_ms = match (sign, unit, compute_ms) {
            ("<", "ms", None) => number,
            ("<", "ms", Some(_)) => {
                return Err(wrong("ms are of the calls alone, and --compute-ms is of tok/s"));
            }
            (">", "tok/s", Some(compute)) => 1e3 / number - compute,
            (">", "tok/s", None) => return Err(wrong("tokens a second need --compute-ms")),
            _ => return Err(wrong("it says < .. ms or > .. tok/s")),
        };
        if !(most_ms.is_finite() && most_ms > 0.0) {
            return Err(wrong("compute alone takes longer, whatever the calls"));
        }
        Ok(Target { step: step.to_owned(), most_ms })
    }
}

/// Tries lists of offers from the cheapest on, until one meets the target: the last of what is
/// returned, if it does. Exact: every list of up to [`TOGETHER_MAX`] offers that is cheaper was tried.
///
/// # Errors
/// Too many offers, a step that there is not.
pub fn search(
    plan: &Plan,
    offers: &[Offer],
    target: &Target,
    calibration: &Calibration,
    fidelity: Fidelity,
) -> Result<Vec<Tried>> {
    if offers.len() > OFFERS_MAX {
        return Err(Error::request(
            format!("{} edits to choose from are too many: up to {OFFERS_MAX}", offers.len()),
            "leave out what cannot help: `simulate --topo MACHINE --what-if EDIT` says",
        ));
    }
    if plan.scenario.step(&target.step).is_none() {
        let names: Vec<&str> = plan.scenario.steps.iter().map(|step| step.name.as_str()).collect();
        let help = format!("known: {}", names.join(", "));
        return Err(Error::request(format!("there is no step `{}`", target.step), help));
    }
    let few = |mask: &u32| mask.count_ones() <= TOGETHER_MAX;
    let mut lists: Vec<u32> = (0..1_u32 << offers.len()).filter(few).collect();
    let price = |mask: u32| of(offers, mask).fold(0.0, |sum, offer| sum + offer.price);
    // Of equal price the shortest first, then in the order of the offers.
    lists.sort_by(|&a, &b| {
        let length = a.count_ones().cmp(&b.count_ones());
        price(a).total_cmp(&price(b)).then(length).then(a.cmp(&b))
    });
    let mut tried: Vec<Tried> = Vec::new();
    for some in lists.chunks(8) {
        let done = in_parallel(some, |&mask| {
            let edits: Vec<Edit> = of(offers, mask).flat_map(|o| o.edits.clone()).collect();
            let found = calls_ms(plan, &edits, target, calibration, fidelity);
            let found = found.map_err(|error| error.to_string());
            let edits = edits.iter().map(ToString::to_string).collect();
            Ok(Tried { edits, price: price(mask), found })
        })?;
        for one in done {
            let meets = one.found.as_ref().is_ok_and(|(ms, _)| *ms <= target.most_ms);
            tried.push(one);
            if meets {
                return Ok(tried);
            }
        }
    }
    Ok(tried)
}

/// The offers of a list.
fn of(offers: &[Offer], mask: u32) -> impl Iterator<Item = &Offer> {
    offers.iter().enumerate().filter(move |(bit, _)| mask >> bit & 1 == 1).map(|(_, offer)| offer)
}

/// Calls of the step by the fastest implementation, ms.
fn calls_ms(
    plan: &Plan,
    edits: &[Edit],
    target: &Target,
    calibration: &Calibration,
    fidelity: Fidelity,
) -> Result<(f64, String)> {
    agree(edits)?;
    let (plan, _) = plan.edited(edits, calibration)?;
    let prepared = plan.prepared(calibration, Terms { regimes: true, ranges: false, fidelity })?;
    let scenario = &prepared.scenario;
    let step = scenario.step(&target.step).unwrap_or(&scenario.steps[0]);
    let (case, us) = some_left(prepared.fastest(step.bytes)?)?;
    Ok((us * f64::from(step.calls) / 1e3, case.title))
}
