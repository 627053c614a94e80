//! NCCL's own constants by version, read from `calibration/nccl-tuning.json`: what it believes,
//! not what is.

use serde::{Deserialize, Serialize};

use super::Version;
use super::tables::*;
use crate::error::{Error, Result, embedded};
use crate::topology::Confidence;

/// The embedded file.
const TEXT: &str = include_str!("../../../calibration/nccl-tuning.json");

/// A table with its history, oldest first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct History<T> {
    unit: String,
    about: String,
    versions: Vec<Entry<T>>,
}

/// A table as it is from a version on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<T> {
    from: String,
    value: T,
    source: String,
    confidence: Confidence,
}

/// Which table came from where.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Provenance {
    /// Name of the table.
    pub table: &'static str,
    /// What it holds.
    pub about: String,
    /// Its unit.
    pub unit: String,
    /// The version from which it holds.
    pub from: String,
    /// Who stated it.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        #[derive(Clone, Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Tables {
            title: String,
            $($name: History<$kind>,)*
        }

        /// All constants of a version.
        #[derive(Clone, Debug)]
        pub struct Constants {
            /// The version asked for.
            pub version: Version,
            /// Where each table came from.
            pub provenance: Vec<Provenance>,
            $($(#[$doc])* pub $name: $kind,)*
        }

        impl Tables {
            fn at(self, version: Version) -> Result<Constants> {
                if self.title.is_empty() {
                    return Err(Error::damaged(FILE, "no title"));
                }
                let mut provenance = Vec::new();
                $(let $name = pick(stringify!($name), self.$name, version, &mut provenance)?;)*
                Ok(Constants { version, provenance, $($name,)* })
            }
        }
    };
}

tables! {
    /// What a call costs before its steps, us.
    base_latency: ByAlgorithm,
    /// What a step costs, us.
    hardware_latency: ByHardware,
    /// Cap of LL over all channels, GB/s.
    ll_max: ByGeneration<ByMachines>,
    /// Cap of Ring LL128 a channel, GB/s.
    ring_ll128_per_channel: ByGeneration<ByMachines>,
    /// Cap of Tree LL128 a channel, GB/s.
    tree_ll128_per_channel: ByGeneration<ByMachines>,
    /// Cap of Tree a channel, GB/s.
    tree_per_channel: ByGeneration<ByMachines>,
    /// Cap of NVLSTree a channel, GB/s.
    nvls_tree_per_channel: ByGeneration<ByMachines>,
    /// Share of the NVSwitch's rate that NVLS reaches; 0 before such a share was kept.
    nvls_efficiency: ByGeneration<f32>,
    /// Factors on Tree's rate for 64 B, 128 B, ...
    tree_correction: [Vec<f32>; 3],
    /// How generations are told apart.
    generation: GenerationRule,
    /// LL's share of a ring's rate.
    ring_ll_share: RingLlShare,
    /// LL128's share of a ring's rate.
    ring_ll128_share: RingLl128Share,
    /// What Tree makes of its graph's rate.
    tree_share: TreeShare,
    /// Cap on the rate of A100 machines, GB/s; 0: none.
    bus_max_a100: f32,
    /// What PAT makes of the tree's graph.
    pat_share: PatShare,
    /// Factor on LL's step inside a machine when the call spans machines.
    ll_across: f64,
    /// Network steps of ring all-reduces.
    inter_steps: InterSteps,
    /// Least step of a ring across machines.
    net_overhead: NetOverhead,
    /// With one GPU a machine every algorithm takes Tree's network latency.
    one_gpu_a_machine: bool,
    /// Factor on the latency of Ring Simple across machines.
    plateau: Plateau,
    /// What CollNetDirect makes of its graph.
    collnet: CollnetShare,
    /// Where LL128 is on by default.
    ll128: Ll128Rule,
    /// Factor on the time of a ring of more than eight ranks in fp8.
    lossy_factor: f32,
    /// Queued calls that share a latency in algorithms that pipeline.
    operations_a_batch: u32,
    /// Most threads of Ring Simple.
    simple_threads: SimpleThreads,
    /// Least traffic of a channel, bytes.
    channel_traffic_min: u64,
    /// Channels of NVLS.
    nvls_channels: NvlsChannels,
    /// Steps of send and receive.
    p2p_chunk: P2pChunk,
    /// Send and receive use LL up to this a channel, bytes.
    p2p_ll_max: u64,
    /// Parts of a send follow the step of the protocol that its size suggests, not Simple's.
    p2p_parts_follow_ll: bool,
    /// Buffers of a connection.
    buffers: Buffers,
    /// How memory of connections is taken.
    allocation: Allocation,
}

const FILE: &str = "calibration/nccl-tuning.json";

