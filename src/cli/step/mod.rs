//! `simulate step`: the calls of a model's passes, what they cost, and tokens a second.

mod layout;

use clap::{Args, ValueEnum};

use crate::cli::arguments::Machine;
use crate::cli::load;
use crate::cli::numbers::{gb_per_s, positive};
use crate::cli::output::{Failure, Outcome, Output};
use crate::cli::predict::start_threads;
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::input::load_scenario;
use crate::prediction::Choice;
use crate::report::step::{StepAnswer, page};
use crate::sweep::compare::Side;
use crate::sweep::plan::Plan;
use crate::sweep::step::{Compute, StepRow, Steps};
use crate::topology::Topology;
use crate::topology::edit::Edit;
use crate::workload::Scenario;
use crate::workload::model::{Layout, Model, Pass, find};

/// Accepted lengths at which tokens a second are told when nobody says.
const ACCEPTED: [f64; 4] = [1.5, 2.0, 2.5, 3.0];

/// Options of `step`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The machine.
    #[command(flatten)]
    machine: Machine,
    /// The model, such as kimi-k2.5, deepseek-v3, glm-5, llama-70b.
    #[arg(long, value_name = "NAME")]
    model: String,
    /// Ranks that share each layer [default: 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    tp: Option<u32>,
    /// Stages of layers one after another.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pp: u32,
    /// Groups of ranks like these side by side, the users shared out among them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    replicas: u32,
    /// Attention is data-parallel: what goes round the experts then.
    #[arg(long, value_name = "WAY")]
    dp_attention: Option<Way>,
    /// Users served at once [default: 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    batch: Option<u64>,
    /// Drafted tokens; left out: what people use with the model; 0: none.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=64))]
    drafts: Option<u32>,
    /// Type of an element on the wire: bf16, fp16, fp32 or fp8 [default: bf16].
    #[arg(long, value_name = "TYPE")]
    dtype: Option<String>,
    /// Accepted lengths (the verify pass's own token among them) at which tokens a second are told.
    #[arg(long, value_name = "LENGTH,..", value_delimiter = ',', value_parser = positive)]
    accepted: Vec<f64>,
    /// What a pass takes beside its calls, ms, as a trace or a calculation has it.
    #[arg(long, value_name = "MS", value_parser = positive, conflicts_with = "measured_tok_s")]
    compute_ms: Option<f64>,
    /// Tokens a second of one user, measured: its calls are taken off, what is left is compute.
    #[arg(long, value_name = "TOK/S", value_parser = positive)]
    measured_tok_s: Option<f64>,
    /// The algorithm that ran when it was measured.
    #[arg(long, value_name = "NAME", default_value = "ring", requires = "measured_tok_s")]
    measured_algo: String,
    /// The machine on which it was measured; left out: this one without edits.
    #[arg(long, value_name = "FILE|NAME", requires = "measured_tok_s")]
    measured_on: Option<String>,
    /// Accepted length when it was measured; left out: without drafts.
    #[arg(long, value_name = "LENGTH", value_parser = positive, requires = "measured_tok_s")]
    measured_accepted: Option<f64>,
    /// Tokens of a prefill chunk.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(16..=1_048_576))]
    chunk: Option<u64>,
    /// Bus bandwidths, GB/s, for which a prefill's bound is told.
    #[arg(long, value_name = "GB/S,..", value_delimiter = ',', value_parser = gb_per_s)]
    busbw: Vec<f64>,
    /// Users at once for which throughput is told.
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=65_536))]
    batches: Vec<u64>,
    /// Edits of the machine and of what is laid down about calls, as for a prediction.
    #[arg(long, value_name = "EDIT")]
    what_if: Vec<String>,
    /// Without the regimes that the topology declares.
    #[arg(long)]
    no_regimes: bool,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// What goes round the experts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Way {
    /// All-gather and reduce-scatter.
    Gather,
    /// Dispatch and combine.
    AllToAll,
}

/// Answers and prints.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let calibration = load::calibration(&options.machine.constants)?;
    let model = find(&options.model)?;
    let (edits, layout) = options.laid_out(&model)?;
    options.tokens_can_be_told()?;
    model.check(&layout)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    start_threads(None)?;
    let asked = Asked { options, calibration, model, layout, edits };
    let answer = asked.answer(topology)?;
    let text = match options.json {
        true => format!("{:#}\n", serde_json::json!(answer)),
        false => page(&answer),
    };
    output.titled(&text, None)?;
    Ok(Outcome::Done)
}

