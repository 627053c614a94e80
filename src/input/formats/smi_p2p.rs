//! `nvidia-smi topo -p2p r`: which GPUs may address each other.

use super::Format;
use super::smi_matrix::words;
use crate::error::{Error, Result};
use crate::input::found::Found;
use crate::input::found::matrix::is_gpu;
use crate::lines::{lines, problem};

/// The format.
pub(super) const FORMAT: Format =
    Format { name: "smi-p2p", title: "nvidia-smi topo -p2p", sniff, read };

/// Cells and what they mean.
const CELLS: [(&str, &str); 7] = [
    ("OK", "supported"),
    ("NS", "not supported"),
    ("CNS", "not supported by the chipset"),
    ("GNS", "not supported by the GPU"),
    ("TNS", "not supported by the topology"),
    ("DR", "disabled by a registry key"),
    ("U", "unknown"),
];

fn cell(word: &str) -> Option<&'static (&'static str, &'static str)> {
    CELLS.iter().find(|entry| entry.0 == word)
}

fn sniff(text: &str) -> bool {
    lines(text).any(|line| {
        let words = words(&line);
        words.len() > 1 && is_gpu(&words[0]) && words[1..].iter().any(|word| cell(word).is_some())
    })
}

fn read(file: &str, text: &str) -> Result<Found> {
    let mut found = Found::from_source(file, FORMAT.title);
    let (mut fine, mut refused) = (0, Vec::new());
    for line in lines(text) {
        let words = words(&line);
        if words.len() < 2 || !is_gpu(&words[0]) || is_gpu(&words[1]) {
            continue;
        }
        for word in words[1..].iter().filter(|word| *word != "X") {
            match cell(word) {
                Some(("OK", _)) => fine += 1,
                Some((_, why)) if !refused.contains(why) => refused.push(*why),
                Some(_) => {}
                None => {
                    let known = CELLS.map(|entry| entry.0).join(", ");
                    let wrong = problem(&line, format!("`{word}` is no state of P2P"), known);
                    let problems = vec![wrong];
                    return Err(Error::Input { file: file.into(), text: text.into(), problems });
                }
            }
        }
    }
    found.peer_to_peer = Some(refused.is_empty());
    if !refused.is_empty() && fine > 0 {
        found.remark(
            format!("some pairs have P2P, others not ({}): taken as none has", refused.join(", ")),
            "pairs with P2P are faster than predicted",
        );
    } else if !refused.is_empty() {
        found.remark(
            format!("P2P is off: {}", refused.join(", ")),
            "all goes through host memory, 2 to 5 times slower",
        );
    }
    Ok(found)
}
