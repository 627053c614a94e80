//! The machine as NCCL sees it: GPUs, PCI switches, NUMA nodes, NVSwitches and networks, joined by
//! links with the bandwidth that NCCL believes they have.

use serde::Serialize;

use super::beliefs::Beliefs;
use super::inventory::{CLASS_CPU_BRIDGE, Cpu, Function, Inventory, Net, NvLinks, Pci};
use crate::error::{Error, Result};

/// Index of a node in [`System::nodes`].
pub type Node = usize;
/// Index of a link in [`System::links`].
pub type Link = usize;

/// What a node is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// A GPU.
    Gpu {
        /// Rank that uses it.
        rank: u32,
        /// Number, as NVML counts.
        dev: u32,
        /// Compute capability as NCCL numbers it.
        compute_capability: u32,
        /// NICs may read and write its memory.
        gdr: bool,
    },
    /// A PCI switch.
    Pci,
    /// A NUMA node.
    Cpu {
        /// NCCL's class of the model, such as `amd` or `intel-skylake`.
        class: String,
        /// An Intel x86 CPU: peer traffic through it counts 6/5.
        intel: bool,
        /// An AMD x86 CPU.
        amd: bool,
        /// A Power CPU.
        power: bool,
    },
    /// All NVSwitches together.
    NvSwitch,
    /// A network adapter.
    Nic,
    /// A port of a network adapter.
    Net {
        /// Number.
        dev: u32,
    },
}

/// What a link is, with NCCL's numbers of link and path types.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LinkKind {
    /// Within a chip.
    Loc,
    /// NVLink.
    Nvl,
    /// Chip to chip.
    C2c,
    /// PCIe.
    Pci,
    /// Between NUMA nodes.
    Sys,
    /// To the network.
    Net,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Directed {
    /// Where it starts.
    pub from: Node,
    /// Where it ends.
    pub to: Node,
    /// Kind.
    pub kind: LinkKind,
    /// What NCCL believes, GB/s.
    pub gb_per_s: f32,
}

/// NCCL's view of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct System {
    /// Kind and name of every node; names are bus ids and NUMA numbers.
    pub nodes: Vec<(NodeKind, String)>,
    /// All directions of all links.
    pub links: Vec<Directed>,
    /// Links that leave a node, in the order in which NCCL follows them.
    pub leaving: Vec<Vec<Link>>,
    /// GPUs in PCI order.
    pub gpus: Vec<Node>,
    /// NUMA nodes.
    pub cpus: Vec<Node>,
    /// The NVSwitches.
    pub nvswitch: Option<Node>,
    /// Ports of NICs.
    pub nets: Vec<Node>,
}

impl System {
    /// Builds it. GPUs without a rank are left out.
    ///
    /// # Errors
    /// [`Error::Request`] when a GPU's compute capability is missing, when no GPU has a rank, or
    /// when two have the same one.
    pub fn new(inventory: &Inventory, beliefs: &Beliefs) -> Result<System> {
        let mut system = System::default();
        for cpu in &inventory.cpus {
            system.add_cpu(cpu, beliefs)?;
        }
        system.check_ranks()?;
        system.add_nvlinks(inventory, beliefs);
        system.add_peers(inventory, beliefs);
        system.join_cpus(inventory, beliefs);
        for cpu in system.cpus.clone() {
            system.links_up_last(cpu, None);
        }
        Ok(system)
    }

    fn add_node(&mut self, kind: NodeKind, name: &str) -> Node {
        self.nodes.push((kind, name.to_owned()));
        self.leaving.push(Vec::new());
        self.nodes.len() - 1
    }

    /// Adds one direction; a second link of a kind between two nodes adds to the first. Links of a
    /// node are kept fastest first, as NCCL keeps them.
    fn connect(&mut self, from: Node, to: Node, kind: LinkKind, gb_per_s: f32) {
        let same = |&&link: &&Link| self.links[link].to == to && self.links[link].kind == kind;
        let link = match self.leaving[from].iter().find(same) {
            Some(&link) => link,
            None => {
                self.links.push(Directed { from, to, kind, gb_per_s: 0.0 });
                self.leaving[from].push(self.links.len() - 1);
                self.links.len() - 1
            }
        };
        self.links[link].gb_per_s += gb_per_s;
        let rate = self.links[link].gb_per_s;
        let list = &mut self.leaving[from];
        list.retain(|&other| other != link);
        let slower = |&other: &Link| self.links[other].gb_per_s < rate;
        // Behind all that are as fast: a stable order by rate.
        let place = list.iter().position(slower).unwrap_or(list.len());
        list.insert(place, link);
    }

    fn connect_both(&mut self, a: Node, b: Node, kind: LinkKind, gb_per_s: f32) {
        self.connect(a, b, kind, gb_per_s);
        self.connect(b, a, kind, gb_per_s);
    }

