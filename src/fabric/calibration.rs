//! Measured constants by device, each with unit, source and confidence, read from `calibration/`.
//!
//! Code holds no figure that a user might dispute: an endpoint asks for a constant by name, and a
//! device inherits what it does not state from the device it is `like`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{self, Error, Result};
use crate::topology::Confidence;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constant {
    /// Value, in `unit`.
    pub value: f64,
    /// `ns`, `GB/s`, `GHz`, `B`, `GiB`, `1`.
    pub unit: String,
    /// Who measured or stated it.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

/// How many times a constant may differ from the program's own: beyond, it is a slip, and times and
/// counts leave what the engine can hold.
pub const OFF_MAX: f64 = 100.0;

impl Constant {
    /// Whether a value can stand in its place. What is counted in whole numbers stays at least one.
    pub fn may_be(&self, value: f64) -> bool {
        let counted = self.value >= 1.0 && matches!(self.unit.as_str(), "1" | "B");
        let least = (self.value / OFF_MAX).max(if counted { 1.0 } else { 0.0 });
        match self.value > 0.0 {
            true => (least..=self.value * OFF_MAX).contains(&value),
            // Nothing to compare with: a millisecond, or as many of anything else.
            false => (0.0..=1e6).contains(&value),
        }
    }
}

/// A device model and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Name for people.
    pub title: String,
    /// The device whose constants stand in for those not stated here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// Constants by name.
    pub constants: BTreeMap<String, Constant>,
}

/// The classes of device, one file each in `calibration/`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceClass {
    /// GPUs.
    Gpu,
    /// PCIe switches.
    Switch,
    /// CPU sockets with their memory.
    Socket,
    /// NVSwitch domains.
    NvSwitch,
    /// Network adapters.
    Nic,
    /// Links by kind.
    Link,
    /// Libraries and benchmark programs.
    Library,
}

impl DeviceClass {
    /// All classes with the word used for them and the embedded file.
    pub const ALL: [(DeviceClass, &'static str, &'static str); 7] = [
        (DeviceClass::Gpu, "gpu", include_str!("../../calibration/gpus.json")),
        (DeviceClass::Switch, "pcie_switch", include_str!("../../calibration/switches.json")),
        (DeviceClass::Socket, "socket", include_str!("../../calibration/sockets.json")),
        (DeviceClass::NvSwitch, "nv_switch", include_str!("../../calibration/nvswitches.json")),
        (DeviceClass::Nic, "nic", include_str!("../../calibration/nics.json")),
        (DeviceClass::Link, "link", include_str!("../../calibration/links.json")),
        (DeviceClass::Library, "library", include_str!("../../calibration/libraries.json")),
    ];

    /// The word used for the class in topology files.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }
}

/// All constants.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    devices: BTreeMap<(DeviceClass, String), Device>,
}

/// A group of constants that are uncertain together, for ranges.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum UncertaintyGroup {
    /// What happens inside GPUs: latencies of endpoints.
    GpuLatency,
    /// Latencies of switches, root complexes, sockets, memory and links.
    PathLatency,
    /// Rates of everything.
    Rates,
    /// What libraries add around a call.
    Libraries,
}

impl UncertaintyGroup {
    /// All groups.
    pub const ALL: [UncertaintyGroup; 4] = [
        UncertaintyGroup::GpuLatency,
        UncertaintyGroup::PathLatency,
        UncertaintyGroup::Rates,
        UncertaintyGroup::Libraries,
    ];

    fn holds(self, class: DeviceClass, unit: &str) -> bool {
        match self {
            UncertaintyGroup::GpuLatency => class == DeviceClass::Gpu && unit == "ns",
            UncertaintyGroup::Libraries => class == DeviceClass::Library && unit == "ns",
            UncertaintyGroup::PathLatency => {
                !matches!(class, DeviceClass::Gpu | DeviceClass::Library) && unit == "ns"
            }
            UncertaintyGroup::Rates => unit == "GB/s",
        }
    }
}

/// Relative uncertainty (one sigma of a log-normal) of a figure by how it is known. The choices are
/// ours; the spread of repeated public measurements of one path is 5 to 8 % (RTX PRO 6000 flags,
/// 633 to 727 ns; H200 host reads, 1.14 to 1.28 us).
pub fn relative_uncertainty(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::Specified => 0.01,
        Confidence::Measured => 0.04,
        Confidence::Inferred => 0.10,
        Confidence::Estimated => 0.25,
    }
}

impl Calibration {
    /// The constants that come with the program.
    ///
    /// # Errors
    /// [`Error::Input`] when an embedded file is malformed, which a test excludes.
    pub fn embedded() -> Result<Calibration> {
        let mut devices = BTreeMap::new();
        for (class, word, text) in DeviceClass::ALL {
            let file = format!("calibration ({word})");
            for (name, device) in error::embedded::<BTreeMap<String, Device>>(&file, text)? {
                devices.insert((class, name), device);
            }
        }
        Ok(Calibration { devices })
    }

    /// Whether a device of this class and name is known.
    pub fn knows(&self, class: DeviceClass, name: &str) -> bool {
        self.devices.contains_key(&(class, name.to_string()))
    }

    /// Names of all devices of a class, sorted.
    pub fn names(&self, class: DeviceClass) -> Vec<&str> {
        self.devices.keys().filter(|key| key.0 == class).map(|key| key.1.as_str()).collect()
    }

