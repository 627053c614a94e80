//! `simulate experts`: the exchanges around a mixture-of-experts layer.

use clap::Args;

use super::arguments::Machine as MachineArguments;
use super::load;
use super::output::{Failure, Outcome, Output, pretty};
use super::progress::Progress;
use crate::algorithm::expert_parallel::{Layer, Pattern};
use crate::error::Error;
use crate::prediction::Machine;
use crate::prediction::choice::chosen_or_first;
use crate::prediction::experts::ExpertExchange;
use crate::report::experts::{Experts, Row, text};
use crate::selection::nccl::environment::Settings;
use crate::selection::nccl::survey::Detection;
use crate::selection::nccl::{Setup, Version};
use crate::units::parse_gpus;
use crate::workload::model;

/// Options of `experts`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The machine.
    #[command(flatten)]
    machine: MachineArguments,
    /// GPUs in the order of ranks; left out: all of the machine.
    #[arg(long, value_name = "0,1,4-7", value_parser = parse_gpus, default_value = "")]
    gpus: std::vec::Vec<u32>,
    /// The model whose layer it is; of an unknown name all are listed.
    #[arg(long, value_name = "NAME", default_value = "deepseek-v3")]
    model: String,
    /// Tokens that each rank brings.
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,8,32,128,512",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    tokens: Vec<u32>,
    /// Type of a value on its way to an expert.
    #[arg(long, value_name = "TYPE", default_value = "fp8", value_parser = ["fp8", "bf16"])]
    dtype: String,
    /// Seed of the even router; which ranks a token goes to follows from it.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "spread")]
    seed: u64,
    /// A token's experts lie on as many ranks as can be, in place of an even router.
    #[arg(long)]
    spread: bool,
    /// Without the regimes that the topology declares.
    #[arg(long)]
    no_regimes: bool,
    /// Version of NCCL.
    #[arg(long, value_name = "VERSION", default_value = "2.30")]
    nccl: String,
    /// Variables of its environment.
    #[arg(long, value_name = "NAME=VALUE ..")]
    nccl_env: Vec<String>,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Simulates and prints.
pub(super) fn run(options: &Options, output: &mut Output) -> Result<Outcome, Failure> {
    let experts = answer(options)?;
    let written = if options.json { pretty(&experts)? } else { text(&experts) };
    output.titled(&written, None)?;
    Ok(Outcome::Done)
}

fn answer(options: &Options) -> crate::error::Result<Experts> {
    let calibration = load::calibration(&options.machine.constants)?;
    let topology = load::machine(&options.machine, &calibration)?.topology;
    let version = Version::parse(&options.nccl)?;
    let settings = Settings::parse(&options.nccl_env.join(" "))?;
    let model = model::find(&options.model)?;
    let (count, used) = model.experts_and_used()?;
    let machine = Machine::new(topology, &calibration, !options.no_regimes, false)?;
    let gpu_count = machine.nominal.fabric.gpu_count;
    let gpus = chosen_or_first(&options.gpus, gpu_count, gpu_count)?;
    if gpus.len() < 2 {
        let help = "choose a machine with two GPUs or more";
        return Err(Error::request("one GPU holds all experts: nothing is exchanged", help));
    }
    if let Some((why, help)) = model.experts_fault(gpus.len() as u32) {
        return Err(Error::request(format!("{} ranks: {why}", gpus.len()), help));
    }
    let detection = Detection::of(&gpus);
    let setup = Setup::of(&machine.topology, &calibration, &detection, version, settings)?;
    let progress = Progress::new(options.tokens.len());
    let mut layer = Layer::of(0, count, used, model.hidden as u32, options.dtype == "fp8");
    layer.pattern = match options.spread {
        true => Pattern::Spread,
        false => Pattern::Hashed { seed: options.seed },
    };
    let mut rows = Vec::new();
    for &tokens in &options.tokens {
        let exchange = ExpertExchange::of(&machine, &setup, &gpus, &Layer { tokens, ..layer })?;
        rows.push(Row { tokens, exchange });
        progress.step();
    }
    progress.finish();
    Ok(Experts {
        topology: machine.topology.name.clone(),
        refused: (!machine.all_nvlink(&gpus))
            .then(|| "DeepEP's kernels inside a node need NVLink between all ranks".to_owned()),
        gpus,
        model: model.title,
        experts: [count, used],
        token_bytes: [layer.dispatch_bytes, layer.combine_bytes],
        nccl: version.to_string(),
        regimes: !options.no_regimes && !machine.topology.regimes.is_empty(),
        rows,
    })
}
