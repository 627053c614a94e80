//! A topology as NCCL's own detection would list it.

use super::beliefs::{Beliefs, CpuNames};
use super::inventory::{
    CLASS_BRIDGE, CLASS_GPU, CLASS_NIC, CLASS_NVSWITCH, Cpu, Function, Gpu, Inventory, Net,
    NvLinks, Pci,
};
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::selection::gpu::Capability;
use crate::topology::checks::settings::numa_fault;
use crate::topology::{LinkKind, NodeId, NodeKind, QUADRANTS, Topology};

/// What a topology does not say and detection would find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detection {
    /// NUMA nodes of a socket: 1, 2 or 4 (the setting NPS of AMD's firmware, SNC of Intel's).
    pub numa_per_socket: u32,
    /// The switch vendor's driver tells NCCL which virtual switches share a chip.
    pub joined_switches: bool,
    /// GPUs of the ranks, by their index in the topology; empty for all in their order.
    pub gpus: Vec<usize>,
}

impl Default for Detection {
    fn default() -> Detection {
        Detection { numa_per_socket: 1, joined_switches: false, gpus: Vec::new() }
    }
}

impl Detection {
    /// Of ranks on these GPUs, in their order.
    pub fn of(gpus: &[u32]) -> Detection {
        let gpus = gpus.iter().map(|&gpu| gpu as usize).collect();
        Detection { gpus, ..Detection::default() }
    }
}

/// Bus id of the NVSwitches, which NCCL takes as one.
const NVSWITCH_BUS: &str = "0000:fe:00.0";

/// NUMA nodes of a socket: those that the machine's file states, else what is told beside it.
fn numa_per_socket(topology: &Topology, detection: &Detection) -> u32 {
    topology.settings.numa_per_socket.map_or(detection.numa_per_socket, u32::from)
}

/// Lists a topology.
///
/// # Errors
/// [`Error::Request`] when a GPU or socket model is unknown, a GPU has no PCIe link, or the NUMA
/// nodes of a socket are not 1, 2 or 4.
pub fn survey(
    topology: &Topology,
    calibration: &Calibration,
    beliefs: &Beliefs,
    detection: &Detection,
) -> Result<Inventory> {
    let numa_per_socket = numa_per_socket(topology, detection);
    if let Some(fault) = numa_fault(numa_per_socket.into()) {
        return Err(Error::request(fault, ""));
    }
    let mut survey = Survey {
        topology,
        calibration,
        beliefs,
        detection,
        seen: vec![false; topology.nodes.len()],
        gpus: topology.gpus(),
        nics: topology.ids_where(|kind| matches!(kind, NodeKind::Nic(_))),
        assumed: Vec::new(),
    };
    let mut cpus = Vec::new();
    for (number, socket) in topology.sockets().into_iter().enumerate() {
        cpus.extend(survey.socket(number as u32, socket)?);
    }
    if let Some(&lost) = survey.gpus.iter().find(|gpu| !survey.seen[gpu.index()]) {
        return Err(Error::request(
            format!(
                "{} has no PCIe link to a socket, so NCCL would not find it",
                topology.id(lost)
            ),
            "add its PCIe link",
        ));
    }
    let assumed = survey.assumed;
    let mut inventory = Inventory { name: Some(topology.name.clone()), cpus, assumed };
    number_buses(&mut inventory, topology, detection);
    Ok(inventory)
}

struct Survey<'a> {
    topology: &'a Topology,
    calibration: &'a Calibration,
    beliefs: &'a Beliefs,
    detection: &'a Detection,
    seen: Vec<bool>,
    gpus: Vec<NodeId>,
    nics: Vec<NodeId>,
    assumed: Vec<String>,
}

