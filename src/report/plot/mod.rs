//! Pictures, one file a kind. A kind takes from a [`Study`] what it draws; how pictures look is in
//! [`style`] alone.

pub mod accuracy;
pub mod axis;
mod bars;
mod bus_bandwidth;
pub mod contention;
mod distribution;
pub mod errors;
pub mod frontier;
pub mod gallery;
mod heat;
mod latency;
pub mod letters;
mod lines;
pub mod machine;
mod pareto;
mod peers;
pub mod picture;
pub mod replay;
pub mod scatter;
mod step;
pub mod style;
mod time;
pub mod timeline;
mod waterfall;

pub use picture::Picture;

use crate::error::{Error, Result};
use crate::suggestion::known;
use crate::sweep::Study;

/// A kind of picture.
pub struct Kind {
    /// Its name on the command line and the stem of its file.
    pub name: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// It is of calls, which one GPU alone does not make.
    pub of_calls: bool,
    /// Draws it.
    pub draw: fn(&Study<'_>) -> Result<Picture>,
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    machine::KIND,
    time::KIND,
    bus_bandwidth::KIND,
    latency::KIND,
    waterfall::KIND,
    step::KIND,
    distribution::KIND,
    pareto::KIND,
    timeline::KIND,
    contention::KIND,
    peers::KIND,
    errors::KIND,
];

/// The kind of this name.
///
/// # Errors
/// [`Error::Request`] when there is none, with those that there are.
pub fn find(name: &str) -> Result<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let help = known(name, "known", KINDS.iter().map(|kind| kind.name));
        Error::request(format!("there is no picture `{name}`"), help)
    })
}

/// The machine's name, as titles have it.
fn machine_name(study: &Study<'_>) -> String {
    study.question.machine.topology.name.clone()
}

/// What pictures over sizes are of.
fn subject(study: &Study<'_>) -> String {
    let question = &study.question;
    let gpus = question.options.gpus.len();
    let what = question.scenario.steps[0].collective.title();
    format!("{what} on {gpus} GPUs: {}", question.machine.topology.name)
}
