//! NCCL's system file: `NCCL_TOPO_DUMP_FILE`, and those that clouds give for `NCCL_TOPO_FILE`.

use super::Format;
use crate::error::Result;
use crate::input::found::{
    Address, CpuName, FarEnd, Found, Function, GpuName, Kind, LinkFact, Numa, NvLinks, Parent, Tree,
};
use crate::input::nccl_xml::read_system;
use crate::input::xml::starts_with;
use crate::selection::nccl::inventory::{self, CLASS_CPU_BRIDGE, Cpu, Pci};

/// The format.
pub(super) const FORMAT: Format = Format {
    name: "nccl-topo",
    title: "NCCL system file",
    sniff: |text| starts_with(text, "system"),
    read,
};

fn read(file: &str, text: &str) -> Result<Found> {
    let inventory = read_system(file, text)?;
    let mut reader = Reader { found: Found::from_source(file, FORMAT.title), invented: 0 };
    reader.found.tree = Tree::Switches;
    for cpu in &inventory.cpus {
        reader.cpu(cpu);
    }
    for what in inventory.assumed {
        reader.found.remark(what, "as NCCL would; the real machine may differ");
    }
    reader.found.remark(
        "the file does not say which root ports share a host bridge: each device below a CPU has its own",
        "paths of one NUMA node are called NODE where nvidia-smi may say PHB; 0.1 us at most",
    );
    Ok(reader.found.trimmed())
}

struct Reader {
    found: Found,
    /// Devices whose bus id could not be read.
    invented: u8,
}

impl Reader {
    fn cpu(&mut self, cpu: &Cpu) {
        let number = u32::try_from(cpu.numa).unwrap_or(0);
        if cpu.numa < 0 {
            self.found.remark(
                format!(
                    "numaid {} stands where the kernel knows no NUMA node: taken as 0",
                    cpu.numa
                ),
                "a second socket would be missed",
            );
        }
        let family = (cpu.names.family, cpu.names.model);
        let name = CpuName {
            title: String::new(),
            vendor: cpu.names.vendor.clone(),
            family: Some(family).filter(|f| f.0 > 0),
        };
        if !self.found.numa.iter().any(|numa| numa.number == number) {
            self.found.numa.push(Numa { number, package: None, cpu: Some(name) });
        }
        for device in &cpu.devices {
            self.device(device, Parent::Numa(number), number);
        }
    }

    fn device(&mut self, device: &Pci, parent: Parent, numa: u32) {
        let kind = match &device.function {
            inventory::Function::Bridge { .. } => Kind::Switch,
            inventory::Function::Gpu(_) => Kind::Gpu,
            inventory::Function::Nic(_) => Kind::Nic,
            inventory::Function::Other => return,
        };
        let address = Address::parse(&device.bus_id).unwrap_or_else(|| {
            self.invented = self.invented.wrapping_add(1);
            Address { domain: u32::MAX, bus: self.invented, device: 0, function: 0 }
        });
        let mut function = Function::new(address, parent, kind);
        let ids = ((device.ids >> 48) as u16, (device.ids >> 32) as u16);
        function.ids = Some(ids).filter(|ids| !matches!(ids.0, 0 | 0xffff));
        function.numa = Some(numa);
        let width = Some(device.width).filter(|width| *width > 0);
        function.trained = LinkFact::new(device.gt_per_s, width);
        let at = self.found.functions.len();
        match &device.function {
            inventory::Function::Gpu(gpu) => {
                function.number = gpu.rank.map(|_| gpu.dev);
                function.capability = gpu.compute_capability;
                self.nvlinks(address, gpu);
                self.found.functions.push(function);
            }
            inventory::Function::Bridge { devices, peers } => {
                function.peers = peers.iter().filter_map(|peer| Address::parse(peer)).collect();
                self.found.functions.push(function);
                for below in devices {
                    self.device(below, Parent::Below(at), numa);
                }
            }
            _ => self.found.functions.push(function),
        }
    }

    fn nvlinks(&mut self, address: Address, gpu: &inventory::Gpu) {
        for links in &gpu.nvlinks {
            let to = match (links.target_class, Address::parse(&links.target)) {
                (CLASS_CPU_BRIDGE, _) => {
                    let effect = "copies between host and GPU are slower here than on the machine";
                    self.found.remark("NVLinks to the CPU are left out", effect);
                    continue;
                }
                (class, Some(place)) if class >> 16 == 0x03 => FarEnd::Gpu(GpuName::At(place)),
                _ => FarEnd::Switch,
            };
            self.found.nvlinks.push(NvLinks { gpu: GpuName::At(address), to, count: links.count });
        }
        if gpu.c2c.is_some() {
            let effect = "copies between host and GPU are slower here than on the machine";
            self.found.remark("chip-to-chip links to the CPU are left out", effect);
        }
    }
}