impl Survey<'_> {
    /// The NUMA nodes of a socket.
    fn socket(&mut self, number: u32, socket: NodeId) -> Result<Vec<Cpu>> {
        let names = self.names(socket)?;
        let per_socket = numa_per_socket(self.topology, self.detection);
        let mut cpus: Vec<Cpu> = (0..per_socket)
            .map(|part| Cpu {
                host_hash: None,
                numa: i64::from(number * per_socket + part),
                affinity: String::new(),
                names: names.clone(),
                devices: Vec::new(),
                networks: Vec::new(),
            })
            .collect();
        self.seen[socket.index()] = true;
        let mut roots = vec![(socket, 0)];
        for id in (0..self.topology.nodes.len() as u32).map(NodeId) {
            if let NodeKind::HostBridge(bridge) = self.topology.kind(id)
                && self.topology.find(&bridge.socket) == Some(socket)
            {
                self.seen[id.index()] = true;
                let part = u32::from(bridge.quadrant) * per_socket / u32::from(QUADRANTS);
                roots.push((id, part.min(per_socket - 1)));
            }
        }
        for (root, part) in roots {
            let devices = self.below(root)?;
            cpus[part as usize].devices.extend(devices);
        }
        Ok(cpus)
    }

    fn names(&mut self, socket: NodeId) -> Result<CpuNames> {
        let NodeKind::Socket(kind) = self.topology.kind(socket) else {
            return Err(Error::request("a socket is none", "report this"));
        };
        self.beliefs.socket(&kind.model).cloned().ok_or_else(|| {
            Error::request(
                format!("NCCL's view of the CPU model `{}` is not known", kind.model),
                "add it under `sockets` in calibration/nccl-topology.json",
            )
        })
    }

    /// Devices whose PCIe link goes up to a node.
    fn below(&mut self, parent: NodeId) -> Result<Vec<Pci>> {
        let mut devices = Vec::new();
        for at in 0..self.topology.links.len() {
            let link = &self.topology.links[at];
            let LinkKind::Pcie(pcie) = link.kind else { continue };
            let node = match (link.a == parent, link.b == parent) {
                (true, _) => link.b,
                (_, true) => link.a,
                _ => continue,
            };
            if self.seen[node.index()] {
                continue;
            }
            self.seen[node.index()] = true;
            let (class, ids, function) = match self.topology.kind(node) {
                NodeKind::PcieSwitch(switch) => {
                    let ids = self.beliefs.switch_ids(&switch.model);
                    let devices = self.below(node)?;
                    (CLASS_BRIDGE, ids, Function::Bridge { devices, peers: Vec::new() })
                }
                NodeKind::Gpu(_) => (CLASS_GPU, 0, Function::Gpu(self.gpu(node)?)),
                NodeKind::Nic(_) => (CLASS_NIC, 0, Function::Nic(vec![self.net(node)])),
                _ => continue,
            };
            let gt_per_s = match pcie.generation {
                1 => 2.5,
                2 => 5.0,
                later => f64::from(1_u32 << later),
            };
            devices.push(Pci {
                // The topology's name stands in until buses are numbered.
                bus_id: self.topology.id(node).to_owned(),
                class,
                ids,
                gt_per_s: Some(gt_per_s),
                width: u32::from(pcie.width),
                function,
            });
        }
        Ok(devices)
    }

    fn gpu(&self, node: NodeId) -> Result<Gpu> {
        let number = self.gpus.iter().position(|&gpu| gpu == node).unwrap_or(0);
        let NodeKind::Gpu(kind) = self.topology.kind(node) else {
            return Err(Error::request("a GPU is none", "report this"));
        };
        let ranks = &self.detection.gpus;
        let place = ranks.iter().position(|&gpu| gpu == number);
        let rank = if ranks.is_empty() { Some(number) } else { place };
        Ok(Gpu {
            dev: number as u32,
            compute_capability: Some(Capability::of(self.calibration, &kind.model)?.number()),
            rank: rank.map(|rank| rank as u32),
            gdr: true,
            nvlinks: self.nvlinks(node),
            c2c: None,
        })
    }

    fn nvlinks(&self, node: NodeId) -> Vec<NvLinks> {
        let mut found = Vec::new();
        for link in &self.topology.links {
            let LinkKind::Nvlink(bond) = link.kind else { continue };
            let other = match (link.a == node, link.b == node) {
                (true, _) => link.b,
                (_, true) => link.a,
                _ => continue,
            };
            let switch = matches!(self.topology.kind(other), NodeKind::NvSwitch(_));
            found.push(NvLinks {
                target: if switch { NVSWITCH_BUS } else { self.topology.id(other) }.to_owned(),
                count: u32::from(bond.links),
                target_class: if switch { CLASS_NVSWITCH } else { CLASS_GPU },
            });
        }
        found
    }

    fn net(&self, node: NodeId) -> Net {
        let number = self.nics.iter().position(|&nic| nic == node).unwrap_or(0) as u32;
        let rate = self.topology.links.iter().find_map(|link| match link.kind {
            LinkKind::Network(network) if link.a == node || link.b == node => {
                Some(network.gbit_per_s)
            }
            _ => None,
        });
        Net {
            name: self.topology.id(node).to_owned(),
            dev: Some(number),
            speed: rate.map_or(0, |gbit| (gbit * 1000.0) as u64),
            port: 1,
            guid: format!("{:#x}", number + 1),
            maxconn: 1 << 16,
            gdr: true,
            ..Net::default()
        }
    }
}