    /// The device.
    ///
    /// # Errors
    /// [`Error::Request`] when there is no such device, with the known names.
    pub fn device(&self, class: DeviceClass, name: &str) -> Result<&Device> {
        self.devices.get(&(class, name.to_string())).ok_or_else(|| {
            Error::request(
                format!("no calibration for {} `{name}`", class.word()),
                format!("known: {}", self.names(class).join(", ")),
            )
        })
    }

    /// A constant of a device, looked for along the chain of `like`.
    ///
    /// # Errors
    /// [`Error::Request`] when the device or the constant is not there.
    pub fn constant(&self, class: DeviceClass, name: &str, constant: &str) -> Result<&Constant> {
        self.owned(class, name, constant).map(|(_, found)| found)
    }

    /// How many times as long as on one GPU model a clock is on another.
    ///
    /// # Errors
    /// As [`Calibration::constant`].
    pub fn pace(&self, of: &str, on: &str) -> Result<f64> {
        let clock = |model: &str| self.value(DeviceClass::Gpu, model, "instruction_clock");
        Ok(clock(of)? / clock(on)?)
    }

    /// A time of a GPU model that is so many clocks: where another model has it, by both clocks, ns.
    ///
    /// # Errors
    /// As [`Calibration::constant`].
    pub fn clocked(&self, gpu_model: &str, constant: &str) -> Result<f64> {
        let (owner, found) = self.owned(DeviceClass::Gpu, gpu_model, constant)?;
        Ok(found.value * self.pace(&owner, gpu_model)?)
    }

    /// A constant, and the device that has it.
    fn owned(&self, class: DeviceClass, name: &str, constant: &str) -> Result<(String, &Constant)> {
        let mut at = name.to_string();
        // A chain longer than the number of devices would be a cycle.
        for _ in 0..=self.devices.len() {
            let device = self.device(class, &at)?;
            if let Some(found) = device.constants.get(constant) {
                return Ok((at, found));
            }
            match &device.like {
                Some(next) => at.clone_from(next),
                None => break,
            }
        }
        Err(Error::request(
            format!("the calibration of {} `{name}` has no `{constant}`", class.word()),
            "add it, or name a device it is `like`",
        ))
    }

    /// A constant's value.
    ///
    /// # Errors
    /// As [`Calibration::constant`].
    pub fn value(&self, class: DeviceClass, name: &str, constant: &str) -> Result<f64> {
        Ok(self.constant(class, name, constant)?.value)
    }

    /// Replaces one constant's value, as a fit does.
    ///
    /// # Errors
    /// As [`Calibration::constant`].
    pub fn set(
        &mut self,
        class: DeviceClass,
        name: &str,
        constant: &str,
        value: f64,
    ) -> Result<()> {
        let mut found = self.constant(class, name, constant)?.clone();
        found.value = value;
        if let Some(device) = self.devices.get_mut(&(class, name.to_string())) {
            device.constants.insert(constant.to_string(), found);
        }
        Ok(())
    }

    /// States a constant for a device, in place of its own or that of the device it is `like`.
    pub fn put(&mut self, class: DeviceClass, name: &str, constant: &str, value: Constant) {
        if let Some(device) = self.devices.get_mut(&(class, name.to_string())) {
            device.constants.insert(constant.to_string(), value);
        }
    }

    /// All constants of one group moved together by `sigmas` of their uncertainty: a positive move
    /// makes latencies longer and rates lower, that is, everything slower.
    #[must_use]
    pub fn perturbed(&self, group: UncertaintyGroup, sigmas: f64) -> Calibration {
        let mut moved = self.clone();
        for ((class, _), device) in &mut moved.devices {
            for constant in device.constants.values_mut() {
                if group.holds(*class, &constant.unit) {
                    let factor = (sigmas * relative_uncertainty(constant.confidence)).exp();
                    let slower = if constant.unit == "GB/s" { 1.0 / factor } else { factor };
                    constant.value *= slower;
                }
            }
        }
        moved
    }

    /// Every constant with its device, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (DeviceClass, &str, &str, &Constant)> {
        self.devices.iter().flat_map(|((class, name), device)| {
            device
                .constants
                .iter()
                .map(move |(key, constant)| (*class, name.as_str(), key.as_str(), constant))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_constants_are_plausible_and_sourced() {
        let calibration = Calibration::embedded().expect("embedded calibration reads");
        for (class, device, name, constant) in calibration.iter() {
            let place = format!("{class:?} {device} {name}");
            assert!(constant.value.is_finite() && constant.value >= 0.0, "{place}");
            assert!(!constant.source.is_empty(), "{place} has no source");
            assert!(
                matches!(constant.unit.as_str(), "ns" | "GB/s" | "GHz" | "B" | "GiB" | "1"),
                "{place} unit"
            );
        }
    }

    #[test]
    fn like_chains_end() {
        let calibration = Calibration::embedded().expect("embedded calibration reads");
        for (class, device, _, _) in calibration.iter() {
            assert!(calibration.constant(class, device, "no such constant").is_err());
        }
    }

    #[test]
    fn a_perturbation_slows_down() {
        let calibration = Calibration::embedded().expect("embedded calibration reads");
        let slower = calibration.perturbed(UncertaintyGroup::GpuLatency, 1.0);
        let read =
            |c: &Calibration| c.value(DeviceClass::Gpu, "h200", "local_load").expect("known");
        assert!(read(&slower) > read(&calibration));
    }
}
