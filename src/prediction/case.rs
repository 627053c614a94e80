//! One case: a call of some bytes by one algorithm on one machine, simulated.

use std::collections::BTreeSet;

use serde::Serialize;

use super::beside;
use super::bottleneck::{Bottleneck, bottleneck};
use super::growth::{Growth, Growths, exact_bytes};
use super::machine::{Machine, Variant};
use super::options::CaseOptions;
use super::range::{Range, constants_sigma, shifts};
use super::regime::{Medium, Regime};
use crate::algorithm::ring::LL_BYTES_A_RANK;
use crate::algorithm::{self, Algorithm, Implementation, Kernel, Protocol, Request};
use crate::algorithm::{Settled, Transport};
use crate::engine::{Fidelity, Outcome, RunOptions, simulate};
use crate::error::Result;
use crate::fabric::calibration::relative_uncertainty;
use crate::schedule::{Collective, Schedule};
use crate::topology::Confidence;
use crate::units::Time;

/// How a call is done.
#[derive(Clone)]
pub struct Case {
    /// Which algorithm.
    pub algorithm: &'static Algorithm,
    /// Protocol.
    pub protocol: Protocol,
    /// Protocol of large calls, where the library changes by itself.
    pub large: Option<Protocol>,
    /// Whose kernel.
    pub implementation: Implementation,
    /// Which memory carries the data.
    pub transport: Transport,
    /// What people call it.
    pub title: String,
    /// Shown only when all are asked for.
    pub extra: bool,
}

/// What is predicted for a call.
#[derive(Clone, Debug, Serialize)]
pub struct CasePrediction {
    /// What people call it.
    pub title: String,
    /// What the call computes.
    pub collective: Collective,
    /// Word on the command line.
    pub algorithm: &'static str,
    /// Protocol by NCCL's name.
    pub protocol: &'static str,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes simulated: rounded up to whole elements of 16 bytes.
    pub bytes_rounded: u64,
    /// Time of a call, us, with its 80 % range.
    pub time_us: Range,
    /// The same without the declared regimes, when one applies.
    pub without_regimes_us: Option<Range>,
    /// How each group of constants, moved by one standard deviation, changes the time: logarithms of
    /// ratios, so that what two calls share can be told from what they do not.
    #[serde(skip)]
    pub shifts: Vec<f64>,
    /// Declared regimes that apply.
    pub regimes: Vec<String>,
    /// Share of the time spent waiting for shared links.
    pub waiting: f64,
    /// What to widen first.
    pub bottleneck: Bottleneck,
    /// Calls simulated.
    pub calls_simulated: u32,
    /// The last two calls took the same time to the picosecond.
    pub repeats: bool,
    /// How far the last two calls differ, relative.
    pub spread: f64,
    /// Grown from the largest call that is run packet by packet, as the max-min model grows.
    pub extrapolated: bool,
    /// Events handled.
    pub events: u64,
    /// Packets sent over links, each link counted.
    pub hops: u64,
}

/// Larger calls react to constants as one of this many bytes does.
const SHIFTED_BYTES: u64 = 4 << 20;
/// Calls of more bytes than this are run once: what goes on around them does not show.
const FEW_CALLS_BYTES: u64 = 1 << 20;
/// Calls run at first, and at most, to see whether they repeat.
const CALLS_FIRST: u32 = 3;
const CALLS_MAX: u32 = 6;
/// Two calls that differ by less than this are near enough to stop, and their mean is taken.
const NEAR: f64 = 0.02;

/// A schedule that was run.
pub(super) struct Run {
    pub(super) schedule: Schedule,
    pub(super) outcome: Outcome,
    pub(super) time: Time,
    pub(super) repeats: bool,
}

