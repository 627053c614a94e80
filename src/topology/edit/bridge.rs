//! `bridge`: NVLink between two GPUs.

use super::{Edit, Kind, pair};
use crate::error::Result;
use crate::topology::link::NvLink;
use crate::topology::{Link, LinkKind, NodeId, NodeKind, Topology};

pub(super) const KIND: Kind<Topology> = Kind {
    name: "bridge",
    form: "bridge:GPU-GPU=nv4[,gen3] | none",
    what: "an NVLink bridge between two GPUs, or none",
    apply,
};

fn apply(topology: &mut Topology, edit: &Edit) -> Result<String> {
    let form = || format!("write {}", KIND.form);
    let Some((a, b)) = pair(topology, &edit.of) else {
        return Err(edit.refused("it names no two GPUs of this machine", form()));
    };
    let gpu = |id: NodeId| matches!(topology.kind(id), NodeKind::Gpu(_));
    if a == b || !gpu(a) || !gpu(b) {
        return Err(edit.refused("a bridge joins two GPUs", form()));
    }
    let joins = |link: &Link| {
        let ends = [(link.a, link.b), (link.b, link.a)];
        matches!(link.kind, LinkKind::Nvlink(_)) && ends.contains(&(a, b))
    };
    let before = topology.links.iter().position(joins);
    if edit.to == "none" {
        let Some(before) = before else {
            return Err(edit.refused("there is none", ""));
        };
        topology.links.remove(before);
        return Ok(format!("no bridge between {}", edit.of));
    }
    if before.is_some() {
        let help = format!("to widen it: link:{}={}", edit.of, edit.to);
        return Err(edit.refused("there is one already", help));
    }
    let (links, generation) = match edit.to.split_once(',') {
        Some((links, generation)) => (links, generation.trim().strip_prefix("gen")),
        None => (edit.to.as_str(), Some("3")),
    };
    let links = links.trim().strip_prefix("nv").and_then(|links| links.parse().ok());
    let generation = generation.and_then(|generation| generation.parse().ok());
    let (Some(links), Some(generation)) = (links, generation) else {
        return Err(edit.refused(format!("`{}` is no bridge", edit.to), form()));
    };
    let kind = LinkKind::Nvlink(NvLink { generation, links });
    if let Some(fault) = kind.fault() {
        return Err(edit.refused(fault, ""));
    }
    topology.links.push(Link { a, b, kind });
    Ok(format!("bridge {} between {}", kind.label(), edit.of))
}