/// Gives devices bus ids in the place of their names, in the order of the lowest GPU below each, as
/// GPUs are numbered by bus id.
fn number_buses(inventory: &mut Inventory, topology: &Topology, detection: &Detection) {
    let mut names: Vec<(String, String)> = Vec::new();
    let mut next = 1;
    for cpu in &mut inventory.cpus {
        number_below(&mut cpu.devices, &mut next, &mut names);
    }
    let id_of = |name: &str| names.iter().find(|entry| entry.0 == name).map(|entry| &entry.1);
    let chip_of = |name: &str| match topology.find(name).map(|id| topology.kind(id)) {
        Some(NodeKind::PcieSwitch(switch)) => switch.chip.as_deref(),
        _ => None,
    };
    let peers_of = |id: &str| -> Vec<String> {
        let own = names.iter().find(|entry| entry.1 == id).map(|entry| entry.0.as_str());
        let Some(chip) = own.and_then(chip_of) else { return Vec::new() };
        let same = |entry: &&(String, String)| entry.1 != id && chip_of(&entry.0) == Some(chip);
        names.iter().filter(same).map(|entry| entry.1.clone()).collect()
    };
    let mut finish = |device: &mut Pci| match &mut device.function {
        Function::Gpu(gpu) => {
            for links in &mut gpu.nvlinks {
                if let Some(id) = id_of(&links.target) {
                    links.target.clone_from(id);
                }
            }
        }
        Function::Bridge { peers, .. } if detection.joined_switches => {
            *peers = peers_of(&device.bus_id);
        }
        _ => {}
    };
    for device in inventory.cpus.iter_mut().flat_map(|cpu| &mut cpu.devices) {
        device.walk_mut(&mut finish);
    }
}

fn number_below(devices: &mut [Pci], next: &mut u32, names: &mut Vec<(String, String)>) {
    devices.sort_by_key(first_gpu);
    for device in devices {
        let id = format!("{:04x}:{:02x}:00.0", *next >> 8, *next & 0xff);
        *next += 1;
        names.push((std::mem::replace(&mut device.bus_id, id.clone()), id));
        if let Function::Bridge { devices, .. } = &mut device.function {
            number_below(devices, next, names);
        }
    }
}

/// Number of the first GPU at or below a device; the last for those without.
fn first_gpu(device: &Pci) -> u32 {
    match &device.function {
        Function::Gpu(gpu) => gpu.dev,
        Function::Bridge { devices, .. } => devices.iter().map(first_gpu).min().unwrap_or(u32::MAX),
        _ => u32::MAX,
    }
}