struct Asked<'a> {
    options: &'a Options,
    calibration: Calibration,
    model: Model,
    layout: Layout,
    /// Of the machine, what goes on beside the calls, and how they are done.
    edits: Vec<Edit>,
}

impl Asked<'_> {
    /// A machine with edits, and NCCL and the rest on its first ranks.
    fn side(&self, topology: Topology, choice: Choice, edits: &[Edit]) -> Result<Side> {
        let gpus = topology.gpus().len();
        let wanted = self.layout.tensor * self.layout.pipeline * self.options.replicas;
        // Its ranks and what goes on beside them count, its steps do not: the model makes the calls.
        let ranks = self.layout.tensor;
        let built_in = load_scenario("kimi-k25-tp8")?;
        let scenario = Scenario { tensor_parallel: ranks, model: None, ..built_in };
        let plan = Plan { topology, scenario, choice };
        let (plan, _) = plan.edited(edits, &self.calibration)?;
        let named = plan.choice.gpus.len();
        if let Some(edit) = edits.iter().find(|edit| edit.name == "gpus" && named != ranks as usize)
        {
            let why = format!("{named} GPUs are named for TP {ranks}");
            return Err(edit.refused(why, format!("name {ranks} GPUs, or --tp {named}")));
        }
        if wanted as usize > plan.topology.gpus().len() {
            return Err(Error::request(
                format!("this layout wants {wanted} GPUs, {} has {gpus}", plan.topology.name),
                "fewer ranks, or another machine",
            ));
        }
        let mut name = plan.topology.name.clone();
        if !edits.is_empty() {
            let words: Vec<String> = edits.iter().map(ToString::to_string).collect();
            name = format!("{name} with {}", words.join("; "));
        }
        let regimes = !self.options.no_regimes;
        Side::of(&name, plan, &self.calibration, regimes, Fidelity::Packet)
    }

    fn steps<'b>(&'b self, side: &'b Side, layout: &Layout) -> Steps<'b> {
        Steps { side, model: &self.model, layout: layout.clone() }
    }

    fn passes(&self) -> Vec<Pass> {
        match self.layout.drafts {
            0 => vec![Pass::Decode],
            _ => vec![Pass::Decode, Pass::Verify, Pass::Draft],
        }
    }

    fn answer(&self, topology: Topology) -> Result<StepAnswer> {
        let options = self.options;
        if self.layout.tensor < 2 {
            return Err(Error::request("TP 1 has no calls", "two ranks or more: --tp 2"));
        }
        let (compute, compute_from) = self.compute(&topology)?;
        let side = self.side(topology, Choice::default(), &self.edits)?;
        let steps = self.steps(&side, &self.layout);
        let passes = self.passes();
        let rows = steps.rows(&passes)?;
        let calls = passes.iter().map(|&pass| Ok((pass, steps.calls(pass)?)));
        let most = f64::from(self.layout.drafts) + 1.0;
        let accepted: Vec<f64> = match self.layout.drafts {
            0 => Vec::new(),
            _ if options.accepted.is_empty() => {
                ACCEPTED.into_iter().filter(|&length| length <= most).collect()
            }
            _ => options.accepted.clone(),
        };
        if let Some(length) = accepted.iter().find(|&&length| length > most) {
            return Err(Error::request(
                format!("{length} tokens cannot be accepted of {most} verified"),
                format!("--accepted up to {most}, or more --drafts"),
            ));
        }
        let whole = Layout {
            batch: self.layout.batch * u64::from(options.replicas),
            ..self.layout.clone()
        };
        let all = self.steps(&side, &whole);
        let tokens = compute.as_ref().map_or(Vec::new(), |compute| {
            rows.iter().map(|row| all.tokens(row, compute, &accepted)).collect()
        });
        Ok(StepAnswer {
            machine: side.name.clone(),
            batches: self.batches(&side, compute.as_ref())?,
            prefill: self.prefill(&side)?,
            bounds: options
                .busbw
                .iter()
                .map(|&bus| (bus, self.model.prefill_bound(&self.layout, bus)))
                .collect(),
            assumptions: self.assumptions(&side),
            model: self.model.clone(),
            layout: self.layout.clone(),
            replicas: options.replicas,
            calls: calls.collect::<Result<Vec<_>>>()?,
            rows,
            compute,
            compute_from,
            tokens,
        })
    }

    /// What a pass takes beside its calls, and where that comes from.
    fn compute(&self, topology: &Topology) -> Result<(Option<Compute>, String)> {
        let options = self.options;
        if let Some(ms) = options.compute_ms {
            return Ok((Some(Compute::Stated(ms)), "as stated".to_owned()));
        }
        let Some(rate) = options.measured_tok_s else {
            return Ok((None, String::new()));
        };
        let machine = match &options.measured_on {
            Some(name) => load::topology(name, &self.calibration)?,
            None => topology.clone(),
        };
        let on = machine.name.clone();
        let choice =
            Choice { algorithms: vec![options.measured_algo.clone()], ..Choice::default() };
        let side = self.side(machine, choice, &[])?;
        let one = Layout { batch: 1, ..self.layout.clone() };
        let steps = self.steps(&side, &one);
        let drafted = options.measured_accepted.is_some() && self.layout.drafts > 0;
        let passes: &[Pass] = if drafted { &[Pass::Verify, Pass::Draft] } else { &[Pass::Decode] };
        let rows = steps.rows(passes)?;
        let drafts = f64::from(self.layout.drafts);
        let calls = |row: &StepRow| {
            let times = row.passes.iter().map(|time| match time.pass {
                Pass::Draft => drafts * time.ms.value,
                _ => time.ms.value,
            });
            times.sum::<f64>()
        };
        let row = &rows[0];
        let accepted = options.measured_accepted.unwrap_or(1.0);
        let compute = Compute::of_measured(rate, accepted, calls(row))?;
        let told = format!(
            "{rate} tok/s measured on {on}, {:.2} ms a {}, less {:.2} ms of calls by {}",
            1e3 * accepted / rate,
            if drafted { "cycle" } else { "step" },
            calls(row),
            row.title
        );
        Ok((Some(compute), told))
    }

    /// Tokens a second of all users by batch.
    fn batches(&self, side: &Side, compute: Option<&Compute>) -> Result<Vec<(u64, Vec<f64>)>> {
        let Some(compute) = compute else { return Ok(Vec::new()) };
        let mut batches = Vec::new();
        for &users in &self.options.batches {
            let replicas = u64::from(self.options.replicas);
            let layout = Layout { batch: users.div_ceil(replicas).max(1), ..self.layout.clone() };
            self.model.check(&layout)?;
            let rows = self.steps(side, &layout).rows(&[Pass::Decode])?;
            let rate = |row: &StepRow| 1e3 * users as f64 / (row.passes[0].ms.value + compute.ms());
            batches.push((users, rows.iter().map(rate).collect()));
        }
        Ok(batches)
    }

    /// Calls of a chunk by what NCCL takes, ms, and the tokens a second that they allow.
    fn prefill(&self, side: &Side) -> Result<Option<(u64, f64, f64)>> {
        let Some(chunk) = self.options.chunk else { return Ok(None) };
        let ms = self.steps(side, &self.layout).by_nccl(Pass::Prefill(chunk))?.ms.value;
        Ok(Some((chunk, ms, chunk as f64 * 1e3 / ms)))
    }

    /// What is taken for granted.
    fn assumptions(&self, side: &Side) -> Vec<String> {
        let mut told: Vec<String> = side.notes.clone();
        let (model, layout) = (&self.model, &self.layout);
        told.push(format!("calls as vLLM and SGLang make them; {}", model.source));
        if !model.recalled.is_empty() {
            let which = model.recalled.join(", ").replace('_', " ");
            told.push(format!("recalled, no source at hand: {which} of {}", model.title));
        }
        told.push("calls that are no all-reduce go as NCCL takes them by its defaults".into());
        told.extend(model.doubt.iter().map(|doubt| format!("not certain: {doubt}")));
        if model.vocabulary.is_none() {
            told.push(
                "the all-gather of the logits is left out: the vocabulary is not known".into(),
            );
        }
        told.push(
            "calls do not overlap with compute, and compute is the same in every pass".into(),
        );
        if layout.drafts > 0 {
            told.push(
                "draft passes take no compute: cycles and break-even are lower bounds".into(),
            );
        }
        if self.options.replicas > 1 {
            told.push("replicas do not disturb each other".into());
        }
        if layout.pipeline > 1 {
            told.push(
                "all stages' calls are timed on the ranks of the first; one batch is under way"
                    .into(),
            );
        }
        if !self.options.batches.is_empty() {
            told.push(
                "compute stays as with one batch, so throughput by batch is an upper bound".into(),
            );
        }
        told.push("ranges are those of the calls; compute is taken as known".into());
        told
    }
}
