//! The machine as it was read: its kinds of links and its path types, a line each.

use std::fmt::Write;

use crate::fabric::Fabric;
use crate::topology::{LinkKind, NodeKind, PathType, Topology};
use crate::units::Bandwidth;

/// Payload of one packet, bytes, as SM stores and loads make them.
const PACKET: u32 = 128;

/// Equal links between nodes of equal kinds.
struct LinkGroup {
    role: &'static str,
    label: String,
    rate: Bandwidth,
    count: usize,
    /// GPUs below an uplink.
    shared_by: usize,
}

/// Its name, links, settings and paths.
pub fn head(topology: &Topology, fabric: &Fabric) -> String {
    let mut out = format!("{}: {}\n", topology.name, topology.title);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "  links     {}   a direction", links_line(topology, fabric));
    let _ = writeln!(out, "  settings  {}", settings(topology));
    if fabric.gpu_count > 1 {
        let _ = writeln!(out, "  paths     {}", paths_line(topology, fabric));
    }
    out
}

/// The kinds of links, with what one direction carries in packets of 128 bytes.
pub fn links_line(topology: &Topology, fabric: &Fabric) -> String {
    let mut groups: Vec<LinkGroup> = Vec::new();
    for (index, link) in topology.links.iter().enumerate() {
        let is_of = |one: &&crate::fabric::DirectedLink| one.topology_link == Some(index as u32);
        let mut directed = fabric.links.iter().filter(is_of);
        let Some(first) = directed.next() else {
            continue;
        };
        let between_sockets = matches!(link.kind, LinkKind::Xgmi(_) | LinkKind::Upi(_));
        let per_direction = if between_sockets {
            let same =
                |one: &&crate::fabric::DirectedLink| is_of(one) && one.sockets == first.sockets;
            let bytes: f64 =
                fabric.links.iter().filter(same).map(|l| l.write_rate(PACKET).as_gb_per_s()).sum();
            Bandwidth::from_gb_per_s(bytes)
        } else {
            first.write_rate(PACKET)
        };
        let role = role(topology, link.kind, [link.a, link.b]);
        let label = link.kind.label();
        let shared_by = if role == "uplink" { gpus_through(fabric, index as u32) } else { 0 };
        match groups.iter_mut().find(|group| {
            (group.role, &group.label, group.rate, group.shared_by)
                == (role, &label, per_direction, shared_by)
        }) {
            Some(group) => group.count += 1,
            None => {
                groups.push(LinkGroup { role, label, rate: per_direction, count: 1, shared_by });
            }
        }
    }
    let each: Vec<String> = groups.iter().map(describe).collect();
    each.join("  ")
}

fn describe(group: &LinkGroup) -> String {
    let LinkGroup { role, label, rate, count, shared_by } = group;
    match (*role, *shared_by) {
        ("uplink", 2..) => format!("{count} uplinks {label} {rate} ({shared_by} GPUs each)"),
        ("uplink", _) => format!("{count} uplinks {label} {rate}"),
        ("switch-switch", _) => format!("{count} between switches {label} {rate}"),
        ("sockets", _) => format!("{label} {rate}"),
        _ => format!("{role} {label} {rate}"),
    }
}

fn role(topology: &Topology, kind: LinkKind, ends: [crate::topology::NodeId; 2]) -> &'static str {
    let is = |wanted: fn(&NodeKind) -> bool| ends.iter().any(|&end| wanted(topology.kind(end)));
    let gpu = is(|kind| matches!(kind, NodeKind::Gpu(_)));
    let switch = is(|kind| matches!(kind, NodeKind::PcieSwitch(_)));
    let root = is(|kind| matches!(kind, NodeKind::HostBridge(_) | NodeKind::Socket(_)));
    match kind {
        LinkKind::Xgmi(_) | LinkKind::Upi(_) => "sockets",
        LinkKind::Nvlink(_) => "GPU-NVLink",
        _ if gpu && switch => "GPU-switch",
        _ if gpu => "GPU-root",
        _ if switch && root => "uplink",
        _ if is(|kind| matches!(kind, NodeKind::Nic(_))) => "NIC",
        _ => "switch-switch",
    }
}

/// GPUs whose way to their own host memory or another socket's leads through the link.
fn gpus_through(fabric: &Fabric, topology_link: u32) -> usize {
    (0..fabric.gpu_count as u32)
        .filter(|&gpu| {
            let home = fabric.home_memory[gpu as usize];
            let path = home.and_then(|memory| fabric.path(gpu, memory)).unwrap_or_default();
            path.iter().any(|&l| fabric.links[l as usize].topology_link == Some(topology_link))
        })
        .count()
}

/// What a 128-byte read takes over each type of path, idle.
pub fn paths_line(topology: &Topology, fabric: &Fabric) -> String {
    let mut types: Vec<(PathType, f64, f64)> = Vec::new();
    for a in 0..fabric.gpu_count {
        for b in (0..fabric.gpu_count).filter(|&b| b != a) {
            let Some(time) = fabric.read_latency(a, b as u32, PACKET) else {
                continue;
            };
            let (kind, us) = (topology.path_type(a, b), time.as_us());
            match types.iter_mut().find(|entry| entry.0 == kind) {
                Some((_, low, high)) => {
                    *low = low.min(us);
                    *high = high.max(us);
                }
                None => types.push((kind, us, us)),
            }
        }
    }
    types.sort_by_key(|entry| entry.0);
    let each = types.iter().map(|(kind, low, high)| {
        let (low, high) = (format!("{low:.2}"), format!("{high:.2}"));
        if low == high { format!("{kind} {low}") } else { format!("{kind} {low}-{high}") }
    });
    let each: Vec<String> = each.collect();
    format!("128-byte read {} us", each.join("  "))
}

/// Settings that hold for the whole machine.
pub fn settings(topology: &Topology) -> String {
    let on = |set: bool| if set { "on" } else { "off" };
    let settings = &topology.settings;
    let mut told = format!("ACS {}, IOMMU {}", on(settings.acs_redirect), on(settings.iommu));
    if !settings.peer_to_peer {
        told.push_str(", P2P off");
    }
    told
}
