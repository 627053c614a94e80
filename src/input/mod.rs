//! Text -> the nouns of the simulator: one file a format, and the machines that come with it.

pub mod calibration_json;
pub mod embedded;
pub mod folder;
pub mod formats;
pub mod found;
pub mod here;
mod json_error;
pub mod kinds;
mod layout;
mod machine;
pub mod nccl_xml;
mod places;
pub mod plans;
pub mod questions;
mod read;
pub mod render;
pub mod scenario;
pub mod scenario_json;
pub mod topology_json;
pub mod traces;
mod utf16;
mod xml;

use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::suggestion::known;
use crate::topology::Topology;

pub use found::build::Stated;
pub use json_error::{read_form, read_list};
pub use machine::{Loaded, load_machine, machine_texts, sound};
pub use read::read_text;
pub use render::render;
pub use scenario::load_scenario;

/// Largest topology file read, in bytes.
const TOPOLOGY_LIMIT: u64 = 4 << 20;
/// What to say of a larger one.
const TOPOLOGY_IS_SMALL: &str = "a topology of 1000 GPUs is under 1 MiB: is it the right file?";

/// Loads a topology: a file of any kind in [`formats`], `-` for standard input, or the name of a
/// built-in machine with or without `.json`. A file of that name on disk wins.
///
/// # Errors
/// [`Error::Read`] when there is no such text, [`Error::Input`] with all that is wrong in it.
pub fn load_topology(name_or_path: &str) -> Result<Topology> {
    let names = [name_or_path.to_owned()];
    Ok(load_machine(&names, &Stated::default(), &|_| Vec::new())?.topology)
}

/// The text that a name means, and what to call it.
fn topology_text(name_or_path: &str) -> Result<(String, String)> {
    if name_or_path == "-" {
        let text = read_text("-", TOPOLOGY_LIMIT, TOPOLOGY_IS_SMALL)?;
        return Ok(("standard input".to_owned(), text));
    }
    let path = Path::new(name_or_path);
    let built_in = embedded::find(name_or_path);
    if let Some(machine) = built_in
        && !path.is_file()
    {
        return Ok((machine.file_name(), machine.text.to_owned()));
    }
    let missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    if path.metadata().is_err_and(missing) {
        return Err(no_such_topology(name_or_path));
    }
    let text = read_text(name_or_path, TOPOLOGY_LIMIT, TOPOLOGY_IS_SMALL)?;
    Ok((name_or_path.to_owned(), text))
}

fn no_such_topology(name: &str) -> Error {
    let names = embedded::names();
    let stem = Path::new(name).file_name().and_then(|file| file.to_str()).unwrap_or(name);
    let stem = stem.strip_suffix(".json").unwrap_or(stem);
    Error::Read {
        file: name.to_owned(),
        reason: "no such file, and no built-in machine of this name".to_owned(),
        help: known(stem, "built-in machines", names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_error(name: &str) -> (String, String) {
        match load_topology(name) {
            Err(Error::Read { reason, help, .. }) => (reason, help),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn built_in_machines_are_found_from_anywhere() {
        for name in ["rtxpro6000x8", "rtxpro6000x8.json"] {
            assert_eq!(load_topology(name).expect("built in").name, "rtxpro6000x8");
        }
    }

    #[test]
    fn a_slip_in_the_name_is_recognised() {
        let (reason, help) = read_error("some/where/rtxpro600x8.json");
        assert_eq!(reason, "no such file, and no built-in machine of this name");
        assert!(help.starts_with("did you mean `rtxpro6000x8`? built-in machines: "), "{help}");
    }

    #[test]
    fn a_directory_is_no_topology() {
        assert_eq!(read_error("/").0, "it is a directory");
    }
}
