//! Every kind of file that describes a machine, recognised by its content. A new one is a file
//! here, its `mod` line, and its entry in [`FORMATS`].

mod hwloc;
mod lscpu;
mod lspci;
mod lspci_tree;
mod nccl_graph;
mod nccl_system;
mod smi_csv;
mod smi_matrix;
mod smi_nvlink;
mod smi_p2p;
mod smi_query;
mod text;

use super::found::Found;
use crate::error::{Error, Result};
use crate::suggestion::known;

/// A kind of file.
pub struct Format {
    /// Name for the prefix `NAME:FILE`.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Whether a text is one.
    pub sniff: fn(&str) -> bool,
    /// Reads it; the first argument names the file in errors.
    pub read: fn(&str, &str) -> Result<Found>,
}

/// All of them; the first whose `sniff` says yes reads a text.
pub const FORMATS: &[Format] = &[
    nccl_system::FORMAT,
    nccl_graph::FORMAT,
    hwloc::FORMAT,
    smi_query::XML,
    smi_p2p::FORMAT,
    smi_matrix::FORMAT,
    smi_nvlink::FORMAT,
    smi_query::FORMAT,
    smi_csv::FORMAT,
    lspci::FORMAT,
    lspci_tree::FORMAT,
    lscpu::FORMAT,
];

/// Files that are something else, each with what it is and who reads it.
const OTHERS: &[(&str, &str, &[&str])] = &[
    (
        "a log of nccl-tests",
        "simulate check --topo MACHINE FILE",
        &["out-of-place", "busbw", "# nThread"],
    ),
    ("a log of NCCL", "simulate check --topo MACHINE FILE", &["NCCL INFO"]),
    (
        "output of p2pBandwidthLatencyTest",
        "simulate check --topo MACHINE FILE",
        &["P2P=Enabled", "P2P Connectivity Matrix"],
    ),
    ("output of nvbandwidth", "simulate check --topo MACHINE FILE", &["nvbandwidth Version"]),
    ("a trace of the torch profiler", "--scenario FILE", &["\"traceEvents\""]),
    ("a schedule of MSCCL", "simulate schedule FILE --topo MACHINE", &["<algo "]),
];

/// How much of a text is looked at to recognise it.
pub const HEAD: usize = 1 << 16;

/// The format of a text.
pub fn recognise(text: &str) -> Option<&'static Format> {
    let head = head(text);
    FORMATS.iter().find(|format| (format.sniff)(head))
}

/// The format of this name.
///
/// # Errors
/// [`Error::Request`] with the names that there are.
pub fn named(name: &str) -> Result<&'static Format> {
    FORMATS.iter().find(|format| format.name == name).ok_or_else(|| {
        let help = known(name, "known", FORMATS.iter().map(|format| format.name));
        Error::request(format!("there is no format `{name}`"), help)
    })
}

/// What a text is that describes no machine: a name, and what reads it.
pub fn something_else(text: &str) -> Option<(&'static str, &'static str)> {
    let head = head(text);
    OTHERS
        .iter()
        .find(|entry| entry.2.iter().any(|sign| head.contains(sign)))
        .map(|entry| (entry.0, entry.1))
}

/// The start of a text, as far as formats look.
fn head(text: &str) -> &str {
    let mut end = text.len().min(HEAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
