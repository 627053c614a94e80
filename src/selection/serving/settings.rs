//! What a user has set, given as strings: `VLLM_X=1`, `--an-option`, `--an-option value`.

use super::rules::{Engine, Setting, SettingKind, Version};
use crate::error::{Error, Result};
use crate::suggestion::did_you_mean;

/// Settings of one engine that were told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    told: Vec<(String, String)>,
}

impl Settings {
    /// Reads settings; an option's value may be joined by `=` or follow after a blank.
    ///
    /// # Errors
    /// Names that the engine does not have, or not in this version, values of the wrong kind, and
    /// settings told twice.
    pub fn read(engine: &Engine, version: &Version, texts: &[String]) -> Result<Settings> {
        let mut told: Vec<(String, String)> = Vec::new();
        for text in texts {
            let (name, value) = match text.split_once(['=', ' ']) {
                Some((name, value)) => (name.trim(), Some(value.trim())),
                None => (text.trim(), None),
            };
            let setting = find(engine, name)?;
            if let Some(since) = setting.since.as_ref().filter(|since| version < *since) {
                return Err(Error::request(
                    format!("{} {version} has no {name} yet", engine.title),
                    format!("{since} was the first version read that has it"),
                ));
            }
            if told.iter().any(|one| one.0 == name) {
                return Err(Error::request(format!("{name} is set twice"), "leave one of them"));
            }
            told.push((name.to_owned(), checked(setting, value)?));
        }
        Ok(Settings { told })
    }

    /// Whether the user said anything of a setting.
    pub fn told(&self, name: &str) -> Option<&str> {
        self.told.iter().find(|one| one.0 == name).map(|one| one.1.as_str())
    }

    /// Whether a switch is on, or a choice was made; what nobody set has its default.
    pub fn on(&self, engine: &Engine, name: &str) -> bool {
        let setting = engine.settings.iter().find(|setting| setting.name == name);
        match (setting.map(|setting| &setting.kind), self.told(name)) {
            (Some(SettingKind::Switch(default)), told) => {
                told.map_or(*default, |value| value == "1")
            }
            (Some(SettingKind::Choice(_)), told) => told.is_some(),
            (None, _) => false,
        }
    }

    /// The value of a choice, told or by default.
    pub fn choice<'a>(&'a self, engine: &'a Engine, name: &str) -> Option<&'a str> {
        let setting = engine.settings.iter().find(|setting| setting.name == name)?;
        self.told(name).or(setting.default.as_deref())
    }
}

fn find<'a>(engine: &'a Engine, name: &str) -> Result<&'a Setting> {
    let names = || engine.settings.iter().map(|setting| setting.name.as_str());
    engine.settings.iter().find(|setting| setting.name == name).ok_or_else(|| {
        let guess = did_you_mean(name, names());
        let space = if guess.is_empty() { "" } else { " " };
        let known: Vec<&str> = names().collect();
        let known = match known[..] {
            [] => "it has none that change the choice".to_owned(),
            _ => format!("known: {}", known.join(", ")),
        };
        Error::request(
            format!("{} has no setting `{name}` that is known here", engine.title),
            format!("{guess}{space}{known}"),
        )
    })
}

/// A value as it is kept: `1` or `0` for switches, the word of a choice.
fn checked(setting: &Setting, value: Option<&str>) -> Result<String> {
    let name = &setting.name;
    match (&setting.kind, value) {
        (SettingKind::Switch(_), None) if name.starts_with('-') => Ok("1".into()),
        (SettingKind::Switch(_), Some("1" | "true" | "True" | "on" | "yes")) => Ok("1".into()),
        (SettingKind::Switch(_), Some("0" | "false" | "False" | "off" | "no")) => Ok("0".into()),
        (SettingKind::Switch(_), _) => Err(Error::request(
            format!("{name} is on or off, not `{}`", value.unwrap_or_default()),
            format!("write {name}=1 or {name}=0"),
        )),
        (SettingKind::Choice(words), Some(value)) if words.iter().any(|word| word == value) => {
            Ok(value.to_owned())
        }
        (SettingKind::Choice(words), _) => {
            let value = value.unwrap_or_default();
            let guess = did_you_mean(value, words.iter().map(String::as_str));
            let space = if guess.is_empty() { "" } else { " " };
            Err(Error::request(
                format!("{name} cannot be `{value}`"),
                format!("{guess}{space}one of {}", words.join(", ")),
            ))
        }
    }
}
