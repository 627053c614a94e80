//! What a text is, by the tables of all readers, and which command reads it: for those who gave it to
//! another.

use super::formats::{self, head};
use super::{plans, traces};
use crate::measurement::logs;

/// A kind of text: what people call it, and the command that reads it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What people call it.
    pub title: &'static str,
    /// The command line, between backticks.
    pub command: &'static str,
}

/// What reads files of each table.
const MACHINE: &str = "`simulate --topo FILE`";
const LOG: &str = "`simulate check --measured FILE --topo MACHINE`";
const TRACE: &str = "`simulate import FILE`";
const PLAN: &str = "`simulate schedule FILE --topo MACHINE`";

/// The kind of a text, where a reader knows it. Logs of benchmarks come before traces: NCCL writes
/// into both.
pub fn kind(text: &str) -> Option<Kind> {
    let head = head(text);
    let of = |title: Option<&'static str>, command| title.map(|title| Kind { title, command });
    of(formats::recognise(head).map(|format| format.title), MACHINE)
        .or_else(|| of(plans::recognise(head).map(|format| format.title), PLAN))
        .or_else(|| of(logs::recognise(head).first().map(|format| format.title), LOG))
        .or_else(|| of(traces::recognise(head).map(|format| format.title), TRACE))
}

/// What to tell the one who gave a text to the wrong reader: what it looks like, and what reads it.
pub(super) fn redirected(text: &str) -> Option<(String, String)> {
    let Kind { title, command } = kind(text)?;
    Some((title.to_owned(), format!("{command} reads it")))
}
