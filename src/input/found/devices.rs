//! Names and PCI ids that machines print -> devices of the calibration
//! (`calibration/detection.json`).

use serde::Deserialize;

use super::{CpuName, Function};
use crate::error::{self, Result};
use crate::topology::LinkKind;

/// The table.
#[derive(Clone, Debug, Deserialize)]
pub struct Devices {
    /// GPUs; where several match, the longest name wins.
    pub gpus: Vec<GpuEntry>,
    /// PCIe switches.
    pub switches: Vec<SwitchEntry>,
    /// CPU sockets.
    pub sockets: Vec<SocketEntry>,
    /// What is taken where nothing is said.
    pub unsaid: Unsaid,
}

/// A GPU.
#[derive(Clone, Debug, Deserialize)]
pub struct GpuEntry {
    /// Device of the calibration.
    pub model: String,
    /// Parts of product names.
    names: Vec<String>,
    /// PCI device ids of NVIDIA, hexadecimal.
    ids: Vec<String>,
    /// Generation of its PCIe link at most.
    pub pcie: u8,
    /// Compute capability as NCCL numbers it.
    pub capability: u32,
    /// Generation of its NVLinks; 0 without any.
    #[serde(default)]
    pub nvlink: u8,
    /// NVLinks it has.
    #[serde(default)]
    pub nvlinks: u32,
    /// The real product, which the calibration does not have.
    #[serde(default)]
    pub stands_in_for: Option<String>,
}

/// A PCIe switch.
#[derive(Clone, Debug, Deserialize)]
pub struct SwitchEntry {
    /// Device of the calibration.
    pub model: String,
    names: Vec<String>,
    /// `vendor:device`, hexadecimal.
    ids: Vec<String>,
    /// The real product, which the calibration does not have.
    #[serde(default)]
    pub stands_in_for: Option<String>,
}

/// A CPU socket.
#[derive(Clone, Debug, Deserialize)]
pub struct SocketEntry {
    /// Device of the calibration.
    pub model: String,
    /// Parts of model names; `?` is one digit.
    names: Vec<String>,
    /// CPUID family and its first and last model.
    families: Vec<(u32, u32, u32)>,
    /// What joins two of them, at most.
    pub between_sockets: LinkKind,
    /// The real product, which the calibration does not have.
    #[serde(default)]
    pub stands_in_for: Option<String>,
}

/// What is taken where nothing is said.
#[derive(Clone, Debug, Deserialize)]
pub struct Unsaid {
    /// A GPU.
    pub gpu: String,
    /// A PCIe switch.
    pub switch: String,
    /// A CPU socket.
    pub socket: String,
}

/// PCI vendor of NVIDIA.
pub const NVIDIA: u16 = 0x10de;

impl Devices {
    /// The table that comes with the program.
    ///
    /// # Errors
    /// [`Error::Read`](error::Error::Read) when the file is damaged, which a test excludes.
    pub fn embedded() -> Result<Devices> {
        let text = include_str!("../../../calibration/detection.json");
        error::embedded("calibration/detection.json", text)
    }

    /// The GPU of a function.
    pub fn gpu(&self, function: &Function) -> Option<&GpuEntry> {
        let by_id = function.ids.filter(|ids| ids.0 == NVIDIA).and_then(|(_, device)| {
            let id = format!("{device:04x}");
            self.gpus.iter().find(|entry| entry.ids.contains(&id))
        });
        by_id.or_else(|| self.gpu_named(&function.title)).or_else(|| {
            let capability = function.capability?;
            self.gpus.iter().rev().find(|e| e.capability == capability && e.stands_in_for.is_none())
        })
    }

    /// The GPU of a product name.
    pub fn gpu_named(&self, title: &str) -> Option<&GpuEntry> {
        let longest = |entry: &GpuEntry| {
            entry.names.iter().filter(|name| title.contains(*name)).map(String::len).max()
        };
        self.gpus
            .iter()
            .filter_map(|entry| Some((longest(entry)?, entry)))
            .max_by_key(|e| e.0)
            .map(|e| e.1)
    }

    /// The GPU of this model that is no stand-in.
    pub fn gpu_of_model(&self, model: &str) -> Option<&GpuEntry> {
        self.gpus.iter().find(|entry| entry.model == model && entry.stands_in_for.is_none())
    }

    /// The switch of a function.
    pub fn switch(&self, function: &Function) -> Option<&SwitchEntry> {
        let by_id = function.ids.and_then(|(vendor, device)| {
            let id = format!("{vendor:04x}:{device:04x}");
            self.switches.iter().find(|entry| entry.ids.contains(&id))
        });
        let named = |entry: &&SwitchEntry| entry.names.iter().any(|n| function.title.contains(n));
        by_id.or_else(|| self.switches.iter().find(named))
    }

