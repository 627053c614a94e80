//! The event loop: takes what actors are ready to do, injects it into a network, pops the next
//! event, handles it. Generic over the network model, so that nothing is looked up at run time.

pub mod arrival;
pub mod event_queue;
mod executor;
pub mod network;
pub mod observer;
pub mod outcome;
pub mod pool;
pub mod slots;
pub mod timeline;

pub use arrival::{Arrivals, Stay};
pub use executor::{RunOptions, run};
pub use outcome::{BlockUse, Outcome};
pub use timeline::Timeline;

use crate::error::{Error, Result};
use crate::fabric::Fabric;
use crate::schedule::Schedule;
use network::alpha_beta::AlphaBeta;
use network::max_min::MaxMin;
use network::packet::Packet;
use observer::Unobserved;
use timeline::Recorder;

/// A network model.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fidelity {
    /// Latency plus bytes over rate, nothing shared but a pair's own pipe.
    AlphaBeta,
    /// Flows that share links max-min fairly.
    MaxMin,
    /// Packets in class queues with credits.
    Packet,
}

impl Fidelity {
    /// All, with the names the command line takes.
    pub const ALL: [(Fidelity, &'static str); 3] = [
        (Fidelity::AlphaBeta, "alpha_beta"),
        (Fidelity::MaxMin, "max_min"),
        (Fidelity::Packet, "packet"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// The model of this name.
    ///
    /// # Errors
    /// When there is none, with the names that are.
    pub fn named(name: &str) -> Result<Fidelity> {
        Self::ALL.iter().find(|entry| entry.1 == name).map(|entry| entry.0).ok_or_else(|| {
            let names = Self::ALL.map(|entry| entry.1).join(", ");
            Error::request(format!("there is no network model `{name}`"), format!("known: {names}"))
        })
    }
}

/// Runs a schedule on a machine.
///
/// # Errors
/// When operations wait for each other or the event limit is reached.
pub fn simulate(
    fabric: &Fabric,
    schedule: &Schedule,
    fidelity: Fidelity,
    options: RunOptions,
) -> Result<Outcome> {
    let (outcome, _) = match fidelity {
        Fidelity::AlphaBeta => run(fabric, schedule, AlphaBeta::new(fabric, schedule), options),
        Fidelity::MaxMin => run(fabric, schedule, MaxMin::new(fabric, schedule), options),
        Fidelity::Packet => {
            run(fabric, schedule, Packet::new(fabric, schedule, Unobserved), options)
        }
    }?;
    Ok(outcome)
}

/// Runs a schedule on a machine packet by packet, and keeps what happened when.
///
/// # Errors
/// As [`simulate`].
pub fn record(
    fabric: &Fabric,
    schedule: &Schedule,
    options: RunOptions,
) -> Result<(Outcome, Timeline)> {
    let recorder = Recorder::new(schedule, fabric.links.len());
    let network = Packet::new(fabric, schedule, recorder);
    let (outcome, recorder) = run(fabric, schedule, network, options)?;
    let timeline = recorder.finish(outcome.ended);
    Ok((outcome, timeline))
}
