//! A mixture-of-experts layer across GPUs: dispatch and combine beside an all-gather and a
//! reduce-scatter of everything.

use serde::Serialize;

use super::machine::Machine;
use super::nccl::taken;
use super::options::CaseOptions;
use crate::algorithm::expert_parallel::{Layer, Way, exchange};
use crate::algorithm::{Flags, Implementation, Kernel, Protocol, Request, Transport};
use crate::engine::{Fidelity, RunOptions, simulate};
use crate::error::Result;
use crate::schedule::{Collective, Schedule};
use crate::selection::nccl::Setup;

/// What a layer's exchanges cost.
#[derive(Clone, Debug, Serialize)]
pub struct ExpertExchange {
    /// Mean number of different ranks that hold a token's experts.
    pub ranks_per_token: f64,
    /// Bytes that a rank sends to others in dispatch and in combine, the mean over ranks.
    pub sent_bytes: [u64; 2],
    /// Dispatch and combine, us.
    pub exchange_us: [f64; 2],
    /// Bytes of the all-gather and of the reduce-scatter in their place, as nccl-tests counts them.
    pub gathered_bytes: [u64; 2],
    /// Time of these by what NCCL takes, us; none where what it takes is not modelled.
    pub gathered_us: [Option<f64>; 2],
    /// What NCCL takes for them.
    pub gathered_by: [String; 2],
}

impl ExpertExchange {
    /// Simulates both ways on these GPUs.
    ///
    /// # Errors
    /// Those of the layer, the algorithms and the engine.
    pub fn of(
        machine: &Machine,
        setup: &Setup,
        gpus: &[u32],
        layer: &Layer,
    ) -> Result<ExpertExchange> {
        let ranks = gpus.len() as u32;
        let deep_ep = request(machine, gpus)?;
        let mut exchange_us = [0.0; 2];
        for (us, way) in exchange_us.iter_mut().zip([Way::Dispatch, Way::Combine]) {
            *us = run(machine, &exchange(&deep_ep, layer, way)?)?;
        }
        let gathered_bytes = layer.gathered_bytes(ranks);
        let options = CaseOptions::of(gpus.to_vec(), Fidelity::Packet);
        let mut gathered_us = [None; 2];
        let mut gathered_by = [String::new(), String::new()];
        let collectives = [Collective::AllGather, Collective::ReduceScatter];
        for (index, collective) in collectives.into_iter().enumerate() {
            let bytes = gathered_bytes[index];
            match taken(setup, collective, bytes, &options)?.case {
                Ok((case, options)) => {
                    gathered_by[index] = case.title.clone();
                    gathered_us[index] = Some(case.nominal_us(machine, bytes, &options)?);
                }
                Err(reason) => gathered_by[index] = reason,
            }
        }
        let between = layer.tokens_between(ranks);
        let leaving = |(rank, row): (usize, &Vec<u32>)| row.iter().sum::<u32>() - row[rank];
        let moved: u64 = between.iter().enumerate().map(leaving).map(u64::from).sum();
        let sent = |bytes: u32| moved * u64::from(bytes) / u64::from(ranks);
        Ok(ExpertExchange {
            ranks_per_token: layer.ranks_per_token(ranks),
            sent_bytes: [layer.dispatch_bytes, layer.combine_bytes].map(sent),
            exchange_us,
            gathered_bytes,
            gathered_us,
            gathered_by,
        })
    }

    /// Dispatch and combine together, us.
    pub fn exchanged(&self) -> f64 {
        self.exchange_us.iter().sum()
    }

    /// All-gather and reduce-scatter together, us.
    pub fn gathered(&self) -> Option<f64> {
        Some(self.gathered_us[0]? + self.gathered_us[1]?)
    }
}

/// Mean time of a call, us.
fn run(machine: &Machine, schedule: &Schedule) -> Result<f64> {
    let options = RunOptions { calls: 2, ..RunOptions::default() };
    let outcome = simulate(&machine.nominal.fabric, schedule, Fidelity::Packet, options)?;
    Ok(outcome.mean_call_time().as_us())
}

/// What DeepEP's kernels are asked; the layer tells the bytes.
fn request<'a>(machine: &'a Machine, gpus: &[u32]) -> Result<Request<'a>> {
    let nominal = &machine.nominal;
    let kernel = Kernel::of(Implementation::DeepEp, &nominal.calibration, &machine.gpu_model)?;
    Ok(Request {
        fabric: &nominal.fabric,
        gpus: gpus.to_vec(),
        bytes: 16,
        protocol: Protocol::Simple,
        kernel,
        transport: Transport::Peer,
        flags: Flags::Peer,
        blocks: None,
        settled: None,
        orders: Vec::new(),
        islands: Vec::new(),
    })
}
