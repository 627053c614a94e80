//! What is plugged into what: nodes, links, settings and declared regimes of one machine.
//!
//! A [`Topology`] is plain data, written by hand as JSON (`topologies/*.json`) or read from what a
//! machine already prints. It holds no measured constant: those are in [`crate::fabric`]'s
//! calibration, looked up by the model names used here.

pub mod checks;
pub mod edit;
pub mod link;
pub mod path;
pub mod route;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use link::LinkKind;
pub use path::PathType;

/// Index of a node in [`Topology::nodes`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A GPU's number, as nvidia-smi counts them: the order of the GPUs in the file.
pub type GpuIndex = usize;

/// One machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Short name, usually the file's stem.
    pub name: String,
    /// One line for a person.
    pub title: String,
    /// Where the description comes from.
    pub sources: Vec<String>,
    /// What the sources do not say and was assumed, each with its effect on the answer.
    pub assumptions: Vec<Assumption>,
    /// Switches of the whole machine.
    pub settings: Settings,
    /// All nodes; GPUs are numbered in this order.
    pub nodes: Vec<Node>,
    /// All cables, traces and bonded links.
    pub links: Vec<Link>,
    /// Behaviour that no width explains, declared with its source.
    pub regimes: Vec<Regime>,
}

/// Something assumed because no source says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// What is assumed.
    pub what: String,
    /// What it would change if it were wrong.
    pub effect: String,
    /// The whole answer hangs on it: it is told on the first screen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub loud: bool,
}

/// A named node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The name that links use.
    pub id: String,
    /// What it is.
    pub kind: NodeKind,
}

/// What a node is. Model names are keys of the calibration files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum NodeKind {
    /// A GPU.
    Gpu(Gpu),
    /// A PCIe switch, or one virtual switch of a chip.
    PcieSwitch(PcieSwitch),
    /// A CPU socket: its root complex, memory controllers and links to other sockets.
    Socket(Socket),
    /// A host bridge: a group of root ports of one socket.
    HostBridge(HostBridge),
    /// The DRAM of one socket.
    HostMemory(HostMemory),
    /// An NVSwitch domain: all switches of one board or rack, seen as one crossbar.
    NvSwitch(NvSwitch),
    /// A network adapter.
    Nic(Nic),
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// Model, such as `rtx-pro-6000` or `h200`.
    pub model: String,
}

/// A PCIe switch, or one virtual switch of a chip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PcieSwitch {
    /// Model, such as `pex890xx` or `pm50100`.
    pub model: String,
    /// The chip this virtual switch is a partition of: virtual switches of one chip pass peer
    /// traffic inside it, each keeps its own uplink. Left out: the node is a chip of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chip: Option<String>,
}

/// A CPU socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Socket {
    /// CPU model, such as `epyc-turin`.
    pub model: String,
}

/// Quadrants of a socket's I/O die.
pub const QUADRANTS: u8 = 4;

/// A host bridge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostBridge {
    /// The socket it belongs to.
    pub socket: String,
    /// Quadrant of the I/O die, 0 to 3; traffic to memory shares a quadrant's port.
    #[serde(default)]
    pub quadrant: u8,
    /// NUMA node, where the firmware splits the socket into several (NPS, SNC): nvidia-smi calls a
    /// path between two of them SYS, also within one socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<u32>,
}

/// The DRAM of one socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostMemory {
    /// The socket it belongs to.
    pub socket: String,
}

/// An NVSwitch domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NvSwitch {
    /// Model, such as `nvswitch3`.
    pub model: String,
}

/// A network adapter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// Model, such as `connectx-7`.
    pub model: String,
}

/// A cable, trace or bond of equal links between two nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// One end. For PCIe the end nearer to the endpoint, by custom.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// What runs over it.
    pub kind: LinkKind,
}

/// Switches of the whole machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// GPUs may address each other; otherwise everything goes through host memory.
    pub peer_to_peer: bool,
    /// ACS Request Redirect sends peer traffic up to the root complex even inside one switch.
    pub acs_redirect: bool,
    /// The IOMMU translates peer traffic.
    pub iommu: bool,
    /// Largest payload of a PCIe packet, bytes (Max_Payload_Size); left out: 256, as seen on such
    /// machines, which is what the engines of GPUs make at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_payload: Option<u16>,
    /// Largest PCIe read request, bytes (Max_Read_Request_Size); left out: what the engines of GPUs
    /// ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_read_request: Option<u16>,
    /// NUMA nodes of a socket (NPS of AMD's firmware, SNC of Intel's); left out: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_per_socket: Option<u8>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            peer_to_peer: true,
            acs_redirect: false,
            iommu: false,
            max_payload: None,
            max_read_request: None,
            numa_per_socket: None,
        }
    }
}

