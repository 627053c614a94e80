//! NCCL's cost model (`graph/tuning.cc`): what it believes each algorithm and protocol to take, and
//! the choice that follows. Figures are 32-bit where NCCL's are, so that ties fall the same way.

use serde::Serialize;

use super::constants::Constants;
use super::environment::{Enabled, Settings};
use super::graph::{Graph, PathType};
use super::tables::{Generation, Ll128Rule, PlateauFrom, index};
use super::version::Version;
use crate::algorithm::Protocol;
use crate::algorithm::nccl::{Algorithm, Collective};
use crate::error::{Error, Result};

/// CPUs that the model tells apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cpu {
    /// Intel, x86-64.
    Intel,
    /// AMD, x86-64.
    Amd,
    /// Another x86-64.
    OtherX86,
    /// Machines of different vendors.
    Mixed,
    /// Arm.
    Arm,
    /// Power.
    Power,
}

impl Cpu {
    /// By the words of NCCL's system file: `x86_64`, `arm64`, `ppc64`; CPUID's vendor.
    pub fn from_names(arch: &str, vendor: &str) -> Cpu {
        match (arch, vendor) {
            ("arm64", _) => Cpu::Arm,
            ("ppc64", _) => Cpu::Power,
            (_, "GenuineIntel") => Cpu::Intel,
            (_, "AuthenticAMD") => Cpu::Amd,
            _ => Cpu::OtherX86,
        }
    }
}

/// A communicator as the model sees it.
#[derive(Clone, Debug)]
pub struct Communicator {
    /// Ranks.
    pub ranks: u32,
    /// Machines.
    pub machines: u32,
    /// Lowest and highest compute capability x 10, such as 90 or 120.
    pub capability: (u32, u32),
    /// The CPUs.
    pub cpu: Cpu,
    /// Channels, as [`super::launch::channels`] counts them.
    pub channels: u32,
    /// Outcome of the search for rings.
    pub ring: Graph,
    /// For trees.
    pub tree: Graph,
    /// For NVLS, or why there is none.
    pub nvls: std::result::Result<Graph, String>,
    /// For CollNet, direct and chain; `None` without a plugin that does it.
    pub collnet: Option<(Graph, Graph)>,
}

impl Communicator {
    fn graph(&self, algorithm: Algorithm) -> std::result::Result<&Graph, String> {
        let collnet =
            || self.collnet.as_ref().ok_or("needs a CollNet plugin and NCCL_COLLNET_ENABLE");
        match algorithm {
            Algorithm::Ring => Ok(&self.ring),
            Algorithm::Tree | Algorithm::Pat => Ok(&self.tree),
            Algorithm::Nvls | Algorithm::NvlsTree => self.nvls.as_ref().map_err(String::clone),
            Algorithm::CollnetDirect => Ok(&collnet()?.0),
            Algorithm::CollnetChain => Ok(&collnet()?.1),
        }
    }
}

/// What is asked.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Size as nccl-tests counts it.
    pub bytes: u64,
    /// Calls that are taken together.
    pub operations: u32,
    /// Elements of 8 bits that are rounded at every sum.
    pub fp8: bool,
}

impl Call {
    /// One call of a type that NCCL sums exactly enough.
    pub fn of(bytes: u64) -> Call {
        Call { bytes, operations: 1, fp8: false }
    }
}

/// An algorithm and protocol with NCCL's belief of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What it computes.
    pub collective: Collective,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The protocol.
    #[serde(serialize_with = "protocol_name")]
    pub protocol: Protocol,
    /// What a call costs whatever its size, us.
    pub latency_us: f32,
    /// Algorithm bandwidth, GB/s; 0 where there is nothing to price.
    pub bandwidth_gb_per_s: f32,
    /// Why NCCL does not take it; `None` when it may.
    pub off: Option<String>,
}

fn protocol_name<S: serde::Serializer>(
    protocol: &Protocol,
    out: S,
) -> std::result::Result<S::Ok, S::Error> {
    out.serialize_str(protocol.name())
}

/// What NCCL takes, and how long it believes that to take.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The protocol.
    #[serde(serialize_with = "protocol_name")]
    pub protocol: Protocol,
    /// By its own model, us.
    pub time_us: f32,
}

/// The table that NCCL makes when a communicator starts.
#[derive(Clone, Debug)]
pub struct Model {
    /// All, in NCCL's order: collective, algorithm, then LL, LL128, Simple.
    pub rows: Vec<Row>,
    constants: Constants,
    communicator: Communicator,
}

/// Protocols in NCCL's order.
pub const PROTOCOLS: [Protocol; 3] = [Protocol::Ll, Protocol::Ll128, Protocol::Simple];

impl Model {
    /// Prices everything.
    pub fn new(constants: &Constants, communicator: &Communicator, settings: &Settings) -> Model {
        let pricing = Pricing { constants, comm: communicator, settings };
        let mut rows = Vec::new();
        for (collective, _) in Collective::ALL {
            for (algorithm, _, _) in Algorithm::ALL {
                for protocol in PROTOCOLS {
                    rows.push(pricing.row(collective, algorithm, protocol));
                }
            }
        }
        Model { rows, constants: constants.clone(), communicator: communicator.clone() }
    }

