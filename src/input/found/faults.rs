//! What is wrong with a machine, each with the machine as it would be without.

use super::build::{Stated, build, with_functions};
use super::links::list;
use super::nodes::Plan;
use super::{Devices, Found, Kind, LinkFact, Parent};
use crate::error::Result;
use crate::topology::link::Pcie;
use crate::topology::{LinkKind, NodeKind, Topology};

/// Something that makes a machine slower than it could be.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What it is.
    pub what: String,
    /// What to do about it.
    pub cure: String,
    /// The machine without it; `None` where no link or setting of a topology stands for it.
    pub mended: Option<Topology>,
}

/// Lowest payload of a packet that costs nothing worth telling, bytes.
const PAYLOAD_FINE: u32 = 256;
/// Lowest read request that costs nothing worth telling, bytes.
const READ_REQUEST_FINE: u32 = 512;

/// Builds the machine and lists what is wrong with it.
///
/// # Errors
/// As [`build`].
pub fn survey(
    found: Found,
    devices: &Devices,
    stated: &Stated,
    name: &str,
) -> Result<(Topology, Vec<Fault>)> {
    let topology = build(found.clone(), devices, stated, name)?;
    let found = with_functions(found)?;
    let plan = Plan::new(&found);
    let mut faults = links(&found, &plan, &topology);
    faults.extend(settings(&found, &topology));
    faults.extend(far_gpus(&topology));
    faults.extend(registers(&found, &plan));
    Ok((topology, faults))
}

/// Links that trained lower than both ends could.
fn links(found: &Found, plan: &Plan, topology: &Topology) -> Vec<Fault> {
    let mut faults = Vec::new();
    for &at in plan.gpus.iter().chain(&plan.switches).chain(&plan.nics) {
        let (function, name) = (&found.functions[at], plan.name(at));
        let port = match function.parent {
            Parent::Below(parent) => found.functions[parent].able,
            _ => LinkFact::default(),
        };
        let low = |a: Option<u8>, b: Option<u8>| a.into_iter().chain(b).min();
        let able = LinkFact {
            generation: low(function.able.generation, port.generation),
            width: low(function.able.width, port.width),
        };
        let id = topology.find(&name);
        let own = |link: &&mut crate::topology::Link| {
            Some(link.a) == id && matches!(link.kind, LinkKind::Pcie(_))
        };
        let mut mended = topology.clone();
        let Some(link) = mended.links.iter_mut().find(own) else { continue };
        let LinkKind::Pcie(now) = link.kind else { continue };
        let better = Pcie {
            generation: able.generation.unwrap_or(0).max(now.generation),
            width: able.width.unwrap_or(0).max(now.width),
        };
        if better == now {
            continue;
        }
        link.kind = LinkKind::Pcie(better);
        let (is, could) = (LinkKind::Pcie(now).label(), link.kind.label());
        let what =
            format!("{name} ({}) trained to {is}, both ends could do {could}", function.address);
        let cure = if better.width > now.width {
            "reseat card and riser, check the slot's lanes and bifurcation in the firmware"
        } else {
            "set the slot's speed in the firmware to auto or the higher one; try without riser; look for AER errors in dmesg"
        };
        faults.push(Fault { what, cure: cure.to_owned(), mended: Some(mended) });
    }
    faults
}

fn settings(found: &Found, topology: &Topology) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |what: String, cure: &str, mend: fn(&mut Topology)| {
        let mut mended = topology.clone();
        mend(&mut mended);
        faults.push(Fault { what, cure: cure.to_owned(), mended: Some(mended) });
    };
    if topology.settings.acs_redirect {
        let on = |f: &&super::Function| f.kind == Kind::Downstream && f.redirect == Some(true);
        let ports: Vec<String> =
            found.functions.iter().filter(on).map(|f| f.address.to_string()).collect();
        fault(
            format!("ACS Request Redirect is on at {}", list(&ports)),
            "turn ACS off in the firmware, or at each boot: setpci -s PORT ECAP_ACS+6.w=0000",
            |topology| topology.settings.acs_redirect = false,
        );
    }
    if topology.settings.iommu {
        fault(
            "the IOMMU translates what GPUs send".to_owned(),
            "boot with iommu=pt, or with amd_iommu=off or intel_iommu=off",
            |topology| topology.settings.iommu = false,
        );
    }
    if !topology.settings.peer_to_peer {
        fault(
            "GPUs may not address each other (P2P off)".to_owned(),
            "GeForce drivers refuse it; elsewhere see `nvidia-smi topo -p2p r`, Resizable BAR and virtualisation",
            |topology| topology.settings.peer_to_peer = true,
        );
    }
    faults
}

/// Few GPUs on another socket than most.
fn far_gpus(topology: &Topology) -> Option<Fault> {
    let socket_of = |gpu| topology.ancestors(gpu).last().and_then(|&top| topology.socket_of(top));
    let gpus: Vec<_> = topology.gpus().into_iter().map(|gpu| (gpu, socket_of(gpu))).collect();
    let count = |socket| gpus.iter().filter(|entry| entry.1 == socket).count();
    let most = gpus.iter().map(|entry| entry.1).max_by_key(|&socket| count(socket)).flatten()?;
    let far: Vec<_> = gpus.iter().filter(|entry| entry.1 != Some(most)).collect();
    // Half of them elsewhere is how such machines are built.
    if far.is_empty() || far.len() * 3 > gpus.len() {
        return None;
    }
    let mut mended = topology.clone();
    let name = topology.id(most).to_owned();
    for (gpu, _) in &far {
        let top = *topology.ancestors(*gpu).last()?;
        if let NodeKind::HostBridge(bridge) = &mut mended.nodes[top.index()].kind {
            bridge.socket.clone_from(&name);
            bridge.numa = None;
        }
    }
    let names: Vec<String> = far.iter().map(|(gpu, _)| topology.id(*gpu).to_owned()).collect();
    Some(Fault {
        what: format!("{} on another socket than the other GPUs", list(&names)),
        cure: format!("move it to a slot of {name}"),
        mended: Some(mended),
    })
}

/// Settings that no topology holds.
fn registers(found: &Found, plan: &Plan) -> Vec<Fault> {
    let mut faults = Vec::new();
    let gpus = |wanted: &dyn Fn(&super::Function) -> bool| -> Vec<String> {
        let all = plan.gpus.iter().filter(|&&at| wanted(&found.functions[at]));
        all.map(|&at| plan.name(at)).collect()
    };
    let mut fault = |names: Vec<String>, what: &str, cure: &str| {
        if !names.is_empty() {
            let what = format!("{}: {what}", list(&names));
            faults.push(Fault { what, cure: cure.to_owned(), mended: None });
        }
    };
    fault(
        gpus(&|f| f.payload.is_some_and(|bytes| bytes < PAYLOAD_FINE)),
        "packets carry at most 128 bytes",
        "boot with pci=pcie_bus_perf, or raise Max Payload Size in the firmware",
    );
    fault(
        gpus(&|f| f.read_request.is_some_and(|bytes| bytes < READ_REQUEST_FINE)),
        "read requests ask for less than 512 bytes",
        "raise Max Read Request Size in the firmware; a switch may hold it down",
    );
    fault(
        gpus(&|f| f.tags == Some((true, false))),
        "10-bit tags are off: 256 reads in flight at most",
        "turn on 10-bit tags in the firmware, where the root ports can do them",
    );
    fault(
        gpus(&|f| f.numa.is_none()),
        "the kernel knows no NUMA node for it",
        "update the firmware, or say where it is: `simulate here --topo FILE` with lscpu and a matrix",
    );
    faults
}
