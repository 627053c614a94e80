//! From names and graphs to arrays.
//!
//! Host bridges and their socket become one forwarding node (root ports are its ports); virtual
//! switches of one chip become one node, each keeping its own uplink, since routes are found on the
//! uncompiled graph.

use super::calibration::{Calibration, DeviceClass};
use super::regime::FabricRegime;
use super::{
    DirectedLink, END_OF_PATH, Fabric, GpuModel, LinkClass, LinkId, MemoryModel, MulticastSwitch,
    NicModel,
};
use crate::error::{Error, Result};
use crate::topology::route::{Hop, Router};
use crate::topology::{LinkKind, NodeId, NodeKind, QUADRANTS, Topology};
use crate::units::{Bandwidth, Time};

/// Choices of a compilation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// Let declared regimes apply.
    pub regimes: bool,
}

impl Default for CompileOptions {
    fn default() -> CompileOptions {
        CompileOptions { regimes: true }
    }
}

/// Most ports of a node: the engine keeps one bit each.
const PORTS_MAX: u8 = 128;

impl Fabric {
    /// Compiles a machine.
    ///
    /// # Errors
    /// When a model is not in the calibration, or the machine has no GPU.
    pub fn compile(
        topology: &Topology,
        calibration: &Calibration,
        options: CompileOptions,
    ) -> Result<Fabric> {
        let mut build = Build::new(topology, calibration)?;
        build.add_links()?;
        build.add_memory_links()?;
        build.add_paths();
        build.check_transport()?;
        build.finish(options)
    }
}

/// Work in progress.
struct Build<'a> {
    topology: &'a Topology,
    calibration: &'a Calibration,
    /// Fabric node of each topology node.
    node_of: Vec<u32>,
    node_count: u32,
    gpus: Vec<NodeId>,
    nics: Vec<NodeId>,
    memories: Vec<NodeId>,
    sockets: Vec<NodeId>,
    links: Vec<DirectedLink>,
    port_count: Vec<u8>,
    /// First directed link of each topology link.
    first_link: Vec<u32>,
    /// Directed links (to memory) by memory and quadrant.
    memory_links: Vec<[Option<LinkId>; QUADRANTS as usize]>,
    path_links: Vec<LinkId>,
    path_start: Vec<u32>,
    path_split: Vec<u16>,
}

