//! The machine as a tree: sockets on top, GPUs below in the order of nvidia-smi, links as wide as
//! they are and colored by their load.

use super::Kind;
use super::axis::apart;
use super::heat::legend_from;
use super::letters::{fitted, width};
use super::picture::{Anchor, Group, Picture, Point, Shape, Words};
use super::style::{HAIR, Ink, LABEL, LINE_HEAT, MARGIN, SMALL, TINY, WIDTH};
use crate::error::Result;
use crate::fabric::Fabric;
use crate::report::number::percent;
use crate::sweep::Study;
use crate::topology::{LinkKind, NodeId, NodeKind, Topology};
use crate::units::format_thousands;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "machine",
    about: "the machine as a tree: links by width, colored by the load of the fastest algorithm",
    of_calls: false,
    draw,
};

/// Room for names of links at the left, pixels.
const LEFT: f64 = 78.0;
/// From one level to the next, pixels.
const LEVEL: f64 = 74.0;
/// Height of a node, pixels.
const NODE: f64 = 22.0;
/// The widest direction of a link, pixels.
const WIDEST: f64 = 4.5;

fn draw(study: &Study<'_>) -> Result<Picture> {
    let machine = study.question.machine;
    let fabric = &machine.nominal.fabric;
    if fabric.gpu_count < 2 {
        let loads = vec![0.0; fabric.links.len()];
        return Ok(picture(&machine.topology, fabric, &loads, "No load: one GPU."));
    }
    let call = study.call(study.fastest()?)?;
    let elapsed = call.outcome.ended.as_ps().max(1) as f64;
    let loads = call.outcome.links.iter().map(|link| link.busy.as_ps() as f64 / elapsed);
    let loads: Vec<f64> = loads.collect();
    let about = format!(
        "Load of {} of {} B: share of time that each direction sends.",
        call.title,
        format_thousands(call.bytes)
    );
    Ok(picture(&machine.topology, fabric, &loads, &about))
}

/// The machine alone, nothing running.
pub fn unloaded(topology: &Topology, fabric: &Fabric) -> Picture {
    picture(topology, fabric, &vec![0.0; fabric.links.len()], "No load.")
}

/// Where nodes are.
struct Layout {
    /// By node: its middle; nothing for what is not drawn.
    places: Vec<Option<Point>>,
    /// Width of a GPU's box, pixels.
    gpu: f64,
    /// By node.
    levels: Vec<usize>,
    /// Below all of it, pixels.
    bottom: f64,
}

fn picture(topology: &Topology, fabric: &Fabric, loads: &[f64], about: &str) -> Picture {
    let title = if topology.title.is_empty() { "" } else { topology.title.as_str() };
    let sentence = if title.is_empty() { about.to_owned() } else { format!("{title}. {about}") };
    let mut picture = Picture::new(&format!("The machine {}", topology.name), &sentence);
    let legend_at = (MARGIN, picture.top + 4.0);
    let most = loads.iter().copied().fold(0.0, f64::max);
    if most > 0.0 {
        legend_from(&mut picture, legend_at, LINE_HEAT, "idle", &percent(most));
    }
    let layout = Layout::of(topology, picture.top + 24.0);
    chips(&mut picture, topology, &layout);
    for (index, link) in topology.links.iter().enumerate() {
        let ends = [link.a, link.b].map(|end| layout.places[end.index()]);
        if let [Some(a), Some(b)] = ends {
            // An NVSwitch is as wide as the machine: links meet it below their GPU.
            let switch = |end| matches!(topology.kind(end), NodeKind::NvSwitch(_));
            let a_x = if switch(link.a) { b.0 } else { a.0 };
            let b_x = if switch(link.b) { a.0 } else { b.0 };
            let (a, b) = ((a_x, a.1), (b_x, b.1));
            draw_link(&mut picture, topology, fabric, (index, a, b), loads, &layout);
        }
    }
    inside(&mut picture, topology, &layout);
    link_names(&mut picture, topology, &layout);
    for node in (0..topology.nodes.len()).map(|index| NodeId(index as u32)) {
        draw_node(&mut picture, topology, node, &layout);
    }
    let room = layout.bottom - picture.top + MARGIN;
    picture.end(room)
}

