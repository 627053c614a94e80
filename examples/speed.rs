//! How fast the packet model runs here: TLP-hops a second (a TLP-hop is one packet leaving one
//! port) and the time of whole simulations, for the cases that people ask about.
//!
//! `cargo run --release --example speed`

use std::error::Error;
use std::io::{Write, stdout};
use std::time::Instant;

use collsim::algorithm::streams::{all_pairs_reads, staggered_reads, streams};
use collsim::algorithm::{
    Flags, Implementation, Kernel, Protocol, Request, Transport, build, find,
};
use collsim::engine::{Fidelity, RunOptions, simulate};
use collsim::fabric::{Calibration, CompileOptions, Fabric};
use collsim::input::load_topology;
use collsim::schedule::{Collective, Schedule};

const MACHINE: &str = "rtxpro6000x8";
/// All-reduces of a step, each simulated: nothing is reused.
const CALLS: u32 = 122;
/// A verify pass of Kimi-K2.5: 3 tokens of 7168 elements of 2 bytes.
const BYTES: u64 = 43_008;
/// Each copy of the patterns.
const COPY_BYTES: u32 = 16 << 20;

struct Bench {
    fabric: Fabric,
    calibration: Calibration,
    model: String,
    gpus: Vec<u32>,
}

impl Bench {
    fn new(regimes: bool) -> Result<Bench, Box<dyn Error>> {
        let topology = load_topology(MACHINE)?;
        let calibration = Calibration::embedded()?;
        let fabric = Fabric::compile(&topology, &calibration, CompileOptions { regimes })?;
        let model = topology.gpu_models()[0].to_owned();
        let gpus = (0..fabric.gpu_count as u32).collect();
        Ok(Bench { fabric, calibration, model, gpus })
    }

    fn call(
        &self,
        algorithm: &str,
        protocol: Protocol,
        implementation: Implementation,
    ) -> Result<Schedule, Box<dyn Error>> {
        let request = Request {
            fabric: &self.fabric,
            gpus: self.gpus.clone(),
            bytes: BYTES,
            protocol,
            kernel: Kernel::of(implementation, &self.calibration, &self.model)?,
            transport: Transport::Peer,
            flags: Flags::Peer,
            blocks: None,
            settled: None,
            orders: Vec::new(),
            islands: Vec::new(),
        };
        Ok(build(find(Collective::AllReduce, algorithm)?, &request)?)
    }

    #[expect(clippy::disallowed_methods, reason = "the clock is what is asked for")]
    fn run(&self, what: &str, schedule: &Schedule, calls: u32) -> Result<(), Box<dyn Error>> {
        let options = RunOptions { calls, ..RunOptions::default() };
        let start = Instant::now();
        let outcome = simulate(&self.fabric, schedule, Fidelity::Packet, options)?;
        let seconds = start.elapsed().as_secs_f64();
        let rate = |count: u64| count as f64 / seconds / 1e6;
        let each = outcome.ended / u64::from(calls);
        writeln!(
            stdout(),
            "{what:<34} {:>10} {:>8.1} {:>10.1} {:>10.1} {:>12}",
            outcome.hops,
            seconds * 1e3,
            rate(outcome.hops),
            rate(outcome.events),
            each.to_string()
        )?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    writeln!(
        stdout(),
        "{MACHINE}, one thread, {CALLS} calls of {BYTES} B, copies of 16 MiB (all pairs: 2)"
    )?;
    writeln!(
        stdout(),
        "{:<34} {:>10} {:>8} {:>10} {:>10} {:>12}",
        "",
        "TLP-hops",
        "ms",
        "Mhops/s",
        "Mevents/s",
        "simulated"
    )?;
    for (regimes, note) in [(true, ""), (false, ", no regimes")] {
        let bench = Bench::new(regimes)?;
        let custom = Implementation::CustomAllReduce;
        let pull = bench.call("one_shot_pull", Protocol::Simple, custom)?;
        bench.run(&format!("one-stage{note}"), &pull, CALLS)?;
        let ring = bench.call("ring", Protocol::Ll, Implementation::Nccl)?;
        bench.run(&format!("ring LL{note}"), &ring, CALLS)?;
        let staggered = streams(&staggered_reads(&bench.gpus, 1, COPY_BYTES));
        bench.run(&format!("staggered reads{note}"), &staggered, 1)?;
        let pairs = streams(&all_pairs_reads(&bench.gpus, COPY_BYTES / 8));
        bench.run(&format!("all-pairs reads{note}"), &pairs, 1)?;
    }
    Ok(())
}
