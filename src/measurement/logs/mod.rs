//! Logs of benchmarks, as programs print them, recognised by their content. A new one is a file
//! here, its `mod` line, and its entry in [`LOGS`].

mod nccl_json;
pub mod nccl_lines;
mod nccl_tests;
mod nvbandwidth;
mod p2p_bandwidth;
mod pairs;
mod simple_p2p;
mod sizes;

use serde_json::Value;

use super::Record;
use super::read::{About, Sink};
use crate::error::{Error, Problem, Result, Span};
use crate::units::{RATES_GB_PER_S, TIMES_US, is_rate_gb_per_s, is_time_us};

/// A kind of log.
pub struct LogFormat {
    /// What people call it.
    pub title: &'static str,
    /// Whether a text is one, or has one within it.
    pub sniff: fn(&str) -> bool,
    /// Reads all that it holds.
    pub(super) read: fn(&str, &mut Reading) -> Result<()>,
}

/// All of them; every one whose `sniff` says yes reads a text, so that logs may be joined.
pub const LOGS: &[LogFormat] = &[
    nccl_tests::FORMAT,
    nccl_json::FORMAT,
    p2p_bandwidth::FORMAT,
    nvbandwidth::FORMAT,
    nvbandwidth::JSON,
    simple_p2p::FORMAT,
];

/// What a log holds.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Programs whose output it is.
    pub titles: Vec<&'static str>,
    /// Rows with a run, and those that nothing is predicted for.
    pub record: Record,
    /// What it says of its circumstances, such as `NCCL 2.29.2` or `graph 1`.
    pub facts: Vec<String>,
    /// What is odd about it: lines cut off, figures that contradict each other.
    pub warnings: Vec<String>,
}

/// What a reader fills.
pub(super) struct Reading {
    file: String,
    sink: Sink,
    pub(super) facts: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Reading {
    /// The file as given; names of programs in it tell what they measured.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Place of a line for people.
    pub(super) fn place(&self, line: usize) -> String {
        format!("{}:{line}", self.file)
    }

    /// Adds a figure.
    pub(super) fn add(
        &mut self,
        line: usize,
        about: About,
        run: super::Run,
        value: (f64, &'static str),
    ) {
        let place = self.place(line);
        let (figure, unit) = value;
        let impossible = match unit {
            "us" => (!is_time_us(figure)).then_some(TIMES_US),
            // Of zero the sink says what it means.
            _ => (figure != 0.0 && !is_rate_gb_per_s(figure)).then_some(RATES_GB_PER_S),
        };
        if let Some(reason) = impossible {
            return self.sink.skip_at(place, reason);
        }
        self.sink.add_at(&place, about, run, 0, value);
    }

    /// Lists a row that nothing is predicted for.
    pub(super) fn skip(&mut self, line: usize, reason: &str) {
        let place = self.place(line);
        self.sink.skip_at(place, reason);
    }

    /// Notes what is odd, once.
    pub(super) fn warn(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.warnings.contains(&what) {
            self.warnings.push(what);
        }
    }

    /// Notes a circumstance, once.
    pub(super) fn fact(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.facts.contains(&what) {
            self.facts.push(what);
        }
    }
}

/// Whether some reader knows a text.
pub fn recognise(text: &str) -> Vec<&'static LogFormat> {
    LOGS.iter().filter(|format| (format.sniff)(text)).collect()
}

/// Reads a log taken on `topology`; `file` names it in ids and errors. Lines that are cut off,
/// interleaved or prefixed yield what they hold; what is lost is told in the warnings.
///
/// # Errors
/// [`Error::Input`] when no reader knows the text, or when it holds no figure at all.
pub fn read_log(file: &str, text: &str, topology: &str) -> Result<Log> {
    let formats = recognise(text);
    let name = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str());
    let mut reading = Reading {
        file: file.to_owned(),
        sink: Sink::new(name.unwrap_or(file), topology),
        facts: Vec::new(),
        warnings: Vec::new(),
    };
    for format in &formats {
        (format.read)(text, &mut reading)?;
    }
    let record = reading.sink.finish();
    if record.observations.is_empty() && record.skipped.is_empty() {
        return Err(nothing(file, text, &formats));
    }
    let titles = formats.iter().map(|format| format.title).collect();
    Ok(Log { titles, record, facts: reading.facts, warnings: reading.warnings })
}

fn nothing(file: &str, text: &str, formats: &[&LogFormat]) -> Error {
    let known: Vec<&str> = LOGS.iter().map(|format| format.title).collect();
    let (message, help) = match formats.first() {
        Some(format) => (
            format!("this looks like {}, and no row of figures is in it", format.title),
            "did the run fail, or is the log cut off before its first row?".to_owned(),
        ),
        None => (
            "no benchmark that I know printed this".to_owned(),
            format!("known: {}", known.join(", ")),
        ),
    };
    let mut problem = Problem::new(message, "").help(help);
    let end = text.find('\n').unwrap_or(text.len());
    problem.span = Some(Span { start: 0, end });
    Error::Input { file: file.to_owned(), text: text.to_owned(), problems: vec![problem] }
}

/// A text that is one value of JSON.
///
/// # Errors
/// [`Error::Input`] where it is none.
pub(super) fn whole_json(text: &str, reading: &Reading) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| {
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let start = (line_start + error.column().saturating_sub(1)).min(text.len());
        let mut problem = Problem::new(format!("not valid JSON: {error}"), "")
            .help("the file is complete only when the test has ended");
        problem.span = Some(Span { start, end: start });
        let (file, text) = (reading.file().to_owned(), text.to_owned());
        Error::Input { file, text, problems: vec![problem] }
    })
}

/// A number of JSON, or a text that is one.
pub(super) fn number_of(value: &Value) -> Option<f64> {
    let text = value.as_str().and_then(|text| text.trim().parse().ok());
    value.as_f64().or(text).filter(|number: &f64| number.is_finite())
}

/// What is said of a figure of this kind.
pub(super) fn about(experiment: String, text: String) -> About {
    About::new(experiment, text)
}
