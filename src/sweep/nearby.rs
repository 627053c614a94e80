//! What was measured on machines like the built-in ones, for a line of the first screen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::algorithm::{self, Implementation, Protocol, Transport};
use crate::error::{Result, embedded};
use crate::prediction::{Case, CaseOptions, Machine};
use crate::schedule::Collective;

/// One measured call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NearbyFigure {
    /// What ran, for people.
    pub what: String,
    /// Algorithm by its name on the command line.
    pub algorithm: String,
    /// Protocol by NCCL's name.
    pub protocol: String,
    /// Whose kernel.
    pub kernel: KernelName,
    /// The first so many GPUs.
    pub gpus: u32,
    /// Bytes of the call.
    pub bytes: u64,
    /// Measured, us.
    pub us: f64,
    /// GPUs behind no common switch were joined through host memory, NCCL's default.
    #[serde(default)]
    pub far_by_host: bool,
    /// One process launched the call on one GPU after another, outside a graph.
    #[serde(default)]
    pub launched_in_turn: bool,
    /// What else to know; empty when nothing.
    #[serde(default)]
    pub note: String,
    /// Where it is published.
    pub source: String,
}

/// Whose kernel ran.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelName {
    /// NCCL.
    Nccl,
    /// vLLM's and SGLang's custom all-reduce.
    CustomAllReduce,
    /// p2pmark.
    P2pmark,
}

/// A measured call with its prediction.
#[derive(Clone, Debug, Serialize)]
pub struct NearbyCheck {
    /// Measured.
    pub figure: NearbyFigure,
    /// Predicted, us.
    pub predicted_us: f64,
}

impl NearbyCheck {
    /// Relative error of the prediction.
    pub fn error(&self) -> f64 {
        self.predicted_us / self.figure.us - 1.0
    }
}

/// The figures measured on a machine like the one of this name.
///
/// # Errors
/// [`Error::Read`](crate::error::Error::Read) when the embedded file is malformed, which a test excludes.
pub fn figures_of(topology: &str) -> Result<Vec<NearbyFigure>> {
    let text = include_str!("../../topologies/nearby.json");
    let mut all: BTreeMap<String, Vec<NearbyFigure>> = embedded("topologies/nearby.json", text)?;
    Ok(all.remove(topology).unwrap_or_default())
}

impl NearbyFigure {
    /// Predicts it.
    ///
    /// # Errors
    /// Those of the algorithm and the engine.
    pub fn check(&self, machine: &Machine, options: &CaseOptions) -> Result<NearbyCheck> {
        let gpus: Vec<u32> = (0..self.gpus).collect();
        let case = Case {
            algorithm: algorithm::find(Collective::AllReduce, &self.algorithm)?,
            large: None,
            protocol: Protocol::from_name(&self.protocol).unwrap_or(Protocol::Simple),
            implementation: match self.kernel {
                KernelName::Nccl => Implementation::Nccl,
                KernelName::CustomAllReduce => Implementation::CustomAllReduce,
                KernelName::P2pmark => Implementation::P2pmark,
            },
            transport: match self.far_by_host {
                true => Transport::host_for(machine.topology.ranks_apart(&gpus)),
                false => Transport::Peer,
            },
            title: self.what.clone(),
            extra: false,
        };
        let launches = match self.launched_in_turn {
            true => machine.nominal.fabric.launches_in_turn(&gpus).as_us(),
            false => 0.0,
        };
        let options = CaseOptions { gpus, ..options.clone() };
        let predicted_us = case.nominal_us(machine, self.bytes, &options)?.max(launches);
        Ok(NearbyCheck { figure: self.clone(), predicted_us })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_name_known_algorithms() {
        let figures = figures_of("rtxpro6000x8").expect("sound");
        assert!(!figures.is_empty());
        for figure in figures {
            assert!(
                algorithm::find(Collective::AllReduce, &figure.algorithm).is_ok(),
                "{}",
                figure.what
            );
            assert!(Protocol::from_name(&figure.protocol).is_some(), "{}", figure.what);
        }
    }
}
