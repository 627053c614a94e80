//! Paths between devices as NCCL ranks them, and which GPUs may address each other.

use serde::Serialize;

use super::graph::PathType;
use super::system::{Link, LinkKind, Node, NodeKind, System};

/// A way from one device to another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Links in order.
    pub links: Vec<Link>,
    /// The slowest of them, GB/s; 0 when there is no way.
    pub gb_per_s: f32,
    /// How near the ends are.
    pub kind: PathType,
}

impl Path {
    fn none() -> Path {
        Path { links: Vec::new(), gb_per_s: 0.0, kind: PathType::Dis }
    }
}

/// What a user or a driver says of traffic between GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PeerOptions {
    /// `NCCL_P2P_LEVEL`, or LOC for `NCCL_P2P_DISABLE=1`.
    pub level: Option<PathType>,
    /// The driver says that no GPU may address another, and NCCL is not told to ignore it.
    pub driver_refuses: bool,
    /// Two ranks share no `/dev/shm`: they are in containers of their own.
    pub apart: bool,
    /// No NVLink by way of another GPU (`NCCL_NVB_DISABLE`).
    pub no_relay: bool,
}

/// Whether one GPU addresses another, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Peer {
    /// It does.
    pub direct: bool,
    /// How near they are on the way that they would take.
    pub kind: PathType,
    /// The GPU between them, by rank.
    pub relay: Option<u32>,
    /// A sentence without a full stop.
    pub reason: String,
}

/// All paths between GPUs, NUMA nodes, NVSwitches and networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Paths {
    /// By goal, then by start; empty for goals that nothing asks for.
    to: Vec<Vec<Path>>,
    /// By source and destination GPU, as places in [`System::gpus`].
    peers: Vec<Vec<Peer>>,
}

impl Paths {
    /// Finds all paths, then leads those through the CPU that GPUs may not take directly.
    pub fn new(system: &System, options: &PeerOptions, same_device: f32) -> Paths {
        let mut to = vec![Vec::new(); system.nodes.len()];
        let wanted = |kind: &NodeKind| !matches!(kind, NodeKind::Pci | NodeKind::Nic);
        for goal in (0..system.nodes.len()).filter(|&node| wanted(&system.nodes[node].0)) {
            to[goal] = all_paths_to(system, goal, options.no_relay, same_device);
        }
        let mut paths = Paths { to, peers: Vec::new() };
        paths.peers = system
            .gpus
            .iter()
            .map(|&a| system.gpus.iter().map(|&b| paths.judge(system, options, a, b)).collect())
            .collect();
        for (at, &goal) in system.gpus.iter().enumerate() {
            for (from, &start) in system.gpus.iter().enumerate() {
                if !paths.peers[from][at].direct {
                    paths.lead_through_cpu(system, start, goal);
                }
            }
        }
        paths
    }

    /// The path from a node to another.
    ///
    /// # Panics
    /// When the goal is a switch or NIC: no path to those is kept.
    pub fn between(&self, from: Node, to: Node) -> &Path {
        &self.to[to][from]
    }

    /// Whether a GPU addresses another, by places in [`System::gpus`].
    pub fn peer(&self, from: usize, to: usize) -> &Peer {
        &self.peers[from][to]
    }

    fn lead_through_cpu(&mut self, system: &System, start: Node, goal: Node) {
        let reached = |&&cpu: &&Node| self.to[cpu][goal].kind < PathType::Dis;
        let hops = |&&cpu: &&Node| self.to[cpu][goal].links.len();
        let Some(&cpu) = system.cpus.iter().filter(reached).min_by_key(hops) else { return };
        let up = &self.to[cpu][start];
        let down = &self.to[goal][cpu];
        let links = up.links.iter().chain(&down.links).copied().collect();
        let gb_per_s = up.gb_per_s.min(down.gb_per_s);
        let chip_and_bridge = (up.kind.max(down.kind), up.kind.min(down.kind));
        let kind = match chip_and_bridge {
            (PathType::Phb, PathType::C2c) => PathType::P2c,
            (farther, _) => farther,
        };
        self.to[goal][start] = Path { links, gb_per_s, kind };
    }