impl Layout {
    fn of(topology: &Topology, top: f64) -> Layout {
        let levels = levels(topology);
        let leaf =
            |node: &NodeId| matches!(topology.kind(*node), NodeKind::Gpu(_) | NodeKind::Nic(_));
        let nodes = || (0..topology.nodes.len() as u32).map(NodeId);
        let mut leaves = topology.gpus();
        leaves.extend(
            nodes().filter(|node| leaf(node) && !leaves.contains(node)).collect::<Vec<_>>(),
        );
        let right = WIDTH - MARGIN;
        let step = (right - LEFT) / leaves.len().max(1) as f64;
        let mut x: Vec<Option<f64>> = vec![None; topology.nodes.len()];
        for (index, node) in leaves.iter().enumerate() {
            x[node.index()] = Some(LEFT + (index as f64 + 0.5) * step);
        }
        let gpu = (step - 3.0).clamp(2.0, 54.0);
        for level in (0..=levels.iter().copied().max().unwrap_or(0)).rev() {
            let here: Vec<NodeId> = nodes()
                .filter(|node| levels[node.index()] == level && !leaf(node))
                .filter(|node| !matches!(topology.kind(*node), NodeKind::HostMemory(_)))
                .collect();
            let wanted: Vec<f64> = here
                .iter()
                .map(|&node| mean_below(topology, node, &x).unwrap_or((LEFT + right) / 2.0))
                .collect();
            let gap = ((right - LEFT) / here.len().max(1) as f64).min(58.0);
            let spread = apart(&wanted, gap, LEFT + gap / 2.0, right - gap / 2.0);
            for (node, place) in here.iter().zip(spread) {
                x[node.index()] = Some(place);
            }
        }
        let deepest = levels.iter().copied().max().unwrap_or(0);
        let y = |node: usize| top + NODE + levels[node] as f64 * LEVEL;
        let places = x.iter().enumerate().map(|(node, x)| x.map(|x| (x, y(node)))).collect();
        let arcs = topology.links.iter().map(|link| arc_depth(topology, link.a, link.b));
        let bottom = top + NODE * 1.6 + deepest as f64 * LEVEL + arcs.fold(0.0, f64::max);
        Layout { places, gpu, levels, bottom }
    }

    fn place(&self, node: NodeId) -> Option<Point> {
        self.places[node.index()]
    }
}

/// Sockets, host bridges, switches by their distance to a bridge, GPUs, NVSwitches.
fn levels(topology: &Topology) -> Vec<usize> {
    let mut levels = vec![0; topology.nodes.len()];
    let mut deepest = 1;
    for (index, node) in topology.nodes.iter().enumerate() {
        levels[index] = match node.kind {
            NodeKind::HostBridge(_) => 1,
            NodeKind::PcieSwitch(_) => topology.ancestors(NodeId(index as u32)).len().max(1),
            _ => 0,
        };
        deepest = deepest.max(levels[index]);
    }
    for (index, node) in topology.nodes.iter().enumerate() {
        match node.kind {
            NodeKind::Gpu(_) | NodeKind::Nic(_) => levels[index] = deepest + 1,
            NodeKind::NvSwitch(_) => levels[index] = deepest + 2,
            _ => {}
        }
    }
    levels
}

/// Mean place of the GPUs whose way to their host leads through a node, or that it joins.
fn mean_below(topology: &Topology, node: NodeId, x: &[Option<f64>]) -> Option<f64> {
    let gpus = topology.gpus();
    let below = |gpu: &&NodeId| match topology.kind(node) {
        NodeKind::NvSwitch(_) => true,
        NodeKind::Socket(_) => {
            let bridge = topology.ancestors(**gpu).last().copied();
            bridge.and_then(|bridge| topology.socket_of(bridge)) == Some(node)
        }
        _ => topology.ancestors(**gpu).contains(&node),
    };
    let places: Vec<f64> = gpus.iter().filter(below).filter_map(|gpu| x[gpu.index()]).collect();
    (!places.is_empty()).then(|| places.iter().sum::<f64>() / places.len() as f64)
}

/// How far the arc between two GPUs hangs below them, pixels; none for other links.
fn arc_depth(topology: &Topology, a: NodeId, b: NodeId) -> f64 {
    let gpus = topology.gpus();
    let place = |node| gpus.iter().position(|&gpu| gpu == node);
    match (place(a), place(b)) {
        (Some(a), Some(b)) => 14.0 + 6.0 * a.abs_diff(b).min(8) as f64,
        _ => 0.0,
    }
}