/// A behaviour measured on this machine that its links do not explain: a condition on the traffic
/// and the rate it is held to. Never derived by the engine, always declared, always switchable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Regime {
    /// Short name.
    pub name: String,
    /// The traffic it strikes.
    pub traffic: TrafficKind,
    /// At least this many GPUs behind one uplink send such traffic through it.
    pub sources_behind_uplink_min: u32,
    /// They address at least this many root ports.
    pub destination_roots_min: u32,
    /// Those root ports are on another socket.
    #[serde(default)]
    pub across_sockets: bool,
    /// What is held to `cap_gb_per_s`.
    pub scope: RegimeScope,
    /// Payload rate of one direction, GB/s.
    pub cap_gb_per_s: f64,
    /// Who measured it, where.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

/// Kind of traffic, by what moves and what makes it.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TrafficKind {
    /// Posted writes, by stores of an SM or by a copy engine.
    PostedWrite,
    /// Reads by loads of an SM.
    SmRead,
    /// Reads by copy engines or bulk copy kernels.
    CopyRead,
}

/// Which resource a regime caps.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RegimeScope {
    /// Each uplink by itself.
    Uplink,
    /// All traffic of one direction between two sockets together.
    SocketPair,
}

/// How a figure is known.
#[derive(
    Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Specification or data sheet.
    Specified,
    /// Measured, method understood.
    Measured,
    /// Computed from measurements.
    Inferred,
    /// An engineering estimate.
    Estimated,
}

impl Topology {
    /// Node numbers of the GPUs, in nvidia-smi order.
    pub fn gpus(&self) -> Vec<NodeId> {
        self.ids_where(|kind| matches!(kind, NodeKind::Gpu(_)))
    }

    /// Node numbers of the sockets, in order of appearance.
    pub fn sockets(&self) -> Vec<NodeId> {
        self.ids_where(|kind| matches!(kind, NodeKind::Socket(_)))
    }

    /// Node numbers of the host bridges in a quadrant of a socket.
    pub fn bridges_in(&self, socket: &str, quadrant: u8) -> Vec<NodeId> {
        self.ids_where(|kind| {
            matches!(kind, NodeKind::HostBridge(bridge) if bridge.socket == socket && bridge.quadrant == quadrant)
        })
    }

    /// Node numbers of all virtual switches of a switch's chip, itself among them; none where it is no
    /// switch or a chip of its own.
    pub fn chip_of(&self, id: NodeId) -> Vec<NodeId> {
        let NodeKind::PcieSwitch(PcieSwitch { chip: chip @ Some(_), .. }) = self.kind(id) else {
            return Vec::new();
        };
        self.ids_where(|kind| matches!(kind, NodeKind::PcieSwitch(other) if other.chip == *chip))
    }

    /// Node numbers of those whose kind satisfies `wanted`.
    pub fn ids_where(&self, wanted: impl Fn(&NodeKind) -> bool) -> Vec<NodeId> {
        (0..self.nodes.len() as u32)
            .map(NodeId)
            .filter(|id| wanted(&self.nodes[id.index()].kind))
            .collect()
    }

    /// The node of this name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.id == name).map(|index| NodeId(index as u32))
    }

    /// The node's kind.
    pub fn kind(&self, id: NodeId) -> &NodeKind {
        &self.nodes[id.index()].kind
    }

    /// The node's name.
    pub fn id(&self, id: NodeId) -> &str {
        &self.nodes[id.index()].id
    }

    /// The socket that a node hangs under: itself, its host bridge's or its memory's; `None` for
    /// anything else.
    pub fn socket_of(&self, id: NodeId) -> Option<NodeId> {
        match self.kind(id) {
            NodeKind::Socket(_) => Some(id),
            NodeKind::HostBridge(bridge) => self.find(&bridge.socket),
            NodeKind::HostMemory(memory) => self.find(&memory.socket),
            _ => None,
        }
    }

    /// Model names of all GPUs, each once, in order of appearance.
    pub fn gpu_models(&self) -> Vec<&str> {
        let mut models: Vec<&str> = Vec::new();
        for node in &self.nodes {
            if let NodeKind::Gpu(gpu) = &node.kind
                && !models.contains(&gpu.model.as_str())
            {
                models.push(&gpu.model);
            }
        }
        models
    }
}

impl fmt::Display for TrafficKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            TrafficKind::PostedWrite => "posted writes",
            TrafficKind::SmRead => "SM reads",
            TrafficKind::CopyRead => "copy-engine reads",
        })
    }
}
