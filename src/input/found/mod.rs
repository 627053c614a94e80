//! What files say of a machine, as they say it: PCI functions, NUMA nodes, a matrix of path types,
//! NVLinks, settings. One or several [`Found`] are [merged](merge::merge) and
//! [built](build::build) into a topology; what none of them says is assumed there, in words.

pub mod address;
pub mod build;
pub mod devices;
pub mod faults;
mod links;
pub mod matrix;
pub mod merge;
mod nodes;
mod synthesis;
mod tell;

use std::collections::BTreeMap;
use std::fmt::Display;

use crate::topology::Assumption;

pub use address::Address;
pub use devices::Devices;
pub use matrix::{Matrix, Relation};

/// All that one file says, or several together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// What was read, in words: `topo.xml (NCCL system file)`.
    pub sources: Vec<String>,
    /// How much of the PCI tree the functions show.
    pub tree: Tree,
    /// PCI functions that matter: GPUs, NICs, and the bridges above them. Parents come first.
    pub functions: Vec<Function>,
    /// NUMA nodes.
    pub numa: Vec<Numa>,
    /// Path types between GPUs and NICs.
    pub matrix: Option<Matrix>,
    /// NVLinks of GPUs.
    pub nvlinks: Vec<NvLinks>,
    /// GPUs by their number, from lists that know no tree.
    pub cards: Vec<Card>,
    /// Sockets, where the file counts them.
    pub sockets: Option<u32>,
    /// Model name of the CPUs.
    pub cpu: Option<CpuName>,
    /// GPUs may address each other.
    pub peer_to_peer: Option<bool>,
    /// The IOMMU translates.
    pub iommu: Option<bool>,
    /// The order of a ring over all GPUs, by GPU number.
    pub ring: Option<Vec<u32>>,
    /// What is odd about the file, and what it would change.
    pub remarks: Vec<Assumption>,
}

/// How much of the PCI tree a source shows, least first.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tree {
    /// None of it.
    #[default]
    None,
    /// Switches, without root ports and host bridges (NCCL).
    Switches,
    /// All bridges, without what they are (`lspci -tv`).
    Shape,
    /// All bridges with their links (hwloc).
    Links,
    /// All bridges with links, capabilities and settings (`lspci -vvv`, /sys).
    Full,
}

/// A PCI function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Where it is; files of cloud machines invent some.
    pub address: Address,
    /// What it hangs on.
    pub parent: Parent,
    /// What it is.
    pub kind: Kind,
    /// Vendor and device.
    pub ids: Option<(u16, u16)>,
    /// Name in words.
    pub title: String,
    /// NUMA node; `None` when not said or -1.
    pub numa: Option<u32>,
    /// Its link up, as trained.
    pub trained: LinkFact,
    /// Its link up, as it could be.
    pub able: LinkFact,
    /// Number of a GPU, where the file gives one.
    pub number: Option<u32>,
    /// Compute capability as NCCL numbers it.
    pub capability: Option<u32>,
    /// ACS Request Redirect is on.
    pub redirect: Option<bool>,
    /// Largest payload of a packet in use, bytes.
    pub payload: Option<u32>,
    /// Largest read request in use, bytes.
    pub read_request: Option<u32>,
    /// 10-bit tags: able and on.
    pub tags: Option<(bool, bool)>,
    /// Switch ports that traffic passes to inside one chip.
    pub peers: Vec<Address>,
}

/// What a function hangs on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Parent {
    /// Another of [`Found::functions`].
    Below(usize),
    /// A root bus: domain and bus.
    Root(u32, u8),
    /// A NUMA node; by which host bridge is not said.
    Numa(u32),
}

/// What a function is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A root port.
    RootPort,
    /// The upstream port of a switch.
    Upstream,
    /// A downstream port of a switch.
    Downstream,
    /// A whole switch.
    Switch,
    /// A bridge that does not say which.
    Bridge,
    /// A GPU.
    Gpu,
    /// A network adapter.
    Nic,
}

impl Kind {
    /// Others may hang on it.
    pub fn is_bridge(self) -> bool {
        !matches!(self, Kind::Gpu | Kind::Nic)
    }
}

/// Rate and width of a link, as far as they are said.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct LinkFact {
    /// Generation, 1 to 6.
    pub generation: Option<u8>,
    /// Lanes.
    pub width: Option<u8>,
}

impl LinkFact {
    /// From a signalling rate in GT/s and lanes; rates that PCIe does not have are not said.
    pub fn new(gt_per_s: Option<f64>, width: Option<u32>) -> LinkFact {
        let rates = [2.5, 5.0, 8.0, 16.0, 32.0, 64.0];
        let at = gt_per_s.and_then(|rate| rates.iter().position(|r| (r - rate).abs() < 0.1));
        let known = |width: &u32| matches!(width, 1 | 2 | 4 | 8 | 16);
        LinkFact {
            generation: at.map(|at| at as u8 + 1),
            width: width.filter(known).map(|width| width as u8),
        }
    }

