//! What the switches of the whole machine can be: one rule for files, edits and flags.

use crate::error::Problem;
use crate::topology::{Settings, Topology};

/// Sizes of payloads and read requests that PCIe knows, bytes (base specification 5.0, section 7.5.3.4).
pub const SIZES: [u16; 6] = [128, 256, 512, 1024, 2048, 4096];
/// NUMA nodes that a socket can have (NPS, SNC).
pub const NUMA_NODES: [u8; 3] = [1, 2, 4];

/// What is wrong with a size of payloads or read requests.
pub fn size_fault(bytes: u64) -> Option<String> {
    let known = SIZES.iter().any(|&size| u64::from(size) == bytes);
    (!known).then(|| format!("{bytes} B: PCIe knows 128, 256, 512, 1024, 2048 and 4096"))
}

/// What is wrong with a number of NUMA nodes.
pub fn numa_fault(nodes: u64) -> Option<String> {
    let known = NUMA_NODES.iter().any(|&count| u64::from(count) == nodes);
    (!known).then(|| format!("{nodes} NUMA nodes: a socket has 1, 2 or 4 NUMA nodes"))
}

/// What is wrong with the settings of a topology.
pub(super) fn check(topology: &Topology) -> Vec<Problem> {
    let Settings { max_payload, max_read_request, numa_per_socket, .. } = &topology.settings;
    let size = |bytes: &Option<u16>| bytes.and_then(|bytes| size_fault(bytes.into()));
    let faults = [
        ("max_payload", size(max_payload)),
        ("max_read_request", size(max_read_request)),
        ("numa_per_socket", numa_per_socket.and_then(|nodes| numa_fault(nodes.into()))),
    ];
    let found = faults.into_iter().filter_map(|(key, fault)| Some((key, fault?)));
    found.map(|(key, fault)| Problem::new(fault, format!("settings.{key}"))).collect()
}
