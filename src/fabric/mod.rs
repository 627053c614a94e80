//! Topology and calibration compiled to dense arrays: directed links, paths, endpoints, memories.
//!
//! After [`Fabric::compile`] nothing looks at names or graphs any more. Endpoints are numbered GPUs
//! first, then network adapters, then host memories; forwarding nodes follow. A cable is two [`DirectedLink`]s next to
//! each other, so that the other direction of link `l` is `l ^ 1`.

pub mod bound;
pub mod calibration;
mod compile;
pub mod endpoint;
pub mod hardware;
pub mod multicast;
pub mod regime;

use serde::Serialize;

pub use calibration::{Calibration, DeviceClass, UncertaintyGroup};
pub use compile::CompileOptions;
pub use endpoint::{GpuModel, MemoryModel, NicModel};
pub use multicast::{MulticastGroup, MulticastPort, MulticastSwitch};

use crate::topology::PathType;
use crate::units::{Bandwidth, Time};

/// Index of a directed link.
pub type LinkId = u32;
/// Index of a GPU, a network adapter or a host memory.
pub type EndpointId = u32;
/// Ends a path.
pub const END_OF_PATH: u32 = u32::MAX;

/// The three traffic classes that PCIe queues apart (PCIe base specification, section 2.4).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum TrafficClass {
    /// Memory writes.
    Posted = 0,
    /// Read requests.
    NonPosted = 1,
    /// Read data.
    Completion = 2,
}

/// What kind of link a directed link is part of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkClass {
    /// PCI Express.
    Pcie,
    /// NVLink.
    Nvlink,
    /// Between sockets.
    Socket,
    /// From a root complex to its memory.
    Memory,
    /// Between machines.
    Network,
}

/// One direction of one link.
#[derive(Clone, Debug)]
pub struct DirectedLink {
    /// Node it leaves.
    pub from: u32,
    /// Node it enters.
    pub to: u32,
    /// Serialization of one wire byte, femtoseconds.
    pub fs_per_byte: u64,
    /// From the first bit sent to the first bit ready to be sent on by the node it enters.
    pub latency: Time,
    /// Bytes added to a write's payload.
    pub write_overhead: u32,
    /// Bytes of a read request.
    pub request: u32,
    /// Bytes added to a completion's payload.
    pub completion_overhead: u32,
    /// Bytes that one packet of the other direction costs this one (acknowledgement and credits).
    pub dllp: u32,
    /// Buffer at the entered node, bytes, by [`TrafficClass`].
    pub buffer: [u32; 3],
    /// Which of the entered node's ports this is.
    pub in_port: u8,
    /// What kind it is.
    pub class: LinkClass,
    /// Socket numbers it leads from and to, for links between sockets.
    pub sockets: Option<(u8, u8)>,
    /// The link of the topology, for those that are one.
    pub topology_link: Option<u32>,
    /// For people: `gpu3 -> vs1`.
    pub label: String,
}

impl DirectedLink {
    /// Time that `wire_bytes` occupy the link.
    pub fn serialization(&self, wire_bytes: u64) -> Time {
        Time::from_ps((wire_bytes * self.fs_per_byte + 500) / 1000)
    }

    /// Rate of the bare wire.
    pub fn wire_rate(&self) -> Bandwidth {
        Bandwidth::from_bytes_per_second(1e15 / self.fs_per_byte as f64)
    }

    /// Payload rate of a lone stream of writes of `payload` bytes each.
    pub fn write_rate(&self, payload: u32) -> Bandwidth {
        self.wire_rate() * (f64::from(payload) / f64::from(payload + self.write_overhead))
    }
}

/// A machine ready to be simulated.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// Number of GPUs; endpoint `g` below this number is GPU `g` and its memory.
    pub gpu_count: usize,
    /// What is known of each device: of each GPU, then of each network adapter.
    pub gpus: Vec<GpuModel>,
    /// Network adapters; endpoint `gpu_count + n`.
    pub nics: Vec<NicModel>,
    /// What is known of each host memory; endpoint [`Fabric::first_memory`]` + m`.
    pub memories: Vec<MemoryModel>,
    /// The host memory nearest to each device, as an endpoint; `None` without host memory.
    pub home_memory: Vec<Option<EndpointId>>,
    /// Total number of nodes: endpoints first, then forwarding nodes.
    pub node_count: usize,
    /// Directed links.
    pub links: Vec<DirectedLink>,
    /// Ports of each node, as the number of links entering it.
    pub port_count: Vec<u8>,
    /// Nodes whose ports do not hold each other up: NVSwitches.
    pub crossbars: Vec<bool>,
    /// Links of all paths, each ended by [`END_OF_PATH`].
    pub path_links: Vec<LinkId>,
    /// Where the path from `source` to `target` starts: `path_start[source * endpoints + target]`;
    /// [`END_OF_PATH`] when there is none.
    pub path_start: Vec<u32>,
    /// Peer traffic over each path is cut to pieces of this size by a root complex; 0 = not.
    pub path_split: Vec<u16>,
    /// How near two GPUs are, in nvidia-smi's words: `path_types[a * gpu_count + b]`.
    pub path_types: Vec<PathType>,
    /// GPUs may address each other.
    pub peer_to_peer: bool,
    /// NVSwitch domains that copy and reduce.
    pub multicast_switches: Vec<MulticastSwitch>,
    /// Declared regimes, with the links they may touch.
    pub regimes: Vec<regime::FabricRegime>,
}

