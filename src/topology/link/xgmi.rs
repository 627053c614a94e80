//! AMD's socket-to-socket links (xGMI, Infinity Fabric): several links with static routes, not one
//! pooled pipe.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bandwidth;

/// A bundle of socket links.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Xgmi {
    /// Number of links; each carries its own routes.
    pub links: u8,
    /// Signalling rate of a lane, GT/s.
    pub gt_per_s: f64,
    /// Payload rate of one link and direction, GB/s, where it was measured on this machine;
    /// otherwise the socket's calibrated share of the raw rate is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_gb_per_s: Option<f64>,
}

impl Xgmi {
    /// Raw rate of one direction of one link: 16 lanes.
    pub fn raw_bandwidth_per_link(&self) -> Bandwidth {
        Bandwidth::from_gb_per_s(self.gt_per_s * 16.0 / 8.0)
    }

    /// What is impossible about it.
    pub fn fault(&self) -> Option<String> {
        if !(1..=8).contains(&self.links) {
            return Some(format!("sockets are joined by 1 to 8 links, not {}", self.links));
        }
        if !(1.0..=64.0).contains(&self.gt_per_s) {
            return Some(format!("{:?} GT/s is no rate of a socket link: 1 to 64", self.gt_per_s));
        }
        match self.measured_gb_per_s {
            Some(rate) if !(0.1..=200.0).contains(&rate) => Some(format!(
                "a measured rate of {rate:?} GB/s a link is not plausible: 0.1 to 200"
            )),
            Some(rate) if rate > self.raw_bandwidth_per_link().as_gb_per_s() => Some(format!(
                "a measured rate of {rate:?} GB/s is more than the {} of the raw link",
                self.raw_bandwidth_per_link()
            )),
            _ => None,
        }
    }
}