impl Case {
    /// The protocol of a call of `bytes`.
    pub fn protocol_at(&self, bytes: u64, options: &CaseOptions) -> Protocol {
        let ranks = options.gpus.len().max(1) as u64;
        match (self.large, options.settled) {
            (Some(_), Some(Settled::Sends(p2p))) => p2p.parts(bytes / ranks, false).1,
            (Some(large), _) if bytes >= LL_BYTES_A_RANK * ranks => large,
            _ => self.protocol,
        }
    }

    /// What people call it at this size.
    pub fn title_at(&self, bytes: u64, options: &CaseOptions) -> String {
        let now = self.protocol_at(bytes, options);
        self.title.replace(self.protocol.name(), now.name())
    }

    /// Equal for two cases with their options that are simulated alike at any size.
    pub fn key(&self, options: &CaseOptions) -> String {
        format!("{} {:?} {options:?}", self.title, self.transport)
    }

    /// Predicts a call of `bytes`.
    ///
    /// # Errors
    /// Those of the algorithm and the engine.
    pub fn predict(
        &self,
        machine: &Machine,
        bytes: u64,
        options: &CaseOptions,
    ) -> Result<CasePrediction> {
        let near = self.round_up(bytes, options).min(self.exact(options));
        let anchor = self.anchor(machine, near, options)?;
        let growth = Growths::of(self, machine, &[bytes], options, anchor.bare_us.is_some())?;
        let residual = self.residual(machine, bytes, options);
        Ok(anchor.prediction((bytes, self.round_up(bytes, options)), &growth, residual))
    }

    /// Predicts calls that are all larger than [`Case::exact`], simulating only what they share.
    ///
    /// # Errors
    /// As [`Case::predict`].
    pub fn predict_large(
        &self,
        machine: &Machine,
        sizes: &[u64],
        options: &CaseOptions,
    ) -> Result<Vec<CasePrediction>> {
        let anchor = self.anchor(machine, self.exact(options), options)?;
        let growth = Growths::of(self, machine, sizes, options, anchor.bare_us.is_some())?;
        let each = sizes.iter().map(|&bytes| {
            let residual = self.residual(machine, bytes, options);
            anchor.prediction((bytes, self.round_up(bytes, options)), &growth, residual)
        });
        Ok(each.collect())
    }

    /// Simulates a call of a size that is run packet by packet.
    fn anchor(&self, machine: &Machine, bytes: u64, options: &CaseOptions) -> Result<Anchor> {
        let run = self.run(&machine.nominal, machine, bytes, options)?;
        let fabric = &machine.nominal.fabric;
        let slowed = fabric.slowed_links(&run.schedule.flows());
        let struck: BTreeSet<usize> = slowed.iter().map(|slow| slow.regime).collect();
        let us = run.time.as_us();
        let without = machine.without_regimes.as_ref().filter(|_| !struck.is_empty());
        // As many calls as with them: a mean over fewer is another figure.
        let bare = without.map(|variant| self.run(variant, machine, bytes, options)).transpose()?;
        let bare_us = bare.map(|run| run.time.as_us());
        let alone = CaseOptions { fidelity: Fidelity::AlphaBeta, ..options.alone() };
        let unshared = self.run(&machine.nominal, machine, bytes, &alone)?;
        let waiting = 1.0 - unshared.time.as_us() / us;
        let waiting = if waiting.is_finite() { waiting.max(0.0) } else { 0.0 };
        let by_regime = bare_us.is_some_and(|bare| bare < 0.5 * us);
        let kernel = self.kernel(&machine.nominal, machine)?;
        let limit = bottleneck(fabric, self, &kernel, &run, waiting, by_regime, options);
        let prediction = CasePrediction {
            title: self.title_at(bytes, options),
            collective: self.algorithm.collective,
            algorithm: self.algorithm.name,
            protocol: self.protocol_at(bytes, options).name(),
            bytes,
            bytes_rounded: bytes,
            time_us: Range::around(us, 0.0),
            without_regimes_us: None,
            shifts: self.shifts(machine, bytes.min(SHIFTED_BYTES), options)?,
            regimes: struck.iter().map(|&r| fabric.regimes[r].declared.name.clone()).collect(),
            waiting,
            bottleneck: limit,
            calls_simulated: run.outcome.calls,
            repeats: run.repeats,
            spread: run.outcome.spread(),
            extrapolated: false,
            events: run.outcome.events,
            hops: run.outcome.hops,
        };
        let sigma = constants_sigma(&prediction.shifts);
        Ok(Anchor { us, bare_us, sigma, prediction })
    }

