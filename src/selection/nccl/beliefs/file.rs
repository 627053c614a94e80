//! The form of `calibration/nccl-topology.json`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::topology::Confidence;

/// A figure of NCCL's source with where it stands.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Value in `unit`.
    pub value: f64,
    /// `GB/s`, `100 Mb/s` or `1`.
    pub unit: String,
    /// File and versions of NCCL.
    pub source: String,
    /// How well it is known.
    pub confidence: Confidence,
}

/// Compute capabilities as NCCL numbers them (120 for 12.0), both ends included.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Capabilities {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Rate of one NVLink.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NvLinkRate {
    pub(super) compute_capability: Capabilities,
    pub(super) since: String,
    pub(super) value: f64,
    pub(super) unit: String,
    pub(super) source: String,
    pub(super) confidence: Confidence,
}

/// Rate of one PCIe lane.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaneRate {
    pub(super) gt_per_s: f64,
    pub(super) value: f64,
    pub(super) unit: String,
    pub(super) source: String,
    pub(super) confidence: Confidence,
}

/// A class of CPUs that NCCL tells apart.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CpuModel {
    pub(super) name: String,
    pub(super) vendor: String,
    /// Any, when left out.
    pub(super) family: Option<u32>,
    pub(super) model_from: u32,
}

/// Rate between two CPUs of a class.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InterCpu {
    pub(super) cpu: String,
    pub(super) since: String,
    pub(super) value: f64,
    pub(super) unit: String,
    pub(super) source: String,
    pub(super) confidence: Confidence,
}

/// Speeds that the search tries, fastest first, GB/s.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrialSpeeds {
    pub(super) compute_capability_from: u32,
    pub(super) since: String,
    pub(super) intra: Vec<f32>,
    pub(super) inter: Vec<f32>,
    pub(super) unit: String,
    pub(super) source: String,
    pub(super) confidence: Confidence,
}

/// Limits of the search.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Steps of an attempt whose channels are alike.
    pub same_channels: Figure,
    /// Steps of any other attempt.
    pub attempt: Figure,
    /// Steps of all attempts together.
    pub all: Figure,
    /// Most channels of a ring search.
    pub ring_channels: Figure,
    /// Most heads of an NVLS search.
    pub nvls_heads: Figure,
    /// Below this share of the found speed no slower one is tried.
    pub ratio: Figure,
    /// Channels of this speed are split in two, GB/s.
    pub duplicate_from: Figure,
    /// The same for more than four channels on newer GPUs, GB/s.
    pub duplicate_many_from: Figure,
}

/// From which version memory is shared by cuMem handles.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CumemSince {
    pub(super) version: String,
    pub(super) source: String,
    pub(super) confidence: Confidence,
}

/// Switches that show themselves as two levels and are one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TwoLevel {
    pub(super) name: String,
    pub(super) top: String,
    pub(super) below: String,
    pub(super) mask: String,
    pub(super) source: String,
}

/// How a CPU model of a topology names itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuNames {
    /// `x86_64`, `arm64` or `ppc64`.
    pub arch: String,
    /// As CPUID says it, such as `AuthenticAMD`.
    pub vendor: String,
    /// Family as NCCL computes it from CPUID: base + 16 x extended.
    pub family: u32,
    /// Model with its extension.
    pub model: u32,
}

/// PCI ids of a switch model of a topology, hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchIds {
    pub(super) vendor: String,
    pub(super) device: String,
    pub(super) subsystem_vendor: String,
    pub(super) subsystem_device: String,
}

/// The file as written.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) same_device: Figure,
    pub(super) network_default: Figure,
    pub(super) intel_peer_overhead: Figure,
    pub(super) fallback_speed: Figure,
    pub(super) nvlink: Vec<NvLinkRate>,
    pub(super) pcie_lane: Vec<LaneRate>,
    pub(super) pcie_lane_unknown: Figure,
    pub(super) cpu_models: Vec<CpuModel>,
    pub(super) inter_cpu: Vec<InterCpu>,
    pub(super) trial_speeds: Vec<TrialSpeeds>,
    pub(super) budget: Budget,
    pub(super) cumem_since: CumemSince,
    pub(super) two_level_switches: Vec<TwoLevel>,
    pub(super) sockets: BTreeMap<String, CpuNames>,
    pub(super) switches: BTreeMap<String, SwitchIds>,
}
