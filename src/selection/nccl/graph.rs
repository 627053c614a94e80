//! The outcome of NCCL's search, as plain data: the channels of a pattern and the rates and path
//! types that NCCL believes they have. A graph file holds the same.

use serde::Serialize;

/// What joins two devices, as NCCL ranks it (`graph/topo.h`), nearest first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum PathType {
    /// The same device.
    Loc,
    /// NVLink.
    Nvl,
    /// NVLink through one other GPU.
    Nvb,
    /// Chip to chip, GPU to CPU.
    C2c,
    /// At most one PCIe switch.
    Pix,
    /// Several PCIe switches, no host bridge.
    Pxb,
    /// A GPU and a NIC joined by chip to chip and PCIe.
    P2c,
    /// A NIC by way of another GPU that has NVLink.
    Pxn,
    /// A host bridge: the CPU.
    Phb,
    /// From CPU to CPU.
    Sys,
    /// The network.
    Net,
    /// Nothing.
    Dis,
}

impl PathType {
    /// All, nearest first, with the words of logs and graph files.
    pub const ALL: [(PathType, &'static str); 12] = [
        (PathType::Loc, "LOC"),
        (PathType::Nvl, "NVL"),
        (PathType::Nvb, "NVB"),
        (PathType::C2c, "C2C"),
        (PathType::Pix, "PIX"),
        (PathType::Pxb, "PXB"),
        (PathType::P2c, "P2C"),
        (PathType::Pxn, "PXN"),
        (PathType::Phb, "PHB"),
        (PathType::Sys, "SYS"),
        (PathType::Net, "NET"),
        (PathType::Dis, "DIS"),
    ];

    /// NCCL's word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// The type of this name, in any case.
    pub fn from_name(name: &str) -> Option<PathType> {
        Self::ALL.iter().find(|entry| entry.1.eq_ignore_ascii_case(name)).map(|entry| entry.0)
    }
}

/// Patterns that NCCL searches, with its numbers.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// 1: the NIC in the middle of the tree is fed by two GPUs.
    BalancedTree,
    /// 2: the NIC's two directions are at two GPUs.
    SplitTree,
    /// 3: one GPU does both.
    Tree,
    /// 4.
    Ring,
    /// 5.
    Nvls,
    /// 6.
    CollnetDirect,
}

impl Pattern {
    /// NCCL's number, as in logs and graph files.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }
}

/// Channels of one pattern and what NCCL believes of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Graph {
    /// What was searched.
    pub pattern: Pattern,
    /// GPUs of each channel in order, by their index among the ranks of this machine.
    pub channels: Vec<Vec<u32>>,
    /// Rate of a channel inside a machine, GB/s.
    pub bw_intra: f64,
    /// Rate of a channel between machines, GB/s.
    pub bw_inter: f64,
    /// What NCCL adds for the network's own latency, us.
    pub latency_inter_us: f64,
    /// The longest path inside a machine.
    pub type_intra: PathType,
    /// The longest path to a network.
    pub type_inter: PathType,
    /// All channels are alike.
    pub same_channels: bool,
    /// A channel may leave by one NIC and come back by another: 0, 1, or 2 as NCCL writes it.
    pub cross_nic: u32,
    /// No channel was found and NCCL took the order of the ranks at 0.1 GB/s.
    pub fallback: bool,
}

/// The graphs of a file; those without channels are left to the search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphFile {
    /// Id 0.
    pub ring: Option<Graph>,
    /// Id 1.
    pub tree: Option<Graph>,
    /// Id 2.
    pub collnet_chain: Option<Graph>,
    /// Id 3; each channel holds its head, whatever else the file lists.
    pub nvls: Option<Graph>,
    /// Id 4.
    pub collnet_direct: Option<Graph>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_types_are_in_nccls_order() {
        for (index, (kind, name)) in PathType::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, index);
            assert_eq!(PathType::from_name(name), Some(*kind));
        }
        assert_eq!(Pattern::Ring.number(), 4);
    }
}
