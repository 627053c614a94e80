//! Kinds of figures whose errors are alike: what is predicted, over what, and of how many bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::algorithm::{Implementation, Transport};
use crate::error::{self, Result};
use crate::fabric::{Fabric, LinkClass};
use crate::schedule::Collective;
use crate::workload::Beside;

/// What is predicted.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Rates of copies.
    Copies,
    /// A read or a flag alone.
    Latency,
    /// Reads and writes at full tilt, and latencies beside them.
    Load,
    /// A call by a kernel that is no part of NCCL, or of a probe.
    Kernel,
    /// A call by NCCL.
    Nccl,
    /// A call by NCCL whose version or way of launch is assumed.
    NcclAssumed,
    /// An all-to-all by NCCL's sends and receives.
    NcclAllToAll,
    /// A call beside other traffic.
    Beside,
}

/// What carries the bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Medium {
    /// NVLink between every two GPUs.
    Nvlink,
    /// PCIe between some of them.
    Pcie,
    /// Host memory between some of them.
    Host,
}

/// A kind of figure.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Regime {
    /// What.
    pub kind: Kind,
    /// Over what.
    pub medium: Medium,
    /// Of how many bytes, for calls.
    pub bytes: Option<u64>,
}

/// Classes of sizes: up to so many bytes, and what they are called. What is larger is one more.
const SIZES: [(u64, &str); 3] =
    [(16 << 10, "to 16 KiB"), (SMALL_BYTES, "to 256 KiB"), (4 << 20, "to 4 MiB")];
/// Up to here latencies weigh more than rates.
pub const SMALL_BYTES: u64 = 256 << 10;

/// The class of the size of a call.
pub fn size_class(bytes: u64) -> &'static str {
    SIZES.iter().find(|(most, _)| bytes <= *most).map_or("over 4 MiB", |class| class.1)
}

impl Medium {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Medium::Nvlink => "NVLink",
            Medium::Pcie => "PCIe",
            Medium::Host => "host memory",
        }
    }

    /// Of ranks on these GPUs that reach each other so.
    pub fn of(fabric: &Fabric, gpus: &[u32], transport: &Transport) -> Medium {
        let by_host = match transport {
            Transport::Host => true,
            Transport::Each(pairs) => pairs.iter().any(|pair| pair.2.is_by_host()),
            Transport::Peer => !fabric.peer_to_peer,
        };
        let nvlink = |a: u32, b: u32| {
            let path = fabric.path(a, b).unwrap_or_default();
            path.iter().all(|&link| fabric.links[link as usize].class == LinkClass::Nvlink)
        };
        let all_nvlink = gpus.iter().all(|&a| gpus.iter().all(|&b| nvlink(a, b)));
        match (by_host, all_nvlink) {
            (true, _) => Medium::Host,
            (false, true) => Medium::Nvlink,
            (false, false) => Medium::Pcie,
        }
    }
}

impl Regime {
    /// Of a call of a collective.
    pub fn of_call(
        implementation: Implementation,
        collective: Collective,
        medium: Medium,
        bytes: u64,
    ) -> Regime {
        let kind = match (implementation, collective) {
            (Implementation::Nccl, Collective::AllToAll) => Kind::NcclAllToAll,
            (Implementation::Nccl, _) => Kind::Nccl,
            _ => Kind::Kernel,
        };
        Regime { kind, medium, bytes: Some(bytes) }
    }

    /// The same call beside other traffic, if there is any.
    #[must_use]
    pub fn beside(self, beside: &[Beside]) -> Regime {
        if beside.is_empty() { self } else { Regime { kind: Kind::Beside, ..self } }
    }

