//! The default: what a scenario, or a sweep of sizes, costs on a machine.

use super::arguments::{FlagMemory, Form, Model, Predict, Stage};
use super::output::{Failure, Outcome, Output};
use super::progress::Progress;
use super::select;
use super::stage;
use super::trace;
use super::{compare, ignored, load};
use crate::algorithm::Flags;
use crate::algorithm::barrier::no_host_memory;
use crate::algorithm::one_shot_pull::blocks_for;
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::input::{Loaded, load_scenario, topology_json};
use crate::prediction::barrier::BarrierTimes;
use crate::prediction::{Case, CaseOptions, Choice, Machine, nccl};
use crate::report::table::TableFormat;
use crate::report::{assumptions, explain, first_screen, json, sizes, spread};
use crate::selection::nccl::Setup;
use crate::sweep::Question;
use crate::sweep::nearby::figures_of;
use crate::sweep::sizes::{sweep, taken_by_nccl};
use crate::units::format_thousands;
use crate::workload::{Collective, Scenario};

/// Machines of the same GPUs, by a short name.
const WIRINGS: [(&str, &str); 4] = [
    ("virtual switches", "rtxpro6000x8"),
    ("flat", "rtxpro6000x8-flat"),
    ("hierarchy", "rtxpro6000x8-hierarchy"),
    ("direct", "rtxpro6000x8-direct"),
];

/// Predicts and prints.
pub(super) fn run(options: &Predict, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    if !options.what_if.is_empty() {
        return compare::what_if(options, output);
    }
    if options.machine.topo.is_empty() {
        return Err(load::no_topology().into());
    }
    let wanted_sizes = select::wanted_sizes(options, false)?;
    ignored::of_prediction(options)?;
    if let Some(file) = &options.trace {
        trace::form(file, options, !wanted_sizes.is_empty())?;
    }
    let mut notes = Vec::new();
    let (scenario, collective) = workload(options, &mut notes)?;
    let calibration = load::calibration(&options.machine.constants)?;
    let Loaded { topology, ring } = load::machine(&options.machine, &calibration)?;
    let out = options.out.as_deref();
    if options.stop_after == Some(Stage::Topology) {
        output.plain(&topology_json::write(&topology)?, out)?;
        return Ok(Outcome::Done);
    }
    start_threads(options.threads)?;
    let machine = Machine::new(topology, &calibration, !options.no_regimes, true)?;
    if options.stop_after == Some(Stage::Fabric) {
        output.plain(&stage::fabric(&machine.nominal.fabric), out)?;
        return Ok(Outcome::Done);
    }
    let choice = Choice { graph: ring.unwrap_or_default(), ..select::choice(options)? };
    let gpus = choice.ranks(&machine.topology, scenario.tensor_parallel, &mut notes)?;
    refuse(options, &machine, &scenario, &wanted_sizes)?;
    if gpus.len() < 2 {
        output.titled(&first_screen::lone_gpu(&machine), out)?;
        return Ok(Outcome::Done);
    }
    let workload = (scenario, collective);
    let asked = Asked::of(options, machine, workload, &choice, gpus, calibration, &mut notes)?;
    if options.stop_after == Some(Stage::Schedule) {
        output.plain(&asked.schedule(wanted_sizes.first().copied())?, out)?;
    } else if wanted_sizes.is_empty() {
        asked.screen(notes, output)?;
    } else {
        asked.sizes(&wanted_sizes, output)?;
    }
    Ok(Outcome::Done)
}

/// The scenario's steps, and what they compute.
pub(super) fn workload(
    options: &Predict,
    notes: &mut Vec<String>,
) -> Result<(Scenario, Collective)> {
    let mut scenario = load_scenario(&options.scenario)?;
    if let Some(calls) = options.calls {
        scenario.steps.iter_mut().for_each(|step| step.calls = calls);
        // Nobody reported a step of so many calls.
        scenario.reported_on = None;
    }
    select::beside(options, &mut scenario, notes)?;
    let collective = select::collective(options, &scenario)?;
    select::steps(&mut scenario, collective, notes);
    Ok((scenario, collective))
}

/// What cannot be asked of this machine.
fn refuse(options: &Predict, machine: &Machine, scenario: &Scenario, sizes: &[u64]) -> Result<()> {
    if options.every_call && scenario.steps.iter().any(|step| step.calls > EVERY_CALL_MAX) {
        return Err(Error::request(
            format!("--every-call simulates up to {EVERY_CALL_MAX} calls of a step"),
            "leave it out: equal calls are scaled",
        ));
    }
    let one_gpu = machine.nominal.fabric.gpu_count < 2;
    if one_gpu && (options.json || options.stop_after == Some(Stage::Schedule) || !sizes.is_empty())
    {
        return Err(Error::request(
            format!("{} has one GPU: there is nothing to reduce", machine.topology.name),
            "`simulate topo show` prints the machine; `simulate check` compares it with measurements",
        ));
    }
    Ok(())
}

