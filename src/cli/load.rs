//! Names on the command line -> machines, with all checks.

use super::arguments::{ConstantsFrom, Machine};
use crate::error::{Error, Result};
use crate::fabric::{Calibration, DeviceClass, hardware};
use crate::input::{Loaded, Stated, calibration_json, embedded, load_machine, topology_json};
use crate::measurement::library;
use crate::suggestion::did_you_mean;
use crate::topology::Topology;
use crate::topology::link::Pcie;

/// Loads a machine of one or several files and checks it against the calibration too.
pub(super) fn machine(options: &Machine, calibration: &Calibration) -> Result<Loaded> {
    if options.topo.is_empty() {
        return Err(no_topology());
    }
    load_machine(&options.topo, &stated(&options.assume, calibration)?, &|topology| {
        hardware::faults(topology, calibration)
    })
}

/// Loads the machine of one name.
pub(super) fn topology(name: &str, calibration: &Calibration) -> Result<Topology> {
    Ok(machine(&named(&[name.to_owned()], &[]), calibration)?.topology)
}

/// A machine by the names of its files, with what is stated of it.
pub(super) fn named(topo: &[String], assume: &[String]) -> Machine {
    let (topo, assume) = (topo.to_vec(), assume.to_vec());
    Machine { topo, assume, constants: ConstantsFrom::default() }
}

/// Names of what can be stated.
const STATED: [&str; 5] = ["gpu", "switch", "cpu", "sockets", "pcie"];

/// Reads `gpu=h200` and the like.
pub(super) fn stated(texts: &[String], calibration: &Calibration) -> Result<Stated> {
    let mut stated = Stated::default();
    for text in texts {
        let wrong = |message: String, help: String| Error::request(message, help);
        let Some((name, value)) = text.split_once('=') else {
            let help = "such as gpu=h200 or pcie=5x16".to_owned();
            return Err(wrong(format!("`{text}` states nothing: expected NAME=VALUE"), help));
        };
        let other = texts.iter().find(|other| {
            other.split_once('=').is_some_and(|other| other.0 == name && other.1 != value)
        });
        if let Some(other) = other {
            let message = format!("`{text}` and `{other}` state two things of one");
            return Err(wrong(message, "leave one out".to_owned()));
        }
        let model = |class: DeviceClass| {
            let known = calibration.names(class);
            if known.contains(&value) {
                return Ok(Some(value.to_owned()));
            }
            let guess = did_you_mean(value, known.iter().copied());
            let help = format!(
                "{guess} known: {}; state the nearest of these, or add it to calibration/, where `like` names \
                 what stands in for it (docs/topology-files.md)",
                known.join(", ")
            );
            Err(wrong(format!("there is no {} `{value}`", class.word()), help.trim().to_owned()))
        };
        match name {
            "gpu" => stated.gpu = model(DeviceClass::Gpu)?,
            "switch" => stated.switch = model(DeviceClass::Switch)?,
            "cpu" => stated.cpu = model(DeviceClass::Socket)?,
            "sockets" => {
                let count = value.parse().ok().filter(|count| (1..=8).contains(count));
                let told = || wrong(format!("`{value}` sockets"), "1 to 8".to_owned());
                stated.sockets = Some(count.ok_or_else(told)?);
            }
            "pcie" => {
                let parts = value.split_once('x').and_then(|(generation, width)| {
                    Some((generation.parse::<u8>().ok()?, width.parse::<u8>().ok()?))
                });
                let sound = parts
                    .filter(|&(generation, width)| (Pcie { generation, width }).fault().is_none());
                let told =
                    || wrong(format!("`{value}` is no PCIe link"), "such as pcie=5x16".to_owned());
                stated.pcie = Some(sound.ok_or_else(told)?);
            }
            _ => {
                let guess = did_you_mean(name, STATED);
                let help = format!("{guess} known: {}", STATED.join(", "));
                return Err(wrong(format!("nothing is called `{name}`"), help.trim().to_owned()));
            }
        }
    }
    Ok(stated)
}

/// The program's constants, those of a file in their place. Commands have no other way to constants
/// (a test holds them to it), so that none ignores the flag.
pub(super) fn calibration(from: &ConstantsFrom) -> Result<Calibration> {
    match &from.calibration {
        Some(file) => calibration_json::load(file),
        None => Calibration::embedded(),
    }
}

/// A folder of observations or a log with the topology that they were taken on; of a folder its own
/// `topology.json` unless one is named, and of a folder of ours that of its machine.
pub(super) fn measured(folder: &str, topo: Option<&str>) -> Result<(String, String)> {
    let path = std::path::Path::new(folder);
    let own = path.join("topology.json");
    let ours = |machine: &&library::Machine| path.file_name().is_some_and(|n| n == machine.name);
    let topology = match (topo, library::MACHINES.iter().find(ours)) {
        (Some(name), _) => name.to_owned(),
        (None, _) if own.is_file() => own.display().to_string(),
        (None, Some(machine)) => machine.topology.to_owned(),
        (None, None) => {
            return Err(Error::request(
                format!("which machine was {folder} taken on?"),
                "name it with --topo, or put its topology.json into the folder",
            ));
        }
    };
    Ok((folder.to_owned(), topology))
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
            "a topology file, or one of the built-in machines: {}. For example: `simulate --topo {}`",
            names.join(", "),
            names[0]
        ),
    )
}
