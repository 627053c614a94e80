//! What a host takes to launch on its GPUs in turn: `measured/hosts.json`.

use serde::Deserialize;

use crate::error::{Result, embedded};
use crate::topology::Confidence;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hosts {
    #[expect(dead_code, reason = "for people")]
    comment: String,
    hosts: Vec<Host>,
}

/// A host whose launches are known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::measurement) struct Host {
    /// Folder of `measured/`.
    machine: String,
    /// A launch of a collective on one GPU, ns.
    pub(super) launch_ns: u32,
    /// A launch of grouped sends and receives on one GPU, ns.
    pub(super) send_launch_ns: u32,
    /// Largest of the rows that it was read off, bytes; 0: none that is predicted.
    pub(super) fitted_up_to_bytes: u64,
    /// Whether the source tells of no row that one process made it.
    #[serde(default)]
    all_rows: bool,
    /// Words of conditions whose rows were launched otherwise.
    #[serde(default)]
    except: Vec<String>,
    /// Rows that it was read off.
    #[expect(dead_code, reason = "for people")]
    source: String,
    #[expect(dead_code, reason = "for people")]
    confidence: Confidence,
}

/// The host of a folder, if its launches are known.
///
/// # Errors
/// When the embedded file is malformed, which a test excludes.
pub(super) fn host(machine: &str) -> Result<Option<Host>> {
    let text = include_str!("../../../measured/hosts.json");
    let all: Hosts = embedded("measured/hosts.json", text)?;
    Ok(all.hosts.into_iter().find(|host| host.machine == machine))
}

impl Host {
    /// Whether one process launched a row of this condition on all GPUs in turn, though the row does
    /// not say so.
    pub(super) fn launched_in_turn(&self, condition: &str) -> bool {
        self.all_rows && !self.except.iter().any(|word| condition.contains(word.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read() {
        let host = host("a100sxm80-x8-cw").expect("sound").expect("listed");
        assert!(host.launch_ns > 0 && host.send_launch_ns > host.launch_ns);
        assert!(super::host("another").expect("sound").is_none());
        assert!(!host.launched_in_turn("NCCL 2.12.12"));
        let every =
            super::host("asus-esc8000a-e13p-2xpex890xx-8gpu").expect("sound").expect("listed");
        assert!(every.launched_in_turn("default"));
        assert!(!every.launched_in_turn("SGLang auto-crossover at startup"));
    }
}
