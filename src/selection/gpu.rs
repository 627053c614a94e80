//! What libraries ask of a GPU before they choose: its compute capability and its memory.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fabric::{Calibration, DeviceClass};

/// A compute capability, such as 12.0 of `sm_120`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Capability {
    /// 12 of 12.0.
    pub major: u32,
    /// 0 of 12.0.
    pub minor: u32,
}

impl Capability {
    /// Reads `12.0`.
    ///
    /// # Errors
    /// When it is no such number.
    pub fn parse(text: &str) -> Result<Capability> {
        let parts = text.split_once('.').and_then(|(major, minor)| {
            let one_digit = minor.len() == 1;
            Some((major.parse().ok()?, minor.parse().ok().filter(|_| one_digit)?))
        });
        parts.map(|(major, minor)| Capability { major, minor }).ok_or_else(|| {
            Error::request(format!("`{text}` is no compute capability"), "write it as 12.0")
        })
    }

    /// That of a GPU model.
    ///
    /// # Errors
    /// When the calibration does not say.
    pub fn of(calibration: &Calibration, gpu_model: &str) -> Result<Capability> {
        let value = calibration.value(DeviceClass::Gpu, gpu_model, "compute_capability")?;
        // One decimal digit, so ten times it is whole.
        let tenfold = (value * 10.0).round() as u32;
        Ok(Capability { major: tenfold / 10, minor: tenfold % 10 })
    }

    /// The number that NCCL and nvcc use: 120 for 12.0.
    pub fn number(self) -> u32 {
        self.major * 10 + self.minor
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)
    }
}

impl From<Capability> for String {
    fn from(capability: Capability) -> String {
        capability.to_string()
    }
}

impl TryFrom<String> for Capability {
    type Error = Error;

    fn try_from(text: String) -> Result<Capability> {
        Capability::parse(&text)
    }
}

/// Memory of a GPU of a model as CUDA reports it, GiB.
///
/// # Errors
/// When the calibration does not say.
pub fn memory_gib(calibration: &Calibration, gpu_model: &str) -> Result<f64> {
    calibration.value(DeviceClass::Gpu, gpu_model, "memory_gib")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_gpu_has_a_capability_and_memory() {
        let calibration = Calibration::embedded().expect("embedded");
        for model in calibration.names(DeviceClass::Gpu) {
            // Stated for each model: a neighbour's would be wrong.
            let device = calibration.device(DeviceClass::Gpu, model).expect("known");
            assert!(device.constants.contains_key("compute_capability"), "{model}");
            assert!(device.constants.contains_key("memory_gib"), "{model}");
            assert!(memory_gib(&calibration, model).expect("stated") > 10.0, "{model}");
        }
        let of = |model| Capability::of(&calibration, model).expect("stated").number();
        assert_eq!(
            [of("rtx-pro-6000"), of("h200"), of("rtx-4090"), of("a100-sxm")],
            [120, 90, 89, 80]
        );
    }

    #[test]
    fn capabilities_are_read_and_ordered() {
        let read = |text| Capability::parse(text).expect("a capability");
        assert!(read("9.0") < read("10.0") && read("10.0") < read("10.3"));
        assert_eq!(read("12.0").to_string(), "12.0");
        for wrong in ["", "12", "sm_120", "12.00", "12.x"] {
            assert!(Capability::parse(wrong).is_err(), "{wrong}");
        }
    }
}
