//! What was measured, as something the engine can run: each experiment returns the figure that its
//! measurement would have printed.

use crate::algorithm::probe::{self, LoadGroup, LoadKind};
use crate::algorithm::streams::{self, Stream};
use crate::algorithm::{
    self, Flags, Implementation, Kernel, Protocol, Request, Settled, Transport,
};
use crate::engine::{Arrivals, Fidelity, Outcome, RunOptions, simulate};
use crate::error::Result;
use crate::fabric::{Calibration, CompileOptions, DeviceClass, EndpointId, Fabric};
use crate::prediction::beside;
use crate::prediction::growth::{self, Growth, Mean};
use crate::schedule::{Collective, Schedule};
use crate::topology::Topology;
use crate::units::Time;
use crate::workload::Beside;

/// A machine with its compiled fabric.
pub struct Machine<'a> {
    /// Compiled.
    pub fabric: Fabric,
    /// As described.
    pub topology: &'a Topology,
    /// Constants used.
    pub calibration: &'a Calibration,
    /// Network model of collectives and copies; probes are run by packets always.
    pub fidelity: Fidelity,
}

/// What a load mix reached.
#[derive(Clone, Debug)]
pub struct LoadMixFigures {
    /// Latency of the chase, ns; zero without one.
    pub chase_ns: f64,
    /// Rate of each group, GB/s.
    pub rates: Vec<f64>,
}

/// A collective as it was run.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectiveRun {
    /// What it computes.
    pub collective: Collective,
    /// Entry of the algorithm table.
    pub algorithm: &'static str,
    /// Protocol.
    pub protocol: Protocol,
    /// Whose kernel.
    pub implementation: Implementation,
    /// GPU of each rank.
    pub gpus: Vec<u32>,
    /// Bytes.
    pub bytes: u64,
    /// Blocks or channels, where told.
    pub blocks: Option<u32>,
    /// What NCCL settles, where told.
    pub settled: Option<Settled>,
    /// Ring orders by channel; empty for the order of `gpus`.
    pub orders: Vec<Vec<u32>>,
    /// Which memory carries the data.
    pub transport: Transport,
    /// Calls run for the mean.
    pub calls: u32,
    /// Launched on a stream, call by call, not from a graph.
    pub by_stream: bool,
    /// The source took the mean of so many calls, the first and its start among them.
    pub first_of: Option<u32>,
    /// What went on beside it.
    pub beside: Vec<Beside>,
}

impl CollectiveRun {
    /// The size that stands for `bytes`: kernels move elements of 16 bytes.
    fn round_up(&self, bytes: u64) -> u64 {
        self.collective.round_up(bytes, self.gpus.len())
    }
}

/// Calls that show how those from or to a root overlap.
const OVERLAPPING_CALLS: u32 = 4;
/// Of larger calls than this, a single one is run: what goes on around it does not show.
const SINGLE_BYTES: u64 = 4 << 20;

/// What the time of a call of `bytes` is the mean of.
fn mean(run: &CollectiveRun, bytes: u64) -> Mean {
    if let Some(calls) = run.first_of {
        return Mean { calls, from_first: true };
    }
    let calls = match bytes > 1 << 20 {
        // Calls from or to a root overlap, also large ones.
        true if run.collective.has_root() => OVERLAPPING_CALLS,
        true if bytes > SINGLE_BYTES => 1,
        true => run.calls.min(2),
        false => run.calls,
    };
    Mean { calls, from_first: calls < 2 }
}

