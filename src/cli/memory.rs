//! `simulate memory`: what buffers take of a GPU, and what is left for the KV cache.

use clap::Args;

use super::arguments::Machine;
use super::load;
use super::output::{Failure, Outcome, Output};
use crate::error::{Error, Result};
use crate::fabric::{Calibration, DeviceClass};
use crate::input::load_scenario;
use crate::report::memory::{Memory, text};
use crate::selection::gpu::{Capability, memory_gib};
use crate::selection::memory::buffers::captured_sizes;
use crate::selection::memory::{Allocation, Budget, Buffers, Facts, GIB, Loss, Shape};
use crate::selection::nccl;
use crate::selection::nccl::memory::{Connections, Way, connection, of_rank};
use crate::topology::{Confidence, PathType, Topology};
use crate::workload::Scenario;

/// Options of `memory`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The machine.
    #[command(flatten)]
    machine: Machine,
    /// Workload: a scenario file or the name of a built-in one.
    #[arg(long, value_name = "FILE|NAME", default_value = "kimi-k25-tp8")]
    scenario: String,
    /// Whose rule divides the memory: sglang or vllm.
    #[arg(long, value_name = "NAME", default_value = "sglang")]
    engine: String,
    /// mem_fraction_static or gpu_memory_utilization; left out: the engine's own.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    fraction: Option<f64>,
    /// Weights of one GPU, GiB; left out: those of the scenario's model.
    #[arg(long, value_name = "GIB", value_parser = gib)]
    weights: Option<f64>,
    /// Implementations beside NCCL whose buffers are there.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',', default_value = "custom")]
    with: Vec<String>,
    /// Version of NCCL.
    #[arg(long, value_name = "VERSION", default_value = "2.30")]
    nccl: String,
    /// Channels of NCCL; left out: as observed on such machines.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    channels: Option<u32>,
    /// Largest batch that is captured as a CUDA graph.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    graph_batch: u32,
    /// Tokens of a prefill chunk.
    #[arg(long, value_name = "N", default_value_t = 8192, value_parser = clap::value_parser!(u64).range(1..=1_048_576))]
    tokens: u64,
    /// A KV cache that shrank, before and after, GiB: what explains it?
    #[arg(long, value_name = "GIB,GIB", value_delimiter = ',', value_parser = gib)]
    kv: Vec<f64>,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Answers and prints.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let calibration = load::calibration(&options.machine.constants)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    let scenario = load_scenario(&options.scenario)?;
    let memory = answer(options, &topology, &scenario, &calibration)?;
    let written =
        if options.json { format!("{:#}\n", serde_json::json!(memory)) } else { text(&memory) };
    output.titled(&written, None)?;
    Ok(Outcome::Done)
}

fn answer(
    options: &Options,
    topology: &Topology,
    scenario: &Scenario,
    calibration: &Calibration,
) -> Result<Memory> {
    let facts = Facts::embedded()?;
    let engine = facts.engine(&options.engine)?;
    let model = topology.gpu_models().first().copied().unwrap_or_default();
    let gpus = topology.gpus().len() as u32;
    if gpus == 0 {
        return Err(Error::request("the machine has no GPU", "there is no memory to divide"));
    }
    let mut notes = Vec::new();
    let wanted = scenario.tensor_parallel;
    let ranks = wanted.min(gpus);
    if ranks < wanted {
        notes.push(format!("the scenario wants {wanted} GPUs; this machine has {gpus}"));
    }
    // Two bytes an element; the first step is of one token, the last the largest decode step.
    let token = scenario.steps.first().map_or(0, |step| step.bytes);
    let last = scenario.steps.last().map_or(token, |step| step.bytes);
    let shape = Shape {
        capability: Capability::of(calibration, model)?,
        ranks,
        hidden: token / 2,
        tokens: FUSED_TOKENS,
        rows: u64::from(options.graph_batch) * (last / token.max(1)).max(1),
    };
    let mut buffers = vec![nccl_buffers(options, topology, calibration, ranks)?];
    for name in &options.with {
        if buffers.iter().any(|one| one.name == *name) {
            return Err(Error::request(
                format!("`{name}` is named twice"),
                "NCCL is always there; name each of the others once",
            ));
        }
        buffers.push(facts.buffers(name, shape)?);
    }
    let fraction = options.fraction.unwrap_or(engine.fraction);
    let bytes = |buffers: &[Buffers]| buffers.iter().map(Buffers::bytes).sum::<u64>() as f64 / GIB;
    let estimates = &facts.estimates;
    let sizes = captured_sizes(options.graph_batch);
    let budget = Budget {
        rule: engine.rule,
        fraction,
        total: memory_gib(calibration, model)?,
        context: estimates.context.value,
        buffers: bytes(&buffers),
        weights: weights(options, &facts, scenario, ranks, &mut notes)?,
        graphs: estimates.graph.value * f64::from(sizes),
        activations: estimates.activation.value * (options.tokens * token) as f64 / GIB,
    };
    let loss = loss(options, &budget, bytes(&buffers[1..]))?;
    Ok(Memory {
        topology: topology.name.clone(),
        scenario: scenario.name.clone(),
        gpu: calibration.device(DeviceClass::Gpu, model)?.title.clone(),
        ranks,
        engine: engine.title.clone(),
        rule: engine.says.clone(),
        rule_source: engine.source.clone(),
        graph_sizes: sizes,
        kv_cache: budget.kv_cache(),
        spare: budget.spare(),
        buffers,
        budget,
        loss,
        notes,
    })
}

