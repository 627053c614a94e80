//! What a prediction is made of, by mechanism: how much of it follows the constants of each, and what
//! change of one would explain a row that lies outside of its range.

use serde::Serialize;

use crate::fabric::calibration::{Constant, relative_uncertainty};
use crate::fabric::{Calibration, DeviceClass};

/// Constants that belong to one mechanism.
pub(super) struct Mechanism {
    /// Its name.
    pub(super) name: &'static str,
    holds: fn(DeviceClass, &str) -> bool,
}

const fn mechanism(name: &'static str, holds: fn(DeviceClass, &str) -> bool) -> Mechanism {
    Mechanism { name, holds }
}

/// Every constant that is a time or a rate belongs to one of them. A constant is looked for from the
/// first on: what is left of a class belongs to the last that has it.
pub(super) const MECHANISMS: &[Mechanism] = &[
    mechanism("launch", |class, name| {
        let ends = ["kernel_start", "kernel_end", "sends_start", "ll128_start", "simple_start"];
        let of_gpu = ["graph_node", "stream_launch", "stream_gap", "copy_engine_start"];
        match class {
            DeviceClass::Library => ends.contains(&name),
            DeviceClass::Gpu => of_gpu.contains(&name),
            _ => false,
        }
    }),
    mechanism("flag latency", |class, name| {
        let others = ["write_visible", "local_store_visible", "store_pipeline", "atomic"];
        class == DeviceClass::Gpu
            && (name.starts_with("poll_") || name.starts_with("fence") || others.contains(&name))
    }),
    mechanism("read latency of GPUs", |class, name| {
        let names = ["load_request", "load_return", "completer", "local_load", "pointer_load"];
        class == DeviceClass::Gpu && names.contains(&name)
    }),
    mechanism("copy engine", |class, name| {
        class == DeviceClass::Gpu && name.starts_with("copy_engine")
    }),
    mechanism("instructions", |class, _| matches!(class, DeviceClass::Library | DeviceClass::Gpu)),
    mechanism("host memory", |class, name| {
        class == DeviceClass::Socket && name.starts_with("memory_")
    }),
    mechanism("link between sockets", |class, name| {
        class == DeviceClass::Socket && name.starts_with("socket_")
    }),
    mechanism("root complex", |class, _| class == DeviceClass::Socket),
    mechanism("link rate", |class, name| {
        class == DeviceClass::Nic || class == DeviceClass::Link && name == "usable"
    }),
    mechanism("switches and wires", |class, name| {
        let of_switch = name == "traversal";
        class == DeviceClass::Link || class == DeviceClass::Switch || of_switch
    }),
    mechanism("reduction in switches", |class, _| class == DeviceClass::NvSwitch),
];

/// How far a mechanism is moved to see what follows it: its constants are so much slower, of logarithms.
const STEP: f64 = 0.05;

/// Whether a constant makes things slower when it is larger, or faster; nothing for what is no time or
/// rate.
fn slower(unit: &str, name: &str) -> Option<f64> {
    match (unit, name) {
        ("ns", _) => Some(1.0),
        ("GB/s" | "GHz", _) | (_, "usable" | "socket_efficiency") => Some(-1.0),
        _ => None,
    }
}

/// The mechanism of a constant.
fn of(class: DeviceClass, name: &str) -> Option<usize> {
    MECHANISMS.iter().position(|mechanism| (mechanism.holds)(class, name))
}

/// All constants of one mechanism slower by [`STEP`].
pub(super) fn moved(calibration: &Calibration, mechanism: usize) -> Calibration {
    let mut moved = calibration.clone();
    for (class, device, name, constant) in calibration.iter() {
        let Some(sign) = slower(&constant.unit, name) else { continue };
        if of(class, name) == Some(mechanism) {
            let value = constant.value * (sign * STEP).exp();
            moved.put(class, device, name, Constant { value, ..constant.clone() });
        }
    }
    moved
}

/// The mechanism that most of a prediction follows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearest {
    /// Its name.
    pub mechanism: &'static str,
    /// Share of the prediction that follows its constants.
    pub share: f64,
    /// How many times slower its constants would have to be for the row; below 1: faster.
    pub slower: f64,
}

/// How well the shares of each mechanism are known that no group of constants for ranges moves, such as
/// what of a link is usable: the relative standard deviation of the least known.
pub(super) fn shares(calibration: &Calibration) -> Vec<f64> {
    let mut known = vec![0.0; MECHANISMS.len()];
    for (class, _, name, constant) in calibration.iter() {
        let share = constant.unit == "1" && slower(&constant.unit, name).is_some();
        if let Some(index) = of(class, name).filter(|_| share) {
            known[index] = relative_uncertainty(constant.confidence).max(known[index]);
        }
    }
    known
}