    /// The class of its size.
    pub fn size(&self) -> &'static str {
        self.bytes.map_or("", size_class)
    }

    /// Its names, the most exact first: each wider one holds for what the ones before it do not know.
    pub fn names(&self) -> [String; 4] {
        let kind = match self.kind {
            Kind::Copies => "copies",
            Kind::Latency => "latency",
            Kind::Load => "load",
            Kind::Kernel => "kernel",
            Kind::Nccl => "NCCL",
            Kind::NcclAssumed => "NCCL assumed",
            Kind::NcclAllToAll => "NCCL all-to-all",
            Kind::Beside => "beside traffic",
        };
        let with_medium = format!("{kind}, {}", self.medium.name());
        let exact = match self.size() {
            "" => with_medium.clone(),
            size => format!("{with_medium}, {size}"),
        };
        [exact, with_medium, kind.to_owned(), ANYTHING.to_owned()]
    }
}

/// The name of the regime that holds everything.
const ANYTHING: &str = "all";

/// What no constant explains, by regime: `calibration/residuals.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residuals {
    /// For people.
    pub comment: String,
    /// By the regime's name.
    pub regimes: BTreeMap<String, Residual>,
}

/// What no constant explains in a regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// Relative standard deviation which, with that of the constants, holds 80 % of the rows of an
    /// average machine.
    pub sigma: f64,
    /// Rows.
    pub rows: usize,
    /// Machines that they come from.
    pub machines: usize,
    /// The same without each of the machines, by which its own rows are judged; nothing where too few
    /// others are left.
    pub without: BTreeMap<String, Option<f64>>,
}

impl Residuals {
    /// Those that come with the program.
    ///
    /// # Errors
    /// When the embedded file is damaged, which a test excludes.
    pub fn embedded() -> Result<Residuals> {
        let text = include_str!("../../calibration/residuals.json");
        error::embedded("calibration/residuals.json", text)
    }

    /// Relative standard deviation of a regime; `judged`: without what was learned from this machine.
    pub fn sigma(&self, regime: &Regime, judged: Option<&str>) -> f64 {
        let known = regime.names().into_iter().filter_map(|name| {
            let residual = self.regimes.get(&name)?;
            match judged.and_then(|machine| residual.without.get(machine)) {
                Some(without) => *without,
                None => Some(residual.sigma),
            }
        });
        // A table without rows knows nothing.
        known.into_iter().next().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_regime_stands_in_for_one_that_is_not_known() {
        let residual = |sigma, without: &[(&str, Option<f64>)]| Residual {
            sigma,
            rows: 9,
            machines: 3,
            without: without.iter().map(|&(name, s)| (name.to_owned(), s)).collect(),
        };
        let table = Residuals {
            comment: String::new(),
            regimes: BTreeMap::from([
                ("NCCL, PCIe".to_owned(), residual(0.2, &[("a", Some(0.3)), ("b", None)])),
                ("all".to_owned(), residual(0.5, &[])),
            ]),
        };
        let regime = Regime { kind: Kind::Nccl, medium: Medium::Pcie, bytes: Some(14_336) };
        assert_eq!(regime.names()[0], "NCCL, PCIe, to 16 KiB");
        let sigma = |judged| table.sigma(&regime, judged);
        assert_eq!([sigma(None), sigma(Some("a")), sigma(Some("b"))], [0.2, 0.3, 0.5]);
        let other = Regime { kind: Kind::Load, ..regime };
        assert!((table.sigma(&other, None) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn a_size_is_of_the_class_whose_end_it_is() {
        let classes = [16 << 10, (16 << 10) + 1, 256 << 10, 1 << 20, (4 << 20) + 1].map(size_class);
        assert_eq!(classes, ["to 16 KiB", "to 256 KiB", "to 256 KiB", "to 4 MiB", "over 4 MiB"]);
    }

    #[test]
    fn the_embedded_table_knows_every_kind_of_figure() {
        let table = Residuals::embedded().expect("reads");
        assert!(table.regimes.contains_key(ANYTHING));
        assert!(table.regimes.values().all(|r| r.sigma > 0.0 && r.sigma < 1.0 && r.rows > 0));
    }
}