    /// The rows of a collective.
    pub fn rows_of(&self, collective: Collective) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.collective == collective)
    }

    /// NCCL's time of a row, us, also where it is off; `None` where it has no price.
    pub fn time_us(&self, row: &Row, call: Call) -> Option<f32> {
        if row.bandwidth_gb_per_s == 0.0 {
            return None;
        }
        let (comm, constants) = (&self.communicator, &self.constants);
        let (mut rate, mut latency) = (row.bandwidth_gb_per_s, row.latency_us);
        let all_reduce = row.collective == Collective::AllReduce;
        let blackwell_x86 = comm.capability.0 >= 100 && !matches!(comm.cpu, Cpu::Arm | Cpu::Power);
        // Trees do not follow the model at middle sizes; NCCL corrects them up to 256 MiB.
        let corrected = match row.algorithm {
            Algorithm::Tree => 23,
            Algorithm::NvlsTree if blackwell_x86 => 24,
            _ => 0,
        };
        let power = (call.bytes >> 6).checked_ilog2().map_or(usize::MAX, |power| power as usize);
        if all_reduce && power < corrected {
            rate *= constants.tree_correction[index(row.protocol)][power];
        }
        let ring = row.algorithm == Algorithm::Ring;
        if ring && row.protocol == Protocol::Simple && all_reduce && comm.machines > 1 {
            let plateau = constants.plateau;
            let large = match plateau.above {
                PlateauFrom::BytesARank(bytes) => call.bytes >= bytes * u64::from(comm.ranks),
                PlateauFrom::BytesARankAndChannel(bytes) => {
                    call.bytes / u64::from(comm.channels * comm.ranks) >= bytes
                }
            };
            let factor = if comm.capability.0 < 80 { plateau.older } else { plateau.ampere_on };
            if large {
                latency = (f64::from(latency) * factor) as f32;
            }
        }
        // A tree's calls run into each other: those of a batch share a latency.
        let waits = if ring {
            call.operations
        } else {
            call.operations.div_ceil(constants.operations_a_batch)
        };
        let mut time = latency * waits as f32 + call.bytes as f32 / (1000.0 * rate);
        // A long ring rounds too often for 8 bits.
        if call.fp8 && ring && comm.ranks > 8 {
            time *= constants.lossy_factor;
        }
        Some(time)
    }

    /// The least time of what is on; the first of equals.
    ///
    /// # Errors
    /// When the settings leave nothing.
    pub fn choose(&self, collective: Collective, call: Call) -> Result<Choice> {
        let mut best: Option<Choice> = None;
        for row in self.rows_of(collective).filter(|row| row.off.is_none()) {
            let Some(time_us) = self.time_us(row, call) else { continue };
            if best.is_none_or(|best| time_us < best.time_us) {
                best = Some(Choice { algorithm: row.algorithm, protocol: row.protocol, time_us });
            }
        }
        best.ok_or_else(|| {
            let what = format!("NCCL has no algorithm left for {}", collective.name());
            let told = match self.refusals(collective) {
                reasons if reasons.is_empty() => what,
                reasons => format!("{what}: {}", reasons.join("; ")),
            };
            Error::request(told, "loosen NCCL_ALGO or NCCL_PROTO")
        })
    }

    /// Why NCCL refuses what the settings leave on, algorithms of one reason together.
    fn refusals(&self, collective: Collective) -> Vec<String> {
        let mut by_reason: Vec<(&str, Vec<String>)> = Vec::new();
        for row in self.rows_of(collective) {
            let Some(reason) = row.off.as_deref() else { continue };
            if reason.starts_with(SWITCHED_OFF) {
                continue;
            }
            let name = format!("{} {}", row.algorithm.name(), row.protocol.name());
            match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, names)) => names.push(name),
                None => by_reason.push((reason, vec![name])),
            }
        }
        let told = |(reason, names): (&str, Vec<String>)| format!("{}: {reason}", names.join(", "));
        by_reason.into_iter().map(told).collect()
    }
}

/// How the reasons begin that are the user's own.
const SWITCHED_OFF: &str = "switched off by NCCL_";

/// One communicator being priced.
pub(super) struct Pricing<'a> {
    pub(super) constants: &'a Constants,
    pub(super) comm: &'a Communicator,
    settings: &'a Settings,
}

