//! What NCCL believes of links before it measures any: fixed rates by kind of link and by version,
//! the speeds that its search tries, and how it tells CPUs and switches apart. Read from
//! `calibration/nccl-topology.json`.

mod file;

use self::file::{Capabilities, CpuModel, File, TrialSpeeds};
use super::Version;
use crate::error::{Error, Result, embedded};
use crate::topology::Confidence;

pub use self::file::{Budget, CpuNames, Figure};

/// Where the figures stand.
const FILE: &str = "calibration/nccl-topology.json";

/// NCCL's beliefs in one version.
#[derive(Clone, Debug, PartialEq)]
pub struct Beliefs {
    version: Version,
    file: File,
    /// Mask, upper and lower id of switches with two levels.
    two_level: Vec<[u64; 3]>,
}

fn hexadecimal(text: &str) -> Result<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| Error::damaged(FILE, format!("`{text}` is no id")))
}

/// Drops the entries that a version does not have yet.
fn keep_known<T>(entries: &mut Vec<T>, since: fn(&T) -> &str, version: Version) -> Result<()> {
    for entry in &*entries {
        Version::parse(since(entry))?;
    }
    entries.retain(|entry| Version::parse(since(entry)).is_ok_and(|first| first <= version));
    Ok(())
}

impl Beliefs {
    /// Those of a version.
    ///
    /// # Errors
    /// [`Error::Read`] when the embedded file is damaged, which a test excludes.
    pub fn of(version: Version) -> Result<Beliefs> {
        let text = include_str!("../../../../calibration/nccl-topology.json");
        let mut file: File = embedded(FILE, text)?;
        keep_known(&mut file.nvlink, |entry| &entry.since, version)?;
        keep_known(&mut file.inter_cpu, |entry| &entry.since, version)?;
        keep_known(&mut file.trial_speeds, |entry| &entry.since, version)?;
        let two_level = file
            .two_level_switches
            .iter()
            .map(|entry| {
                Ok([
                    hexadecimal(&entry.mask)?,
                    hexadecimal(&entry.top)?,
                    hexadecimal(&entry.below)?,
                ])
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Beliefs { version, file, two_level })
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Rate inside a device and between joined switches, GB/s.
    pub fn same_device(&self) -> f32 {
        self.file.same_device.value as f32
    }

    /// Rate of a NIC that states none, GB/s.
    pub fn network_default(&self) -> f32 {
        self.file.network_default.value as f32
    }

    /// What a byte from GPU to GPU through an Intel root complex counts on PCIe.
    pub fn intel_peer_overhead(&self) -> f64 {
        self.file.intel_peer_overhead.value
    }

    /// Speed of the order of ranks that stands in when the search fails, GB/s.
    pub fn fallback_speed(&self) -> f32 {
        self.file.fallback_speed.value as f32
    }

    /// Rate of one NVLink of a GPU, GB/s, by its compute capability as NCCL numbers it.
    pub fn nvlink(&self, compute_capability: u32) -> f32 {
        let holds = |range: Capabilities| (range.from..=range.to).contains(&compute_capability);
        let found = self.file.nvlink.iter().find(|entry| holds(entry.compute_capability));
        // GPUs that no entry knows count as Ampere, `graph/topo.h`.
        let ampere = || self.file.nvlink.iter().find(|entry| entry.compute_capability.from == 80);
        found.or_else(ampere).map_or(0.0, |entry| entry.value as f32)
    }

    /// Rate of one direction of a PCIe link, GB/s; lanes of unknown speed count as Gen3 and no
    /// lanes as 16.
    pub fn pcie(&self, gt_per_s: Option<f64>, width: u32) -> f32 {
        let lanes = if width == 0 { 16 } else { width };
        let known = |speed: f64| self.file.pcie_lane.iter().find(|entry| entry.gt_per_s == speed);
        let lane = gt_per_s.and_then(known).map(|entry| entry.value);
        // Units of 100 Mb/s: 80 of them are 1 GB/s.
        (f64::from(lanes) * lane.unwrap_or(self.file.pcie_lane_unknown.value) / 80.0) as f32
    }

    /// The class of a CPU by what it says of itself; the architecture when it is not x86, empty
    /// when nothing is known.
    pub fn cpu_class(&self, cpu: &CpuNames) -> &str {
        if cpu.arch != "x86_64" {
            let known = self.file.inter_cpu.iter().find(|entry| entry.cpu == cpu.arch);
            return known.map_or("", |entry| &entry.cpu);
        }
        let is = |model: &&CpuModel| {
            model.vendor == cpu.vendor
                && model.family.is_none_or(|family| family == cpu.family)
                && model.model_from <= cpu.model
        };
        self.file.cpu_models.iter().find(is).map_or("", |model| &model.name)
    }

    /// Rate of one direction between two CPUs of a kind, GB/s: no limit for kinds that this version
    /// knows none for.
    pub fn inter_cpu(&self, cpu: &CpuNames) -> f32 {
        let class = self.cpu_class(cpu);
        let rate = |name: &str| self.file.inter_cpu.iter().find(|entry| entry.cpu == name);
        // Before a version knew an Intel generation it took it for an older one.
        let mut older = ["intel-emerald-rapids", "intel-sapphire-rapids", "intel-skylake"]
            .into_iter()
            .skip_while(|name| *name != class);
        rate(class)
            .or_else(|| older.find_map(rate))
            .map_or(self.same_device(), |entry| entry.value as f32)
    }

    fn speeds(&self, compute_capability: u32) -> Option<&TrialSpeeds> {
        let fits = |entry: &&TrialSpeeds| entry.compute_capability_from <= compute_capability;
        self.file.trial_speeds.iter().find(fits)
    }

    /// Speeds tried for channels within a machine, fastest first, GB/s, for the least capable GPU.
    pub fn intra_speeds(&self, compute_capability: u32) -> &[f32] {
        self.speeds(compute_capability).map_or(&[], |speeds| &speeds.intra)
    }

    /// Limits of the search.
    pub fn budget(&self) -> &Budget {
        &self.file.budget
    }

    /// Memory is shared by cuMem handles unless told otherwise.
    pub fn cumem(&self) -> bool {
        Version::parse(&self.file.cumem_since.version).is_ok_and(|since| since <= self.version)
    }

    /// Two switches, one below the other, are one chip that shows itself as two levels. Ids are
    /// vendor, device, subsystem vendor and subsystem device, 16 bits each.
    pub fn one_switch(&self, top: u64, below: u64) -> bool {
        self.two_level
            .iter()
            .any(|[mask, upper, lower]| top & mask == *upper && below & mask == *lower)
    }

    /// What a socket model of a topology says of itself.
    pub fn socket(&self, model: &str) -> Option<&CpuNames> {
        self.file.sockets.get(model)
    }

    /// PCI ids of a switch model of a topology: vendor, device, subsystem vendor and device, 16
    /// bits each; 0 when unknown.
    pub fn switch_ids(&self, model: &str) -> u64 {
        let Some(ids) = self.file.switches.get(model) else { return 0 };
        [&ids.vendor, &ids.device, &ids.subsystem_vendor, &ids.subsystem_device]
            .into_iter()
            .fold(0, |all, part| all << 16 | hexadecimal(part).unwrap_or(0))
    }

    /// Unit, source and confidence of every figure, by what it is.
    pub fn sources(&self) -> Vec<(String, &str, &str, Confidence)> {
        let file = &self.file;
        let budget = &file.budget;
        let mut all = Vec::new();
        let figures = [
            ("same device", &file.same_device),
            ("network without a speed", &file.network_default),
            ("peer traffic through Intel CPUs", &file.intel_peer_overhead),
            ("speed of the simple order", &file.fallback_speed),
            ("PCIe lane of unknown speed", &file.pcie_lane_unknown),
            ("steps with like channels", &budget.same_channels),
            ("steps of an attempt", &budget.attempt),
            ("steps of a search", &budget.all),
            ("channels of a ring search", &budget.ring_channels),
            ("heads of an NVLS search", &budget.nvls_heads),
            ("slowest trial", &budget.ratio),
            ("channels split", &budget.duplicate_from),
            ("many channels split", &budget.duplicate_many_from),
        ];
        for (what, figure) in figures {
            all.push((what.to_owned(), &*figure.unit, &*figure.source, figure.confidence));
        }
        for entry in &file.nvlink {
            let what = format!("NVLink of compute capability {}", entry.compute_capability.from);
            all.push((what, &entry.unit, &entry.source, entry.confidence));
        }
        for entry in &file.pcie_lane {
            let what = format!("PCIe lane at {} GT/s", entry.gt_per_s);
            all.push((what, &entry.unit, &entry.source, entry.confidence));
        }
        for entry in &file.inter_cpu {
            all.push((
                format!("between CPUs: {}", entry.cpu),
                &entry.unit,
                &entry.source,
                entry.confidence,
            ));
        }
        for entry in &file.trial_speeds {
            let what = format!("trial speeds from {}", entry.compute_capability_from);
            all.push((what, &entry.unit, &entry.source, entry.confidence));
        }
        for entry in &file.two_level_switches {
            all.push((
                format!("one switch: {}", entry.name),
                "1",
                &entry.source,
                Confidence::Specified,
            ));
        }
        let cumem = &file.cumem_since;
        all.push(("cuMem handles".to_owned(), "1", &cumem.source, cumem.confidence));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Calibration, DeviceClass};

    fn beliefs(version: &str) -> Beliefs {
        Beliefs::of(Version::parse(version).expect("a version")).expect("embedded")
    }

    fn cpu(vendor: &str, family: u32, model: u32) -> CpuNames {
        CpuNames { arch: "x86_64".into(), vendor: vendor.into(), family, model }
    }

    #[test]
    fn figures_are_plausible_and_sourced() {
        let beliefs = beliefs("2.30.7");
        for (what, unit, source, _) in beliefs.sources() {
            assert!(!source.is_empty(), "{what}");
            assert!(matches!(unit, "GB/s" | "100 Mb/s" | "1"), "{what}: {unit}");
        }
        for speeds in &beliefs.file.trial_speeds {
            for list in [&speeds.intra, &speeds.inter] {
                assert!(list.windows(2).all(|pair| pair[0] > pair[1]), "{list:?}");
            }
        }
    }

    #[test]
    fn rates_are_nccls() {
        let beliefs = beliefs("2.30.7");
        let nvlink =
            [60, 70, 80, 86, 89, 90, 100, 120].map(|capability| beliefs.nvlink(capability));
        assert_eq!(nvlink, [18.0, 20.0, 20.0, 12.0, 20.0, 20.6, 40.1, 40.1]);
        // 16 lanes x 240 x 100 Mb/s / 8 = 48 GB/s; no speed: 16 x 60 / 80 = 12.
        assert_eq!([beliefs.pcie(Some(32.0), 16), beliefs.pcie(None, 0)], [48.0, 12.0]);
        let between = [("GenuineIntel", 79), ("GenuineIntel", 85), ("GenuineIntel", 143)]
            .map(|(vendor, model)| beliefs.inter_cpu(&cpu(vendor, 6, model)));
        assert_eq!(between, [6.0, 10.0, 22.0]);
        assert_eq!(beliefs.inter_cpu(&cpu("GenuineIntel", 6, 207)), 40.0);
        let arm = CpuNames { arch: "arm64".into(), ..cpu("", 0, 0) };
        assert_eq!(beliefs.inter_cpu(&arm), 6.0);
    }

    #[test]
    fn figures_change_with_the_version() {
        let amd = cpu("AuthenticAMD", 191, 2);
        let of = |version| beliefs(version).inter_cpu(&amd);
        assert_eq!([of("2.18.3"), of("2.19.3"), of("2.30.7")], [5000.0, 16.0, 16.0]);
        let slowest = |version| *beliefs(version).intra_speeds(120).last().expect("speeds");
        let all = [slowest("2.24.3"), slowest("2.26.2"), slowest("2.27.3"), slowest("2.30.7")];
        assert_eq!(all, [3.0, 19.0, 18.0, 18.0]);
        // Before a version knew the model it took it for Skylake.
        assert_eq!(beliefs("2.18.3").inter_cpu(&cpu("GenuineIntel", 6, 143)), 10.0);
        let old = beliefs("2.12.12");
        assert_eq!([old.nvlink(70), old.nvlink(80), old.nvlink(86)], [22.0, 22.0, 12.0]);
        assert_eq!(old.intra_speeds(86)[0], 44.0);
        assert_eq!(old.inter_cpu(&cpu("GenuineIntel", 6, 106)), 9.0);
        assert_eq!([beliefs("2.18.3").cumem(), beliefs("2.27.3").cumem()], [false, true]);
    }

    #[test]
    fn every_socket_model_says_what_it_is() {
        let beliefs = beliefs("2.30.7");
        let calibration = Calibration::embedded().expect("embedded");
        for model in calibration.names(DeviceClass::Socket) {
            let cpu = beliefs.socket(model).unwrap_or_else(|| panic!("{model}"));
            assert!(!beliefs.cpu_class(cpu).is_empty(), "{model}");
        }
    }

    #[test]
    fn two_levels_of_one_chip_are_one() {
        let beliefs = beliefs("2.30.7");
        assert!(beliefs.one_switch(0x1000_c030_1000_0001, 0x1000_c030_1000_100b));
        assert!(!beliefs.one_switch(0x1000_c030_1000_100b, 0x1000_c030_1000_100b));
        assert_eq!(beliefs.switch_ids("pex890xx"), 0x1000_c030_1000_100b);
    }
}
