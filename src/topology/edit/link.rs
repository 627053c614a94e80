//! `link`: generation and width of PCIe, links of an NVLink bond, number and rate of socket links.

use super::{Edit, Kind, node, pair, uplink};
use crate::error::Result;
use crate::topology::link::{NvLink, Pcie, Upi, Xgmi};
use crate::topology::{LinkKind, NodeId, NodeKind, Topology};

pub(super) const KIND: Kind<Topology> = Kind {
    name: "link",
    form: "link:WHICH=gen4x8 | gen4 | x8 | nv4 | xgmi4@32 | upi3@16",
    what: "a link; WHICH is a device or switch (its uplink), two nodes a-b, gpus, uplinks or all",
    apply,
};

/// What a link becomes.
#[derive(Copy, Clone, PartialEq)]
pub(super) enum Wanted {
    Pcie { generation: Option<u8>, width: Option<u8> },
    Nvlink { links: u8 },
    Xgmi { links: u8, gt_per_s: f64 },
    Upi { links: u8, gt_per_s: f64 },
}

impl Wanted {
    /// Reads `gen4x8`, `x8`, `gen4`, `nv4`, `xgmi4@32`, `upi3@16`.
    pub(super) fn parse(edit: &Edit, text: &str) -> Result<Wanted> {
        let lower = text.to_ascii_lowercase().replace(' ', "");
        let told = || Self::read(&lower);
        told().ok_or_else(|| {
            edit.refused(
                format!("`{text}` is no link"),
                "write gen4x8, gen4, x8, nv4, xgmi4@32 (four links of 32 GT/s) or upi3@16",
            )
        })
    }

    fn read(text: &str) -> Option<Wanted> {
        let bundle = |text: &str| {
            let (links, rate) = text.split_once('@')?;
            Some((links.parse::<u8>().ok()?, rate.parse::<f64>().ok()?))
        };
        if let Some(rest) = text.strip_prefix("xgmi") {
            let (links, gt_per_s) = bundle(rest)?;
            return Some(Wanted::Xgmi { links, gt_per_s });
        }
        if let Some(rest) = text.strip_prefix("upi") {
            let (links, gt_per_s) = bundle(rest)?;
            return Some(Wanted::Upi { links, gt_per_s });
        }
        if let Some(links) = text.strip_prefix("nv") {
            return Some(Wanted::Nvlink { links: links.parse().ok()? });
        }
        let (generation, width) = match text.strip_prefix("gen") {
            None => ("", text),
            Some(rest) => rest.split_at(rest.find('x').unwrap_or(rest.len())),
        };
        let generation = match generation {
            "" => None,
            digits => Some(digits.parse().ok()?),
        };
        let width = match width {
            "" => None,
            text => Some(text.strip_prefix('x')?.parse().ok()?),
        };
        Some(Wanted::Pcie { generation, width }).filter(|_| generation.is_some() || width.is_some())
    }

    /// What a link of this kind becomes; `None` when it is of another kind.
    fn of(self, before: LinkKind) -> Option<LinkKind> {
        Some(match (self, before) {
            (Wanted::Pcie { generation, width }, LinkKind::Pcie(link)) => LinkKind::Pcie(Pcie {
                generation: generation.unwrap_or(link.generation),
                width: width.unwrap_or(link.width),
            }),
            (Wanted::Nvlink { links }, LinkKind::Nvlink(link)) => {
                LinkKind::Nvlink(NvLink { links, ..link })
            }
            // What was measured of a link holds for its rate, not for another.
            (Wanted::Xgmi { links, gt_per_s }, LinkKind::Xgmi(link)) => LinkKind::Xgmi(Xgmi {
                links,
                gt_per_s,
                measured_gb_per_s: scaled(link.measured_gb_per_s, gt_per_s / link.gt_per_s),
            }),
            (Wanted::Upi { links, gt_per_s }, LinkKind::Upi(link)) => LinkKind::Upi(Upi {
                links,
                gt_per_s,
                measured_gb_per_s: scaled(link.measured_gb_per_s, gt_per_s / link.gt_per_s),
            }),
            _ => return None,
        })
    }

    /// A new PCIe link: what is not said is Gen5 x16.
    pub(super) fn new_pcie(self) -> Option<LinkKind> {
        self.of(LinkKind::Pcie(Pcie { generation: 5, width: 16 }))
    }
}

