//! Kinds of link, one file each: what a person states of them, and what that means in bytes per
//! second of the raw wire.

pub mod network;
pub mod nvlink;
pub mod pcie;
pub mod upi;
pub mod xgmi;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use network::Network;
pub use nvlink::NvLink;
pub use pcie::Pcie;
pub use upi::Upi;
pub use xgmi::Xgmi;

use crate::units::Bandwidth;

/// What runs over a link.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LinkKind {
    /// PCI Express.
    Pcie(Pcie),
    /// NVLink, a bond of equal links.
    Nvlink(NvLink),
    /// AMD socket links, used separately with static routes.
    Xgmi(Xgmi),
    /// Intel socket links, used separately with static routes.
    Upi(Upi),
    /// A network cable.
    Network(Network),
}

impl LinkKind {
    /// Raw rate of one direction of the whole bond, before packet overhead.
    pub fn raw_bandwidth(&self) -> Bandwidth {
        match self {
            LinkKind::Pcie(link) => link.raw_bandwidth(),
            LinkKind::Nvlink(link) => link.raw_bandwidth(),
            LinkKind::Xgmi(link) => link.raw_bandwidth_per_link() * f64::from(link.links),
            LinkKind::Upi(link) => link.raw_bandwidth_per_link() * f64::from(link.links),
            LinkKind::Network(link) => link.raw_bandwidth(),
        }
    }

    /// The words people use: `Gen5 x16`, `NV18`, `xGMI x3`.
    pub fn label(&self) -> String {
        match self {
            LinkKind::Pcie(link) => format!("Gen{} x{}", link.generation, link.width),
            LinkKind::Nvlink(link) => format!("NV{}", link.links),
            LinkKind::Xgmi(link) => format!("xGMI x{}", link.links),
            LinkKind::Upi(link) => format!("UPI x{}", link.links),
            LinkKind::Network(link) => format!("{} Gb/s", link.gbit_per_s),
        }
    }

    /// What a valid link of this kind may not be, as a sentence; `None` when it is fine.
    pub fn fault(&self) -> Option<String> {
        match self {
            LinkKind::Pcie(link) => link.fault(),
            LinkKind::Nvlink(link) => link.fault(),
            LinkKind::Xgmi(link) => link.fault(),
            LinkKind::Upi(link) => link.fault(),
            LinkKind::Network(link) => link.fault(),
        }
    }
}
