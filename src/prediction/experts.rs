//! A mixture-of-experts layer across GPUs: dispatch and combine beside an all-gather and a
//! reduce-scatter of everything.

use serde::Serialize;

use super::machine::Machine;
use crate::algorithm::expert_parallel::{Layer, Way, exchange};
use crate::algorithm::{self, Flags, Implementation, Kernel, Protocol, Request, Transport};
use crate::engine::{Fidelity, RunOptions, simulate};
use crate::error::Result;
use crate::schedule::{Collective, Schedule};

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
    /// Time of these by NCCL's ring, us; none where there is no such algorithm.
    pub gathered_us: [Option<f64>; 2],
}

impl ExpertExchange {
    /// Simulates both ways on these GPUs.
    ///
    /// # Errors
    /// Those of the layer, the algorithms and the engine.
    pub fn of(machine: &Machine, gpus: &[u32], layer: &Layer) -> Result<ExpertExchange> {
        let ranks = gpus.len() as u32;
        let run = |schedule: &Schedule| -> Result<f64> {
            let options = RunOptions { calls: 2, ..RunOptions::default() };
            let fabric = &machine.nominal.fabric;
            let outcome = simulate(fabric, schedule, Fidelity::Packet, options)?;
            Ok(outcome.mean_call_time().as_us())
        };
        let deep_ep = request(machine, gpus, Implementation::DeepEp, Protocol::Simple, 16)?;
        let mut exchange_us = [0.0; 2];
        for (us, way) in exchange_us.iter_mut().zip([Way::Dispatch, Way::Combine]) {
            *us = run(&exchange(&deep_ep, layer, way)?)?;
        }
        let gathered_bytes = layer.gathered_bytes(ranks);
        let mut gathered_us = [None; 2];
        let collectives = [Collective::AllGather, Collective::ReduceScatter];
        for ((us, collective), bytes) in gathered_us.iter_mut().zip(collectives).zip(gathered_bytes)
        {
            let Ok(ring) = algorithm::find(collective, "ring") else { continue };
            let unit = 16 * u64::from(ranks);
            let bytes = bytes.next_multiple_of(unit);
            let nccl = request(machine, gpus, Implementation::Nccl, Protocol::Simple, bytes)?;
            *us = Some(run(&algorithm::build(ring, &nccl)?)?);
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
        })
    }
}

fn request<'a>(
    machine: &'a Machine,
    gpus: &[u32],
    implementation: Implementation,
    protocol: Protocol,
    bytes: u64,
) -> Result<Request<'a>> {
    let nominal = &machine.nominal;
    Ok(Request {
        fabric: &nominal.fabric,
        gpus: gpus.to_vec(),
        bytes,
        protocol,
        kernel: Kernel::of(implementation, &nominal.calibration, &machine.gpu_model)?,
        transport: Transport::Peer,
        flags: Flags::Peer,
        blocks: None,
        settled: None,
        orders: Vec::new(),
    })
}
