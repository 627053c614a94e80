//! Reading a graph file.

use roxmltree::Node;

use super::{Faults, document, root};
use crate::error::Result;
use crate::selection::nccl::graph::{Graph, GraphFile, PathType, Pattern};
use crate::selection::nccl::inventory::Inventory;

/// Reads a graph file for a machine: it names GPUs by their number, channels hold ranks.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) with all that is wrong, each with its place.
pub fn read_graphs(file: &str, text: &str, machine: &Inventory) -> Result<GraphFile> {
    let document = document(file, text)?;
    let mut faults = Faults::new();
    let mut graphs = GraphFile::default();
    let ranked = machine.gpus().into_iter().filter_map(|(_, gpu)| Some((gpu.dev, gpu.rank?)));
    let ranks: Vec<(u32, u32)> = ranked.collect();
    if let Some(root) = root(&document, "graphs", &mut faults) {
        for node in root.children().filter(|child| child.has_tag_name("graph")) {
            let id: u32 = faults.number(node, "id", None);
            let graph = graph(node, id == 3, &ranks, &mut faults);
            match id {
                0 => graphs.ring = graph,
                1 => graphs.tree = graph,
                2 => graphs.collnet_chain = graph,
                3 => graphs.nvls = graph,
                4 => graphs.collnet_direct = graph,
                _ => faults.add(
                    node,
                    format!("no graph has id {id}"),
                    "0 ring, 1 tree, 2 CollNet chain, 3 NVLS, 4 CollNet direct",
                ),
            }
        }
    }
    faults.finish(file, text, graphs)
}

/// A graph; `None` without channels.
fn graph(node: Node, heads: bool, ranks: &[(u32, u32)], faults: &mut Faults) -> Option<Graph> {
    let stated: usize = faults.number(node, "nchannels", None);
    let number: u32 = faults.number(node, "pattern", None);
    let patterns = [
        Pattern::BalancedTree,
        Pattern::SplitTree,
        Pattern::Tree,
        Pattern::Ring,
        Pattern::Nvls,
        Pattern::CollnetDirect,
    ];
    let Some(pattern) = patterns.into_iter().find(|pattern| pattern.number() == number) else {
        faults.add(node, format!("no pattern {number}"), "1 to 6; 4 is a ring, 1 a tree");
        return None;
    };
    let elements: Vec<Node> =
        node.children().filter(|child| child.has_tag_name("channel")).collect();
    let all = !heads && pattern != Pattern::CollnetDirect;
    let channels: Vec<Vec<u32>> =
        elements.iter().map(|&element| channel(element, all, heads, ranks, faults)).collect();
    if channels.len() != stated && node.has_attribute("nchannels") {
        let message = format!("nchannels is {stated}, but {} channels are listed", channels.len());
        faults.add(node, message, "NCCL counts by nchannels and reads what is listed");
    }
    let graph = Graph {
        pattern,
        channels,
        bw_intra: faults.decimal(node, "speedintra", None),
        bw_inter: faults.decimal(node, "speedinter", None),
        latency_inter_us: faults.decimal(node, "latencyinter", Some(0.0)),
        type_intra: path_type(node, "typeintra", faults),
        type_inter: path_type(node, "typeinter", faults),
        same_channels: faults.number::<u32>(node, "samechannels", None) != 0,
        cross_nic: faults.number(node, "crossnic", None),
        fallback: false,
    };
    (!graph.channels.is_empty()).then_some(graph)
}

fn path_type(node: Node, name: &str, faults: &mut Faults) -> PathType {
    let text = node.attribute(name).unwrap_or("");
    PathType::from_name(text).unwrap_or_else(|| {
        let known = PathType::ALL.map(|entry| entry.1).join(", ");
        faults.add(node, format!("`{text}` is no path type of {name}"), known);
        PathType::Dis
    })
}

/// Ranks of a channel; all GPUs must stand in it once where `all`, only the first counts where
/// `heads`.
fn channel(
    node: Node,
    all: bool,
    heads: bool,
    ranks: &[(u32, u32)],
    faults: &mut Faults,
) -> Vec<u32> {
    let mut found = Vec::new();
    for gpu in node.children().filter(|child| child.has_tag_name("gpu")) {
        let dev: u32 = faults.number(gpu, "dev", None);
        match ranks.iter().find(|entry| entry.0 == dev) {
            Some(&(_, rank)) if found.contains(&rank) => {
                faults.add(gpu, format!("GPU {dev} stands twice in this channel"), "");
            }
            Some(&(_, rank)) => found.push(rank),
            None => {
                let known: Vec<String> = ranks.iter().map(|entry| entry.0.to_string()).collect();
                let help = format!("GPUs with a rank: {}", known.join(", "));
                faults.add(gpu, format!("no GPU {dev} on this machine"), help);
            }
        }
    }
    if all && faults.problems.is_empty() && found.len() != ranks.len() {
        let message = format!("a channel of {} GPUs, {} have a rank", found.len(), ranks.len());
        faults.add(node, message, "every GPU stands once in each channel");
    }
    if heads {
        found.truncate(1);
    }
    found
}
