//! What holds for every case of a question: the GPUs, the network model, what the caller decides.

use crate::algorithm::{Flags, Settled, Transport};
use crate::engine::Fidelity;
use crate::workload::Beside;

/// Choices that hold for all cases of a question.
#[derive(Clone, Debug)]
pub struct CaseOptions {
    /// GPU of each rank.
    pub gpus: Vec<u32>,
    /// Blocks or channels, where told.
    pub blocks: Option<u32>,
    /// What NCCL settles, where told: see [`crate::algorithm::Request::settled`].
    pub settled: Option<Settled>,
    /// How data travel, where NCCL settles it for sends and receives; else the case's own way.
    pub transport: Option<Transport>,
    /// Ring orders by channel: see [`crate::algorithm::Request::orders`].
    pub orders: Vec<Vec<u32>>,
    /// Islands of ranks, where told: see [`crate::algorithm::Request::islands`].
    pub islands: Vec<Vec<u32>>,
    /// Which memory holds the flags of barriers.
    pub flags: Flags,
    /// Network model.
    pub fidelity: Fidelity,
    /// Simulate this many calls instead of a few that are scaled.
    pub every_call: Option<u32>,
    /// Simulate at most this many, for a quick look.
    pub calls_max: Option<u32>,
    /// Other traffic that goes on while the calls run.
    pub beside: Vec<Beside>,
}

impl CaseOptions {
    /// Everything else as the library has it.
    pub fn of(gpus: Vec<u32>, fidelity: Fidelity) -> CaseOptions {
        CaseOptions {
            gpus,
            blocks: None,
            settled: None,
            transport: None,
            orders: Vec::new(),
            islands: Vec::new(),
            flags: Flags::default(),
            fidelity,
            every_call: None,
            calls_max: None,
            beside: Vec::new(),
        }
    }

    /// The same with nothing beside the calls.
    #[must_use]
    pub fn alone(&self) -> CaseOptions {
        CaseOptions { beside: Vec::new(), ..self.clone() }
    }
}