/// Both directions of a link, side by side; the one that leaves the first end on the left.
fn draw_link(
    picture: &mut Picture,
    topology: &Topology,
    fabric: &Fabric,
    (index, a, b): (usize, Point, Point),
    loads: &[f64],
    layout: &Layout,
) {
    let link = &topology.links[index];
    let widest = topology.links.iter().map(|link| link.kind.raw_bandwidth().as_gb_per_s());
    let own = link.kind.raw_bandwidth().as_gb_per_s();
    let wide = (WIDEST * (own / widest.fold(own, f64::max)).sqrt()).max(1.0);
    let thin = wide.min(layout.gpu / 3.0).max(0.8);
    let depth = arc_depth(topology, link.a, link.b);
    let most = loads.iter().copied().fold(1e-9, f64::max);
    for (from, to, side) in [(link.a, link.b, -1.0), (link.b, link.a, 1.0)] {
        let start = format!("{} -> ", topology.id(from));
        let directed: Vec<usize> = (0..fabric.links.len())
            .filter(|&at| {
                let one = &fabric.links[at];
                one.topology_link == Some(index as u32) && one.label.starts_with(&start)
            })
            .collect();
        let load = directed.iter().map(|&at| loads[at]).fold(0.0, f64::max);
        let numbers: Vec<String> = directed.iter().map(usize::to_string).collect();
        picture.group(Group {
            data: vec![("link", numbers.join(" "))],
            tip: Some(format!(
                "{} to {}, {}: sends {} of the time",
                topology.id(from),
                topology.id(to),
                link.kind.label(),
                percent(load)
            )),
            ..Group::default()
        });
        let shift = side * (thin / 2.0 + 0.35);
        let line = if depth > 0.0 { arc(a, b, depth, shift) } else { straight(a, b, shift) };
        picture.add(Shape::Line(line, Ink::line_heat(load / most), thin));
    }
}

fn straight(a: Point, b: Point, shift: f64) -> Vec<Point> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = dx.hypot(dy).max(1.0);
    let (nx, ny) = (-dy / length * shift, dx / length * shift);
    vec![(a.0 + nx, a.1 + ny), (b.0 + nx, b.1 + ny)]
}

/// A parabola that hangs below two GPUs.
fn arc(a: Point, b: Point, depth: f64, shift: f64) -> Vec<Point> {
    let point = |at: usize| {
        let share = at as f64 / 16.0;
        let hang = 4.0 * share * (1.0 - share) * (depth + shift);
        (a.0 + (b.0 - a.0) * share, a.1 + NODE / 2.0 + (b.1 - a.1) * share + hang)
    };
    (0..=16).map(point).collect()
}

/// What the file need not say: a host bridge is part of its socket.
fn inside(picture: &mut Picture, topology: &Topology, layout: &Layout) {
    picture.plain();
    for node in (0..topology.nodes.len()).map(|index| NodeId(index as u32)) {
        if !matches!(topology.kind(node), NodeKind::HostBridge(_)) {
            continue;
        }
        let socket = topology.socket_of(node).and_then(|socket| layout.place(socket));
        if let (Some(socket), Some(place)) = (socket, layout.place(node)) {
            picture.line(vec![socket, place], Ink::Muted, HAIR);
        }
    }
}

/// A frame around virtual switches of one chip that stand side by side.
fn chips(picture: &mut Picture, topology: &Topology, layout: &Layout) {
    let mut found: Vec<(&str, usize, f64, f64, f64)> = Vec::new();
    for (index, node) in topology.nodes.iter().enumerate() {
        let NodeKind::PcieSwitch(switch) = &node.kind else { continue };
        let (Some(chip), Some((x, y))) = (switch.chip.as_deref(), layout.places[index]) else {
            continue;
        };
        let level = layout.levels[index];
        match found.iter_mut().find(|one| one.0 == chip && one.1 == level) {
            Some(one) => (one.2, one.3) = (one.2.min(x), one.3.max(x)),
            None => found.push((chip, level, x, x, y)),
        }
    }
    picture.plain();
    for (chip, _, from, to, y) in found {
        let (half, high) = (34.0, NODE / 2.0 + 6.0);
        let (left, right) = ((from - half).max(LEFT - 16.0), (to + half).min(WIDTH - 3.0));
        picture.outline((left, y - high), (right, y + high), Ink::Muted, HAIR);
        let text = fitted(chip, TINY, right - left - 6.0);
        let at = (left + 3.0, y - high - 6.0);
        picture.words(Words::new(at, text, Anchor::Start, Ink::Muted).sized(TINY));
    }
}