    /// The socket of a CPU.
    pub fn socket(&self, cpu: &CpuName) -> Option<&SocketEntry> {
        let vendor = |entry: &SocketEntry| {
            let intel = matches!(entry.between_sockets, LinkKind::Upi(_));
            cpu.vendor.is_empty() || intel == (cpu.vendor == "GenuineIntel")
        };
        let by_family = cpu.family.and_then(|(family, model)| {
            let same = |f: &(u32, u32, u32)| f.0 == family && (f.1..=f.2).contains(&model);
            self.sockets.iter().find(|entry| vendor(entry) && entry.families.iter().any(same))
        });
        by_family.or_else(|| {
            let named = |entry: &&SocketEntry| entry.names.iter().any(|n| holds(&cpu.title, n));
            self.sockets.iter().filter(|entry| vendor(entry)).find(named)
        })
    }

    /// The socket of this model.
    pub fn socket_of_model(&self, model: &str) -> Option<&SocketEntry> {
        self.sockets.iter().find(|entry| entry.model == model && entry.stands_in_for.is_none())
    }
}

/// Whether a text holds a pattern in which `?` is one digit; digits of the pattern do not start
/// within a number.
fn holds(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    if pattern.is_empty() || text.len() < pattern.len() {
        return false;
    }
    (0..=text.len() - pattern.len()).any(|start| {
        let same = |(t, p): (&u8, &u8)| if *p == b'?' { t.is_ascii_digit() } else { t == p };
        let within = pattern[0].is_ascii_digit() && start > 0 && text[start - 1].is_ascii_digit();
        !within && text[start..].iter().zip(pattern).all(same)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Calibration, DeviceClass};

    fn devices() -> Devices {
        Devices::embedded().expect("a table")
    }

    #[test]
    fn every_entry_means_a_device_of_the_calibration() {
        let calibration = Calibration::embedded().expect("embedded");
        let devices = devices();
        let known = |class, model: &String| {
            assert!(calibration.names(class).contains(&model.as_str()), "{model}");
        };
        devices.gpus.iter().for_each(|entry| known(DeviceClass::Gpu, &entry.model));
        devices.switches.iter().for_each(|entry| known(DeviceClass::Switch, &entry.model));
        devices.sockets.iter().for_each(|entry| known(DeviceClass::Socket, &entry.model));
        assert!(devices.gpu_of_model(&devices.unsaid.gpu).is_some());
        assert!(devices.socket_of_model(&devices.unsaid.socket).is_some());
        assert!(devices.sockets.iter().all(|entry| entry.between_sockets.fault().is_none()));
    }

    #[test]
    fn product_names_of_gpus() {
        let devices = devices();
        let model = |title: &str| devices.gpu_named(title).map(|entry| entry.model.as_str());
        assert_eq!(model("NVIDIA H100 80GB HBM3"), Some("h100-sxm"));
        assert_eq!(model("NVIDIA H100 PCIe"), Some("h100-pcie"));
        assert_eq!(model("NVIDIA A100-SXM4-80GB"), Some("a100-sxm"));
        assert_eq!(model("NVIDIA RTX PRO 6000 Blackwell Server Edition"), Some("rtx-pro-6000"));
        assert_eq!(model("NVIDIA RTX 6000 Ada Generation"), Some("rtx-6000-ada"));
        assert_eq!(model("Matrox G200eW3"), None);
        assert_eq!(
            devices.gpu_named("NVIDIA L40S").and_then(|e| e.stands_in_for.clone()).as_deref(),
            Some("L40")
        );
    }

    #[test]
    fn model_names_of_cpus() {
        let devices = devices();
        let model = |title: &str| {
            let cpu = CpuName { title: title.to_owned(), ..CpuName::default() };
            devices.socket(&cpu).map(|entry| entry.model.clone())
        };
        let is = |title: &str, wanted: &str| {
            assert_eq!(model(title).as_deref(), Some(wanted), "{title}")
        };
        is("AMD EPYC 9575F 64-Core Processor", "epyc-turin");
        is("AMD EPYC 9374F 32-Core Processor", "epyc-genoa");
        is("AMD EPYC 7742 64-Core Processor", "epyc-rome");
        is("AMD EPYC 7V12 64-Core Processor", "epyc-rome");
        is("AMD Ryzen Threadripper PRO 7955WX 16-Cores", "threadripper-pro-7000");
        is("Intel(R) Xeon(R) Platinum 8480+", "xeon-sapphire-rapids");
        is("INTEL(R) XEON(R) PLATINUM 8558", "xeon-emerald-rapids");
        is("Intel(R) Xeon(R) Gold 6240R CPU @ 2.40GHz", "xeon-skylake");
        is("Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz", "xeon-broadwell");
        assert_eq!(model("VIA Nano"), None);
    }
}
