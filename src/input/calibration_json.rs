//! A calibration of one's own: constants that replace those of the program, as `simulate calibrate`
//! writes them.

use serde::{Deserialize, Serialize};

use super::json_error::{other_version, read_own};
use super::kinds::CALIBRATION;
use super::places::Places;
use super::read_text;
use crate::error::{Error, Problem, Result};
use crate::fabric::calibration::{Constant, OFF_MAX};
use crate::fabric::{Calibration, DeviceClass};
use crate::suggestion::did_you_mean;

/// Largest file read, bytes.
const LIMIT: u64 = 4 << 20;
/// The form's version.
const SCHEMA_VERSION: u32 = 1;

/// The file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationFile {
    /// Version of this form: 1.
    pub schema_version: u32,
    /// What it was fitted to, for people.
    #[serde(default)]
    pub title: String,
    /// Constants, each in place of the program's.
    pub constants: Vec<Replaced>,
}

/// A constant in place of the program's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replaced {
    /// `class/device/name`, such as `gpu/rtx-4090/stream_launch`.
    pub name: String,
    /// Value, unit, source and confidence.
    pub constant: Constant,
}

/// Class, device and name of `class/device/name`, if the calibration knows it.
///
/// # Errors
/// [`Error::Request`] with the nearest name.
pub fn find(calibration: &Calibration, name: &str) -> Result<(DeviceClass, String, String)> {
    let parts: Vec<&str> = name.split('/').collect();
    let [word, device, constant] = parts[..] else {
        return Err(Error::request(
            format!("`{name}` names no constant"),
            "a constant is class/device/name, such as gpu/rtx-4090/stream_launch",
        ));
    };
    let classes = DeviceClass::ALL.iter().map(|entry| entry.1);
    let Some(class) = DeviceClass::ALL.iter().find(|entry| entry.1 == word) else {
        let help = format!("{} classes: {}", did_you_mean(word, classes.clone()), join(classes));
        return Err(Error::request(format!("there is no class `{word}`"), help.trim_start()));
    };
    let class = class.0;
    if let Err(error) = calibration.constant(class, device, constant) {
        let known: Vec<&str> = match calibration.knows(class, device) {
            true => calibration.iter().filter(|c| c.0 == class).map(|c| c.2).collect(),
            false => calibration.names(class),
        };
        let wrong = if calibration.knows(class, device) { constant } else { device };
        let guess = did_you_mean(wrong, known.iter().copied());
        let help = format!("{guess} `simulate constants` lists them");
        return Err(Error::request(error.to_string(), help.trim_start()));
    }
    Ok((class, device.to_owned(), constant.to_owned()))
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<&str>>().join(", ")
}

/// The program's constants with those of a file in their place.
///
/// # Errors
/// [`Error::Read`] for a file that cannot be read, [`Error::Input`] for what is wrong in it.
pub fn load(path: &str) -> Result<Calibration> {
    let text = read_text(path, LIMIT, "a calibration has a line a constant")?;
    parse(path, &text)
}

/// As [`load`], from a text that errors call `file`.
///
/// # Errors
/// [`Error::Input`] for what is wrong in it.
pub fn parse(file: &str, text: &str) -> Result<Calibration> {
    let failed = |problems| Error::Input { file: file.to_owned(), text: text.to_owned(), problems };
    let read: CalibrationFile = read_own(file, text, CALIBRATION)?;
    let mut calibration = Calibration::embedded()?;
    let mut problems = Vec::from_iter(other_version(read.schema_version, SCHEMA_VERSION));
    for (index, Replaced { name, constant }) in read.constants.into_iter().enumerate() {
        let path = format!("constants[{index}]");
        match find(&calibration, &name) {
            Err(error) => problems.push(Problem::new(error.to_string(), path + ".name")),
            Ok((class, device, key)) => {
                let known = calibration.constant(class, &device, &key)?;
                if known.unit != constant.unit {
                    let message = format!("{} in `{}`", name, constant.unit);
                    let help = format!("it is counted in {}", known.unit);
                    problems.push(Problem::new(message, path + ".constant.unit").help(help));
                } else if !known.may_be(constant.value) {
                    let message = format!("{} is no value of a constant", constant.value);
                    let help = format!(
                        "the program's own is {} {}; {OFF_MAX} times more or less is taken at most",
                        known.value, known.unit
                    );
                    problems.push(Problem::new(message, path + ".constant.value").help(help));
                } else {
                    calibration.put(class, &device, &key, constant);
                }
            }
        }
    }
    if problems.is_empty() {
        return Ok(calibration);
    }
    let places = Places::new(text);
    for problem in &mut problems {
        problem.span = places.value(&problem.path);
    }
    Err(failed(problems))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_values_are_refused_of_every_constant() {
        let calibration = Calibration::embedded().expect("embedded");
        for (_, device, name, known) in calibration.iter() {
            assert!(known.may_be(known.value), "{device} {name}: the program's own");
            for value in [-1.0, f64::NAN, f64::INFINITY, 1e15, 1e308] {
                assert!(!known.may_be(value), "{device} {name}: {value}");
            }
            let smaller = [0.0, 1e-300].into_iter().filter(|_| known.value > 0.0);
            for value in smaller {
                assert!(!known.may_be(value), "{device} {name}: {value}");
            }
        }
    }

    const FILE: &str = r#"{"schema_version": 1, "constants": [{"name": "gpu/rtx-4090/stream_launch",
        "constant": {"value": 5100, "unit": "ns", "source": "own", "confidence": "measured"}}]}"#;

    #[test]
    fn a_constant_is_replaced_for_its_device_only() {
        let own = parse("own.json", FILE).expect("reads");
        let value = |device| own.value(DeviceClass::Gpu, device, "stream_launch").expect("known");
        assert_eq!((value("rtx-4090"), value("h200")), (5100.0, 3700.0));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let wrong = |from: &str, to: &str| {
            let text = FILE.replace(from, to);
            let error = parse("own.json", &text).expect_err("wrong");
            crate::input::render(&error, false)
        };
        assert!(wrong("stream_launch", "stream_lunch").contains("no `stream_lunch`"));
        assert!(wrong("\"ns\"", "\"us\"").contains("it is counted in ns"));
        assert!(wrong("5100", "-1").contains("is no value"));
        assert!(wrong(": 1,", ": 2,").contains("version 2 is not known"));
        let calibration = Calibration::embedded().expect("embedded");
        let error = find(&calibration, "gpus/h200/fence").expect_err("no class");
        assert!(error.to_string().contains("no class `gpus`"));
    }
}