/// Kinds of links, at the left of the levels that they join.
fn link_names(picture: &mut Picture, topology: &Topology, layout: &Layout) {
    let mut named: Vec<(usize, usize, Vec<String>)> = Vec::new();
    for link in &topology.links {
        let (Some(a), Some(b)) = (layout.place(link.a), layout.place(link.b)) else { continue };
        let mut ends = [layout.levels[link.a.index()], layout.levels[link.b.index()]];
        ends.sort_unstable();
        if let LinkKind::Xgmi(_) | LinkKind::Upi(_) = link.kind {
            let at = ((a.0 + b.0) / 2.0, a.1 - 12.0);
            picture.plain();
            let words = Words::new(at, link.kind.label(), Anchor::Middle, Ink::Muted);
            picture.words(words.sized(SMALL));
            continue;
        }
        let label = link.kind.label();
        match named.iter_mut().find(|one| (one.0, one.1) == (ends[0], ends[1])) {
            Some(one) if !one.2.contains(&label) => one.2.push(label),
            Some(_) => {}
            None => named.push((ends[0], ends[1], vec![label])),
        }
    }
    let base = layout.bottom;
    let y_of = |level: usize| {
        let on = |index: &usize| layout.levels[*index] == level && layout.places[*index].is_some();
        let first = (0..topology.nodes.len()).find(on);
        first.and_then(|index| layout.places[index]).map_or(base, |place| place.1)
    };
    let wanted: Vec<f64> =
        named
            .iter()
            .map(|one| {
                if one.0 == one.1 { y_of(one.0) + NODE } else { (y_of(one.0) + y_of(one.1)) / 2.0 }
            })
            .collect();
    let places = apart(&wanted, SMALL + 3.0, 0.0, base);
    picture.plain();
    for (one, y) in named.iter().zip(places) {
        let text = fitted(&one.2.join(", "), SMALL, LEFT - MARGIN - 4.0);
        picture.words(Words::new((MARGIN, y), text, Anchor::Start, Ink::Muted).sized(SMALL));
    }
}

fn draw_node(picture: &mut Picture, topology: &Topology, node: NodeId, layout: &Layout) {
    let Some((x, y)) = layout.place(node) else { return };
    let id = topology.id(node);
    let number = topology.gpus().iter().position(|&gpu| gpu == node);
    let (wide, high, ink) = match topology.kind(node) {
        NodeKind::Gpu(_) | NodeKind::Nic(_) => (layout.gpu, NODE, Ink::Panel),
        NodeKind::HostBridge(_) => (10.0, 6.0, Ink::Muted),
        NodeKind::NvSwitch(_) => (WIDTH - MARGIN - LEFT, NODE, Ink::Panel),
        _ => (52.0, NODE, Ink::Panel),
    };
    let data = number.map(|number| ("gpu", number.to_string())).into_iter().collect();
    let model = topology.kind(node).model().map_or(String::new(), |model| format!(": {}", model.1));
    picture.group(Group { data, tip: Some(format!("{id}{model}")), ..Group::default() });
    let (from, to) = ((x - wide / 2.0, y - high / 2.0), (x + wide / 2.0, y + high / 2.0));
    picture.block(from, to, ink);
    picture.outline(from, to, Ink::Muted, if ink == Ink::Panel { 1.0 } else { HAIR });
    if matches!(topology.kind(node), NodeKind::HostBridge(_)) {
        return;
    }
    let long = number.map_or_else(|| id.to_owned(), |number| format!("GPU {number}"));
    let short = number.map_or_else(|| id.to_owned(), |number| number.to_string());
    let sizes =
        [(long.clone(), LABEL), (long, SMALL), (short.clone(), SMALL), (short.clone(), TINY)];
    let fits = |(text, size): &(String, f64)| width(text, *size, false) <= wide - 4.0;
    let (text, size) = match sizes.into_iter().find(fits) {
        Some(found) => found,
        None if number.is_some() => return,
        None => (fitted(&short, TINY, wide - 4.0), TINY),
    };
    picture.words(Words::new((x, y), text, Anchor::Middle, Ink::Text).sized(size));
}
