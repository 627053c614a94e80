//! What a text is, by the tables of all readers, and which command reads it: for those who gave it to
//! another.

use super::formats::{self, head};
use super::{plans, traces};
use crate::error::{Error, Problem};
use crate::lines::lines;
use crate::measurement::logs;

/// A kind of text: what people call it, and the command that reads it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// What people call it.
    pub title: &'static str,
    /// The command line, between backticks.
    pub command: &'static str,
}

impl Kind {
    /// What to tell the one who gave such a text to another reader.
    pub fn advice(self) -> String {
        format!("{} reads it", self.command)
    }
}

/// What reads files of each table.
const MACHINE: &str = "`simulate --topo FILE`";
const LOG: &str = "`simulate check --measured FILE --topo MACHINE`";
const TRACE: &str = "`simulate import FILE`";
const FACTS: &str = "`simulate trace show FILE`";
const PLAN: &str = "`simulate schedule FILE --topo MACHINE`";

/// A form of our own: what people call it, a key that no other form has, and the command.
struct Own {
    title: &'static str,
    key: &'static str,
    command: &'static str,
}

const fn own(title: &'static str, key: &'static str, command: &'static str) -> Own {
    Own { title, key, command }
}

/// Name of the form of machines.
pub const TOPOLOGY: &str = "a topology";
/// Name of the form of workloads.
pub const SCENARIO: &str = "a scenario";
/// Name of the form of questions.
pub const QUESTION: &str = "a question";
/// Name of the form of grids.
pub const SWEEP: &str = "a plan of a sweep";
/// Name of the form of constants.
pub const CALIBRATION: &str = "a calibration";

/// Forms of our own.
const OWN: [Own; 6] = [
    own(TOPOLOGY, "nodes", MACHINE),
    own(SCENARIO, "tensor_parallel", "`simulate --topo MACHINE --scenario FILE`"),
    own(QUESTION, "sides", "`simulate ask FILE`"),
    own(SWEEP, "machines", "`simulate sweep plan FILE`"),
    own(CALIBRATION, "constants", "`simulate --topo MACHINE --calibration FILE`"),
    own("rows of a sweep", "shard", "`simulate sweep status FILE`"),
];

/// Whether a JSON text has a key, also when it is broken.
fn has(text: &str, key: &str) -> bool {
    let key = format!("\"{key}\"");
    let after = text.split(&key).skip(1);
    after.map(str::trim_start).any(|rest| rest.starts_with(':'))
}

/// The form of ours that a text is of.
fn own_form(text: &str) -> Option<Kind> {
    let found = OWN.iter().find(|form| has(text, form.key))?;
    Some(Kind { title: found.title, command: found.command })
}

/// The kind of a text, where a reader knows it. Logs of benchmarks come before traces: NCCL writes
/// into both.
pub fn kind(text: &str) -> Option<Kind> {
    let head = head(text);
    let of = |title: Option<&'static str>, command| title.map(|title| Kind { title, command });
    // Our own may hold words that logs are known by.
    if head.trim_start().starts_with('{') && has(head, "schema_version") {
        return own_form(text);
    }
    of(formats::recognise(head).map(|format| format.title), MACHINE)
        .or_else(|| of(plans::recognise(head).map(|format| format.title), PLAN))
        .or_else(|| of(logs::recognise(head).first().map(|format| format.title), LOG))
        .or_else(|| {
            let format = traces::recognise(head)?;
            let command = if format.tells_calls { TRACE } else { FACTS };
            Some(Kind { title: format.title, command })
        })
}

/// The error of a reader that a text of another kind was given to; `what` says what it is not. `None` of
/// texts that no reader knows, and of those of the reader's own `title`.
pub fn of_another(file: &str, text: &str, title: &str, what: &str) -> Option<Error> {
    let kind = kind(text).filter(|kind| kind.title != title)?;
    let message = format!("this looks like {}, {what}", kind.title);
    let mut problem = Problem::new(message, "").help(kind.advice());
    problem.span = lines(text).find(|line| !line.text.trim().is_empty()).map(|line| line.span);
    Some(Error::Input { file: file.to_owned(), text: text.to_owned(), problems: vec![problem] })
}
