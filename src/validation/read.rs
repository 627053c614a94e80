//! The rows that a check or a fit is asked for: ours, a folder of one's own, or a log.

use std::path::Path;

use super::check::CheckOptions;
use crate::error::Result;
use crate::input::{self, kinds};
use crate::measurement::{self, Observation, Skipped, library, logs};

/// Largest log read, bytes.
const LOG_LIMIT: u64 = 64 << 20;

/// What is checked.
#[derive(Clone, Debug)]
pub struct Read {
    /// Rows with a run.
    pub observations: Vec<Observation>,
    /// The others.
    pub skipped: Vec<Skipped>,
    /// What a log says of its circumstances, and what is odd about it.
    pub notes: Vec<String>,
}

/// The observations that are asked for, and the rows that nothing is predicted for.
///
/// # Errors
/// Malformed tables.
pub fn observations(options: &CheckOptions) -> Result<Read> {
    let holds = |filter: &Option<String>, name: &str| {
        filter.as_ref().is_none_or(|part| name.contains(part.as_str()))
    };
    // A built-in topology's name stands for the machines that it describes.
    let named = |name: &str| {
        let described = |machine: &library::Machine| {
            machine.name == name && options.machine.as_deref() == Some(machine.topology)
        };
        holds(&options.machine, name) || library::MACHINES.iter().any(described)
    };
    let (mut all, mut notes) = (measurement::Record::default(), Vec::new());
    match &options.own {
        Some((file, topology)) if file == "-" || Path::new(file).is_file() => {
            let text = input::read_text(file, LOG_LIMIT, "a log of a benchmark is shorter")?;
            if logs::recognise(&text).is_empty() {
                let other = kinds::of_another(file, &text, "", "which holds no measurements");
                other.map_or(Ok(()), Err)?;
            }
            let log = logs::read_log(file, &text, topology)?;
            notes.push(format!("{file}: {}", log.titles.join(", ")));
            notes.extend(log.facts);
            notes.extend(log.warnings.into_iter().map(|warning| format!("warning: {warning}")));
            all = log.record;
        }
        Some((directory, topology)) => {
            all = input::folder::observations(directory, topology)?;
        }
        None => {
            let described = |machine: &&library::Machine| {
                options.topology.as_deref().is_none_or(|topology| topology == machine.topology)
            };
            let wanted = |machine: &&library::Machine| named(machine.name);
            for machine in library::MACHINES.iter().filter(wanted).filter(described) {
                let record = measurement::read_machine(machine)?;
                all.observations.extend(record.observations);
                all.skipped.extend(record.skipped);
            }
        }
    }
    all.observations.retain(|observation| {
        named(&observation.machine) && holds(&options.experiment, &observation.experiment)
    });
    all.skipped.retain(|skipped| named(&skipped.machine));
    Ok(Read { observations: all.observations, skipped: all.skipped, notes })
}
