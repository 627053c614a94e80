//! What can go wrong with an input, told so that a person can mend it: the file, the place, what
//! was expected, what to do.

use std::fmt;

use serde::de::DeserializeOwned;

use crate::units::Time;

/// Where in a text something is wrong, as a byte range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// One thing wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, a sentence without a full stop.
    pub message: String,
    /// Where, as a path into the document such as `links[3].b`; empty for the whole file.
    pub path: String,
    /// Where, as bytes of the text, when known.
    pub span: Option<Span>,
    /// What to do about it; empty when the message says it all.
    pub help: String,
}

impl Problem {
    /// A problem at `path`.
    pub fn new(message: impl Into<String>, path: impl Into<String>) -> Problem {
        Problem { message: message.into(), path: path.into(), span: None, help: String::new() }
    }

    /// The same with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = help.into();
        self
    }
}

/// An error of an input or of a request; every variant ends the program with exit code 2.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {file}: {reason}")]
    Read {
        /// The file as given.
        file: String,
        /// The system's reason, or ours.
        reason: String,
        /// What to do.
        help: String,
    },
    /// A file was read and its content is wrong, in one or more places.
    #[error("{}", summary(file, problems))]
    Input {
        /// The file as given, or a name for embedded text.
        file: String,
        /// Its text, for drawing the places.
        text: String,
        /// All that is wrong, in the order of the file.
        problems: Vec<Problem>,
    },
    /// The request makes no sense for this machine or at all.
    #[error("{message}")]
    Request {
        /// What was asked and why it cannot be.
        message: String,
        /// What to do instead.
        help: String,
    },
    /// The simulation could not finish: operations wait for each other, or the event limit struck.
    #[error("{0}")]
    Stuck(Stuck),
}

impl Error {
    /// A request that cannot be met.
    pub fn request(message: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Request { message: message.into(), help: help.into() }
    }

    /// A data file that comes with the program is not what it should be.
    pub fn damaged(file: &str, reason: impl fmt::Display) -> Error {
        Error::Read {
            file: file.to_owned(),
            reason: reason.to_string(),
            help: "this file comes with the program: it is damaged, which is a bug".to_owned(),
        }
    }
}

/// Reads a data file that comes with the program; `file` is its path in the repository.
///
/// # Errors
/// [`Error::Read`] when it is damaged, which a test of each file excludes.
pub fn embedded<T: DeserializeOwned>(file: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::damaged(file, error))
}

fn summary(file: &str, problems: &[Problem]) -> String {
    match problems {
        [] => format!("{file}: invalid"),
        [one] if one.path.is_empty() => format!("{file}: {}", one.message),
        [one] => format!("{file}: {}: {}", one.path, one.message),
        [first, rest @ ..] => {
            format!("{file}: {}: {} (and {} more)", first.path, first.message, rest.len())
        }
    }
}

/// Why a simulation did not finish, with the culprits named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// No event is left, but these still wait.
    Deadlock {
        /// One line a waiting block: who, at which operation, for what.
        waiting: Vec<String>,
    },
    /// The limit of events was reached.
    EventLimit {
        /// The limit.
        limit: u64,
        /// Simulated time reached.
        reached: Time,
        /// One line a block that had not ended, as of a deadlock.
        waiting: Vec<String>,
    },
}

impl fmt::Display for Stuck {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stuck::Deadlock { waiting } => {
                write!(out, "the schedule deadlocks: {}", waiting.join("; "))
            }
            Stuck::EventLimit { limit, reached, waiting } => {
                let waiting = waiting.join("; ");
                write!(
                    out,
                    "stopped after {limit} events at {reached} of simulated time: {waiting}"
                )
            }
        }
    }
}

impl From<Stuck> for Error {
    fn from(stuck: Stuck) -> Error {
        Error::Stuck(stuck)
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