    fn judge(&self, system: &System, options: &PeerOptions, a: Node, b: Node) -> Peer {
        let path = self.between(a, b);
        let relay = match path.links[..] {
            [first, _] => Some(system.links[first].to)
                .filter(|&node| matches!(system.nodes[node].0, NodeKind::Gpu { .. }))
                .map(|node| system.rank(node)),
            _ => None,
        };
        let pair_on_amd = system.amd() && system.gpus.len() <= 2;
        let default = if pair_on_amd { PathType::Sys } else { PathType::Pxb };
        let level = options.level.unwrap_or(default);
        let (is, limit) = (path.kind.name(), level.name());
        let said = match (options.level, pair_on_amd) {
            (Some(PathType::Loc), _) => "as P2P is switched off".to_owned(),
            (Some(_), _) => format!("the limit that NCCL_P2P_LEVEL sets ({limit})"),
            (None, true) => format!("{limit}, the limit for two GPUs on AMD"),
            (None, false) => format!("{limit}, the default limit"),
        };
        let (direct, reason) = if a == b {
            (true, "the same GPU".to_owned())
        } else if options.apart {
            (false, "the ranks share no /dev/shm".to_owned())
        } else if path.kind > level {
            let beyond = if level == PathType::Loc { "not taken" } else { "beyond" };
            (false, format!("{is} is {beyond} {said}"))
        } else if options.driver_refuses {
            (false, format!("{is} would do, but the driver does not let GPUs address each other"))
        } else {
            (true, format!("{is} is within {said}"))
        };
        Peer { direct, kind: path.kind, relay, reason }
    }
}

/// Paths from every node to one, breadth first: of equally short ones the faster, of equally fast
/// ones the first in the order of links. GPUs pass nothing on but NVLink traffic from one GPU to
/// another, once.
fn all_paths_to(system: &System, goal: Node, no_relay: bool, same_device: f32) -> Vec<Path> {
    let mut paths = vec![Path::none(); system.nodes.len()];
    paths[goal] = Path { links: Vec::new(), gb_per_s: same_device, kind: PathType::Loc };
    let mut frontier = vec![goal];
    while !frontier.is_empty() {
        let mut next: Vec<Node> = Vec::new();
        for &here in &frontier {
            for &link in &system.leaving[here] {
                let (there, kind) = (system.links[link].to, system.links[link].kind);
                let hops = paths[here].links.len();
                let gpu = |node: Node| matches!(system.nodes[node].0, NodeKind::Gpu { .. });
                let relays = kind == LinkKind::Nvl && gpu(there) && hops <= 1 && !no_relay;
                if here != goal && gpu(here) && !relays {
                    continue;
                }
                let rate = paths[here].gb_per_s.min(system.links[link].gb_per_s);
                let known = &paths[there];
                let shorter = known.gb_per_s == 0.0 || known.links.len() > hops;
                if !shorter || known.gb_per_s >= rate {
                    continue;
                }
                let back = |&&link: &&Link| {
                    system.links[link].to == here && system.links[link].kind == kind
                };
                let Some(&back) = system.leaving[there].iter().find(back) else { continue };
                let mut links = vec![back];
                links.extend(&paths[here].links);
                let step = step_type(system, here, there, kind, &paths[here]);
                let farthest = paths[here].kind.max(step);
                paths[there] = Path { links, gb_per_s: rate, kind: farthest };
                if !next.contains(&there) {
                    next.push(there);
                }
            }
        }
        frontier = next;
    }
    paths
}

/// What one more link from `here` out to `there` makes of a path that reaches `here`.
fn step_type(system: &System, here: Node, there: Node, kind: LinkKind, reached: &Path) -> PathType {
    let cpu = |node: Node| matches!(system.nodes[node].0, NodeKind::Cpu { .. });
    let switch = |node: Node| matches!(system.nodes[node].0, NodeKind::Pci);
    let gpu = |node: Node| matches!(system.nodes[node].0, NodeKind::Gpu { .. });
    if switch(here) && switch(there) {
        return PathType::Pxb;
    }
    match kind {
        LinkKind::Pci if cpu(here) || cpu(there) => PathType::Phb,
        LinkKind::Nvl if gpu(here) && reached.kind == PathType::Nvl => PathType::Nvb,
        LinkKind::Loc | LinkKind::Net => PathType::Loc,
        LinkKind::Nvl => PathType::Nvl,
        LinkKind::C2c => PathType::C2c,
        LinkKind::Pci => PathType::Pix,
        LinkKind::Sys => PathType::Sys,
    }
}