    /// Nothing is said.
    pub fn is_empty(self) -> bool {
        self == LinkFact::default()
    }
}

/// A NUMA node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numa {
    /// Number.
    pub number: u32,
    /// Socket.
    pub package: Option<u32>,
    /// Its CPU.
    pub cpu: Option<CpuName>,
}

/// What a CPU says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuName {
    /// In words; may be empty.
    pub title: String,
    /// `AuthenticAMD`, `GenuineIntel`.
    pub vendor: String,
    /// Family and model as CPUID counts them.
    pub family: Option<(u32, u32)>,
}

/// NVLinks of one GPU to one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvLinks {
    /// The GPU.
    pub gpu: GpuName,
    /// The far end.
    pub to: FarEnd,
    /// How many.
    pub count: u32,
}

/// A GPU by its number or place.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuName {
    /// As nvidia-smi counts.
    Number(u32),
    /// By bus id.
    At(Address),
}

/// Where an NVLink goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum FarEnd {
    /// Another GPU.
    Gpu(GpuName),
    /// The NVSwitches.
    Switch,
    /// What has this bus id: a GPU, if one of them has it, else an NVSwitch.
    Device(Address),
    /// Not said.
    Unknown,
}

/// A GPU of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Card {
    /// As nvidia-smi counts; `None` when the list has only bus ids.
    pub number: Option<u32>,
    /// Bus id.
    pub address: Option<Address>,
    /// Product name.
    pub title: String,
    /// Link now.
    pub trained: LinkFact,
    /// Link at most.
    pub able: LinkFact,
}

impl Function {
    /// A function of which nothing else is said yet.
    pub fn new(address: Address, parent: Parent, kind: Kind) -> Function {
        Function {
            address,
            parent,
            kind,
            ids: None,
            title: String::new(),
            numa: None,
            trained: LinkFact::default(),
            able: LinkFact::default(),
            number: None,
            capability: None,
            redirect: None,
            payload: None,
            read_request: None,
            tags: None,
            peers: Vec::new(),
        }
    }
}

impl Found {
    /// Nothing yet, from this source.
    pub fn from_source(file: &str, format: &str) -> Found {
        Found { sources: vec![format!("{file} ({format})")], ..Found::default() }
    }

    /// Adds a remark.
    pub fn remark(&mut self, what: impl Into<String>, effect: impl Into<String>) {
        self.add(Assumption { what: what.into(), effect: effect.into(), loud: false });
    }

    /// Adds what two sources, or two places of one, say differently, and which was believed.
    pub fn conflict(&mut self, what: impl Display, effect: impl Into<String>) {
        let what = format!("conflict: {what}");
        self.add(Assumption { what, effect: effect.into(), loud: true });
    }

    fn add(&mut self, remark: Assumption) {
        if !self.remarks.contains(&remark) {
            self.remarks.push(remark);
        }
    }

    /// Indices of the GPUs, in the order of their numbers, where all have one, or of their bus ids,
    /// as nvidia-smi counts.
    pub fn gpus(&self) -> Vec<usize> {
        self.ordered(Kind::Gpu)
    }

    /// Indices of the NICs, in the order of their bus ids.
    pub fn nics(&self) -> Vec<usize> {
        self.ordered(Kind::Nic)
    }

    fn ordered(&self, kind: Kind) -> Vec<usize> {
        let mut found: Vec<usize> =
            (0..self.functions.len()).filter(|&at| self.functions[at].kind == kind).collect();
        let numbered = found.iter().all(|&at| self.functions[at].number.is_some());
        found.sort_by_key(|&at| {
            let number = if numbered { self.functions[at].number } else { None };
            (number, self.functions[at].address)
        });
        found
    }

    /// Bridges above a function, nearest first, and what the last hangs on.
    pub fn above(&self, function: usize) -> (Vec<usize>, Parent) {
        let (mut chain, mut at) = (Vec::new(), self.functions[function].parent);
        // A tree is no deeper than it has functions.
        while let Parent::Below(parent) = at
            && chain.len() <= self.functions.len()
        {
            chain.push(parent);
            at = self.functions[parent].parent;
        }
        (chain, at)
    }

    /// Keeps GPUs, NICs and what is above them; numbers of parents are mended.
    #[must_use]
    pub fn trimmed(mut self) -> Found {
        let mut keep = vec![false; self.functions.len()];
        for at in (0..self.functions.len()).filter(|&at| !self.functions[at].kind.is_bridge()) {
            keep[at] = true;
            self.above(at).0.into_iter().for_each(|bridge| keep[bridge] = true);
        }
        let mut number = BTreeMap::new();
        for at in (0..keep.len()).filter(|&at| keep[at]) {
            number.insert(at, number.len());
        }
        let all = std::mem::take(&mut self.functions);
        let kept =
            all.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(function, _)| function);
        self.functions = kept
            .map(|mut function| {
                if let Parent::Below(parent) = &mut function.parent {
                    *parent = number[parent];
                }
                function
            })
            .collect();
        self
    }
}
