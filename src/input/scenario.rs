//! The scenarios that come with the program, and those of users.

use std::path::Path;

use super::embedded::{Embedded, embedded};
use super::{read_text, scenario_json, traces};
use crate::error::{Error, Result};
use crate::suggestion::known;
use crate::workload::Scenario;

/// All of them; the first is the default.
pub const SCENARIOS: &[Embedded] = embedded![
    "scenarios":
    "kimi-k25-tp8",
    "deepseek-v3-tp8",
    "glm-5-tp8",
    "llama-70b-tp8",
    "qwen3-5-397b-tp4",
];

/// All names, in the order in which they are listed.
pub fn names() -> Vec<&'static str> {
    SCENARIOS.iter().map(|scenario| scenario.name).collect()
}

/// Loads a scenario: a file, also a trace of what ran, or the name of a built-in one with or without `.json`. A file of that
/// name on disk wins.
///
/// # Errors
/// [`Error::Read`] when there is no such text, [`Error::Input`] with all that is wrong in it.
pub fn load_scenario(name_or_path: &str) -> Result<Scenario> {
    let stem = name_or_path.strip_suffix(".json").unwrap_or(name_or_path);
    let built_in = SCENARIOS.iter().find(|scenario| scenario.name == stem);
    let on_disk = name_or_path == "-" || Path::new(name_or_path).exists();
    match built_in {
        Some(found) if !Path::new(name_or_path).is_file() => {
            scenario_json::parse(&found.file_name(), found.text)
        }
        _ if on_disk => {
            if let Some(imported) = traces::scenario_of(name_or_path) {
                return imported;
            }
            let text = read_text(name_or_path, scenario_json::LIMIT, "a scenario is a few lines")?;
            scenario_json::parse(name_or_path, &text)
        }
        _ => Err(Error::Read {
            file: name_or_path.to_owned(),
            reason: "no such file, and no built-in scenario of this name".to_owned(),
            help: known(stem, "built-in scenarios", names()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_sound_and_says_what_it_is() {
        for embedded in SCENARIOS {
            let scenario = scenario_json::parse(&embedded.file_name(), embedded.text)
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.name, embedded.name);
            assert!(!scenario.title.is_empty() && !scenario.sources.is_empty());
        }
    }

    #[test]
    fn faults_are_placed() {
        let text = SCENARIOS[0].text.replace("\"calls\": 122", "\"calls\": 0");
        let error = scenario_json::parse("s.json", &text).expect_err("a fault");
        let picture = crate::input::render(&error, false);
        assert!(picture.contains("s.json:") && picture.contains("0 calls are out of range"));
    }
}