/// The entry of a history that holds for a version.
fn pick<T>(
    table: &'static str,
    history: History<T>,
    version: Version,
    provenance: &mut Vec<Provenance>,
) -> Result<T> {
    let mut chosen = None;
    let mut before: Option<Version> = None;
    for entry in history.versions {
        let from = Version::parse(&entry.from)?;
        if from.patch == Version::LATEST || before.is_some_and(|before| before >= from) {
            return Err(Error::damaged(FILE, format!("{table}: {} is out of order", entry.from)));
        }
        before = Some(from);
        if from <= version {
            chosen = Some(entry);
        }
    }
    let entry = chosen.ok_or_else(|| {
        Error::request(
            format!("NCCL {version} is older than any whose constants are known"),
            "the oldest is 2.12",
        )
    })?;
    provenance.push(Provenance {
        table,
        about: history.about,
        unit: history.unit,
        from: entry.from,
        source: entry.source,
        confidence: entry.confidence,
    });
    Ok(entry.value)
}

impl Constants {
    /// The constants of a version.
    ///
    /// # Errors
    /// A version older than any known; a damaged file, which a test excludes.
    pub fn of(version: Version) -> Result<Constants> {
        let tables: Tables = embedded(FILE, TEXT)?;
        tables.at(version)
    }

    /// The generation whose row stands for GPUs of these compute capabilities (x 10).
    pub fn generation_of(&self, lowest: u32, highest: u32) -> Generation {
        match self.generation {
            GenerationRule::A100OrOlder if lowest == 80 && highest == 80 => Generation::Ampere,
            GenerationRule::UpToBlackwell if lowest >= 100 => Generation::Blackwell,
            GenerationRule::A100OrOlder => Generation::Volta,
            _ if lowest >= 90 => Generation::Hopper,
            _ if lowest >= 80 => Generation::Ampere,
            _ => Generation::Volta,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::Protocol;
    use crate::algorithm::nccl::Algorithm;

    fn of(version: &str) -> Constants {
        Constants::of(Version::parse(version).expect("a version")).expect("known constants")
    }

    #[test]
    fn every_version_has_every_table_with_a_source() {
        for version in ["2.12", "2.13.4", "2.18.3", "2.21", "2.24", "2.27", "2.29.2", "2.30.7"] {
            let constants = of(version);
            assert!(constants.provenance.len() > 30, "{version}");
            for table in &constants.provenance {
                let told = [&table.about, &table.unit, &table.source];
                assert!(told.iter().all(|text| !text.is_empty()), "{version} {}", table.table);
                let units = ["us", "GB/s", "B", "1"];
                assert!(units.contains(&table.unit.as_str()), "{}", table.table);
            }
            assert!(constants.tree_correction.iter().all(|row| row.len() == 24), "{version}");
        }
        assert!(Constants::of(Version { major: 2, minor: 11, patch: 4 }).is_err());
    }

    #[test]
    fn constants_change_where_nccl_changed_them() {
        // Step of Tree Simple over PCIe: 28, then 6, 28 again, 4.
        let tree =
            |version: &str| of(version).hardware_latency.pci.of(Algorithm::Tree, Protocol::Simple);
        let found: Vec<f32> =
            ["2.12.12", "2.18.3", "2.19.3", "2.21.5", "2.24.3", "2.30"].map(tree).to_vec();
        assert_eq!(found, [28.0, 6.0, 28.0, 28.0, 4.0, 4.0]);
        // Ring over PCIe is the same from 2.18 on.
        for version in ["2.18.3", "2.21.5", "2.24.3", "2.30.7"] {
            let constants = of(version);
            let ring = Protocol::ALL.map(|(protocol, _)| {
                constants.hardware_latency.pci.of(Algorithm::Ring, protocol)
                    + constants.base_latency.of(Algorithm::Ring, protocol)
            });
            // Simple 8.4 + 5.7, LL 6.6 + 1, LL128 14 + 2.5.
            assert_eq!(ring, [14.099999, 7.6, 16.5], "{version}");
        }
        assert_eq!(of("2.28.9").channel_traffic_min, 16 << 10);
        assert_eq!(of("2.29.7").channel_traffic_min, 32 << 10);
    }

    #[test]
    fn generations_are_those_of_the_version() {
        let of_120 = |version: &str| of(version).generation_of(120, 120);
        assert_eq!(of_120("2.21.5"), Generation::Hopper);
        assert_eq!(of_120("2.30.7"), Generation::Blackwell);
        assert_eq!(of("2.12.12").generation_of(86, 86), Generation::Volta);
        assert_eq!(of("2.12.12").generation_of(80, 80), Generation::Ampere);
        assert_eq!(of("2.27.7").generation_of(86, 90), Generation::Ampere);
    }
}
