//! The machine that the program runs on, as Linux shows it below `/sys` and `/proc`: the PCI tree
//! with its links, NUMA nodes, CPUs and the IOMMU. Nothing is written and nothing is started.

mod config_space;

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use super::found::devices::NVIDIA;
use super::found::{Address, CpuName, Found, Function, Kind, LinkFact, Numa, Parent, Tree};
use crate::error::{Error, Result};

/// PCI trees are a few levels deep.
const DEPTH_MAX: usize = 32;
/// Larger attributes of devices are not what they should be: Linux makes them of one page, lists of CPUs
/// may be longer.
const TEXT_MAX: u64 = 1 << 16;
/// Bytes of configuration space: that of PCI Express.
const SPACE_MAX: u64 = 1 << 12;
/// How much of the list of CPUs is read: the first is wanted.
const CPUS_MAX: u64 = 1 << 16;

/// Reads the tree below `root`, which is `/` but for a copy of another machine's.
///
/// # Errors
/// [`Error::Read`] when there are no PCI devices to be seen.
pub fn read_here(root: &Path) -> Result<Found> {
    let devices = root.join("sys/devices");
    let mut reader = Reader {
        found: Found::from_source(&devices.display().to_string(), "PCI devices of Linux"),
        hidden: false,
        translated: Vec::new(),
    };
    reader.found.tree = Tree::Full;
    for (name, path) in folders(&devices) {
        let Some((domain, bus)) = name.strip_prefix("pci").and_then(root_bus) else { continue };
        reader.below(&path, Parent::Root(domain, bus), 0);
    }
    if reader.found.functions.is_empty() {
        return Err(Error::Read {
            file: devices.display().to_string(),
            reason: "no PCI device to be seen there".to_owned(),
            help:
                "on another system name a file: `simulate --topo FILE` (nvidia-smi topo -m, lspci)"
                    .to_owned(),
        });
    }
    if reader.hidden {
        reader.found.remark(
            "settings beyond the first 64 bytes are hidden without root: ACS, payload, tags",
            "ACS redirect would be missed; run it as root",
        );
    }
    reader.found.iommu = iommu(root, &reader.translated);
    numa_nodes(root, &mut reader.found);
    reader.found.cpu = cpu(root);
    Ok(reader.found.trimmed())
}

/// `0000:40` of a host bridge's folder.
fn root_bus(name: &str) -> Option<(u32, u8)> {
    let (domain, bus) = name.split_once(':')?;
    Some((u32::from_str_radix(domain, 16).ok()?, u8::from_str_radix(bus, 16).ok()?))
}

/// Folders in a folder by name, without links, which lead elsewhere.
fn folders(path: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut all: Vec<(String, PathBuf)> = real
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .collect();
    all.sort();
    all
}

/// The start of an ordinary file, at most so many bytes; a device or a pipe may have no end.
fn start(path: &Path, most: u64) -> Option<Vec<u8>> {
    path.metadata().ok().filter(Metadata::is_file)?;
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// A small text file, trimmed; nothing when it cannot be read or is larger.
fn text(path: &Path) -> Option<String> {
    let bytes = start(path, TEXT_MAX + 1).filter(|bytes| bytes.len() as u64 <= TEXT_MAX)?;
    String::from_utf8(bytes).ok().map(|text| text.trim().to_owned())
}

struct Reader {
    found: Found,
    /// Some configuration space was cut short.
    hidden: bool,
    /// For each GPU with a group, whether the IOMMU translates.
    translated: Vec<bool>,
}

impl Reader {
    fn below(&mut self, path: &Path, parent: Parent, depth: usize) {
        if depth > DEPTH_MAX {
            return;
        }
        for (name, path) in folders(path) {
            let Some(address) = Address::parse(&name) else { continue };
            let Some(function) = self.function(&path, address, parent) else { continue };
            let at = self.found.functions.len();
            let bridge = function.kind.is_bridge();
            self.found.functions.push(function);
            if bridge {
                self.below(&path, Parent::Below(at), depth + 1);
            }
        }
    }

    fn function(&mut self, path: &Path, address: Address, parent: Parent) -> Option<Function> {
        let hex = |name: &str| {
            let text = text(&path.join(name))?;
            u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
        };
        let class = hex("class")?;
        let ids = hex("vendor").zip(hex("device")).map(|(v, d)| (v as u16, d as u16));
        let nvidia = ids.is_some_and(|ids| ids.0 == NVIDIA);
        let kind = match class >> 8 {
            0x0604 => Kind::Bridge,
            0x0302 | 0x0380 | 0x1200 => Kind::Gpu,
            0x0300 if nvidia => Kind::Gpu,
            0x0200 | 0x0207 => Kind::Nic,
            _ => return None,
        };
        let mut function = Function::new(address, parent, kind);
        function.ids = ids;
        // -1 where the kernel knows no node.
        function.numa = text(&path.join("numa_node")).and_then(|text| text.parse().ok());
        let link = |rate: &str, width: &str| {
            let rate = text(&path.join(rate))
                .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
            LinkFact::new(rate, text(&path.join(width)).and_then(|text| text.parse().ok()))
        };
        function.trained = link("current_link_speed", "current_link_width");
        function.able = link("max_link_speed", "max_link_width");
        if let Some(bytes) =
            start(&path.join("config"), SPACE_MAX).filter(|bytes| !bytes.is_empty())
        {
            self.hidden |= !config_space::read(&bytes, &mut function);
        }
        if kind == Kind::Gpu
            && let Some(group) = text(&path.join("iommu_group/type"))
        {
            self.translated.push(group.starts_with("DMA"));
        }
        Some(function)
    }
}

/// Whether the IOMMU translates what GPUs send: by their groups, else by whether there is any.
fn iommu(root: &Path, translated: &[bool]) -> Option<bool> {
    if !translated.is_empty() {
        return Some(translated.contains(&true));
    }
    let groups = root.join("sys/kernel/iommu_groups");
    let none = groups.is_dir() && folders(&groups).is_empty();
    none.then_some(false)
}

fn numa_nodes(root: &Path, found: &mut Found) {
    let system = root.join("sys/devices/system");
    for (name, path) in folders(&system.join("node")) {
        let Some(number) = name.strip_prefix("node").and_then(|n| n.parse().ok()) else { continue };
        let list = text(&path.join("cpulist")).unwrap_or_default();
        let first = list.split(['-', ',']).next().unwrap_or("");
        let package = system.join(format!("cpu/cpu{first}/topology/physical_package_id"));
        let package = text(&package).and_then(|text| text.parse().ok());
        // Memory without CPUs, as of CXL, is no place for devices.
        if !list.is_empty() {
            found.numa.push(Numa { number, package, cpu: None });
        }
    }
}

/// The first CPU of `/proc/cpuinfo`.
fn cpu(root: &Path) -> Option<CpuName> {
    let text = start(&root.join("proc/cpuinfo"), CPUS_MAX)?;
    let text = String::from_utf8_lossy(&text);
    let value = |key: &str| {
        let line =
            text.lines().find(|line| line.split(':').next().is_some_and(|k| k.trim() == key));
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim())
    };
    let family = value("cpu family").parse().ok().zip(value("model").parse().ok());
    let (title, vendor) = (value("model name").to_owned(), value("vendor_id").to_owned());
    Some(CpuName { title, vendor, family })
}
