//! A network cable between a NIC and another NIC.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bandwidth;

/// A network link.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Rate of one direction, Gb/s.
    pub gbit_per_s: f64,
}

impl Network {
    /// Rate of one direction in bytes.
    pub fn raw_bandwidth(&self) -> Bandwidth {
        Bandwidth::from_gb_per_s(self.gbit_per_s / 8.0)
    }

    /// What is impossible about it.
    pub fn fault(&self) -> Option<String> {
        (!(1.0..=3200.0).contains(&self.gbit_per_s))
            .then(|| format!("{:?} Gb/s is no network rate: 1 to 3200", self.gbit_per_s))
    }
}