/// How a figure follows each mechanism: of logarithms, a unit of slowness.
pub(super) fn slopes(nominal: f64, moved: impl IntoIterator<Item = Option<f64>>) -> Vec<f64> {
    let slope = |moved: Option<f64>| match moved {
        Some(moved) if nominal > 0.0 && moved > 0.0 => (moved / nominal).ln() / STEP,
        _ => 0.0,
    };
    moved.into_iter().map(slope).collect()
}

/// Least share of a prediction that must follow a mechanism before it explains anything.
const SHARE_MIN: f64 = 0.1;
/// Most times that its constants may have to be slower or faster: beyond, something else is wrong.
const FACTOR_MAX: f64 = 10.0;

/// The nearest mechanism of a row that is off by `log_error`; none where no constant would explain it,
/// such as of a row that is bound by the host's launches.
pub(super) fn nearest(slopes: &[f64], log_error: f64) -> Option<Nearest> {
    let of = slopes.iter().enumerate();
    let (index, slope) = of.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let needed = -log_error / slope;
    (slope.abs() >= SHARE_MIN && needed.abs() <= FACTOR_MAX.ln()).then(|| Nearest {
        mechanism: MECHANISMS[index].name,
        share: slope.abs().min(1.0),
        slower: needed.exp(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_and_rate_belongs_to_a_mechanism_and_no_mechanism_is_empty() {
        let calibration = Calibration::embedded().expect("embedded");
        let mut met = vec![0; MECHANISMS.len()];
        for (class, device, name, constant) in calibration.iter() {
            let Some(_) = slower(&constant.unit, name) else { continue };
            let found = of(class, name);
            assert!(found.is_some(), "{class:?} {device} {name} belongs to no mechanism");
            met[found.expect("seen")] += 1;
        }
        for (mechanism, count) in MECHANISMS.iter().zip(met) {
            assert!(count > 0, "{} has no constant", mechanism.name);
        }
    }

    #[test]
    fn a_mechanism_moves_its_constants_and_no_others() {
        let calibration = Calibration::embedded().expect("embedded");
        for (index, mechanism) in MECHANISMS.iter().enumerate() {
            let moved = moved(&calibration, index);
            for ((class, device, name, before), (.., after)) in calibration.iter().zip(moved.iter())
            {
                let by = match slower(&before.unit, name).filter(|_| before.value > 0.0) {
                    Some(sign) if of(class, name) == Some(index) => sign * STEP,
                    _ => 0.0,
                };
                let place = format!("{} {class:?} {device} {name}", mechanism.name);
                let ratio = if before.value > 0.0 { after.value / before.value } else { 1.0 };
                assert!((ratio.ln() - by).abs() < 1e-12, "{place}");
            }
        }
    }

    #[test]
    fn what_of_a_link_is_usable_may_be_off_too() {
        let known = shares(&Calibration::embedded().expect("embedded"));
        let at = |name: &str| MECHANISMS.iter().position(|one| one.name == name).expect("listed");
        // Measured, and of some socket an estimate; launches are moved as times.
        assert!((known[at("link rate")] - 0.04).abs() < 1e-12);
        assert!((known[at("link between sockets")] - 0.25).abs() < 1e-12);
        assert!(known[at("launch")] < 1e-12);
    }

    #[test]
    fn the_nearest_mechanism_says_what_would_explain_the_row() {
        // Half of a time follows launches: 20 % too long by prediction, exp(-0.182 / 0.5) of them.
        let mut slopes = vec![0.1; MECHANISMS.len()];
        slopes[0] = 0.5;
        let told = nearest(&slopes, 1.2_f64.ln()).expect("one");
        assert_eq!((told.mechanism, told.share), ("launch", 0.5));
        assert!((told.slower - 1.2_f64.powi(-2)).abs() < 1e-12);
        // A rate falls where its mechanism is slower.
        slopes[8] = -1.0;
        let told = nearest(&slopes, 1.2_f64.ln()).expect("one");
        assert!(told.mechanism == "link rate" && (told.slower - 1.2).abs() < 1e-12);
        assert_eq!(nearest(&[0.0; 3], 0.1), None);
        // A twentieth of the time explains nothing, nor does a launch that took 1,000 times as long.
        assert_eq!(nearest(&[0.05, 0.0], 0.1), None);
        assert_eq!(nearest(&[0.1, 0.0], 2_f64.ln()), None);
    }
}