    /// Time of a call, us, nominal only.
    ///
    /// # Errors
    /// As [`Case::predict`].
    pub fn nominal_us(&self, machine: &Machine, bytes: u64, options: &CaseOptions) -> Result<f64> {
        let rounded = self.round_up(bytes, options);
        let near = rounded.min(self.exact(options));
        let us = self.run(&machine.nominal, machine, near, options)?.time.as_us();
        Ok(self.growth(&machine.nominal, machine, &[rounded], options)?.time_us(us, rounded))
    }

    /// The schedule of one call on the machine as it is.
    ///
    /// # Errors
    /// Those of the algorithm.
    pub fn schedule(
        &self,
        machine: &Machine,
        bytes: u64,
        options: &CaseOptions,
    ) -> Result<Schedule> {
        self.build(&machine.nominal, machine, self.round_up(bytes, options), options)
    }

    fn transport<'a>(&'a self, options: &'a CaseOptions) -> &'a Transport {
        options.transport.as_ref().unwrap_or(&self.transport)
    }

    /// The size that stands for `bytes`: these kernels move 16 bytes a thread.
    pub fn round_up(&self, bytes: u64, options: &CaseOptions) -> u64 {
        self.algorithm.collective.round_up(bytes, options.gpus.len())
    }

    /// Largest call that is run packet by packet, bytes; beyond, see [`super::growth`].
    pub fn exact(&self, options: &CaseOptions) -> u64 {
        self.round_up(exact_bytes(self.algorithm.name, options.gpus.len()), options)
    }

    pub(super) fn kernel(&self, variant: &Variant, machine: &Machine) -> Result<Kernel> {
        Kernel::of(self.implementation, &variant.calibration, &machine.gpu_model)
    }

    fn build(
        &self,
        variant: &Variant,
        machine: &Machine,
        bytes: u64,
        options: &CaseOptions,
    ) -> Result<Schedule> {
        let request = Request {
            fabric: &variant.fabric,
            gpus: options.gpus.clone(),
            bytes,
            protocol: self.protocol_at(bytes, options),
            kernel: self.kernel(variant, machine)?,
            transport: self.transport(options).clone(),
            flags: options.flags,
            blocks: options.blocks,
            settled: options.settled,
            orders: options.orders.clone(),
            islands: options.islands.clone(),
        };
        let mut schedule = algorithm::build(self.algorithm, &request)?;
        beside::add(&mut schedule, &variant.fabric, &options.gpus, &options.beside)?;
        Ok(schedule)
    }

    pub(super) fn run(
        &self,
        variant: &Variant,
        machine: &Machine,
        bytes: u64,
        options: &CaseOptions,
    ) -> Result<Run> {
        let schedule = self.build(variant, machine, bytes, options)?;
        let run = |calls: u32| {
            let run_options = RunOptions { calls, ..RunOptions::default() };
            simulate(&variant.fabric, &schedule, options.fidelity, run_options)
        };
        if !options.beside.is_empty() {
            let outcome = run(beside::calls(bytes))?;
            return Ok(Run { schedule, time: beside::mean(&outcome), outcome, repeats: false });
        }
        let first = match options.every_call {
            Some(calls) => calls,
            // Calls of a pipeline from or to a root overlap, whatever their size.
            None if bytes > FEW_CALLS_BYTES && !self.algorithm.collective.has_root() => 1,
            None => CALLS_FIRST.min(options.calls_max.unwrap_or(CALLS_FIRST)),
        };
        let mut outcome = run(first)?;
        let mut repeats = outcome.repeats();
        let far = first == CALLS_FIRST && outcome.spread() > NEAR;
        if !repeats && far && options.every_call.is_none() {
            outcome = run(CALLS_MAX)?;
            repeats = outcome.repeats();
        }
        let time = match (options.every_call, repeats) {
            (Some(calls), _) => outcome.ended / u64::from(calls),
            (None, true) => outcome.call_time(outcome.call_ends.len() - 1),
            (None, false) => outcome.mean_call_time(),
        };
        Ok(Run { schedule, outcome, time, repeats })
    }

