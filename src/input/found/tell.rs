//! What is told of a machine that was built: its title, and where sources contradict each other.

use super::links::list;
use super::{Found, Tree};
use crate::topology::Topology;
use crate::topology::checks::NAME_MAX;

/// The matrix that was read and the paths that came out must be the same, or it is said.
pub(super) fn tell_differences(found: &mut Found, topology: &Topology) {
    let Some(matrix) = found.matrix.take() else { return };
    let count = (matrix.gpus().len(), topology.gpus().len());
    if count.0 != count.1 {
        found.conflict(
            format!("the matrix shows {} GPUs, the PCI devices are {}", count.0, count.1),
            "paths are those of the PCI devices; is the matrix from a container or another machine?",
        );
    }
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for (a, b, said, built) in matrix.differences(topology) {
        let what = format!("{said} in the matrix, {built} here");
        let pair = format!("GPU{a}-GPU{b}");
        match kinds.iter_mut().find(|entry| entry.0 == what) {
            Some(entry) => entry.1.push(pair),
            None => kinds.push((what, vec![pair])),
        }
    }
    for (what, pairs) in kinds {
        let effect = if found.tree > Tree::None {
            "the PCI devices were believed, not the matrix"
        } else {
            "the matrix contradicts itself or shows what no tree of switches has"
        };
        found.conflict(format!("{}: {what}", list(&pairs)), effect);
    }
    found.matrix = Some(matrix);
}

/// Two words of a product name.
pub(super) fn short(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().take(4).collect();
    let mut name = words.join(" ");
    if name.chars().count() > NAME_MAX {
        name = name.chars().take(NAME_MAX).collect();
    }
    name
}

/// `8x rtx-pro-6000, 2 switches (pm50100), 2 sockets (epyc-turin)`.
pub(super) fn title(topology: &Topology) -> String {
    let models = topology.gpu_models();
    let mut parts = vec![format!("{}x {}", topology.gpus().len(), models.join(" and "))];
    let of_kind = |word: &str| -> Vec<&str> {
        let all = topology.nodes.iter().filter(|node| node.kind.word() == word);
        all.filter_map(|node| node.kind.model()).map(|model| model.1).collect()
    };
    for (word, one, many) in [
        ("NVSwitch", "NVSwitch", "NVSwitches"),
        ("PCIe switch", "switch", "switches"),
        ("socket", "socket", "sockets"),
    ] {
        let models = of_kind(word);
        let mut kinds = models.clone();
        kinds.dedup();
        match models.len() {
            0 => {}
            1 => parts.push(format!("{one} ({})", kinds.join(", "))),
            count => parts.push(format!("{count} {many} ({})", kinds.join(", "))),
        }
    }
    parts.join(", ")
}
