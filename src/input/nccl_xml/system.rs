//! Reading a system file.

use roxmltree::Node;

use super::{Faults, document, root};
use crate::error::Result;
use crate::selection::nccl::beliefs::CpuNames;
use crate::selection::nccl::inventory::{Cpu, Function, Gpu, Inventory, Net, NvLinks, Pci};

/// Reads a system file. GPUs without ranks in a file that ranks none are numbered by bus id; a
/// missing compute capability stays missing.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) with all that is wrong, each with its place.
pub fn read_system(file: &str, text: &str) -> Result<Inventory> {
    let document = document(file, text)?;
    let mut faults = Faults::new();
    let mut inventory = Inventory::default();
    if let Some(system) = root(&document, "system", &mut faults) {
        inventory.name = system.attribute("name").map(str::to_owned);
        let mut reader = Reader { faults: &mut faults, assumed: &mut inventory.assumed };
        for node in system.children().filter(Node::is_element) {
            match node.tag_name().name() {
                "cpu" => inventory.cpus.push(reader.cpu(node)),
                _ => reader.left_out(node),
            }
        }
        if inventory.cpus.is_empty() {
            faults.add(system, "a system needs at least one <cpu>", "one for each NUMA node");
        }
    }
    check_bus_ids(&inventory, &document.root_element(), &mut faults);
    inventory.number_gpus();
    faults.finish(file, text, inventory)
}

fn check_bus_ids(inventory: &Inventory, system: &Node, faults: &mut Faults) {
    let mut ids: Vec<&str> =
        inventory.devices().iter().map(|device| device.bus_id.as_str()).collect();
    ids.sort_unstable();
    for pair in ids.windows(2).filter(|pair| pair[0] == pair[1]) {
        let twice = |node: &Node| node.attribute("busid") == Some(pair[0]);
        if let Some(second) = system.descendants().filter(twice).nth(1) {
            faults.add(second, format!("bus id {} stands twice", pair[0]), "");
        }
    }
}

struct Reader<'a> {
    faults: &'a mut Faults,
    assumed: &'a mut Vec<String>,
}

