//! A machine as NCCL's system file lists it: NUMA nodes, and below each the tree of PCI devices
//! with the GPUs, their NVLinks, and the NICs.

use super::beliefs::CpuNames;

/// All NUMA nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inventory {
    /// A name, when the file gives one.
    pub name: Option<String>,
    /// NUMA nodes in their order.
    pub cpus: Vec<Cpu>,
    /// What was assumed to get here, sentences.
    pub assumed: Vec<String>,
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq)]
pub struct Cpu {
    /// Hash of the host, as written.
    pub host_hash: Option<String>,
    /// Number.
    pub numa: i64,
    /// Mask of its cores, as written.
    pub affinity: String,
    /// What it says of itself.
    pub names: CpuNames,
    /// PCI devices below its root ports.
    pub devices: Vec<Pci>,
    /// Networks that hang below no PCI device.
    pub networks: Vec<Net>,
}

/// A PCI device.
#[derive(Clone, Debug, PartialEq)]
pub struct Pci {
    /// Such as `0000:3b:00.0`.
    pub bus_id: String,
    /// Class, such as 0x060400 of a bridge.
    pub class: u32,
    /// Vendor, device, subsystem vendor, subsystem device, 16 bits each.
    pub ids: u64,
    /// Signalling rate of its link up, GT/s; `None` when not stated.
    pub gt_per_s: Option<f64>,
    /// Lanes of its link up; 0 when not stated.
    pub width: u32,
    /// What it does.
    pub function: Function,
}

/// What a PCI device does.
#[derive(Clone, Debug, PartialEq)]
pub enum Function {
    /// A switch.
    Bridge {
        /// Devices below it.
        devices: Vec<Pci>,
        /// Bus ids of switches that it passes traffic to inside one chip.
        peers: Vec<String>,
    },
    /// A GPU.
    Gpu(Gpu),
    /// A NIC with its ports.
    Nic(Vec<Net>),
    /// Anything else; NCCL leaves it out.
    Other,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// Number, as NVML counts.
    pub dev: u32,
    /// Compute capability as NCCL numbers it: 120 for 12.0.
    pub compute_capability: Option<u32>,
    /// Rank that uses it; NCCL leaves out GPUs without one.
    pub rank: Option<u32>,
    /// NICs may read and write its memory.
    pub gdr: bool,
    /// NVLinks by where they go.
    pub nvlinks: Vec<NvLinks>,
    /// Chip-to-chip links to the CPU: number and rate of each, MB/s.
    pub c2c: Option<(u32, u32)>,
}

/// Equal NVLinks to one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvLinks {
    /// Bus id at the far end.
    pub target: String,
    /// Number.
    pub count: u32,
    /// PCI class at the far end: 0x068000 NVSwitch, 0x068001 CPU, 0x03.... GPU.
    pub target_class: u32,
}

/// A port of a NIC.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Net {
    /// Such as `mlx5_0`.
    pub name: String,
    /// Number; NCCL leaves out ports without one.
    pub dev: Option<u32>,
    /// Rate, Mb/s; 0 when not stated.
    pub speed: u64,
    /// Port number.
    pub port: u32,
    /// Latency that the plug-in states, us.
    pub latency: f64,
    /// Id of the adapter, as written.
    pub guid: String,
    /// Most connections.
    pub maxconn: u32,
    /// May reach GPU memory.
    pub gdr: bool,
}

/// Class of a PCI bridge.
pub const CLASS_BRIDGE: u32 = 0x06_0400;
/// Class of an NVSwitch.
pub const CLASS_NVSWITCH: u32 = 0x06_8000;
/// Class of a bridge between NVLink and CPU.
pub const CLASS_CPU_BRIDGE: u32 = 0x06_8001;
/// Class of a GPU without display.
pub const CLASS_GPU: u32 = 0x03_0200;
/// Class of a network controller.
pub const CLASS_NIC: u32 = 0x02_0700;