    /// How the time grows beyond [`Case::exact`].
    pub(super) fn growth(
        &self,
        variant: &Variant,
        machine: &Machine,
        sizes: &[u64],
        options: &CaseOptions,
    ) -> Result<Growth> {
        let build = |bytes| self.build(variant, machine, self.round_up(bytes, options), options);
        Growth::of(&variant.fabric, self.exact(options), sizes, build)
    }

    /// Relative standard deviation of what no constant explains.
    fn residual(&self, machine: &Machine, bytes: u64, options: &CaseOptions) -> f64 {
        let medium = Medium::of(&machine.nominal.fabric, &options.gpus, self.transport(options));
        let (whose, what) = (self.implementation, self.algorithm.collective);
        let regime = Regime::of_call(whose, what, medium, bytes).beside(&options.beside);
        machine.residuals.sigma(&regime, None)
    }

    /// How the calibration's uncertainty changes a call, as [`CasePrediction::shifts`]. It comes from
    /// the max-min model, which is quick and reacts to constants as the packet model does.
    fn shifts(&self, machine: &Machine, bytes: u64, options: &CaseOptions) -> Result<Vec<f64>> {
        // Of the call alone: what the traffic beside it adds is in the residual.
        let quick =
            CaseOptions { fidelity: Fidelity::MaxMin, every_call: Some(1), ..options.alone() };
        if machine.moved.is_empty() {
            return Ok(Vec::new());
        }
        let bytes = bytes.min(self.round_up(FEW_CALLS_BYTES, options));
        let us = |variant| Ok(self.run(variant, machine, bytes, &quick)?.time.as_us());
        let moved = machine.moved.iter().map(us).collect::<Result<Vec<f64>>>()?;
        Ok(shifts(us(&machine.nominal)?, moved))
    }
}

/// A simulated call, from which others are told.
struct Anchor {
    us: f64,
    bare_us: Option<f64>,
    /// Over the constants.
    sigma: f64,
    /// Of the call itself, its ranges not yet filled in.
    prediction: CasePrediction,
}

impl Anchor {
    /// The prediction of a call of `bytes`, simulated as `rounded`, grown from this one.
    fn prediction(
        &self,
        (bytes, rounded): (u64, u64),
        growth: &Growths,
        residual: f64,
    ) -> CasePrediction {
        let us = growth.nominal.time_us(self.us, rounded);
        let bare = self.bare_us.zip(growth.bare.as_ref());
        let bare = bare.map(|(us, growth)| growth.time_us(us, rounded));
        let known = self.sigma.hypot(residual);
        let sigma = known.hypot(regime_sigma(us, bare));
        CasePrediction {
            bytes,
            bytes_rounded: rounded,
            time_us: Range::around(us, sigma),
            without_regimes_us: bare.map(|bare| Range::around(bare, known)),
            extrapolated: rounded > growth.nominal.exact(),
            ..self.prediction.clone()
        }
    }
}

/// What declared regimes add to the uncertainty of a call that would take `bare` without them. A
/// rate of unknown cause, measured with one kernel and applied to another, is an estimate for the part
/// of the time that it adds, however well it was measured.
pub fn regime_sigma(us: f64, bare: Option<f64>) -> f64 {
    let share = bare.map_or(0.0, |bare| (1.0 - bare / us).max(0.0));
    share * relative_uncertainty(Confidence::Estimated)
}
