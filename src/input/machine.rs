//! One or several files of a machine -> its topology.

use std::path::Path;

use super::formats::{self, FORMATS, Format};
use super::found::build::{Stated, build};
use super::found::merge::merge;
use super::found::{Devices, Found};
use super::kinds::{kind, of_another};
use super::{topology_json, topology_text};
use crate::error::{Error, Problem, Result};
use crate::lines::lines;
use crate::topology::{Assumption, Topology, checks};

/// A machine as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// What is plugged into what.
    pub topology: Topology,
    /// The order of a ring over all GPUs, where a file gives one.
    pub ring: Option<Vec<u32>>,
}

/// A text and what it turned out to be.
enum Text {
    Topology { file: String, text: String },
    Found(Box<Found>),
}

/// Loads a machine from files of any kind in [`FORMATS`], each by its name, `-`, or
/// `FORMAT:FILE`; of a topology file of ours or a built-in machine there can be one. `more` are
/// checks of the caller, whose problems are placed and reported with the others: those that need
/// the calibration, such as [`models`](checks::models) and [`lanes`](checks::lanes).
///
/// # Errors
/// [`Error::Read`] when there is no such text, [`Error::Input`] with all that is wrong in it,
/// [`Error::Request`] when the files are not of one machine.
pub fn load_machine(
    names: &[String],
    stated: &Stated,
    more: &dyn Fn(&Topology) -> Vec<Problem>,
) -> Result<Loaded> {
    let (mut ours, mut found) = (None, Vec::new());
    for name in names {
        match read(name)? {
            Text::Found(one) => found.push(*one),
            Text::Topology { file, text } if ours.is_none() => ours = Some((file, text)),
            Text::Topology { file, .. } => {
                return Err(Error::request(
                    format!("{file} is a second topology file"),
                    "name one; facts of other files may come beside it",
                ));
            }
        }
    }
    match ours {
        Some((file, text)) => beside(topology_json::parse_with(&file, &text, more)?, found),
        None => {
            let name = names.iter().find(|name| *name != "-").map_or("machine", String::as_str);
            built(found, stated, &stem(name), more)
        }
    }
}

/// What files say of a machine, without topology files of ours.
///
/// # Errors
/// As [`load_machine`].
pub fn machine_texts(names: &[String]) -> Result<Vec<Found>> {
    let read = |name: &String| match read(name)? {
        Text::Found(found) => Ok(*found),
        Text::Topology { file, .. } => Err(Error::request(
            format!("{file} is a topology file, which says all by itself"),
            "name output of nvidia-smi, lspci, lstopo or lscpu",
        )),
    };
    names.iter().map(read).collect()
}

/// A topology of ours, and what other files say beside it.
fn beside(mut topology: Topology, found: Vec<Found>) -> Result<Loaded> {
    let mut ring = None;
    for mut one in found {
        let ranks = one.ring.take();
        let others = one.matrix.is_some() || !one.functions.is_empty() || !one.cards.is_empty();
        if others && one.matrix.is_none() {
            return Err(Error::request(
                format!("{} describes a machine beside a topology file", one.sources.join(", ")),
                "leave one out: a topology file says all by itself",
            ));
        }
        ring = ring.or(ranks);
        let Some(matrix) = &one.matrix else { continue };
        for (a, b, said, built) in matrix.differences(&topology) {
            topology.assumptions.push(Assumption {
                what: format!("conflict: GPU{a}-GPU{b} is {said} in the matrix, {built} here"),
                effect: "the topology file was believed".to_owned(),
                loud: true,
            });
        }
        topology.sources.extend(one.sources);
    }
    Ok(Loaded { ring: checked(ring, &topology)?, topology })
}

fn built(
    found: Vec<Found>,
    stated: &Stated,
    name: &str,
    more: &dyn Fn(&Topology) -> Vec<Problem>,
) -> Result<Loaded> {
    let machines = found.iter().filter(|one| one.ring.is_none()).count();
    if machines == 0 && !found.is_empty() {
        return Err(Error::request(
            "a graph file gives the order of rings, not the machine",
            "name the machine too: --topo topo.xml --topo graph.xml",
        ));
    }
    let merged = merge(found)?;
    let ring = merged.ring.clone();
    let topology = build(merged, &Devices::embedded()?, stated, name)?;
    sound(&topology, name, more)?;
    Ok(Loaded { ring: checked(ring, &topology)?, topology })
}

/// That what was read can be a machine: what [`topology_json::write`] makes of it can be read again.
///
/// # Errors
/// [`Error::Request`] with what is wrong first.
pub fn sound(
    topology: &Topology,
    name: &str,
    more: &dyn Fn(&Topology) -> Vec<Problem>,
) -> Result<()> {
    let mut problems = checks::check(topology);
    problems.extend(more(topology));
    let Some(problem) = problems.first() else { return Ok(()) };
    let help = match problem.help.as_str() {
        "" => "is the file whole, and of one machine?",
        help => help,
    };
    Err(Error::request(format!("{name}, as read: {}", problem.message), help))
}

/// A ring must go over GPUs of the machine.
fn checked(ring: Option<Vec<u32>>, topology: &Topology) -> Result<Option<Vec<u32>>> {
    let count = topology.gpus().len();
    let Some(missing) = ring.iter().flatten().find(|gpu| **gpu as usize >= count) else {
        return Ok(ring);
    };
    Err(Error::request(
        format!("the graph file has GPU {missing}, the machine has GPUs 0 to {}", count - 1),
        "is it the graph of another machine?",
    ))
}

/// Name of a machine by its file.
fn stem(name: &str) -> String {
    let name = prefixed(name).map_or(name, |(_, file)| file);
    let path = Path::new(name);
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("machine");
    stem.chars().take(checks::NAME_MAX).collect()
}

/// `FORMAT:FILE`, where no file has this name.
fn prefixed(name: &str) -> Option<(&str, &str)> {
    let (format, file) = name.split_once(':')?;
    let known = FORMATS.iter().any(|entry| entry.name == format);
    (known && !Path::new(name).exists()).then_some((format, file))
}

fn read(name: &str) -> Result<Text> {
    if let Some((format, file)) = prefixed(name) {
        let (file, text) = topology_text(file)?;
        return with(formats::named(format)?, &file, &text);
    }
    let (file, text) = topology_text(name)?;
    let json = text.trim_start().starts_with(['{', '[']) || text.trim().is_empty();
    // The words of a topology may be those that logs are known by.
    let ours = json && text.contains("\"schema_version\"");
    match formats::recognise(&text) {
        Some(format) => with(format, &file, &text),
        None if ours || json && kind(&text).is_none() => Ok(Text::Topology { file, text }),
        None => Err(unknown(&file, &text)),
    }
}

fn with(format: &Format, file: &str, text: &str) -> Result<Text> {
    Ok(Text::Found(Box::new((format.read)(file, text)?)))
}

/// A text that describes no machine: what it looks like, and who reads it.
fn unknown(file: &str, text: &str) -> Error {
    if let Some(other) = of_another(file, text, "", "which describes no machine") {
        return other;
    }
    let [titles, names] = [
        FORMATS.iter().map(|format| format.title).collect::<Vec<_>>().join(", "),
        FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", "),
    ];
    let message = "this describes no machine in any known form";
    let help = format!("known: our JSON, {titles}; FORMAT:FILE forces one ({names})");
    let mut problem = Problem::new(message, "").help(help);
    problem.span = lines(text).find(|line| !line.text.trim().is_empty()).map(|line| line.span);
    Error::Input { file: file.to_owned(), text: text.to_owned(), problems: vec![problem] }
}
