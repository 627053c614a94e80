//! Other traffic beside the calls: copies between GPUs and host memory, a job on other GPUs, NICs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::format_gpus;

/// A kind of traffic that goes on without end while the calls run, and which GPUs make it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// What goes on.
    pub traffic: Traffic,
    /// GPUs that do it; none named: for `ring` those that take no part in the calls, otherwise those
    /// that do. Of adapters those nearest to these GPUs; none named: for host memory all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<u32>,
}

/// Most kinds of traffic beside the calls of a scenario: each is a rank more of every schedule.
const BESIDE_MAX: usize = 64;

/// What is wrong with all the traffic beside some calls, where it is, and what to do.
pub fn beside_fault(all: &[Beside]) -> Option<(usize, String, &'static str)> {
    if all.len() > BESIDE_MAX {
        let told = format!("{} kinds of traffic beside the calls", all.len());
        return Some((BESIDE_MAX, told, "64 at most"));
    }
    all.iter().enumerate().find_map(|(index, one)| {
        let again = |at: &usize| one.gpus[..*at].contains(&one.gpus[*at]);
        let gpu = one.gpus[(0..one.gpus.len()).find(again)?];
        let told = format!("GPU {gpu} is named twice for `{}`", one.traffic.name());
        Some((index, told, "name each GPU once"))
    })
}

impl fmt::Display for Beside {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.traffic.what())?;
        let gpus = &self.gpus;
        if gpus.is_empty() { Ok(()) } else { write!(out, ", GPUs {}", format_gpus(gpus)) }
    }
}

/// A kind of traffic.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Traffic {
    /// A copy engine of each GPU writes to host memory: KV-cache offload.
    D2h,
    /// A copy engine of each GPU reads from host memory: weights or KV cache streamed in.
    H2d,
    /// The same as `d2h` by a kernel's stores.
    D2hSm,
    /// The same as `h2d` by a kernel's loads.
    H2dSm,
    /// Each GPU's kernel stores to the next one's memory, as a ring of large calls does: a prefill or
    /// another job.
    Ring,
    /// Each GPU's copy engine writes to the next one's memory: KV cache handed on.
    Peer,
    /// Network adapters write to host memory what comes in.
    NicIn,
    /// Network adapters read from host memory what goes out.
    NicOut,
    /// The adapter nearest to each GPU writes to its memory what comes in (GPUDirect RDMA).
    RdmaIn,
    /// The adapter nearest to each GPU reads from its memory what goes out.
    RdmaOut,
}

impl Traffic {
    /// All, with what each is.
    pub const ALL: [(Traffic, &'static str, &'static str); 10] = [
        (Traffic::D2h, "d2h", "copy engines write to host memory (KV-cache offload)"),
        (Traffic::H2d, "h2d", "copy engines read from host memory (weights, KV cache)"),
        (Traffic::D2hSm, "d2h_sm", "kernels store to host memory"),
        (Traffic::H2dSm, "h2d_sm", "kernels load from host memory"),
        (Traffic::Ring, "ring", "kernels store to the next GPU (a prefill, another job)"),
        (Traffic::Peer, "peer", "copy engines write to the next GPU (KV cache handed on)"),
        (Traffic::NicIn, "nic_in", "adapters write to host memory what comes in"),
        (Traffic::NicOut, "nic_out", "adapters read from host memory what goes out"),
        (Traffic::RdmaIn, "rdma_in", "the nearest adapter writes to each GPU (GPUDirect RDMA)"),
        (Traffic::RdmaOut, "rdma_out", "the nearest adapter reads from each GPU"),
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// What it is.
    pub fn what(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.2)
    }

    /// The kind of this word.
    pub fn from_name(name: &str) -> Option<Traffic> {
        Self::ALL.iter().find(|entry| entry.1 == name).map(|entry| entry.0)
    }
}