impl Pci {
    /// This device and all below it, in the order of the file.
    pub fn walk<'a>(&'a self, found: &mut Vec<&'a Pci>) {
        found.push(self);
        if let Function::Bridge { devices, .. } = &self.function {
            for device in devices {
                device.walk(found);
            }
        }
    }

    /// As [`Pci::walk`], to change.
    pub fn walk_mut(&mut self, visit: &mut dyn FnMut(&mut Pci)) {
        visit(self);
        if let Function::Bridge { devices, .. } = &mut self.function {
            for device in devices {
                device.walk_mut(visit);
            }
        }
    }
}

impl Inventory {
    /// All PCI devices in the order of the file.
    pub fn devices(&self) -> Vec<&Pci> {
        let mut found = Vec::new();
        for device in self.cpus.iter().flat_map(|cpu| &cpu.devices) {
            device.walk(&mut found);
        }
        found
    }

    /// Bus ids and GPUs in the order of the file.
    pub fn gpus(&self) -> Vec<(&str, &Gpu)> {
        self.devices()
            .into_iter()
            .filter_map(|device| match &device.function {
                Function::Gpu(gpu) => Some((device.bus_id.as_str(), gpu)),
                _ => None,
            })
            .collect()
    }

    fn each_gpu(&mut self, mut visit: impl FnMut(&str, &mut Gpu)) {
        for device in self.cpus.iter_mut().flat_map(|cpu| &mut cpu.devices) {
            device.walk_mut(&mut |device| {
                let bus_id = device.bus_id.clone();
                if let Function::Gpu(gpu) = &mut device.function {
                    visit(&bus_id, gpu);
                }
            });
        }
    }

    /// Gives every GPU a rank and a number in the order of bus ids, where the file gives no GPU a
    /// rank, as NCCL's own detection would: files of cloud machines hold PCI devices only.
    pub fn number_gpus(&mut self) {
        let gpus = self.gpus();
        if gpus.is_empty() || gpus.iter().any(|(_, gpu)| gpu.rank.is_some()) {
            return;
        }
        let mut ids: Vec<String> = gpus.iter().map(|(bus_id, _)| (*bus_id).to_owned()).collect();
        ids.sort();
        self.each_gpu(|bus_id, gpu| {
            let number = ids.iter().position(|id| id == bus_id).map(|at| at as u32);
            gpu.rank = number;
            gpu.dev = number.unwrap_or(0);
        });
        self.assumed.push("GPUs are ranked by bus id: the file gives them no rank".into());
    }

    /// States the compute capability of GPUs that the file says nothing of.
    pub fn state_compute_capability(&mut self, number: u32) {
        let mut stated = false;
        self.each_gpu(|_, gpu| {
            stated |= gpu.compute_capability.is_none();
            gpu.compute_capability.get_or_insert(number);
        });
        if stated {
            let what = format!("compute capability {number} for GPUs whose file does not say it");
            self.assumed.push(what);
        }
    }

    /// States the NVLinks of the GPUs by their number `dev`, in place of what the file says.
    pub fn state_nvlinks(&mut self, links: impl Fn(u32) -> Vec<NvLinks>) {
        self.each_gpu(|_, gpu| gpu.nvlinks = links(gpu.dev));
    }

    /// The bus id of a GPU by its number.
    pub fn bus_id_of(&self, dev: u32) -> Option<&str> {
        self.gpus().into_iter().find(|(_, gpu)| gpu.dev == dev).map(|(bus_id, _)| bus_id)
    }

    /// All devices below the first NUMA node: what NCCL then believes has no link between CPUs.
    #[must_use]
    pub fn under_one_cpu(&self) -> Inventory {
        let mut joined = self.clone();
        let rest = joined.cpus.split_off(joined.cpus.len().min(1));
        if let Some(first) = joined.cpus.first_mut() {
            for cpu in rest {
                first.devices.extend(cpu.devices);
                first.networks.extend(cpu.networks);
            }
        }
        joined
    }
}
