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

/// The start of a text, as far as formats look.
pub(super) fn head(text: &str) -> &str {
    let mut end = text.len().min(HEAD);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
