//! NVLink: a bond of equal links, hashed by address.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bandwidth;

/// A bond of NVLinks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NvLink {
    /// Generation, 1 (P100) to 6 (Rubin).
    pub generation: u8,
    /// Number of links in the bond, as in nvidia-smi's `NV18`.
    pub links: u8,
}

impl NvLink {
    /// Rate of one direction of the bond: 20 GB/s a link (NVLink 1), 25 (2 to 4), 50 (5 and 6),
    /// NVIDIA data sheets.
    pub fn raw_bandwidth(&self) -> Bandwidth {
        let gb_per_link = match self.generation {
            1 => 20.0,
            2..=4 => 25.0,
            _ => 50.0,
        };
        Bandwidth::from_gb_per_s(gb_per_link * f64::from(self.links))
    }

    /// What is impossible about it.
    pub fn fault(&self) -> Option<String> {
        if !(1..=6).contains(&self.generation) {
            return Some(format!("NVLink generation {} does not exist: 1 to 6", self.generation));
        }
        if !(1..=36).contains(&self.links) {
            return Some(format!("a GPU has 1 to 36 NVLinks, not {}", self.links));
        }
        None
    }
}