    fn add_cpu(&mut self, cpu: &Cpu, beliefs: &Beliefs) -> Result<()> {
        let x86 = cpu.names.arch == "x86_64";
        let kind = NodeKind::Cpu {
            class: beliefs.cpu_class(&cpu.names).to_owned(),
            intel: x86 && cpu.names.vendor == "GenuineIntel",
            amd: x86 && cpu.names.vendor == "AuthenticAMD",
            power: cpu.names.arch == "ppc64",
        };
        let node = self.add_node(kind, &cpu.numa.to_string());
        self.cpus.push(node);
        for device in &cpu.devices {
            self.add_device(device, node, None, beliefs)?;
        }
        if cpu.networks.iter().any(|net| net.dev.is_some()) {
            let nic = self.add_node(NodeKind::Nic, &format!("{} nic", cpu.numa));
            self.connect_both(node, nic, LinkKind::Pci, beliefs.same_device());
            self.add_nets(nic, &cpu.networks, beliefs);
        }
        Ok(())
    }

    fn add_nets(&mut self, nic: Node, nets: &[Net], beliefs: &Beliefs) {
        for net in nets {
            let Some(dev) = net.dev else { continue };
            let node = self.add_node(NodeKind::Net { dev }, &net.name);
            self.nets.push(node);
            // Mb/s to GB/s.
            let stated = net.speed as f32 / 8000.0;
            let rate = if net.speed == 0 { beliefs.network_default() } else { stated };
            self.connect_both(nic, node, LinkKind::Net, rate);
        }
    }

    /// Adds a device and what is below it. `above` is the id of the switch just above, for chips
    /// that show themselves as two levels.
    fn add_device(
        &mut self,
        device: &Pci,
        parent: Node,
        above: Option<u64>,
        beliefs: &Beliefs,
    ) -> Result<()> {
        let rate = beliefs.pcie(device.gt_per_s, device.width);
        match &device.function {
            Function::Bridge { devices, .. } => {
                let merged = above.is_some_and(|top| beliefs.one_switch(top, device.ids));
                let node = if merged {
                    parent
                } else {
                    let node = self.add_node(NodeKind::Pci, &device.bus_id);
                    self.connect_both(node, parent, LinkKind::Pci, rate);
                    node
                };
                // What was merged once is not merged again.
                let ids = if merged { None } else { Some(device.ids) };
                for below in devices {
                    self.add_device(below, node, ids, beliefs)?;
                }
            }
            Function::Gpu(gpu) => {
                let Some(rank) = gpu.rank else { return Ok(()) };
                let Some(compute_capability) = gpu.compute_capability else {
                    return Err(Error::request(
                        format!("GPU {} has no compute capability", device.bus_id),
                        "write it as sm=\"90\" in its <gpu>, or name the GPU model",
                    ));
                };
                let (dev, gdr) = (gpu.dev, gpu.gdr);
                let kind = NodeKind::Gpu { rank, dev, compute_capability, gdr };
                let node = self.add_node(kind, &device.bus_id);
                self.gpus.push(node);
                self.connect_both(node, parent, LinkKind::Pci, rate);
                if let Some((count, each)) = gpu.c2c {
                    let cpu = self.cpus[self.cpus.len() - 1];
                    let rate = f64::from(count) * f64::from(each) / 1000.0;
                    self.connect_both(node, cpu, LinkKind::C2c, rate as f32);
                }
            }
            Function::Nic(nets) => {
                let nic = self.add_node(NodeKind::Nic, &device.bus_id);
                self.connect_both(nic, parent, LinkKind::Pci, rate);
                self.add_nets(nic, nets, beliefs);
            }
            Function::Other => {}
        }
        Ok(())
    }

