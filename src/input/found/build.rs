//! What was found -> a topology; all that was not said is taken in the open, as an assumption with
//! its effect.

use super::links::{Notes, Unsaid, link};
use super::nodes::{Plan, Sockets};
use super::tell::{short, tell_differences, title};
use super::{Devices, Found, Kind, NvLinks, Parent, synthesis};
use crate::error::{Error, Result};
use crate::topology::QUADRANTS;
use crate::topology::link::NvLink;
use crate::topology::{
    Gpu, HostBridge, HostMemory, Link, LinkKind, Nic, Node, NodeId, NodeKind, NvSwitch, PcieSwitch,
    Settings, Socket, Topology,
};

/// What a person states of a machine whose files do not say it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stated {
    /// Model of the GPUs.
    pub gpu: Option<String>,
    /// Model of the switches.
    pub switch: Option<String>,
    /// Model of the CPUs.
    pub cpu: Option<String>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Generation and width of links that no file states.
    pub pcie: Option<(u8, u8)>,
}

/// NVSwitches by the generation of their NVLinks.
const NVSWITCHES: [(u8, &str); 4] =
    [(2, "nvswitch1"), (3, "nvswitch2"), (4, "nvswitch3"), (5, "nvswitch4")];
/// No GPU has so many direct NVLinks: it must be a switch.
const DIRECT_NVLINKS_MAX: u32 = 18;

/// Builds the topology.
///
/// # Errors
/// [`Error::Request`] when there is no GPU, or when the machine is too large.
pub fn build(found: Found, devices: &Devices, stated: &Stated, name: &str) -> Result<Topology> {
    let mut found = with_functions(found)?;
    let mut notes = Notes::default();
    let plan = Plan::new(&found);
    let sockets = Sockets::new(&mut found, &plan, devices, stated)?;
    let mut builder = Builder { topology: empty(name), devices, stated };
    builder.endpoints(&found, &plan, &mut notes);
    builder.switches(&found, &plan, &mut notes);
    builder.host(&mut found, &plan, &sockets);
    builder.pcie(&found, &plan, &mut notes);
    builder.nvlinks(&mut found, &plan);
    notes.finish(&mut found);
    builder.settings(&mut found, &plan);
    let mut topology = builder.topology;
    topology.title = title(&topology);
    tell_differences(&mut found, &topology);
    topology.sources = found.sources;
    topology.assumptions = found.remarks;
    Ok(topology)
}

fn empty(name: &str) -> Topology {
    Topology {
        name: name.to_owned(),
        title: String::new(),
        sources: Vec::new(),
        assumptions: Vec::new(),
        settings: Settings::default(),
        nodes: Vec::new(),
        links: Vec::new(),
        regimes: Vec::new(),
    }
}

/// Functions from the matrix or a list of GPUs where no file shows a tree.
pub(super) fn with_functions(mut found: Found) -> Result<Found> {
    if found.functions.is_empty()
        && let Some(matrix) = &found.matrix
    {
        let made = synthesis::functions(matrix);
        found.functions = made.functions;
        found.remarks.extend(made.remarks);
        found.remark(
            "which slots the devices are in is not said: the smallest tree with these path types",
            "two switches in a row where there is one add 0.1 us and share an uplink",
        );
        super::merge::apply_cards(&mut found);
    }
    if found.functions.is_empty() && !found.cards.is_empty() {
        for (index, card) in found.cards.clone().into_iter().enumerate() {
            let place = super::Address { domain: u32::MAX, bus: index as u8, ..Default::default() };
            let parent = Parent::Root(u32::MAX, index as u8);
            let mut gpu = super::Function::new(card.address.unwrap_or(place), parent, Kind::Gpu);
            gpu.title = card.title;
            (gpu.trained, gpu.able) = (card.trained, card.able);
            found.functions.push(gpu);
        }
        found.remark(
            "how the GPUs are joined is not said: each hangs on a root port of its own, on one socket",
            "a switch or a second socket changes every figure: add `nvidia-smi topo -m` or `lspci -vvv`",
        );
    }
    let found = found.trimmed();
    if found.gpus().is_empty() {
        return Err(Error::request(
            format!("there is no GPU in {}", found.sources.join(", ")),
            "name a file of the machine with the GPUs, or add one that lists them",
        ));
    }
    Ok(found)
}

struct Builder<'a> {
    topology: Topology,
    devices: &'a Devices,
    stated: &'a Stated,
}