fn scaled(measured: Option<f64>, factor: f64) -> Option<f64> {
    measured.map(|rate| rate * factor)
}

fn apply(topology: &mut Topology, edit: &Edit) -> Result<String> {
    let wanted = Wanted::parse(edit, &edit.to)?;
    let mut chosen: Vec<usize> = Vec::new();
    for name in edit.of.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        chosen.extend(links_of(topology, edit, name, wanted)?);
    }
    chosen.sort_unstable();
    chosen.dedup();
    if chosen.is_empty() {
        return Err(edit.refused("no link is meant", format!("write {}", KIND.form)));
    }
    let mut told: Vec<(String, String, usize)> = Vec::new();
    for index in chosen {
        let link = &mut topology.links[index];
        let Some(after) = wanted.of(link.kind) else {
            let (a, b) = (link.a, link.b);
            let label = link.kind.label();
            let (a, b) = (topology.id(a), topology.id(b));
            return Err(edit.refused(format!("the link of `{a}` and `{b}` is {label}"), ""));
        };
        if let Some(fault) = after.fault() {
            return Err(edit.refused(fault, ""));
        }
        let labels = (with_rate(link.kind), with_rate(after));
        link.kind = after;
        match told.iter_mut().find(|told| (&told.0, &told.1) == (&labels.0, &labels.1)) {
            Some(told) => told.2 += 1,
            None => told.push((labels.0, labels.1, 1)),
        }
    }
    let each: Vec<String> = told
        .iter()
        .map(|(before, after, count)| match count {
            1 => format!("{before} -> {after}"),
            _ => format!("{count} links {before} -> {after}"),
        })
        .collect();
    Ok(format!("{}: {}", edit.of, each.join(", ")))
}

/// The label, for socket links with their rate, which the label does not say.
fn with_rate(kind: LinkKind) -> String {
    match kind {
        LinkKind::Xgmi(link) => format!("{} of {} GT/s", kind.label(), link.gt_per_s),
        LinkKind::Upi(link) => format!("{} of {} GT/s", kind.label(), link.gt_per_s),
        _ => kind.label(),
    }
}

/// The links that a name means.
fn links_of(topology: &Topology, edit: &Edit, name: &str, wanted: Wanted) -> Result<Vec<usize>> {
    let pcie = |index: usize| matches!(topology.links[index].kind, LinkKind::Pcie(_));
    let all = || (0..topology.links.len()).filter(|&index| pcie(index));
    let is = |id: NodeId, wanted: fn(&NodeKind) -> bool| wanted(topology.kind(id));
    let ends = |index: usize| [topology.links[index].a, topology.links[index].b];
    let found: Vec<usize> = match name {
        "all" => all().collect(),
        "gpus" => {
            let gpu = |index: &usize| ends(*index).iter().any(|&id| is(id, is_gpu));
            all().filter(gpu).collect()
        }
        "uplinks" => {
            let up = |index: &usize| {
                let ends = ends(*index);
                ends.iter().any(|&id| is(id, is_switch)) && ends.iter().any(|&id| is(id, is_bridge))
            };
            all().filter(up).collect()
        }
        _ => match pair(topology, name) {
            Some((a, b)) => {
                let joins = |link: &usize| {
                    let [first, second] = ends(*link);
                    (first, second) == (a, b) || (second, first) == (a, b)
                };
                let found: Vec<usize> = (0..topology.links.len()).filter(joins).collect();
                // Two nodes may be joined by PCIe and NVLink: the value says which is meant.
                let fitting = |&link: &usize| wanted.of(topology.links[link].kind).is_some();
                let fits: Vec<usize> = found.iter().copied().filter(fitting).collect();
                if fits.is_empty() { found } else { fits }
            }
            None => uplink(topology, node(topology, edit, name)?).into_iter().collect(),
        },
    };
    if found.is_empty() {
        return Err(edit.refused(format!("`{name}` has no such link"), ""));
    }
    Ok(found)
}

fn is_gpu(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::Gpu(_))
}

fn is_switch(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::PcieSwitch(_))
}

fn is_bridge(kind: &NodeKind) -> bool {
    matches!(kind, NodeKind::HostBridge(_))
}
