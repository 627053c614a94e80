//! `lscpu`: model of the CPUs, sockets, NUMA nodes.

use super::Format;
use crate::error::Result;
use crate::input::found::{CpuName, Found, Numa};
use crate::lines::lines;

/// The format.
pub(super) const FORMAT: Format = Format {
    name: "lscpu",
    title: "lscpu",
    sniff: |text| text.contains("Socket(s):") && text.contains("Vendor ID:"),
    read,
};

/// More NUMA nodes than any machine has.
const NODES_MAX: u32 = 64;

fn read(file: &str, text: &str) -> Result<Found> {
    let mut found = Found::from_source(file, FORMAT.title);
    let mut cpu = CpuName::default();
    let mut family = (None, None);
    let mut nodes = 0;
    for line in lines(text) {
        let Some((key, value)) = line.text.split_once(':') else { continue };
        let value = value.trim();
        match key.trim() {
            "Model name" if cpu.title.is_empty() => value.clone_into(&mut cpu.title),
            "Vendor ID" if cpu.vendor.is_empty() => value.clone_into(&mut cpu.vendor),
            "CPU family" => family.0 = value.parse().ok(),
            "Model" => family.1 = value.parse().ok(),
            "Socket(s)" => found.sockets = value.parse().ok().filter(|count| *count > 0),
            "NUMA node(s)" => nodes = value.parse().unwrap_or(0).min(NODES_MAX),
            _ => {}
        }
    }
    cpu.family = family.0.zip(family.1);
    found.numa = (0..nodes).map(|number| Numa { number, package: None, cpu: None }).collect();
    found.cpu = Some(cpu);
    Ok(found)
}