impl<'a> Machine<'a> {
    /// Compiles a machine.
    ///
    /// # Errors
    /// As [`Fabric::compile`].
    pub fn new(
        topology: &'a Topology,
        calibration: &'a Calibration,
        options: CompileOptions,
    ) -> Result<Machine<'a>> {
        let fabric = Fabric::compile(topology, calibration, options)?;
        Ok(Machine { fabric, topology, calibration, fidelity: Fidelity::Packet })
    }

    /// The same with another network model.
    #[must_use]
    pub fn with(self, fidelity: Fidelity) -> Machine<'a> {
        Machine { fidelity, ..self }
    }

    /// The host memory nearest to a GPU, or the GPU itself without one.
    pub fn host(&self, gpu: u32) -> EndpointId {
        self.fabric.home_memory[gpu as usize].unwrap_or(gpu)
    }

    /// Latency of a dependent read, ns.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn read_latency_ns(&self, gpu: u32, target: EndpointId, bytes: u32) -> Result<f64> {
        let hops = 16;
        let schedule = probe::chase(&[(gpu, target)], bytes, hops);
        let outcome = simulate(&self.fabric, &schedule, Fidelity::Packet, RunOptions::default())?;
        Ok(outcome.ended.as_ns() / f64::from(hops))
    }

    /// Latency of a dependent read of 4 bytes beside traffic, ns.
    ///
    /// # Errors
    /// Those of the engine, and traffic that the machine cannot have.
    pub fn read_latency_beside_ns(
        &self,
        gpu: u32,
        target: EndpointId,
        traffic: &[Beside],
    ) -> Result<f64> {
        let (hops, bytes) = (16, 4);
        let mut schedule = probe::chase(&[(gpu, target)], bytes, hops);
        beside::add(&mut schedule, &self.fabric, &[gpu], traffic)?;
        let options =
            RunOptions { calls: beside::calls(u64::from(bytes)), ..RunOptions::default() };
        let outcome = simulate(&self.fabric, &schedule, Fidelity::Packet, options)?;
        Ok(beside::mean(&outcome).as_ns() / f64::from(hops))
    }

    /// Half of a flag's round trip between two GPUs, ns.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn flag_one_way_ns(
        &self,
        gpus: [u32; 2],
        homes: [EndpointId; 2],
        fenced: bool,
    ) -> Result<f64> {
        let rounds = 32;
        let schedule = probe::ping_pong(gpus, homes, rounds, fenced);
        let outcome = simulate(&self.fabric, &schedule, Fidelity::Packet, RunOptions::default())?;
        Ok(outcome.ended.as_ns() / f64::from(2 * rounds))
    }

    /// Rates of load groups, beside a chase if one is asked for.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn load_mix(
        &self,
        chase: Option<(u32, EndpointId)>,
        groups: &[LoadGroup],
    ) -> Result<LoadMixFigures> {
        // The queue of a GPU's stores fills in about 15 us; everything is measured after 30.
        let (warm_up, end) = (Time::from_us(40.0), Time::from_us(120.0));
        let (short, long) = (24, 40);
        let options = RunOptions {
            counted_from: warm_up,
            stop_at: if chase.is_some() { Time::MAX } else { end },
            ..RunOptions::default()
        };
        let run = |hops: u32, options: RunOptions| {
            // A chase of no hops would end the run at once.
            let chase = chase.filter(|_| hops > 0).map(|(gpu, target)| (gpu, target, hops));
            let schedule = probe::load_mix(&self.fabric, chase, groups);
            simulate(&self.fabric, &schedule, Fidelity::Packet, options)
        };
        let outcome = run(long, options.clone())?;
        let chase_ns = if chase.is_some() {
            // The difference of two lengths leaves the warm-up out.
            let before = run(short, options.clone())?;
            (outcome.ended.as_ns() - before.ended.as_ns()) / f64::from(long - short)
        } else {
            0.0
        };
        let rates_from = if chase.is_some() && outcome.ended < end {
            let schedule = probe::load_mix(&self.fabric, None, groups);
            let options = RunOptions { stop_at: end, ..options };
            simulate(&self.fabric, &schedule, Fidelity::Packet, options)?
        } else {
            outcome
        };
        let rates = groups
            .iter()
            .enumerate()
            .map(|(index, group)| {
                let blocks = rates_from.blocks[index + 1].iter();
                let bytes: u64 = blocks
                    .map(|used| match group.kind {
                        LoadKind::Write => used.stored,
                        LoadKind::Read { .. } => used.loaded,
                    })
                    .sum();
                bytes as f64 / rates_from.ended.saturating_sub(warm_up).as_ns()
            })
            .collect();
        Ok(LoadMixFigures { chase_ns, rates })
    }

    /// Runs copies and returns what happened, the engine's start-up time included.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn run_streams(&self, streams: &[Stream]) -> Result<Outcome> {
        let schedule = streams::streams(streams);
        simulate(&self.fabric, &schedule, self.fidelity, RunOptions::default())
    }

    /// Times of a collective of several sizes, whatever `run.bytes` says, us: each the mean of calls
    /// back to back after the first. What large sizes start from is run once for all of them.
    ///
    /// # Errors
    /// Those of the algorithm and the engine.
    pub fn collective_us(&self, run: &CollectiveRun, sizes: &[u64]) -> Result<Vec<f64>> {
        let exact = run.round_up(growth::exact_bytes(run.algorithm, run.gpus.len()));
        let sizes: Vec<u64> = sizes.iter().map(|&size| run.round_up(size)).collect();
        let larger: Vec<u64> = sizes.iter().copied().filter(|&size| size > exact).collect();
        let wanted = sizes.iter().any(|&size| size >= exact);
        let near = if wanted { self.exact_us(run, exact)? } else { 0.0 };
        // A single call, unless calls overlap or the first one counts.
        let mean = match run.first_of {
            None if !run.collective.has_root() => Mean { calls: 1, from_first: true },
            _ => mean(run, exact),
        };
        let build = |size| self.schedule(run, run.round_up(size));
        let growth = Growth::of_calls(&self.fabric, exact, &larger, mean, build)?;
        sizes
            .into_iter()
            .map(|size| match size >= exact {
                true => Ok(growth.time_us(near, size)),
                false => self.exact_us(run, size),
            })
            .collect()
    }

    /// Runs the calls of a step whose ranks come when `arrivals` says.
    ///
    /// # Errors
    /// Those of the algorithm and the engine.
    pub fn step(&self, run: &CollectiveRun, calls: u32, arrivals: Arrivals) -> Result<Outcome> {
        let schedule = self.schedule(run, run.bytes)?;
        let options = RunOptions { calls, arrivals, ..RunOptions::default() };
        simulate(&self.fabric, &schedule, Fidelity::Packet, options)
    }

    /// The GPUs' model, of which their constants are.
    pub fn gpu_model(&self) -> &str {
        self.topology.gpu_models().first().copied().unwrap_or("h200")
    }

    fn schedule(&self, run: &CollectiveRun, bytes: u64) -> Result<Schedule> {
        let algorithm = algorithm::find(run.collective, run.algorithm)?;
        let model = self.gpu_model();
        let mut kernel = Kernel::of(run.implementation, self.calibration, model)?;
        if run.by_stream {
            let later = self.calibration.value(DeviceClass::Gpu, model, "stream_gap")?;
            kernel.start = kernel.start.map(|start| start + Time::from_ns(later));
        }
        let request = Request {
            fabric: &self.fabric,
            gpus: run.gpus.clone(),
            bytes: run.round_up(bytes),
            protocol: run.protocol,
            kernel,
            transport: run.transport.clone(),
            flags: Flags::Peer,
            blocks: run.blocks,
            settled: run.settled,
            orders: run.orders.clone(),
            islands: Vec::new(),
        };
        let mut schedule = algorithm::build(algorithm, &request)?;
        beside::add(&mut schedule, &self.fabric, &run.gpus, &run.beside)?;
        Ok(schedule)
    }

    fn exact_us(&self, run: &CollectiveRun, bytes: u64) -> Result<f64> {
        let schedule = self.schedule(run, bytes)?;
        let mean = mean(run, bytes);
        let alone = run.beside.is_empty();
        let calls = if alone { mean.simulated(bytes) } else { beside::calls(bytes) };
        let options = RunOptions { calls, ..RunOptions::default() };
        let outcome = simulate(&self.fabric, &schedule, self.fidelity, options)?;
        Ok(if alone { mean.of_us(&outcome) } else { beside::mean(&outcome).as_us() })
    }
}
