//! The command line.

use clap::{Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::topology::checks;
use crate::units::{parse_gpus, parse_size};

/// What a GPU machine's wires do to collective communication.
#[derive(Debug, Parser)]
#[command(
    name = "simulate",
    version,
    about,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Arguments {
    /// Something else than a prediction.
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// A prediction.
    #[command(flatten)]
    pub(super) predict: Predict,
    /// Colors: when standard output is a terminal, always, or never.
    #[arg(long, global = true, default_value = "auto", value_name = "WHEN")]
    color: ColorChoice,
}

/// Other things to do.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Machines: show, list, check.
    #[command(subcommand)]
    Topo(Topo),
    /// Compare predictions with what was measured.
    Check(super::check::Options),
    /// Fit constants to what was measured.
    Calibrate(super::calibrate::Options),
    /// Replay a measured step: its ranks come as they came, call by call.
    Replay(super::replay::Options),
    /// What NCCL would choose, what that gives, and what would be better.
    Choose(Choose),
    /// Two machines side by side: before, after, difference, and where the bottleneck went.
    Compare(Box<super::compare::Compare>),
    /// A step of a model: its calls, what they cost by implementation, tokens a second.
    Step(Box<super::step::Options>),
    /// The exchanges around a layer of experts: dispatch and combine, or gathering everything.
    Experts(super::experts::Options),
    /// A grid of cases into a file of rows: plan, run, status, merge.
    #[command(subcommand)]
    Sweep(super::sweep::Sweep),
    /// Classic questions, answered: which there are, or one of them.
    Ask(super::ask::Options),
    /// Which constant and which link matter most to a call.
    Sensitivity(super::sensitivity::Options),
    /// The cheapest edits that meet a target.
    Plan(super::plan::PlanOptions),
    /// Which GPUs in which order, and which implementation at which size.
    Place(super::place::PlaceOptions),
    /// The kinds of edit that `--what-if` knows.
    Edits,
    /// Memory of a GPU: buffers of each implementation, and what is left for the KV cache.
    Memory(super::memory::Options),
    /// This machine: what it is, and what is wrong with it in order of what it costs.
    Here(super::here::Options),
    /// Traces and logs of what ran: show.
    #[command(subcommand)]
    Trace(super::traces::Traces),
    /// Traces and logs of what ran, as a scenario.
    Import(super::import::Options),
    /// Draw a picture as SVG: `simulate plot list` says which there are.
    Plot(Box<super::plot::Options>),
    /// A schedule that another tool wrote, proved and timed on a machine.
    Schedule(super::schedule::Options),
    /// A page to hand in: words, tables and pictures, as --out r.html, or Markdown.
    Report(Box<super::report::Options>),
    /// List the built-in scenarios.
    Scenarios,
    /// The calibration: every constant with its source.
    Constants(super::constants::Constants),
}

/// Where constants come from: every command that predicts has this, most of them with the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(super) struct ConstantsFrom {
    /// Constants in place of the program's, as `simulate calibrate` writes them.
    #[arg(long, value_name = "FILE")]
    pub(super) calibration: Option<String>,
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(super) struct Machine {
    /// Machine: the name of a built-in one (`simulate topo list`), or a file as it is, `-` for a
    /// pipe: topology JSON, nvidia-smi, lspci, NCCL, hwloc; named again, several files merge.
    #[arg(long, value_name = "FILE|NAME")]
    pub(super) topo: Vec<String>,
    /// What the files do not say: gpu=MODEL, switch=MODEL, cpu=MODEL, sockets=N, pcie=5x16.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) assume: Vec<String>,
    /// Its constants.
    #[command(flatten)]
    pub(super) constants: ConstantsFrom,
}