impl Reader<'_> {
    fn left_out(&mut self, node: Node) {
        let what = format!("<{}> is left out, as NCCL does", node.tag_name().name());
        if !self.assumed.contains(&what) {
            self.assumed.push(what);
        }
    }

    fn cpu(&mut self, node: Node) -> Cpu {
        let text = |name: &str| node.attribute(name).unwrap_or("").to_owned();
        if !node.has_attribute("arch") {
            self.faults.add(node, "<cpu> needs `arch`", "x86_64, arm64 or ppc64");
        }
        let x86 = node.attribute("arch") == Some("x86_64");
        if x86 && !node.has_attribute("vendor") {
            self.faults.add(node, "an x86_64 <cpu> needs `vendor`", "as CPUID says: AuthenticAMD");
        }
        // Only Intel's and Zhaoxin's models matter.
        let optional = if text("vendor") == "GenuineIntel" { None } else { Some(0) };
        let names = CpuNames {
            arch: text("arch"),
            vendor: text("vendor"),
            family: self.faults.number(node, "familyid", optional),
            model: self.faults.number(node, "modelid", optional),
        };
        let mut cpu = Cpu {
            host_hash: node.attribute("host_hash").map(str::to_owned),
            numa: self.faults.number(node, "numaid", None),
            affinity: text("affinity"),
            names,
            devices: Vec::new(),
            networks: Vec::new(),
        };
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "pci" => cpu.devices.push(self.pci(child)),
                "nic" => cpu.networks.extend(self.nets(child)),
                _ => self.left_out(child),
            }
        }
        cpu
    }

    fn pci(&mut self, node: Node) -> Pci {
        if !node.has_attribute("busid") {
            self.faults.add(node, "<pci> needs `busid`", "such as busid=\"0000:3b:00.0\"");
        }
        let class: u32 = self.faults.number(node, "class", None);
        let mut ids = 0;
        for name in ["vendor", "device", "subsystem_vendor", "subsystem_device"] {
            let id: u16 = self.faults.number(node, name, Some(0));
            ids = ids << 16 | u64::from(id);
        }
        let speed = node.attribute("link_speed").unwrap_or("");
        let gt_per_s = known_speed(speed);
        if gt_per_s.is_none() && !speed.is_empty() {
            let what = format!("link_speed `{speed}` is none that NCCL knows: it counts as Gen3");
            if !self.assumed.contains(&what) {
                self.assumed.push(what);
            }
        }
        Pci {
            bus_id: node.attribute("busid").unwrap_or("").to_owned(),
            class,
            ids,
            gt_per_s,
            width: self.faults.number(node, "link_width", Some(0)),
            function: self.function(node, class),
        }
    }

    fn function(&mut self, node: Node, class: u32) -> Function {
        let child = |name: &str| node.children().find(|child| child.has_tag_name(name));
        if let Some(gpu) = child("gpu") {
            return Function::Gpu(self.gpu(gpu));
        }
        if let Some(nic) = child("nic") {
            return Function::Nic(self.nets(nic));
        }
        match class >> 16 {
            // Files of cloud machines hold GPUs without <gpu>; NCCL adds it.
            0x03 => Function::Gpu(Gpu {
                dev: 0,
                compute_capability: None,
                rank: None,
                gdr: true,
                nvlinks: Vec::new(),
                c2c: None,
            }),
            0x02 => Function::Nic(Vec::new()),
            _ if matches!(class, 0x06_8000 | 0x06_8001) => Function::Other,
            _ => self.bridge(node),
        }
    }

    fn bridge(&mut self, node: Node) -> Function {
        let (mut devices, mut peers) = (Vec::new(), Vec::new());
        for child in node.children().filter(Node::is_element) {
            match (child.tag_name().name(), child.attribute("target")) {
                ("pci", _) => devices.push(self.pci(child)),
                ("pcilink", Some(target)) => peers.push(target.to_owned()),
                ("pcilink", None) => {
                    self.faults.add(child, "<pcilink> needs `target`", "the bus id of a switch");
                }
                _ => self.left_out(child),
            }
        }
        Function::Bridge { devices, peers }
    }

    fn gpu(&mut self, node: Node) -> Gpu {
        let mut gpu = Gpu {
            dev: self.faults.number(node, "dev", Some(0)),
            compute_capability: node
                .has_attribute("sm")
                .then(|| self.faults.number(node, "sm", None)),
            rank: node.has_attribute("rank").then(|| self.faults.number(node, "rank", None)),
            gdr: self.faults.number::<u32>(node, "gdr", Some(0)) != 0,
            nvlinks: Vec::new(),
            c2c: None,
        };
        for child in node.children().filter(Node::is_element) {
            match child.tag_name().name() {
                "nvlink" => gpu.nvlinks.push(NvLinks {
                    target: child.attribute("target").unwrap_or("").to_owned(),
                    count: self.faults.number(child, "count", None),
                    target_class: self.faults.number(child, "tclass", None),
                }),
                "c2c" => {
                    let count = self.faults.number(child, "count", None);
                    gpu.c2c = Some((count, self.faults.number(child, "bw", None)));
                }
                _ => self.left_out(child),
            }
        }
        gpu
    }

    fn nets(&mut self, nic: Node) -> Vec<Net> {
        let nets = nic.children().filter(|child| child.has_tag_name("net"));
        nets.map(|node| Net {
            name: node.attribute("name").unwrap_or("").to_owned(),
            dev: node.has_attribute("dev").then(|| self.faults.number(node, "dev", None)),
            // Some NICs say -1.
            speed: self.faults.number::<i64>(node, "speed", Some(0)).max(0) as u64,
            port: self.faults.number(node, "port", Some(0)),
            latency: self.faults.decimal(node, "latency", Some(0.0)),
            guid: node.attribute("guid").unwrap_or("").to_owned(),
            maxconn: self.faults.number(node, "maxconn", Some(0)),
            gdr: self.faults.number::<u32>(node, "gdr", Some(0)) != 0,
        })
        .collect()
    }
}

/// Signalling rates in the spellings that NCCL compares with, GT/s: of kernels before 5.7 and of
/// later ones. `32.0 GT/s` without `PCIe` is neither.
fn known_speed(text: &str) -> Option<f64> {
    let old = [("2.5 GT/s", 2.5), ("5 GT/s", 5.0), ("8 GT/s", 8.0), ("16 GT/s", 16.0)];
    let new = [("5.0 GT/s PCIe", 5.0), ("8.0 GT/s PCIe", 8.0), ("16.0 GT/s PCIe", 16.0)];
    let newest = [("32 GT/s", 32.0), ("32.0 GT/s PCIe", 32.0), ("64.0 GT/s PCIe", 64.0)];
    let mut all = old.into_iter().chain(new).chain(newest);
    all.find(|(known, _)| text.starts_with(known)).map(|(_, rate)| rate)
}