impl Pricing<'_> {
    fn row(&self, collective: Collective, algorithm: Algorithm, protocol: Protocol) -> Row {
        let graph = self.comm.graph(algorithm);
        let absent = absent(collective, algorithm, protocol);
        let (latency_us, bandwidth_gb_per_s) = match &graph {
            Ok(graph) if absent.is_none() && !graph.channels.is_empty() => (
                self.latency(collective, algorithm, protocol, graph),
                self.bandwidth(collective, algorithm, protocol, graph),
            ),
            _ => (0.0, 0.0),
        };
        // What the user switched off is told first: it is what the user can switch on.
        let off = self
            .switched_off(collective, algorithm, protocol)
            .or(absent)
            .or_else(|| self.too_old(algorithm))
            .or_else(|| self.misplaced(algorithm))
            .or_else(|| graph.as_ref().err().cloned())
            .or_else(|| {
                let graph = graph.as_ref().ok()?;
                self.ll128_off(collective, protocol, graph)
            })
            .or_else(|| (bandwidth_gb_per_s == 0.0).then(|| "too few channels".to_owned()));
        Row { collective, algorithm, protocol, latency_us, bandwidth_gb_per_s, off }
    }

    /// Which of the tables' columns by machines holds.
    pub(super) fn scale(&self) -> usize {
        (self.comm.machines.clamp(1, 3) - 1) as usize
    }

    pub(super) fn generation(&self) -> Generation {
        self.constants.generation_of(self.comm.capability.0, self.comm.capability.1)
    }

    fn too_old(&self, algorithm: Algorithm) -> Option<String> {
        let since = match algorithm {
            Algorithm::Nvls => 17,
            Algorithm::NvlsTree => 18,
            Algorithm::Pat => 23,
            _ => 0,
        };
        let since = Version { major: 2, minor: since, patch: 0 };
        (self.constants.version < since).then(|| format!("came with NCCL {since}"))
    }

    /// What needs one machine, several, or one GPU in each.
    fn misplaced(&self, algorithm: Algorithm) -> Option<String> {
        let several = self.comm.machines > 1;
        let reason = match algorithm {
            Algorithm::NvlsTree if !several => "for several machines",
            Algorithm::Nvls if several && self.comm.collnet.is_none() => {
                "across machines it needs a CollNet plugin"
            }
            Algorithm::Pat if self.comm.machines != self.comm.ranks => "for one GPU a machine",
            _ => return None,
        };
        Some(reason.to_owned())
    }

    fn switched_off(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        protocol: Protocol,
    ) -> Option<String> {
        // Up to 2.23 a ring was kept for what had nothing else.
        let kept = algorithm == Algorithm::Ring
            && collective != Collective::AllReduce
            && self.constants.version < Version { major: 2, minor: 24, patch: 0 };
        if !kept && !self.settings.algorithm_is_on(collective, algorithm) {
            return Some(format!("{SWITCHED_OFF}ALGO"));
        }
        let off = self.settings.protocol(collective, protocol) == Enabled::No;
        off.then(|| format!("{SWITCHED_OFF}PROTO"))
    }

    /// Whether LL128 is safe by NCCL's rule: its 128-byte stores must arrive whole.
    fn ll128_off(
        &self,
        collective: Collective,
        protocol: Protocol,
        graph: &Graph,
    ) -> Option<String> {
        let forced = self.settings.protocol(collective, protocol) == Enabled::Yes;
        if protocol != Protocol::Ll128 || forced {
            return None;
        }
        let (low, high) = self.comm.capability;
        let rule = self.constants.ll128;
        let alike = match rule {
            Ll128Rule::V100OrA100Nvlink => matches!((low, high), (70, 70) | (80, 80)),
            Ll128Rule::V100A100H100 => matches!((low, high), (70, 70) | (80, 80) | (90, 90)),
            Ll128Rule::FromVoltaAlike => low == high && low >= 70,
            Ll128Rule::FromVoltaAlikeOrHopper => (low == high && low >= 70) || low >= 90,
        };
        let nvlink = match rule {
            Ll128Rule::V100OrA100Nvlink => PathType::Nvl,
            _ => PathType::Nvb,
        };
        let far = match rule {
            Ll128Rule::V100OrA100Nvlink => PathType::Pxb,
            _ if low >= 90 && self.settings.ll128_over_c2c => PathType::Pxn,
            _ => PathType::Pxb,
        };
        if graph.type_intra > nvlink {
            return Some(format!(
                "needs NVLink on every hop ({} is among them): PCIe may split a 128-byte store",
                graph.type_intra.name()
            ));
        }
        if self.comm.machines > 1 && graph.type_inter > far {
            return Some(format!("a NIC is as far as {}", graph.type_inter.name()));
        }
        (!alike).then(|| "not trusted on these GPUs by this version".to_owned())
    }
}

/// What no version has.
fn absent(collective: Collective, algorithm: Algorithm, protocol: Protocol) -> Option<String> {
    let exists = match collective {
        Collective::AllReduce => algorithm != Algorithm::Pat,
        Collective::Broadcast | Collective::Reduce => algorithm == Algorithm::Ring,
        Collective::AllGather | Collective::ReduceScatter => {
            !matches!(algorithm, Algorithm::Tree | Algorithm::CollnetChain | Algorithm::NvlsTree)
        }
    };
    if !exists {
        return Some(format!("NCCL has no {} by {}", collective.name(), algorithm.name()));
    }
    let lines = matches!(algorithm, Algorithm::Tree | Algorithm::Ring);
    (protocol != Protocol::Simple && !lines).then(|| "runs in Simple only".to_owned())
}