/// Where the flags of barriers live.
fn flags(
    options: &Predict,
    machine: &Machine,
    gpus: &[u32],
    notes: &mut Vec<String>,
) -> Result<Flags> {
    if options.flags == FlagMemory::Peer {
        return Ok(Flags::Peer);
    }
    let homes = &machine.nominal.fabric.home_memory;
    if let Some(&gpu) = gpus.iter().find(|&&gpu| homes[gpu as usize].is_none()) {
        return Err(no_host_memory(gpu));
    }
    notes.push("flags of barriers in host memory (libraries keep them in GPUs)".to_owned());
    Ok(Flags::Host)
}

/// The cases, unless the options leave none.
fn some(options: &Predict, cases: Vec<Case>) -> Result<Vec<Case>> {
    if cases.is_empty() {
        let wanted = options.proto.as_deref().unwrap_or("that");
        return Err(Error::request(
            format!("no algorithm runs with protocol {wanted} on this machine"),
            "LL128 needs NVLink; without it there are LL and Simple",
        ));
    }
    Ok(cases)
}

/// Everything that was asked for, loaded.
pub(super) struct Asked<'a> {
    options: &'a Predict,
    pub(super) machine: Machine,
    pub(super) scenario: Scenario,
    cases: Vec<Case>,
    case_options: CaseOptions,
    calibration: Calibration,
}

impl<'a> Asked<'a> {
    /// Settles cases and choices for a workload on the GPUs of a machine; one GPU has no cases.
    pub(super) fn of(
        options: &'a Predict,
        machine: Machine,
        (scenario, collective): (Scenario, Collective),
        choice: &Choice,
        gpus: Vec<u32>,
        calibration: Calibration,
        notes: &mut Vec<String>,
    ) -> Result<Asked<'a>> {
        if options.no_regimes && !machine.topology.regimes.is_empty() {
            notes.push("without the regimes that this machine's file declares".to_owned());
        }
        if options.fidelity != Model::Packet {
            notes.push(format!("network model: {}", fidelity(options.fidelity).name()));
        }
        let cases = match gpus.len() {
            0 | 1 => Vec::new(),
            _ => some(options, choice.cases(collective, &machine, &gpus)?)?,
        };
        let flags = flags(options, &machine, &gpus, notes)?;
        let case_options = choice.within(CaseOptions {
            flags,
            every_call: options.every_call.then_some(scenario.steps[0].calls),
            beside: scenario.beside.clone(),
            ..CaseOptions::of(gpus, fidelity(options.fidelity))
        });
        let case_options = nccl::settled(&machine, collective, case_options);
        notes.extend(select::changes(&cases, &scenario, &case_options));
        Ok(Asked { options, machine, scenario, cases, case_options, calibration })
    }

    pub(super) fn question<'b>(&'b self, around: &'b Around) -> Question<'b> {
        Question {
            machine: &self.machine,
            scenario: &self.scenario,
            cases: &self.cases,
            options: &self.case_options,
            nccl: around.nccl.as_ref(),
            wirings: &around.wirings,
            nearby: &around.nearby,
        }
    }

    fn screen(
        &self,
        mut notes: Vec<String>,
        output: &mut Output,
    ) -> std::result::Result<(), Failure> {
        for step in &self.scenario.steps {
            let rounded = step.collective.round_up(step.bytes, self.case_options.gpus.len());
            if rounded != step.bytes {
                notes.push(format!(
                    "{} of {} B is simulated with {}: these kernels move 16 bytes a thread",
                    step.name,
                    format_thousands(step.bytes),
                    format_thousands(rounded)
                ));
            }
        }
        let around = Around::of(self)?;
        let question = self.question(&around);
        let answer = question.answer()?;
        if let Some(file) = &self.options.trace {
            let form = trace::form(file, self.options, false)?;
            trace::write(file, form, &question, &answer, output)?;
        }
        let out = self.options.out.as_deref();
        if self.options.json {
            let mut value = json::answer(&question, &answer, self.options.seed())?;
            value["barrier"] = serde_json::json!(self.barrier()?);
            return output.plain(&pretty(&value), out);
        }
        let mut text = first_screen(&question, &answer, &notes);
        if self.options.explain {
            text.push('\n');
            text.push_str(&explain::explain(&question, &answer));
            text.push_str(&explain::barrier(&self.barrier()?));
            text.push_str(&spread::text(&question, &answer, self.options.seed())?);
        }
        if self.options.assumptions {
            text.push('\n');
            text.push_str(&assumptions::text(&self.machine.topology));
        }
        output.titled(&text, out)
    }

    /// A barrier as the one-stage kernel has it at the last step's size.
    fn barrier(&self) -> Result<BarrierTimes> {
        let bytes = self.scenario.steps.last().map_or(0, |step| step.bytes);
        let blocks = self.case_options.blocks.unwrap_or_else(|| blocks_for(bytes));
        BarrierTimes::of(&self.machine, &self.case_options, blocks)
    }

    fn sizes(&self, sizes: &[u64], output: &mut Output) -> std::result::Result<(), Failure> {
        let progress = Progress::new(sizes.len() * self.cases.len());
        let mut rows =
            sweep(&self.machine, &self.cases, sizes, &self.case_options, &|| progress.step())?;
        let collective = self.scenario.steps[0].collective;
        // No tuner sees sends and receives.
        let setup = Around::nccl(self).filter(|_| collective != Collective::AllToAll);
        if let Some(setup) = setup {
            let taken =
                taken_by_nccl(&self.machine, &setup, collective, sizes, &self.case_options)?;
            rows.iter_mut().zip(taken).for_each(|(row, taken)| row.extend(taken));
        }
        progress.finish();
        let around = Around::default();
        let text = if self.options.json {
            pretty(&json::sizes(&self.question(&around), &rows, self.options.seed())?)
        } else {
            let dtype = self.scenario.steps[0].dtype;
            let table = sizes::table(&rows, dtype, self.case_options.gpus.len());
            let format = self.options.format.map_or(TableFormat::Text, table_format);
            let mut text = String::new();
            if format == TableFormat::Text {
                text = format!(
                    "# {} on GPUs {:?} of {}; times in us, rates in GB/s (1e9)\n",
                    self.scenario.steps[0].collective.title(),
                    self.case_options.gpus,
                    self.machine.topology.name
                );
            }
            if format == TableFormat::Text && rows.iter().flatten().any(|c| !c.regimes.is_empty()) {
                text.push_str("# * a declared regime of this machine applies: --no-regimes\n");
            }
            text + &table.write(format)
        };
        output.plain(&text, self.options.out.as_deref())
    }

    fn schedule(&self, size: Option<u64>) -> Result<String> {
        let Some(case) = self.cases.first() else {
            return Err(Error::request("no algorithm is left", "drop --algo or --proto"));
        };
        let bytes = size.unwrap_or(self.scenario.steps[0].bytes);
        stage::schedule(&case.schedule(&self.machine, bytes, &self.case_options)?)
    }
}

