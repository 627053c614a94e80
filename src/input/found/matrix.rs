//! The matrix that `nvidia-smi topo -m` prints.

use std::fmt;

use super::Address;
use crate::topology::{PathType, Topology};

/// How near two devices are, in nvidia-smi's words.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// NVLinks or a path.
    Path(PathType),
    /// A device and itself.
    Own,
    /// Not said, or not connected.
    Unknown,
}

impl Relation {
    /// Reads one cell.
    pub fn parse(text: &str) -> Option<Relation> {
        let path = match text {
            "X" => return Some(Relation::Own),
            "N/A" | "-" | "NA" => return Some(Relation::Unknown),
            "PIX" => PathType::Pix,
            // Old drivers tell devices of one card from those of one switch.
            "PSB" => PathType::Pix,
            "PXB" => PathType::Pxb,
            "PHB" => PathType::Phb,
            "NODE" => PathType::Node,
            // Before NUMA nodes were told apart.
            "SYS" | "SOC" => PathType::Sys,
            _ => PathType::Nv(text.strip_prefix("NV")?.parse().ok().filter(|n| *n > 0)?),
        };
        Some(Relation::Path(path))
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Relation::Path(path) => path.fmt(out),
            Relation::Own => out.write_str("X"),
            Relation::Unknown => out.write_str("N/A"),
        }
    }
}

/// All devices and the relation of each pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// Names as printed: `GPU0`, `NIC0`, `mlx5_0`.
    pub names: Vec<String>,
    /// For each device its relation to each, both ways the same.
    pub cells: Vec<Vec<Relation>>,
    /// NUMA node of each device, where it is said.
    pub numa: Vec<Option<u32>>,
    /// Bus ids of the GPUs in order, where another source told them.
    pub places: Vec<Address>,
}

impl Matrix {
    /// Devices that are GPUs, in order.
    pub fn gpus(&self) -> Vec<usize> {
        (0..self.names.len()).filter(|&at| is_gpu(&self.names[at])).collect()
    }

    /// Relation of two devices.
    pub fn relation(&self, a: usize, b: usize) -> Relation {
        self.cells[a][b]
    }

    /// Pairs of GPUs whose path in a topology is another one than here: by GPU number, what is said
    /// here, what the topology gives.
    pub fn differences(&self, topology: &Topology) -> Vec<(usize, usize, Relation, PathType)> {
        let gpus = self.gpus();
        let mut found = Vec::new();
        if gpus.len() != topology.gpus().len() {
            return found;
        }
        for a in 0..gpus.len() {
            for b in a + 1..gpus.len() {
                let (said, built) = (self.relation(gpus[a], gpus[b]), topology.path_type(a, b));
                if said != Relation::Unknown && said != Relation::Path(built) {
                    found.push((a, b, said, built));
                }
            }
        }
        found
    }
}

/// Whether a name of the matrix is that of a GPU.
pub fn is_gpu(name: &str) -> bool {
    name.strip_prefix("GPU").is_some_and(|rest| rest.parse::<u32>().is_ok())
}

impl Matrix {
    /// The most NVLinks of a pair of GPUs.
    pub fn most_nvlinks(&self) -> Option<u8> {
        let bond = |cell: &Relation| match cell {
            Relation::Path(PathType::Nv(links)) => Some(*links),
            _ => None,
        };
        self.cells.iter().flatten().filter_map(bond).max()
    }

    /// The most GPUs that one is joined to by NVLinks.
    pub fn most_nvlink_peers(&self) -> usize {
        let bond = |cell: &&Relation| matches!(cell, Relation::Path(PathType::Nv(_)));
        self.cells.iter().map(|row| row.iter().filter(bond).count()).max().unwrap_or(0)
    }
}