/// Options of a prediction.
#[derive(Clone, Debug, PartialEq, Args)]
pub(super) struct Predict {
    /// The machine.
    #[command(flatten)]
    pub(super) machine: Machine,
    /// Workload: a scenario file or the name of a built-in one (`simulate scenarios`).
    #[arg(long, value_name = "FILE|NAME", default_value = "kimi-k25-tp8")]
    pub(super) scenario: String,
    /// What the calls compute: all_reduce, all_gather, reduce_scatter, broadcast, reduce or
    /// all_to_all; left out: the scenario's.
    #[arg(long, value_name = "NAME")]
    pub(super) collective: Option<String>,
    /// Compare with the machine or workload edited, such as p2p=off or link:gpu0=gen4x8; several by
    /// `;` or by naming the flag again; @FILE: a JSON list (`simulate edits` lists all kinds).
    #[arg(long, value_name = "EDIT")]
    pub(super) what_if: Vec<String>,
    /// Other traffic that goes on while the calls run, on the GPUs of the calls or on those named:
    /// d2h, h2d, ring, 4-7=ring, .. ; several by `+`, or by naming the flag again.
    #[arg(long, value_name = "[GPUS=]TRAFFIC")]
    pub(super) beside: Vec<String>,
    /// Only these algorithms, such as ring,one_shot_pull.
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub(super) algo: Vec<String>,
    /// Only this protocol.
    #[arg(long, value_name = "Simple|LL|LL128")]
    pub(super) proto: Option<String>,
    /// Network model.
    #[arg(long, value_name = "MODEL", default_value = "packet")]
    pub(super) fidelity: Model,
    /// Blocks or channels of each rank; left out: the library's own rule.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(super) blocks: Option<u32>,
    /// Memory that holds the flags of barriers: of the GPU that waits, or the host's.
    #[arg(long, value_name = "MEMORY", default_value = "peer")]
    pub(super) flags: FlagMemory,
    /// GPUs in the order of ranks; left out: the first of the machine.
    #[arg(long, value_name = "0,1,4-7", value_parser = parse_gpus, default_value = "")]
    pub(super) gpus: std::vec::Vec<u32>,
    /// Sweep of sizes: the first.
    #[arg(short = 'b', long = "begin", value_name = "SIZE", value_parser = parse_size)]
    pub(super) begin: Option<u64>,
    /// Sweep of sizes: the last.
    #[arg(short = 'e', long = "end", value_name = "SIZE", value_parser = parse_size)]
    pub(super) end: Option<u64>,
    /// Sweep of sizes: the factor between two [default: 2].
    #[arg(short = 'f', long = "factor", value_name = "FACTOR")]
    pub(super) factor: Option<f64>,
    /// Calls in a step, in place of the scenario's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) calls: Option<u32>,
    /// Simulate every call instead of a few that are scaled.
    #[arg(long)]
    pub(super) every_call: bool,
    /// Show the algorithms that nobody would choose here too.
    #[arg(long)]
    pub(super) all: bool,
    /// List what the answer takes for granted.
    #[arg(long)]
    pub(super) assumptions: bool,
    /// Say how each figure came about.
    #[arg(long)]
    pub(super) explain: bool,
    /// Everything as JSON.
    #[arg(long, conflicts_with = "format")]
    pub(super) json: bool,
    /// Form of the table of sizes [default: text].
    #[arg(long, value_name = "FORM")]
    pub(super) format: Option<Form>,
    /// Without the regimes that the topology declares.
    #[arg(long)]
    pub(super) no_regimes: bool,
    /// Of what is drawn: how steps of many calls vary (--explain, --json) [default: 0].
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Print this stage as JSON and stop.
    #[arg(long, value_name = "STAGE")]
    pub(super) stop_after: Option<Stage>,
    /// Record a step of the last kind by the fastest algorithm: .json (Chrome), .pftrace (Perfetto).
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<String>,
    /// Threads; left out: one a processor.
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// Write to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: Option<String>,
}

/// Network models.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(super) enum Model {
    /// Packets in class queues with credits.
    Packet,
    /// Flows that share links max-min fairly.
    MaxMin,
    /// Latency plus bytes over rate.
    AlphaBeta,
}

/// Memories that can hold flags.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FlagMemory {
    /// Of the GPU that waits.
    Peer,
    /// Of the host, near the GPU that waits.
    Host,
}

/// Forms of a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Aligned columns.
    Text,
    /// For an issue.
    Markdown,
    /// Comma-separated values.
    Csv,
}

/// Stages of the pipeline.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Stage {
    /// The machine as read.
    Topology,
    /// Directed links and paths.
    Fabric,
    /// What each rank does.
    Schedule,
}

/// Machines.
#[derive(Debug, Subcommand)]
pub(super) enum Topo {
    /// Links, paths and the matrix of nvidia-smi.
    Show {
        /// The name of a built-in one, or files of one machine in any known form.
        #[arg(required = true)]
        topo: Vec<String>,
        /// What the files do not say: gpu=MODEL, switch=MODEL, cpu=MODEL, sockets=N, pcie=5x16.
        #[arg(long, value_name = "NAME=VALUE")]
        assume: Vec<String>,
        /// The machine as JSON.
        #[arg(long)]
        json: bool,
        /// List what was assumed, and what each assumption would change.
        #[arg(long)]
        assumptions: bool,
        /// Constants of its links and paths.
        #[command(flatten)]
        constants: ConstantsFrom,
        /// Write to a file instead, as its ending says: .txt, .json, .dot, .svg.
        #[arg(long, short, value_name = "FILE", conflicts_with = "json")]
        out: Option<String>,
    },
    /// Write files of one machine, in any known form, as one topology file.
    Convert {
        /// Files in any known form.
        #[arg(required = true)]
        topo: Vec<String>,
        /// What the files do not say: gpu=MODEL, switch=MODEL, cpu=MODEL, sockets=N, pcie=5x16.
        #[arg(long, value_name = "NAME=VALUE")]
        assume: Vec<String>,
        /// Write to a file instead of standard output; as its ending says: .json, .txt, .dot, .svg.
        #[arg(long, short, value_name = "FILE")]
        out: Option<String>,
    },
    /// The built-in machines.
    List,
    /// Say what is wrong with a topology file.
    Check {
        /// Topology files, `-`, or names of built-in ones.
        #[arg(required = true)]
        topos: Vec<String>,
    },
}

