//! Folders of tables, as the probe writes them -> observations and traces.

use std::path::Path;

use super::read_text;
use crate::error::{Error, Result};
use crate::measurement::table::{Row, with_header};
use crate::measurement::trace::{Trace, parse_traces};
use crate::measurement::{Record, read_tables};

/// Largest table read, bytes.
const LIMIT: u64 = 256 << 20;
/// Tables of observations: the first must be there.
const TABLES: [&str; 3] = ["observations.csv", "raw/latency_tiers.csv", "raw/contention.csv"];

/// Reads a user's own folder: `observations.csv`, and `raw/latency_tiers.csv` and
/// `raw/contention.csv` where they are, in the format of `measured/README.md`, taken on `topology`.
///
/// # Errors
/// [`Error::Read`] when there is no `observations.csv`, [`Error::Input`] for a malformed row.
pub fn observations(folder: &str, topology: &str) -> Result<Record> {
    let path = Path::new(folder);
    let name = path.file_name().map_or(folder, |name| name.to_str().unwrap_or(folder));
    let help = "a folder of observations holds observations.csv; measured/README.md says how";
    let mut texts = Vec::new();
    for (number, file) in TABLES.iter().enumerate() {
        if number == 0 || path.join(file).is_file() {
            texts.push((*file, table(path, file, help)?));
        }
    }
    let files: Vec<(&str, &str)> =
        texts.iter().map(|(file, text)| (*file, text.as_str())).collect();
    read_tables(name, topology, &files)
}

/// Reads the rows of `observations.csv` as they stand.
///
/// # Errors
/// [`Error::Read`] when there is none, [`Error::Input`] for a malformed row.
pub fn rows(folder: &str) -> Result<Vec<Row>> {
    let help = "the probe writes observations.csv; docs/probe.md says how";
    with_header("observations.csv", &table(Path::new(folder), TABLES[0], help)?)
}

/// Reads the traces of a folder that the probe wrote; the version of NCCL stands in `system.json`.
///
/// # Errors
/// [`Error::Read`] when there is no `traces.csv`, [`Error::Input`] for a malformed row.
pub fn traces(folder: &str) -> Result<Vec<Trace>> {
    let path = Path::new(folder);
    let help = "the probe writes traces.csv on two and more GPUs; docs/probe.md says how";
    let text = table(path, "traces.csv", help)?;
    let system = path.join("system.json");
    let system = match system.is_file() {
        true => read_text(&system.to_string_lossy(), LIMIT, "is it the probe's?")?,
        false => String::new(),
    };
    let system: serde_json::Value = serde_json::from_str(&system).unwrap_or_default();
    parse_traces("traces.csv", &text, system["nccl"].as_str().unwrap_or_default())
}

/// A table of a folder; `what` is said to the one who named a folder without it.
fn table(folder: &Path, file: &str, what: &str) -> Result<String> {
    let place = folder.join(file);
    let text = read_text(&place.to_string_lossy(), LIMIT, "one step in ten calls is enough");
    text.map_err(|error| match error {
        Error::Read { file, reason, .. } if !place.is_file() => {
            Error::Read { file, reason, help: what.to_owned() }
        }
        other => other,
    })
}
