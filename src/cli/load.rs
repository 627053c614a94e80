//! Names on the command line -> machines, with all checks.

use crate::error::{Error, Result};
use crate::fabric::{Calibration, DeviceClass};
use crate::input::{embedded, load_topology_with, topology_json};
use crate::topology::{Topology, checks};

/// Loads a topology and checks it against the calibration too.
pub(super) fn topology(name: &str, calibration: &Calibration) -> Result<Topology> {
    load_topology_with(name, &|topology| {
        let mut problems = checks::models(topology, &|word: &str| {
            let class = DeviceClass::ALL.iter().find(|entry| entry.1 == word);
            let names: Vec<&str> = match class {
                Some(entry) => calibration.names(entry.0),
                // Network adapters have no constants of their own: any will do.
                None => topology.nodes.iter().filter_map(|n| n.kind.model()).map(|m| m.1).collect(),
            };
            names.into_iter().map(str::to_owned).collect()
        });
        problems.extend(checks::lanes(topology, |model| {
            let lanes = calibration.value(DeviceClass::Switch, model, "lanes");
            lanes.ok().map(|lanes| lanes as u32)
        }));
        problems
    })
}

/// A built-in machine, whatever lies on disk.
pub(super) fn built_in(name: &str) -> Result<Topology> {
    match embedded::find(name) {
        Some(machine) => topology_json::parse(&machine.file_name(), machine.text),
        None => Err(Error::request(format!("there is no built-in machine {name}"), "")),
    }
}

/// What to say when no machine was named.
pub(super) fn no_topology() -> Error {
    let names = embedded::names();
    Error::request(
        "which machine? name it with --topo",
        format!(
            "a topology file, or one of the built-in machines: {}. For example: simulate --topo {}",
            names.join(", "),
            names[0]
        ),
    )
}