impl Builder<'_> {
    fn node(&mut self, id: String, kind: NodeKind) -> NodeId {
        self.topology.nodes.push(Node { id, kind });
        NodeId(self.topology.nodes.len() as u32 - 1)
    }

    fn join(&mut self, a: &str, b: &str, kind: LinkKind) {
        if let (Some(a), Some(b)) = (self.topology.find(a), self.topology.find(b)) {
            self.topology.links.push(Link { a, b, kind });
        }
    }

    fn endpoints(&mut self, found: &Found, plan: &Plan, notes: &mut Notes) {
        for &at in &plan.gpus {
            let (id, function) = (plan.name(at), &found.functions[at]);
            let known = self.devices.gpu(function);
            let model = match (&self.stated.gpu, known) {
                (Some(stated), _) => stated.clone(),
                (None, Some(entry)) => {
                    if let Some(real) = &entry.stands_in_for {
                        let what = format!(
                            "a {real}, which the calibration lacks: timed as {}",
                            entry.model
                        );
                        notes.warn(
                            &id,
                            what,
                            "latencies and rates of the GPU itself may differ by a third",
                        );
                    }
                    entry.model.clone()
                }
                (None, None) => {
                    let model = self.guess(found);
                    notes.warn(
                        &id,
                        format!("its model is not said: taken as {model}"),
                        "compute capability, latencies and rates are the model's; state it with --assume gpu=MODEL",
                    );
                    model
                }
            };
            self.node(id, NodeKind::Gpu(Gpu { model }));
        }
        for &at in &plan.nics {
            let title = &found.functions[at].title;
            let model = if title.is_empty() { "nic".to_owned() } else { short(title) };
            self.node(plan.name(at), NodeKind::Nic(Nic { model }));
        }
    }

    /// The GPU that has as many NVLinks as the matrix shows; without any, the usual one.
    fn guess(&self, found: &Found) -> String {
        let most = found.matrix.as_ref().and_then(|matrix| matrix.most_nvlinks());
        let many = found.matrix.as_ref().is_some_and(|matrix| matrix.most_nvlink_peers() > 1);
        let model = match most {
            Some(18) => "h200",
            Some(12) if many => "a100-sxm",
            Some(12) => "a100-pcie",
            Some(8) if many => "h800",
            Some(4) => "a6000",
            Some(_) => "v100",
            None => &self.devices.unsaid.gpu,
        };
        model.to_owned()
    }

    fn switches(&mut self, found: &Found, plan: &Plan, notes: &mut Notes) {
        let chips = plan.chips(found);
        for (number, &at) in plan.switches.iter().enumerate() {
            let (id, function) = (plan.name(at), &found.functions[at]);
            let known = self.devices.switch(function);
            let model = match (&self.stated.switch, known) {
                (Some(stated), _) => stated.clone(),
                (None, Some(entry)) => {
                    if let Some(real) = &entry.stands_in_for {
                        let what = format!(
                            "{real}, which the calibration lacks: timed as {}",
                            entry.model
                        );
                        notes.add(&id, what, "0.02 to 0.1 us each time a packet passes it");
                    }
                    entry.model.clone()
                }
                (None, None) => {
                    let model = self.devices.unsaid.switch.clone();
                    let what = format!("its model is not said: taken as {model}");
                    notes.add(
                        &id,
                        what,
                        "0.02 to 0.1 us each time a packet passes it; --assume switch=MODEL",
                    );
                    model
                }
            };
            let chip = chips[number].clone();
            self.node(id, NodeKind::PcieSwitch(PcieSwitch { model, chip }));
        }
    }

    fn host(&mut self, found: &mut Found, plan: &Plan, sockets: &Sockets) {
        let mut next = vec![0; sockets.models.len()];
        for (number, root) in plan.roots.iter().enumerate() {
            let socket = sockets.of(root.numa);
            // Root ports are spread over the quadrants.
            let quadrant = next[socket];
            next[socket] = (quadrant + 1) % QUADRANTS;
            let numa = sockets.several_nodes(socket).then(|| root.numa.unwrap_or(0));
            let bridge = HostBridge { socket: format!("cpu{socket}"), quadrant, numa };
            self.node(format!("root{number}"), NodeKind::HostBridge(bridge));
        }
        for (number, model) in sockets.models.iter().enumerate() {
            let model = model.clone();
            self.node(format!("cpu{number}"), NodeKind::Socket(Socket { model }));
            let memory = HostMemory { socket: format!("cpu{number}") };
            self.node(format!("mem{number}"), NodeKind::HostMemory(memory));
        }
        for a in 0..sockets.models.len() {
            for b in a + 1..sockets.models.len() {
                self.join(&format!("cpu{a}"), &format!("cpu{b}"), sockets.between);
            }
        }
        if plan.roots.len() > 1 {
            found.remark(
                "quadrants of host bridges: in the order of their buses",
                "traffic to host memory shares the port of a quadrant; where all goes to one it is slower",
            );
        }
    }

    fn pcie(&mut self, found: &Found, plan: &Plan, notes: &mut Notes) {
        let of_gpu = |model: &str| {
            self.devices.gpu_of_model(model).map_or(Unsaid { generation: 4, width: 16 }, |entry| {
                Unsaid { generation: entry.pcie, width: 16 }
            })
        };
        let models = self.topology.gpu_models();
        let most = models.iter().map(|model| of_gpu(model).generation).max().unwrap_or(4);
        let mut links = Vec::new();
        for at in plan.gpus.iter().chain(&plan.nics).chain(&plan.switches).copied() {
            let id = plan.name(at);
            let unsaid = match self.topology.find(&id).map(|node| self.topology.kind(node)) {
                Some(NodeKind::Gpu(gpu)) => of_gpu(&gpu.model),
                _ => Unsaid { generation: most, width: 16 },
            };
            let wire = link(found, at, &id, unsaid, self.stated, notes);
            links.push((id, plan.above(at), LinkKind::Pcie(wire)));
        }
        for (id, above, kind) in links {
            self.join(&id, &above, kind);
        }
    }

    fn nvlinks(&mut self, found: &mut Found, plan: &Plan) {
        let bonds = super::nodes::bonds(found, plan);
        if bonds.pairs.is_empty() && bonds.to_switch.is_empty() {
            return;
        }
        let models = self.topology.gpu_models();
        let entry = models.first().and_then(|model| self.devices.gpu_of_model(model));
        let mut generation = entry.map_or(0, |entry| entry.nvlink);
        if generation == 0 {
            generation = 4;
            found.remark("NVLinks of generation 4", "a link of generation 5 has twice the rate");
        }
        let most = entry.map_or(0, |entry| entry.nvlinks).clamp(6, DIRECT_NVLINKS_MAX);
        let sum = |gpu: usize| -> u32 {
            let of = |pair: &&(usize, usize, u32)| pair.0 == gpu || pair.1 == gpu;
            bonds.pairs.iter().filter(of).map(|pair| pair.2).sum()
        };
        let by_switch = (0..plan.gpus.len()).any(|gpu| sum(gpu) > most);
        let bond =
            |links: u32| LinkKind::Nvlink(NvLink { generation, links: links.min(255) as u8 });
        let mut switched = bonds.to_switch.clone();
        if by_switch {
            for gpu in 0..plan.gpus.len() {
                let of = |pair: &&(usize, usize, u32)| pair.0 == gpu || pair.1 == gpu;
                let links = bonds.pairs.iter().filter(of).map(|pair| pair.2).max();
                if let Some(links) = links
                    && !switched.iter().any(|entry| entry.0 == gpu)
                {
                    switched.push((gpu, links));
                }
            }
        } else {
            for &(a, b, links) in &bonds.pairs {
                self.join(&format!("gpu{a}"), &format!("gpu{b}"), bond(links));
            }
        }
        if !switched.is_empty() {
            let model =
                NVSWITCHES.iter().find(|entry| entry.0 >= generation).map_or("nvswitch4", |e| e.1);
            self.node(
                "nvswitch".to_owned(),
                NodeKind::NvSwitch(NvSwitch { model: model.to_owned() }),
            );
            for (gpu, links) in switched {
                self.join(&format!("gpu{gpu}"), "nvswitch", bond(links));
            }
        }
    }

    fn settings(&mut self, found: &mut Found, plan: &Plan) {
        let redirect: Vec<Option<bool>> = found
            .functions
            .iter()
            .filter(|function| function.kind == Kind::Downstream)
            .map(|function| function.redirect)
            .collect();
        let on = redirect.contains(&Some(true));
        if !plan.switches.is_empty() && !redirect.iter().any(Option::is_some) {
            found.remark(
                "ACS Request Redirect off: no file shows the ports' ACSCtl",
                "with it on, traffic within a switch goes up to the CPU and back and shares the uplink",
            );
        }
        if found.iommu.is_none() {
            let effect = "if it translates, peer traffic over PCIe is slower by a tenth to a half";
            found.remark("the IOMMU does not translate peer traffic", effect);
        }
        if found.peer_to_peer.is_none() {
            found.remark(
                "GPUs may address each other (P2P on)",
                "without it all goes through host memory: 2 to 5 times slower; see `nvidia-smi topo -p2p r`",
            );
        }
        self.topology.settings = Settings {
            peer_to_peer: found.peer_to_peer.unwrap_or(true),
            acs_redirect: on,
            iommu: found.iommu.unwrap_or(false),
            ..Settings::default()
        };
    }
}

impl Found {
    /// NVLinks that are said of a GPU, with where they go.
    pub(super) fn nvlinks_with_ends(&self) -> impl Iterator<Item = &NvLinks> {
        self.nvlinks.iter().filter(|links| links.to != super::FarEnd::Unknown)
    }
}
