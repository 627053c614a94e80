//! PCI Express: lanes times signalling rate times coding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bandwidth;

/// A PCIe link as trained.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pcie {
    /// Generation, 1 to 6, as trained under load.
    pub generation: u8,
    /// Lanes: 1, 2, 4, 8 or 16, as trained.
    pub width: u8,
}

/// Share of symbols left after SKP ordered sets, one set of 16 symbols in 370 to 375 blocks (PCIe
/// base specification 5.0, section 4.2.7).
const AFTER_SKIP: f64 = 0.9973;

impl Pcie {
    /// Rate of one direction after line coding and SKP sets, before TLP overhead.
    ///
    /// Signalling 2.5, 5, 8, 16, 32, 64 GT/s a lane; coding 8b/10b (Gen1-2), 128b/130b (Gen3-5),
    /// or 236 TLP bytes of a 256-byte flit (Gen6): PCIe base specification, chapter 4.
    pub fn raw_bandwidth(&self) -> Bandwidth {
        let gb_per_lane = match self.generation {
            1 => 0.25,
            2 => 0.5,
            3 => 128.0 / 130.0,
            4 => 16.0 / 8.0 * 128.0 / 130.0,
            5 => 32.0 / 8.0 * 128.0 / 130.0,
            _ => 64.0 / 8.0 * 236.0 / 256.0,
        };
        Bandwidth::from_gb_per_s(gb_per_lane * f64::from(self.width) * AFTER_SKIP)
    }

    /// What is impossible about it.
    pub fn fault(&self) -> Option<String> {
        if !(1..=6).contains(&self.generation) {
            return Some(format!("PCIe generation {} does not exist: 1 to 6", self.generation));
        }
        if !matches!(self.width, 1 | 2 | 4 | 8 | 16) {
            return Some(format!("PCIe width x{} does not exist: x1, x2, x4, x8, x16", self.width));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gen5_x16_is_62_85() {
        // 16 lanes x 4 GB/s x 128/130 x 0.9973 = 62.85 GB/s.
        let rate = Pcie { generation: 5, width: 16 }.raw_bandwidth().as_gb_per_s();
        assert!((rate - 62.845).abs() < 0.01, "{rate}");
    }

    #[test]
    fn x32_does_not_exist() {
        assert!(Pcie { generation: 5, width: 32 }.fault().is_some());
        assert!(Pcie { generation: 7, width: 16 }.fault().is_some());
        assert!(Pcie { generation: 1, width: 1 }.fault().is_none());
    }
}