/// Options of `choose`.
#[derive(Debug, Args)]
pub(super) struct Choose {
    /// The machine.
    #[command(flatten)]
    pub(super) machine: Machine,
    /// Version of NCCL.
    #[arg(long, value_name = "VERSION", default_value = "2.30")]
    pub(super) nccl: String,
    /// Variables of its environment: NCCL_ALGO=Ring, several by spaces or by naming the flag again.
    #[arg(long, value_name = "NAME=VALUE ..")]
    pub(super) nccl_env: Vec<String>,
    /// What a serving engine would take instead of what NCCL would: vllm, sglang, .. or vllm@0.11.
    #[arg(long, value_name = "NAME[@VERSION]",
          conflicts_with_all = ["collective", "all", "cured", "write_tuner", "write_graph", "write_topo"])]
    pub(super) engine: Option<String>,
    /// Variables and flags of the engine, such as VLLM_ENABLE_PCIE_ALLREDUCE=1, several by spaces.
    #[arg(long, value_name = "NAME=VALUE ..", requires = "engine", allow_hyphen_values = true)]
    pub(super) engine_env: Vec<String>,
    /// What the calls compute.
    #[arg(long, value_name = "NAME", default_value = "all_reduce")]
    pub(super) collective: String,
    /// GPUs in the order of ranks; left out: all of the machine.
    #[arg(long, value_name = "0,1,4-7", value_parser = parse_gpus, default_value = "")]
    pub(super) gpus: std::vec::Vec<u32>,
    /// Sizes of a call [default: 14336,43008,57344,448K,32M].
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', value_parser = parse_size,
          conflicts_with_all = ["begin", "end", "factor"])]
    pub(super) sizes: Vec<u64>,
    /// Sweep of sizes: the first.
    #[arg(short = 'b', long = "begin", value_name = "SIZE", value_parser = parse_size)]
    pub(super) begin: Option<u64>,
    /// Sweep of sizes: the last.
    #[arg(short = 'e', long = "end", value_name = "SIZE", value_parser = parse_size,
          requires = "begin")]
    pub(super) end: Option<u64>,
    /// Sweep of sizes: the factor between two [default: 2].
    #[arg(short = 'f', long = "factor", value_name = "FACTOR", requires = "begin")]
    pub(super) factor: Option<f64>,
    /// NUMA nodes of each socket, as the firmware is set (NPS, SNC).
    #[arg(long, value_name = "1|2|4", default_value_t = 1)]
    pub(super) numa_per_socket: u32,
    /// Every algorithm and protocol of NCCL at every size.
    #[arg(long)]
    pub(super) all: bool,
    /// With the graph file that --write-graph would write, where the search fails.
    #[arg(long)]
    pub(super) cured: bool,
    /// Without the regimes that the topology declares.
    #[arg(long)]
    pub(super) no_regimes: bool,
    /// Write the best settings for NCCL's example tuner plugin.
    #[arg(long, value_name = "FILE")]
    pub(super) write_tuner: Option<String>,
    /// Write the channels for NCCL_GRAPH_FILE; where the search fails, those that cure it.
    #[arg(long, value_name = "FILE")]
    pub(super) write_graph: Option<String>,
    /// Write the machine for NCCL_TOPO_FILE; where the search fails, so that it does not.
    #[arg(long, value_name = "FILE")]
    pub(super) write_topo: Option<String>,
    /// Everything as JSON.
    #[arg(long)]
    pub(super) json: bool,
    /// Threads; left out: one a processor.
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) threads: Option<u16>,
    /// Write to a file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(super) out: Option<String>,
}

/// A name that a file of ours may have.
pub(super) fn name(text: &str) -> std::result::Result<String, String> {
    checks::name_fault(text).map_or_else(|| Ok(text.to_owned()), Err)
}

impl Arguments {
    /// Reads the command line; help, version and slips end the program here.
    pub fn read() -> Arguments {
        let matches = with_negative_numbers(Arguments::command()).get_matches();
        Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// When to use colors.
    pub fn color(&self) -> anstream::ColorChoice {
        match self.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::AlwaysAnsi,
            ColorChoice::Never => anstream::ColorChoice::Never,
        }
    }
}

/// Takes `-1` after an option for its value, so that the option says what it takes: as a flag nobody
/// knows it.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let subcommands = command.get_subcommands().map(|sub| sub.get_name().to_owned());
    let subcommands: Vec<String> = subcommands.collect();
    let command = command.mut_args(|arg| {
        let valued = !arg.is_positional() && arg.get_action().takes_values();
        if valued { arg.allow_negative_numbers(true) } else { arg }
    });
    subcommands
        .into_iter()
        .fold(command, |command, name| command.mut_subcommand(name, with_negative_numbers))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Arguments::command().debug_assert();
    }
}