impl<'a> Build<'a> {
    fn new(topology: &'a Topology, calibration: &'a Calibration) -> Result<Build<'a>> {
        let gpus = topology.gpus();
        if gpus.is_empty() {
            return Err(Error::request(
                format!("{} has no GPU", topology.name),
                "add a node such as \"gpu0\": {\"gpu\": {\"model\": \"rtx-pro-6000\"}}",
            ));
        }
        let memories = topology.ids_where(|kind| matches!(kind, NodeKind::HostMemory(_)));
        let nics = topology.ids_where(|kind| matches!(kind, NodeKind::Nic(_)));
        let sockets = topology.sockets();
        let mut node_of = vec![u32::MAX; topology.nodes.len()];
        let mut next = 0;
        for id in gpus.iter().chain(&nics).chain(&memories).chain(&sockets) {
            node_of[id.index()] = next;
            next += 1;
        }
        for (index, node) in topology.nodes.iter().enumerate() {
            if node_of[index] != u32::MAX {
                continue;
            }
            let shared = match &node.kind {
                NodeKind::HostBridge(_) => topology.socket_of(NodeId(index as u32)),
                NodeKind::PcieSwitch(_) => topology
                    .chip_of(NodeId(index as u32))
                    .into_iter()
                    .find(|other| node_of[other.index()] != u32::MAX),
                _ => None,
            };
            node_of[index] = match shared {
                Some(other) => node_of[other.index()],
                None => {
                    next += 1;
                    next - 1
                }
            };
        }
        Ok(Build {
            topology,
            calibration,
            node_of,
            node_count: next,
            memory_links: vec![[None; QUADRANTS as usize]; memories.len()],
            gpus,
            nics,
            memories,
            sockets,
            links: Vec::new(),
            port_count: vec![0; next as usize],
            first_link: Vec::new(),
            path_links: Vec::new(),
            path_start: Vec::new(),
            path_split: Vec::new(),
        })
    }

    fn node(&self, id: NodeId) -> u32 {
        self.node_of[id.index()]
    }

    /// Device class and model behind a forwarding node.
    fn forwarder(&self, id: NodeId) -> Option<(DeviceClass, &str)> {
        match self.topology.kind(id) {
            NodeKind::PcieSwitch(switch) => Some((DeviceClass::Switch, &switch.model)),
            NodeKind::NvSwitch(switch) => Some((DeviceClass::NvSwitch, &switch.model)),
            NodeKind::Socket(_) | NodeKind::HostBridge(_) => {
                match self.topology.kind(self.topology.socket_of(id)?) {
                    NodeKind::Socket(socket) => Some((DeviceClass::Socket, &socket.model)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn port(&mut self, node: u32) -> Result<u8> {
        let count = &mut self.port_count[node as usize];
        if *count >= PORTS_MAX {
            return Err(Error::request(
                format!("a switch or socket has more than {PORTS_MAX} links"),
                "split it into several nodes",
            ));
        }
        *count += 1;
        Ok(*count - 1)
    }

    /// Buffer and traversal of the node that a link enters.
    fn entry(&self, id: NodeId) -> Result<(Time, [u32; 3])> {
        match self.forwarder(id) {
            Some((class, model)) => {
                let value = |name: &str| self.calibration.value(class, model, name);
                Ok((
                    Time::from_ns(value("traversal")?),
                    [
                        value("posted_buffer")? as u32,
                        value("nonposted_buffer")? as u32,
                        value("completion_buffer")? as u32,
                    ],
                ))
            }
            // Endpoints take what arrives: what limits them is their own service.
            None => Ok((Time::ZERO, [u32::MAX; 3])),
        }
    }

    fn add_links(&mut self) -> Result<()> {
        for (index, link) in self.topology.links.iter().enumerate() {
            self.first_link.push(self.links.len() as u32);
            let (class, name, lanes_of_routes) = match link.kind {
                LinkKind::Pcie(_) => (LinkClass::Pcie, "pcie", 1),
                LinkKind::Nvlink(_) => (LinkClass::Nvlink, "nvlink", 1),
                LinkKind::Xgmi(xgmi) => (LinkClass::Socket, "socket", xgmi.links),
                LinkKind::Upi(upi) => (LinkClass::Socket, "socket", upi.links),
                LinkKind::Network(_) => (LinkClass::Network, "network", 1),
            };
            for part in 0..lanes_of_routes {
                for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                    let mut directed = self.directed(index, class, name, from, to)?;
                    if lanes_of_routes > 1 {
                        directed.label = format!("{} #{part}", directed.label);
                    }
                    self.links.push(directed);
                }
            }
        }
        Ok(())
    }

    fn directed(
        &mut self,
        index: usize,
        class: LinkClass,
        name: &str,
        from: NodeId,
        to: NodeId,
    ) -> Result<DirectedLink> {
        let kind = self.topology.links[index].kind;
        let value = |constant: &str| self.calibration.value(DeviceClass::Link, name, constant);
        let (write_overhead, request) = (value("write_overhead")? as u32, value("request")? as u32);
        let completion_overhead = value("completion_overhead")? as u32;
        let dllp = value("dllp")? as u32;
        let (traversal, buffer) = self.entry(to)?;
        let (rate, latency) = match class {
            LinkClass::Socket => (self.socket_rate(kind, from)?, self.socket_hop(to)?),
            _ => {
                let mut usable = value("usable")?;
                if self.topology.settings.iommu && self.is_root_port(from, to) {
                    usable *= value("iommu_share")?;
                }
                (kind.raw_bandwidth() * usable, Time::from_ns(value("propagation")?) + traversal)
            }
        };
        let socket_number = |id: NodeId| {
            self.sockets.iter().position(|&socket| Some(socket) == self.topology.socket_of(id))
        };
        let sockets = match (class, socket_number(from), socket_number(to)) {
            (LinkClass::Socket, Some(a), Some(b)) => Some((a as u8, b as u8)),
            _ => None,
        };
        let in_port = self.port(self.node(to))?;
        Ok(DirectedLink {
            from: self.node(from),
            to: self.node(to),
            fs_per_byte: rate.femtoseconds_per_byte(),
            latency,
            write_overhead,
            request,
            completion_overhead,
            dllp,
            buffer,
            in_port,
            class,
            sockets,
            topology_link: Some(index as u32),
            label: format!("{} -> {}", self.topology.id(from), self.topology.id(to)),
        })
    }

    fn is_root_port(&self, a: NodeId, b: NodeId) -> bool {
        [a, b].iter().any(|&id| matches!(self.topology.kind(id), NodeKind::HostBridge(_)))
    }

    /// Wire rate of one socket link: the measured payload rate of 256-byte writes where the file
    /// states one, the socket's calibrated share of the raw rate otherwise.
    fn socket_rate(&self, kind: LinkKind, from: NodeId) -> Result<Bandwidth> {
        let (measured, raw) = match kind {
            LinkKind::Xgmi(link) => (link.measured_gb_per_s, link.raw_bandwidth_per_link()),
            LinkKind::Upi(link) => (link.measured_gb_per_s, link.raw_bandwidth_per_link()),
            other => (None, other.raw_bandwidth()),
        };
        let payload = match measured {
            Some(rate) => Bandwidth::from_gb_per_s(rate),
            None => {
                let (class, model) =
                    self.forwarder(from).unwrap_or((DeviceClass::Socket, "epyc-turin"));
                raw * self.calibration.value(class, model, "socket_efficiency")?
            }
        };
        // Both are payload rates of 256-byte writes.
        Ok(payload * ((256.0 + 24.0) / 256.0))
    }

    fn socket_hop(&self, to: NodeId) -> Result<Time> {
        let (class, model) = self.forwarder(to).unwrap_or((DeviceClass::Socket, "epyc-turin"));
        Ok(Time::from_ns(self.calibration.value(class, model, "socket_hop")?))
    }

    /// A pair of links between a socket and its memory for every quadrant with root ports.
    fn add_memory_links(&mut self) -> Result<()> {
        for (number, memory) in self.memories.clone().into_iter().enumerate() {
            let Some(socket) = self.topology.socket_of(memory) else {
                continue;
            };
            let NodeKind::Socket(model) = self.topology.kind(socket) else {
                continue;
            };
            let model = model.model.clone();
            let rate = Bandwidth::from_gb_per_s(self.calibration.value(
                DeviceClass::Socket,
                &model,
                "memory_port",
            )?);
            for quadrant in 0..QUADRANTS {
                if self.topology.bridges_in(self.topology.id(socket), quadrant).is_empty() {
                    continue;
                }
                self.memory_links[number][usize::from(quadrant)] = Some(self.links.len() as u32);
                for (from, to) in [(socket, memory), (memory, socket)] {
                    let (latency, mut buffer) = self.entry(to)?;
                    if to == memory {
                        // The memory's places are all that it takes.
                        let value =
                            |name| self.calibration.value(DeviceClass::Socket, &model, name);
                        let places = value("memory_reads_outstanding")? as u32;
                        buffer = [places * 144, places * 24, u32::MAX];
                    }
                    let in_port = self.port(self.node(to))?;
                    self.links.push(DirectedLink {
                        from: self.node(from),
                        to: self.node(to),
                        fs_per_byte: rate.femtoseconds_per_byte(),
                        latency,
                        write_overhead: 0,
                        request: 0,
                        completion_overhead: 0,
                        dllp: 0,
                        buffer,
                        in_port,
                        class: LinkClass::Memory,
                        sockets: None,
                        topology_link: None,
                        label: format!(
                            "{} -> {} (quadrant {quadrant})",
                            self.topology.id(from),
                            self.topology.id(to)
                        ),
                    });
                }
            }
        }
        Ok(())
    }

    fn add_paths(&mut self) {
        let topology = self.topology;
        let router = Router::new(topology);
        let devices = self.gpus.iter().chain(&self.nics);
        let endpoints: Vec<NodeId> = devices.chain(&self.memories).copied().collect();
        for &source in &endpoints {
            for &target in &endpoints {
                let both_memory = [source, target].iter().all(|id| self.memories.contains(id));
                let hops = if both_memory && source != target {
                    None
                } else {
                    router.route(source, target)
                };
                let (start, split) = match &hops {
                    Some(hops) => (self.path_links.len() as u32, self.split_of(hops)),
                    None => (END_OF_PATH, 0),
                };
                self.path_start.push(start);
                self.path_split.push(split);
                if let Some(hops) = hops {
                    self.push_path(&hops, source);
                    self.path_links.push(END_OF_PATH);
                }
            }
        }
    }

    /// GPUs that may not address each other need host memory between them.
    fn check_transport(&self) -> Result<()> {
        let alone = self.gpus.len() < 2 || self.topology.settings.peer_to_peer;
        if alone || !self.memories.is_empty() {
            return Ok(());
        }
        Err(Error::request(
            format!("{}: peer_to_peer is off and there is no host memory", self.topology.name),
            "add a node such as \"mem0\": {\"host_memory\": {\"socket\": \"cpu0\"}}",
        ))
    }

    /// The piece size of peer traffic that crosses a root complex, 0 when packets pass whole.
    fn split_of(&self, hops: &[Hop]) -> u16 {
        let peers = matches!(
            (
                hops.first().map(|h| self.topology.kind(h.from)),
                hops.last().map(|h| self.topology.kind(h.to))
            ),
            (Some(NodeKind::Gpu(_) | NodeKind::Nic(_)), Some(NodeKind::Gpu(_) | NodeKind::Nic(_)))
        );
        if !peers {
            return 0;
        }
        hops.iter()
            .filter_map(|hop| match self.forwarder(hop.to) {
                Some((DeviceClass::Socket, model)) => {
                    self.calibration.value(DeviceClass::Socket, model, "split").ok()
                }
                _ => None,
            })
            .map(|split| split as u16)
            .filter(|&split| split < 256)
            .min()
            .unwrap_or(0)
    }

    fn push_path(&mut self, hops: &[Hop], source: NodeId) {
        let quadrant = |id: NodeId| match self.topology.kind(id) {
            NodeKind::HostBridge(bridge) => Some(bridge.quadrant),
            _ => None,
        };
        let mut quadrants =
            hops.iter().flat_map(|hop| [quadrant(hop.from), quadrant(hop.to)]).flatten();
        let first = quadrants.next().unwrap_or(0);
        let last = quadrants.last().unwrap_or(first);
        let memory_of = |id: NodeId| self.memories.iter().position(|&memory| memory == id);
        let mut links = Vec::new();
        for hop in hops {
            match hop.link {
                Some(index) => {
                    let link = &self.topology.links[index];
                    let parts = match link.kind {
                        LinkKind::Xgmi(xgmi) => u32::from(xgmi.links),
                        LinkKind::Upi(upi) => u32::from(upi.links),
                        _ => 1,
                    };
                    // Static route of a socket link by the two quadrants, the same both ways.
                    let part = (u32::from(first) + u32::from(last)) % parts;
                    let backwards = u32::from(link.a != hop.from);
                    links.push(self.first_link[index] + 2 * part + backwards);
                }
                None => {
                    let memory =
                        memory_of(hop.to).map(|m| (m, 0)).or(memory_of(hop.from).map(|m| (m, 1)));
                    if let Some((number, backwards)) = memory {
                        let near = if memory_of(source).is_some() { last } else { first };
                        let ports = &self.memory_links[number];
                        let port =
                            ports[usize::from(near & 3)].or(ports.iter().flatten().next().copied());
                        links.extend(port.map(|link| link + backwards));
                    }
                }
            }
        }
        self.path_links.extend(links);
    }

    fn multicast_switches(&self) -> Result<Vec<MulticastSwitch>> {
        let mut found = Vec::new();
        for id in self.topology.ids_where(|kind| matches!(kind, NodeKind::NvSwitch(_))) {
            if let NodeKind::NvSwitch(switch) = self.topology.kind(id) {
                found.extend(MulticastSwitch::of(self.calibration, &switch.model, self.node(id))?);
            }
        }
        Ok(found)
    }

    fn finish(self, options: CompileOptions) -> Result<Fabric> {
        let mut gpus = Vec::new();
        for &gpu in &self.gpus {
            if let NodeKind::Gpu(kind) = self.topology.kind(gpu) {
                let gpu = GpuModel::of(self.calibration, &kind.model)?;
                gpus.push(gpu.within(&self.topology.settings));
            }
        }
        let (gpu_count, mut nics) = (gpus.len(), Vec::new());
        for &nic in &self.nics {
            if let NodeKind::Nic(kind) = self.topology.kind(nic) {
                let name = self.topology.id(nic);
                nics.push(NicModel::of(self.calibration, name, &kind.model, &gpus[0])?);
            }
        }
        for nic in &nics {
            let engine = nic.engine.clone().unwrap_or_else(|| gpus[0].clone());
            gpus.push(engine.within(&self.topology.settings));
        }
        let mut memories = Vec::new();
        for &memory in &self.memories {
            let socket = self.topology.socket_of(memory).map(|id| self.topology.kind(id));
            if let Some(NodeKind::Socket(socket)) = socket {
                memories.push(MemoryModel::of(self.calibration, &socket.model)?);
            }
        }
        let mut crossbars = vec![false; self.node_count as usize];
        for id in self.topology.ids_where(|kind| matches!(kind, NodeKind::NvSwitch(_))) {
            crossbars[self.node(id) as usize] = true;
        }
        let multicast_switches = self.multicast_switches()?;
        let mut fabric = Fabric {
            gpu_count,
            gpus,
            nics,
            memories,
            home_memory: Vec::new(),
            node_count: self.node_count as usize,
            links: self.links,
            port_count: self.port_count,
            crossbars,
            path_links: self.path_links,
            path_start: self.path_start,
            path_split: self.path_split,
            path_types: Vec::new(),
            peer_to_peer: self.topology.settings.peer_to_peer,
            multicast_switches,
            regimes: Vec::new(),
        };
        let pairs = |a| (0..fabric.gpu_count).map(move |b| (a, b));
        fabric.path_types = (0..fabric.gpu_count)
            .flat_map(pairs)
            .map(|(a, b)| self.topology.path_type(a, b))
            .collect();
        fabric.home_memory = (0..fabric.gpus.len())
            .map(|gpu| {
                (fabric.first_memory()..fabric.endpoint_count())
                    .map(|memory| memory as u32)
                    .filter_map(|memory| Some((fabric.path_latency(gpu as u32, memory)?, memory)))
                    .min()
                    .map(|(_, memory)| memory)
            })
            .collect();
        if options.regimes {
            fabric.regimes = self.topology.regimes.iter().map(FabricRegime::of).collect();
        }
        Ok(fabric)
    }
}
