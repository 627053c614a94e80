//! What hangs where: names of nodes, switches, host bridges, sockets and bonds of NVLinks.

use super::build::Stated;
use super::{CpuName, Devices, FarEnd, Found, GpuName, Kind, Parent, Relation};
use crate::error::{Error, Result};
use crate::topology::link::Xgmi;
use crate::topology::{LinkKind, PathType};

/// A group of root ports.
pub(super) struct Root {
    /// NUMA node, where one of its devices says it.
    pub(super) numa: Option<u32>,
}

/// Which functions become nodes, and what each hangs on.
pub(super) struct Plan {
    /// GPUs in their order.
    pub(super) gpus: Vec<usize>,
    /// NICs in their order.
    pub(super) nics: Vec<usize>,
    /// Functions that stand for switches: upstream ports, or whole switches.
    pub(super) switches: Vec<usize>,
    /// Host bridges.
    pub(super) roots: Vec<Root>,
    /// Of each function the index into `roots`, and the nearest switch above it.
    places: Vec<(usize, Option<usize>)>,
}

impl Plan {
    pub(super) fn new(found: &Found) -> Plan {
        let mut plan = Plan {
            gpus: found.gpus(),
            nics: found.nics(),
            switches: Vec::new(),
            roots: Vec::new(),
            places: vec![(0, None); found.functions.len()],
        };
        let mut keys: Vec<(Parent, usize)> = Vec::new();
        for at in plan.gpus.iter().chain(&plan.nics).copied().collect::<Vec<_>>() {
            let (mut chain, hangs_on) = found.above(at);
            chain.reverse();
            let switches = switches_of(found, &chain);
            let key = root_key(found, &plan, &keys, at, &chain, hangs_on);
            let root = keys.iter().position(|entry| entry.0 == key.0 && entry.1 == key.1);
            let root = root.unwrap_or_else(|| {
                keys.push(key);
                plan.roots.push(Root { numa: None });
                plan.roots.len() - 1
            });
            let above = chain.iter().rev().find_map(|&bridge| found.functions[bridge].numa);
            let numa = found.functions[at].numa.or(above);
            let numa = numa.or(match hangs_on {
                Parent::Numa(number) => Some(number),
                _ => None,
            });
            plan.roots[root].numa = plan.roots[root].numa.or(numa);
            let mut nearest = None;
            for switch in switches {
                if !plan.switches.contains(&switch) {
                    plan.switches.push(switch);
                }
                plan.places[switch] = (root, nearest);
                nearest = Some(switch);
            }
            plan.places[at] = (root, nearest);
        }
        plan
    }

    /// Name of a function's node.
    pub(super) fn name(&self, function: usize) -> String {
        let place = |list: &[usize]| list.iter().position(|&at| at == function);
        let named = |word: &str, number: usize| format!("{word}{number}");
        place(&self.gpus)
            .map(|number| named("gpu", number))
            .or_else(|| place(&self.nics).map(|number| named("nic", number)))
            .or_else(|| place(&self.switches).map(|number| named("switch", number)))
            .unwrap_or_default()
    }

    /// Name of what a function's link goes up to.
    pub(super) fn above(&self, function: usize) -> String {
        let (root, switch) = self.places[function];
        switch.map_or_else(|| format!("root{root}"), |switch| self.name(switch))
    }

    /// Chips of the switches: those that pass traffic to each other inside one.
    pub(super) fn chips(&self, found: &Found) -> Vec<Option<String>> {
        let address = |at: usize| found.functions[at].address;
        let joined = |a: usize, b: usize| {
            found.functions[a].peers.contains(&address(b))
                || found.functions[b].peers.contains(&address(a))
        };
        let first = |at: usize| {
            let others = self.switches.iter().filter(|&&other| other == at || joined(at, other));
            let has_peer = self.switches.iter().any(|&other| other != at && joined(at, other));
            others.map(|&other| address(other)).min().filter(|_| has_peer)
        };
        self.switches.iter().map(|&at| first(at).map(|chip| format!("chip {chip}"))).collect()
    }
}

/// Of bridges from the root down those that are switches.
fn switches_of(found: &Found, chain: &[usize]) -> Vec<usize> {
    let kind = |at: &usize| found.functions[*at].kind;
    let told = |at: &usize| matches!(kind(at), Kind::Upstream | Kind::Switch);
    if chain.iter().all(|at| kind(at) == Kind::Bridge) {
        // Root port, then upstream and downstream ports in turn.
        return chain.iter().skip(1).step_by(2).copied().collect();
    }
    chain.iter().filter(|at| told(at)).copied().collect()
}