/// More calls than this are not simulated one by one: their flags would not fit into memory.
const EVERY_CALL_MAX: u32 = 1000;

/// What stands around the predictions of the first screen.
#[derive(Default)]
pub(super) struct Around {
    nccl: Option<Setup>,
    pub(super) wirings: Vec<(String, Machine)>,
    nearby: Vec<crate::sweep::nearby::NearbyFigure>,
}

impl Around {
    /// NCCL as it chooses by itself, unless the options choose for it.
    fn nccl(asked: &Asked<'_>) -> Option<Setup> {
        let options = asked.options;
        let told = !options.algo.is_empty() || options.proto.is_some() || options.blocks.is_some();
        // A machine that NCCL's detection would not understand gets no row of its choice.
        if told { None } else { nccl::newest(&asked.machine, &asked.case_options.gpus) }
    }

    /// Other wirings and measured figures, unless the options narrow the question.
    pub(super) fn of(asked: &Asked<'_>) -> Result<Around> {
        let options = asked.options;
        let topology = &asked.machine.topology;
        let nccl = Around::nccl(asked);
        let narrowed = !options.gpus.is_empty()
            || !options.algo.is_empty()
            || options.proto.is_some()
            || options.blocks.is_some()
            || options.flags != FlagMemory::Peer
            || options.no_regimes
            || !asked.scenario.beside.is_empty()
            || asked.scenario.steps[0].collective != Collective::AllReduce
            || options.fidelity != Model::Packet;
        if narrowed {
            return Ok(Around { nccl, ..Around::default() });
        }
        let mut nearby = figures_of(&topology.name)?;
        let gpu_count = asked.machine.nominal.fabric.gpu_count;
        nearby.retain(|figure| figure.gpus as usize <= gpu_count);
        let eight = topology.gpu_models() == ["rtx-pro-6000"]
            && asked.case_options.gpus.len() == 8
            && gpu_count == 8;
        let others = WIRINGS.iter().filter(|entry| eight && entry.1 != topology.name);
        let wirings = others
            .map(|&(name, machine)| {
                let topology = load::built_in(machine)?;
                Ok((name.to_owned(), Machine::new(topology, &asked.calibration, true, false)?))
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Around { nccl, wirings, nearby })
    }
}

/// Starts so many threads; none told: one a processor.
pub(super) fn start_threads(threads: Option<u16>) -> Result<()> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    // More threads than processors gain nothing, and very many cost minutes to start.
    let asked = threads.map_or(0, usize::from);
    let threads = if asked == 0 { processors } else { asked.min(4 * processors) };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
    pool.build_global().map_err(|error| {
        Error::request(format!("cannot start {threads} threads: {error}"), "ask for fewer with -j")
    })
}

pub(super) fn fidelity(model: Model) -> Fidelity {
    match model {
        Model::Packet => Fidelity::Packet,
        Model::MaxMin => Fidelity::MaxMin,
        Model::AlphaBeta => Fidelity::AlphaBeta,
    }
}

pub(super) fn table_format(form: Form) -> TableFormat {
    match form {
        Form::Text => TableFormat::Text,
        Form::Markdown => TableFormat::Markdown,
        Form::Csv => TableFormat::Csv,
    }
}

fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