/// What explains the KV cache that shrank, if one is told; `extra` GiB are buffers beside NCCL's.
fn loss(options: &Options, budget: &Budget, extra: f64) -> Result<Option<Loss>> {
    match options.kv[..] {
        [] => Ok(None),
        [from, to] if from > to && to >= 0.0 => Ok(Some(Loss::of(budget, extra, from, to))),
        _ => Err(Error::request(
            "--kv takes the KV cache before and after, GiB, and it must have shrunk",
            "for example --kv 10.42,0.90",
        )),
    }
}

/// Tokens that FlashInfer's workspace is made for when nobody says.
const FUSED_TOKENS: u64 = 2048;

/// Weights of a GPU, GiB: as told, or what the scenario's model is known to have.
fn weights(
    options: &Options,
    facts: &Facts,
    scenario: &Scenario,
    ranks: u32,
    notes: &mut Vec<String>,
) -> Result<f64> {
    if let Some(gib) = options.weights {
        return Ok(gib);
    }
    let model = facts.models.iter().find(|model| model.scenario == scenario.name);
    let Some(model) = model else {
        let known: Vec<&str> = facts.models.iter().map(|one| one.scenario.as_str()).collect();
        return Err(Error::request(
            format!("the weights of {} are not known here", scenario.name),
            format!("give those of one GPU with --weights GIB; known for {}", known.join(", ")),
        ));
    };
    notes.push(format!("weights: {} GB over {ranks} GPUs ({})", model.weights_gb, model.source));
    Ok(model.weights_gb * 1e9 / f64::from(ranks) / GIB)
}

/// Buffers of NCCL's connections for ring and tree.
fn nccl_buffers(
    options: &Options,
    topology: &Topology,
    calibration: &Calibration,
    ranks: u32,
) -> Result<Buffers> {
    let version = nccl::Version::parse(&options.nccl)?;
    let constants = nccl::constants::Constants::of(version)?;
    let settings = nccl::environment::Settings::default();
    let nvlink =
        (1..ranks as usize).all(|gpu| matches!(topology.path_type(0, gpu), PathType::Nv(_)));
    let known = if nvlink { "channels_nvlink" } else { "channels" };
    let channels = match options.channels {
        Some(channels) => channels,
        None => calibration.value(DeviceClass::Library, "nccl", known)? as u32,
    };
    let connections = Connections { channels, tree: true, p2p: None };
    let each = connection(&constants, &settings, Way::Write);
    let gpu =
        if ranks < 2 { 0 } else { of_rank(&constants, &settings, connections, Way::Write).gpu };
    let part = Allocation {
        what: "connections of ring and tree".into(),
        formula: format!(
            "{channels} channels x 2 directions x ({} B received + {} B sent)",
            each.receiver, each.sender
        ),
        bytes: gpu,
        source: format!(
            "LL, LL128 and Simple buffers in pieces of {} B; NCCL {version} source",
            constants.allocation.granularity
        ),
        confidence: Confidence::Inferred,
    };
    Ok(Buffers { name: "nccl".into(), title: "NCCL".into(), parts: vec![part] })
}

/// Reads a share between 0 and 1.
fn share(text: &str) -> std::result::Result<f64, String> {
    let share = text.trim().parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("`{text}` is no share: write 0.85"))
}

/// Reads GiB.
fn gib(text: &str) -> std::result::Result<f64, String> {
    let gib = text.trim().parse::<f64>().ok().filter(|gib| (0.0..1e6).contains(gib));
    gib.ok_or_else(|| format!("`{text}` are no GiB: write 69.3"))
}