/// What tells one host bridge from another: the root bus; or, where that is not said, the device
/// below the CPU, unless the matrix puts it under one host bridge with another.
fn root_key(
    found: &Found,
    plan: &Plan,
    keys: &[(Parent, usize)],
    at: usize,
    chain: &[usize],
    hangs_on: Parent,
) -> (Parent, usize) {
    if matches!(hangs_on, Parent::Root(..) | Parent::Below(_)) {
        return (hangs_on, 0);
    }
    let own = (hangs_on, chain.first().copied().unwrap_or(at));
    let Some(matrix) = &found.matrix else { return own };
    let gpus = matrix.gpus();
    let Some(number) = plan.gpus.iter().position(|&gpu| gpu == at) else { return own };
    if gpus.len() != plan.gpus.len() {
        return own;
    }
    let shares = |other: &usize| {
        matrix.relation(gpus[number], gpus[*other]) == Relation::Path(PathType::Phb)
    };
    let sibling = (0..number).find(|other| shares(other));
    sibling.map_or(own, |other| keys.get(plan.places[plan.gpus[other]].0).copied().unwrap_or(own))
}

/// Sockets, and which NUMA node is of which.
pub(super) struct Sockets {
    /// Model of each.
    pub(super) models: Vec<String>,
    /// What joins two.
    pub(super) between: LinkKind,
    nodes: Vec<(u32, usize)>,
}

impl Sockets {
    pub(super) fn new(
        found: &mut Found,
        plan: &Plan,
        devices: &Devices,
        stated: &Stated,
    ) -> Result<Sockets> {
        let mut numbers: Vec<u32> = found.numa.iter().map(|numa| numa.number).collect();
        numbers.extend(plan.roots.iter().filter_map(|root| root.numa));
        numbers.extend(found.matrix.iter().flat_map(|matrix| matrix.numa.iter().flatten()));
        numbers.sort_unstable();
        numbers.dedup();
        if plan.roots.iter().any(|root| root.numa.is_none())
            && (numbers.len() > 1 || !numbers.is_empty())
        {
            found.remark(
                "devices whose NUMA node is not said (-1) are on the first socket",
                "on the other socket, their traffic crosses between the sockets",
            );
        }
        let nodes = sockets_of(found, &numbers, stated);
        let count = nodes.iter().map(|entry| entry.1).max().unwrap_or(0) + 1;
        if count > SOCKETS_MAX {
            return Err(Error::request(
                format!("{count} sockets: no machine of ours has more than {SOCKETS_MAX}"),
                "is it the file of one machine?",
            ));
        }
        let (model, between) = model(found, devices, stated, count);
        Ok(Sockets { models: vec![model; count], between, nodes })
    }

    /// The socket of a NUMA node.
    pub(super) fn of(&self, numa: Option<u32>) -> usize {
        let of = |number: u32| self.nodes.iter().find(|entry| entry.0 == number);
        numa.and_then(of).map_or(0, |entry| entry.1)
    }

    /// A socket has several NUMA nodes.
    pub(super) fn several_nodes(&self, socket: usize) -> bool {
        self.nodes.iter().filter(|entry| entry.1 == socket).count() > 1
    }
}

const SOCKETS_MAX: usize = 8;

/// Socket of each NUMA node: as packages say, as the count of sockets says, or two at most.
fn sockets_of(found: &mut Found, numbers: &[u32], stated: &Stated) -> Vec<(u32, usize)> {
    let package = |number: u32| {
        found.numa.iter().find(|numa| numa.number == number).and_then(|numa| numa.package)
    };
    let packages: Option<Vec<u32>> = numbers.iter().map(|&number| package(number)).collect();
    if let Some(packages) = packages.filter(|list| !list.is_empty() && stated.sockets.is_none()) {
        let mut distinct = packages.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let place = |package: &u32| distinct.iter().position(|d| d == package).unwrap_or(0);
        return numbers.iter().zip(&packages).map(|(&n, package)| (n, place(package))).collect();
    }
    let told = stated.sockets.or(found.sockets).map(|count| count.max(1) as usize);
    let count = told.unwrap_or(numbers.len().clamp(1, 2));
    if told.is_none() {
        let effect = "traffic between sockets is slower than between NUMA nodes of one; --assume sockets=N, or add `lscpu`";
        match numbers.len() {
            0 => found.remark("one socket: no file says NUMA nodes", effect),
            1 => {}
            2 => found.remark("NUMA nodes 0 and 1 are two sockets", effect),
            many => found.remark(format!("{many} NUMA nodes are two sockets"), effect),
        }
    }
    let each = numbers.len().div_ceil(count).max(1);
    numbers
        .iter()
        .enumerate()
        .map(|(place, &number)| (number, (place / each).min(count - 1)))
        .collect()
}

/// Model of the sockets and what joins them.
fn model(
    found: &mut Found,
    devices: &Devices,
    stated: &Stated,
    count: usize,
) -> (String, LinkKind) {
    let names: Vec<CpuName> =
        found.cpu.iter().cloned().chain(found.numa.iter().filter_map(|n| n.cpu.clone())).collect();
    let known = names.iter().find_map(|cpu| devices.socket(cpu));
    let model = match (&stated.cpu, known) {
        (Some(stated), _) => stated.clone(),
        (None, Some(entry)) => {
            if let Some(real) = &entry.stands_in_for {
                let what = format!(
                    "the CPU is {real}, which the calibration lacks: timed as {}",
                    entry.model
                );
                found.remark(what, "a tenth of a microsecond where traffic passes the CPU");
            }
            entry.model.clone()
        }
        (None, None) => {
            let model = devices.unsaid.socket.clone();
            found.remark(
                format!("the CPU is not said: taken as {model}"),
                "latency through the root complex, rate between sockets and of host memory; --assume cpu=MODEL",
            );
            model
        }
    };
    let fallback = LinkKind::Xgmi(Xgmi { links: 4, gt_per_s: 32.0, measured_gb_per_s: None });
    let between = devices.socket_of_model(&model).map_or(fallback, |entry| entry.between_sockets);
    if count > 1 {
        found.remark(
            format!("sockets are joined by {}, the most that {model} has: no file says it", between.label()),
            "with a link less, traffic between sockets is slower by a quarter to a third when all GPUs send",
        );
    }
    (model, between)
}