    fn check_ranks(&self) -> Result<()> {
        let mut ranks: Vec<u32> = self.gpus.iter().map(|&gpu| self.rank(gpu)).collect();
        if ranks.is_empty() {
            return Err(Error::request(
                "no GPU of this machine has a rank",
                "write rank=\"0\" and so on in each <gpu>",
            ));
        }
        ranks.sort_unstable();
        if let Some(pair) = ranks.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("two GPUs have rank {}", pair[0]);
            return Err(Error::request(message, "give each GPU a rank of its own"));
        }
        Ok(())
    }

    fn add_nvlinks(&mut self, inventory: &Inventory, beliefs: &Beliefs) {
        for (bus_id, gpu) in inventory.gpus() {
            let Some(node) = self.named(bus_id) else { continue };
            for NvLinks { target, count, target_class } in &gpu.nvlinks {
                let rate = *count as f32 * beliefs.nvlink(self.compute_capability(node));
                match *target_class {
                    CLASS_CPU_BRIDGE => {
                        if let Some(cpu) = self.cpu_above(node) {
                            self.connect_both(node, cpu, LinkKind::Nvl, rate);
                        }
                    }
                    class if class >> 16 == 0x03 => {
                        // Each GPU lists its own links, so one direction each.
                        if let Some(peer) = self.named(target).filter(|peer| *peer != node) {
                            self.connect(node, peer, LinkKind::Nvl, rate);
                        }
                    }
                    _ => {
                        let switch = match self.nvswitch {
                            Some(switch) => switch,
                            None => self.add_node(NodeKind::NvSwitch, "NVSwitch"),
                        };
                        self.nvswitch = Some(switch);
                        self.connect_both(node, switch, LinkKind::Nvl, rate);
                    }
                }
            }
        }
    }

    fn add_peers(&mut self, inventory: &Inventory, beliefs: &Beliefs) {
        for device in inventory.devices() {
            let Function::Bridge { peers, .. } = &device.function else { continue };
            let Some(node) = self.named(&device.bus_id) else { continue };
            for peer in peers.iter().filter_map(|peer| self.named(peer)).collect::<Vec<_>>() {
                self.connect(node, peer, LinkKind::Loc, beliefs.same_device());
            }
        }
    }

    /// Every NUMA node is joined to every other.
    fn join_cpus(&mut self, inventory: &Inventory, beliefs: &Beliefs) {
        for (first, cpu) in self.cpus.clone().into_iter().zip(&inventory.cpus) {
            for other in self.cpus.clone().into_iter().filter(|&other| other != first) {
                self.connect(first, other, LinkKind::Sys, beliefs.inter_cpu(&cpu.names));
            }
        }
    }

    /// NCCL follows PCI links down before those up, so the link up goes to the end.
    fn links_up_last(&mut self, node: Node, above: Option<Node>) {
        if let Some(above) = above {
            let list = &mut self.leaving[node];
            if let Some(at) = list.iter().position(|&link| self.links[link].to == above) {
                let up = list.remove(at);
                list.push(up);
            }
        }
        for link in self.leaving[node].clone() {
            let Directed { to, kind, .. } = self.links[link];
            if kind == LinkKind::Pci && Some(to) != above {
                self.links_up_last(to, Some(node));
            }
        }
    }

    /// The node of this name: a bus id, in any case.
    pub fn named(&self, name: &str) -> Option<Node> {
        self.nodes.iter().position(|(kind, own)| {
            !matches!(kind, NodeKind::Cpu { .. }) && own.eq_ignore_ascii_case(name)
        })
    }

    /// The NUMA node above a device.
    pub fn cpu_above(&self, node: Node) -> Option<Node> {
        let mut at = node;
        // A tree is no deeper than it has nodes.
        for _ in 0..self.nodes.len() {
            if matches!(self.nodes[at].0, NodeKind::Cpu { .. }) {
                return Some(at);
            }
            // The link up is the last PCI link of a device.
            let up =
                self.leaving[at].iter().rev().find(|&&link| self.links[link].kind == LinkKind::Pci);
            at = self.links[*up?].to;
        }
        None
    }

    /// Rank of a GPU; 0 of anything else.
    pub fn rank(&self, node: Node) -> u32 {
        match self.nodes[node].0 {
            NodeKind::Gpu { rank, .. } => rank,
            _ => 0,
        }
    }

    /// Number of a GPU as NVML counts; 0 of anything else.
    pub fn dev(&self, node: Node) -> u32 {
        match self.nodes[node].0 {
            NodeKind::Gpu { dev, .. } => dev,
            _ => 0,
        }
    }

    /// Compute capability of a GPU as NCCL numbers it; 0 of anything else.
    pub fn compute_capability(&self, node: Node) -> u32 {
        match self.nodes[node].0 {
            NodeKind::Gpu { compute_capability, .. } => compute_capability,
            _ => 0,
        }
    }

    /// The least compute capability of all GPUs.
    pub fn least_capability(&self) -> u32 {
        self.gpus.iter().map(|&gpu| self.compute_capability(gpu)).min().unwrap_or(0)
    }

    /// Whether the CPUs are AMD's, by the first one, as NCCL asks.
    pub fn amd(&self) -> bool {
        let first = self.cpus.first().map(|&cpu| &self.nodes[cpu].0);
        matches!(first, Some(NodeKind::Cpu { amd: true, .. }))
    }

    /// The same with another rate between CPUs, GB/s.
    #[must_use]
    pub fn with_inter_cpu(&self, gb_per_s: f32) -> System {
        let mut changed = self.clone();
        for link in changed.links.iter_mut().filter(|link| link.kind == LinkKind::Sys) {
            link.gb_per_s = gb_per_s;
        }
        changed
    }
}