impl Fabric {
    /// Number of endpoints.
    pub fn endpoint_count(&self) -> usize {
        self.first_memory() + self.memories.len()
    }

    /// Endpoint of the first host memory.
    pub fn first_memory(&self) -> usize {
        self.gpu_count + self.nics.len()
    }

    /// Where the path starts in [`Fabric::path_links`], if there is one.
    pub fn path_at(&self, source: EndpointId, target: EndpointId) -> Option<u32> {
        let start = self.path_start[source as usize * self.endpoint_count() + target as usize];
        (start != END_OF_PATH).then_some(start)
    }

    /// The links from `source` to `target`, empty when they are one, `None` without a way.
    pub fn path(&self, source: EndpointId, target: EndpointId) -> Option<&[LinkId]> {
        let start = self.path_at(source, target)? as usize;
        let length = self.path_links[start..].iter().position(|&link| link == END_OF_PATH)?;
        Some(&self.path_links[start..start + length])
    }

    /// What kind of link a path starts with, `None` for an endpoint itself or without a way.
    pub fn first_class(&self, source: EndpointId, target: EndpointId) -> Option<LinkClass> {
        let first = *self.path(source, target)?.first()?;
        Some(self.links[first as usize].class)
    }

    /// How near two GPUs are, in nvidia-smi's words.
    pub fn path_type(&self, a: u32, b: u32) -> PathType {
        self.path_types[a as usize * self.gpu_count + b as usize]
    }

    /// The piece size of the path, 0 when packets pass whole.
    pub fn split(&self, source: EndpointId, target: EndpointId) -> u16 {
        self.path_split[source as usize * self.endpoint_count() + target as usize]
    }

    /// Sum of the path's latencies, without serialization and endpoints.
    pub fn path_latency(&self, source: EndpointId, target: EndpointId) -> Option<Time> {
        let path = self.path(source, target)?;
        Some(path.iter().map(|&link| self.links[link as usize].latency).sum())
    }

    /// What a call takes at least when one process launches it on these GPUs, one after another,
    /// and outside a graph.
    pub fn launches_in_turn(&self, gpus: &[u32]) -> Time {
        gpus.iter().map(|&gpu| self.gpus[gpu as usize].stream_launch).sum()
    }

    /// What people call a device: `GPU 3`, or an adapter's name.
    pub fn device_name(&self, device: EndpointId) -> String {
        let nic = (device as usize).checked_sub(self.gpu_count).and_then(|at| self.nics.get(at));
        nic.map_or_else(|| format!("GPU {device}"), |nic| nic.name.clone())
    }

    /// Whether the endpoint is a GPU.
    pub fn is_gpu(&self, endpoint: EndpointId) -> bool {
        (endpoint as usize) < self.gpu_count
    }

    /// Idle round trip of a dependent read of `bytes` by a GPU: request, completer, return.
    pub fn read_latency(&self, gpu: usize, target: EndpointId, bytes: u32) -> Option<Time> {
        let model = &self.gpus[gpu];
        if target as usize == gpu {
            return Some(model.local_load);
        }
        let there = self.path_latency(gpu as u32, target)?;
        let back = self.path_latency(target, gpu as u32)?;
        let completer = if self.is_gpu(target) {
            self.gpus[target as usize].completer
        } else {
            self.memories[target as usize - self.first_memory()].read
        };
        let last = self.path(target, gpu as u32)?.last().copied()?;
        let link = &self.links[last as usize];
        let wire = link.serialization(u64::from(bytes + link.completion_overhead));
        Some(model.load_request + there + completer + back + model.load_return + wire)
    }

    /// Idle one-way time of a 4-byte flag from a store of `source` to a poll of `target` GPU.
    pub fn flag_latency(&self, source: usize, target: usize) -> Option<Time> {
        let (from, to) = (&self.gpus[source], &self.gpus[target]);
        if source == target {
            return Some(from.local_store_visible + from.poll_detect);
        }
        let path = self.path_latency(source as u32, target as u32)?;
        Some(from.store_pipeline + path + to.write_visible + to.poll_detect)
    }
}