/// NVLinks between GPUs by their place in the order, and to NVSwitches.
#[derive(Default)]
pub(super) struct Bonds {
    pub(super) pairs: Vec<(usize, usize, u32)>,
    pub(super) to_switch: Vec<(usize, u32)>,
}

/// Bonds as files say them: by their ends, else by the matrix, else by their number.
pub(super) fn bonds(found: &mut Found, plan: &Plan) -> Bonds {
    let place = |name: GpuName| match name {
        GpuName::Number(number) => {
            let by_number =
                plan.gpus.iter().position(|&at| found.functions[at].number == Some(number));
            by_number.or_else(|| Some(number as usize).filter(|n| *n < plan.gpus.len()))
        }
        GpuName::At(address) => {
            plan.gpus.iter().position(|&at| found.functions[at].address == address)
        }
    };
    let mut bonds = Bonds::default();
    let mut to_itself = false;
    let mut directed = std::collections::BTreeMap::new();
    for links in found.nvlinks_with_ends() {
        let Some(gpu) = place(links.gpu) else { continue };
        let to = match links.to {
            FarEnd::Device(at) if place(GpuName::At(at)).is_some() => FarEnd::Gpu(GpuName::At(at)),
            FarEnd::Device(_) => FarEnd::Switch,
            told => told,
        };
        match to {
            FarEnd::Switch => match bonds.to_switch.iter_mut().find(|entry| entry.0 == gpu) {
                Some(entry) => entry.1 += links.count,
                None => bonds.to_switch.push((gpu, links.count)),
            },
            FarEnd::Gpu(other) => match place(other) {
                Some(other) if other != gpu => {
                    *directed.entry((gpu, other)).or_insert(0) += links.count;
                }
                Some(_) => to_itself = true,
                None => {}
            },
            FarEnd::Device(_) | FarEnd::Unknown => {}
        }
    }
    for (&(a, b), &count) in &directed {
        let back = directed.get(&(b, a)).copied().unwrap_or(0);
        if a < b || back == 0 {
            bonds.pairs.push((a.min(b), a.max(b), count.max(back)));
        }
    }
    if to_itself {
        found.remark(
            "NVLinks whose far end is the GPU itself are left out",
            "no machine has them; if they are a bridge, add `nvidia-smi topo -m`, which names the pairs",
        );
    }
    if bonds.pairs.is_empty() && bonds.to_switch.is_empty() {
        bonds.pairs = of_matrix(found, plan);
    }
    if bonds.pairs.is_empty() && bonds.to_switch.is_empty() {
        bonds = of_counts(found, plan);
    }
    bonds
}

fn of_matrix(found: &Found, plan: &Plan) -> Vec<(usize, usize, u32)> {
    let Some(matrix) = &found.matrix else { return Vec::new() };
    let gpus = matrix.gpus();
    let count = if gpus.len() == plan.gpus.len() { gpus.len() } else { 0 };
    let mut pairs = Vec::new();
    for a in 0..count {
        for b in a + 1..count {
            if let Relation::Path(PathType::Nv(links)) = matrix.relation(gpus[a], gpus[b]) {
                pairs.push((a, b, u32::from(links)));
            }
        }
    }
    pairs
}

/// Links whose far ends no file says.
fn of_counts(found: &mut Found, plan: &Plan) -> Bonds {
    let mut counts: Vec<u32> = Vec::new();
    for links in &found.nvlinks {
        if links.to == FarEnd::Unknown {
            counts.push(links.count);
        }
    }
    let mut bonds = Bonds::default();
    let equal = counts.windows(2).all(|pair| pair[0] == pair[1]);
    if counts.is_empty() {
        return bonds;
    }
    let effect =
        "NVLink is 5 to 20 times faster than PCIe: add `nvidia-smi topo -m`, which names the pairs";
    match plan.gpus.len() {
        2 if equal && counts.len() == 2 => {
            bonds.pairs.push((0, 1, counts[0]));
            found.remark("the NVLinks of both GPUs join them: no file says their ends", effect);
        }
        count if equal && counts.len() == count && count > 2 => {
            bonds.to_switch = (0..count).map(|gpu| (gpu, counts[0])).collect();
            found.remark(
                "the NVLinks of all GPUs go to NVSwitches: no file says their ends",
                effect,
            );
        }
        _ => found.remark("NVLinks whose far ends no file says are left out", effect),
    }
    bonds
}
