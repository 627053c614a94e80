//! The rules of the engines as data, `calibration/serving.json`: which implementations an engine
//! tries in which order, and what each needs, with the place in the library that says so.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::needs::Needs;
use crate::error::{self, Error, Result};
use crate::topology::Confidence;

/// The rules that come with the program.
const TEXT: &str = include_str!("../../../calibration/serving.json");

/// A version of a library, such as 0.11.2; missing parts are zero when versions are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version(Vec<u32>);

impl Version {
    /// Reads `0.11`, `0.11.2` or `v0.11.2`.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Version> {
        let plain = text.trim().trim_start_matches('v');
        let parts: Option<Vec<u32>> = plain.split('.').map(|part| part.parse().ok()).collect();
        match parts {
            Some(mut parts) if parts.len() <= 4 => {
                while parts.len() > 1 && parts.last() == Some(&0) {
                    parts.pop();
                }
                Ok(Version(parts))
            }
            _ => {
                Err(Error::request(format!("`{text}` is no version"), "write it as 0.11 or 0.11.2"))
            }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(u32::to_string).collect();
        // `0.5` reads better than `0`, and a version has two parts at least.
        let tail = if parts.len() == 1 { ".0" } else { "" };
        write!(out, "{}{tail}", parts.join("."))
    }
}

impl TryFrom<String> for Version {
    type Error = Error;

    fn try_from(text: String) -> Result<Version> {
        Version::parse(&text)
    }
}

impl From<Version> for String {
    fn from(version: Version) -> String {
        version.to_string()
    }
}

/// All engines.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// The engines and libraries.
    pub engines: Vec<Engine>,
}

/// An engine, or a library with several implementations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// The word on the command line.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The version that is meant when none is told: the newest that was read.
    pub version: Version,
    /// The oldest version that the rules were held against.
    pub oldest: Version,
    /// The first candidate that is available is taken; otherwise the caller or a tuner decides.
    pub ordered: bool,
    /// Where the order stands.
    pub source: String,
    /// What a user can set.
    pub settings: Vec<Setting>,
    /// Implementations, in the order in which the engine tries them.
    pub candidates: Vec<Candidate>,
}

/// An environment variable, an option or a field that changes the choice.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// As the user writes it.
    pub name: String,
    /// What values it has.
    pub kind: SettingKind,
    /// The value of a choice that nobody set.
    #[serde(default)]
    pub default: Option<String>,
    /// What it is for.
    pub says: String,
    /// The version that brought it.
    #[serde(default)]
    pub since: Option<Version>,
}

/// What values a setting has.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// On or off, with what holds when nobody says.
    Switch(bool),
    /// One of these words.
    Choice(Vec<String>),
}

/// An implementation that an engine may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Short name.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The version that brought it.
    #[serde(default)]
    pub since: Option<Version>,
    /// What it runs: the first whose conditions hold.
    pub runs: Vec<Runs>,
    /// What it needs.
    pub rules: Vec<Rule>,
}

/// A kernel that a candidate launches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Runs {
    /// Conditions; all must hold.
    #[serde(default)]
    pub when: Vec<Needs>,
    /// The algorithm's name in [`crate::algorithm::ALGORITHMS`].
    pub algorithm: String,
    /// Whose kernel, by its key in `calibration/libraries.json`.
    pub implementation: String,
}

/// One thing that a candidate needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The rule asks only when all of these hold.
    #[serde(default)]
    pub when: Vec<Needs>,
    /// What it asks for.
    pub needs: Needs,
    /// Why the library asks for it.
    pub why: String,
    /// Function and file of the library.
    pub rule_of: String,
    /// What would lift it, for people.
    pub lifted_by: String,
    /// The setting that lifts it.
    #[serde(default)]
    pub lifted_by_setting: Option<String>,
    /// First version with it.
    #[serde(default)]
    pub since: Option<Version>,
    /// First version without it.
    #[serde(default)]
    pub until: Option<Version>,
    /// Where it was read.
    pub source: String,
    /// How far to trust it.
    pub confidence: Confidence,
}

impl Rule {
    /// Whether a version has the rule.
    pub fn holds_in(&self, version: &Version) -> bool {
        self.since.as_ref().is_none_or(|since| version >= since)
            && self.until.as_ref().is_none_or(|until| version < until)
    }
}

impl Rules {
    /// The rules that come with the program.
    ///
    /// # Errors
    /// When the embedded file is malformed, which a test excludes.
    pub fn embedded() -> Result<Rules> {
        error::embedded("calibration/serving.json", TEXT)
    }
}
