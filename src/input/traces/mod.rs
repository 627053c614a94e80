//! Traces and logs of what ran -> the calls that were made. Files may be large: they are read as a
//! stream, compressed or not, and only the calls are kept. A new kind is a file here, its `mod` line,
//! and its entry in [`TRACES`].

mod chakra;
mod chakra_et;
mod engine_log;
mod inspector;
mod kineto;
mod names;
mod nccl_log;
mod nsys_csv;
mod nsys_sqlite;
mod own;
mod probe;
mod scenario;
mod shown;
mod summary;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use serde::Serialize;

use super::kinds::kind;
use super::read::{mark, open};
use super::utf16::{self, Narrowed};
use crate::error::{Error, Result};
use crate::units::{TIMES_US, is_time_us};
use crate::workload::{Collective, Scenario};

pub use scenario::{Import, import};
pub use summary::{Kind, Spread, Summary, in_order, summary};

/// A kind of trace.
pub struct TraceFormat {
    /// Name for `--format`.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Whether a text that starts so is one.
    pub sniff: fn(&str) -> bool,
    /// Whether it may hold calls, and not circumstances only.
    pub tells_calls: bool,
    /// Reads the whole stream; the first argument names it in errors.
    read: fn(&str, &mut dyn BufRead, &mut Trace) -> Result<()>,
}

/// All of them; the first whose `sniff` says yes reads a file.
pub const TRACES: &[TraceFormat] = &[
    own::FORMAT,
    kineto::FORMAT,
    inspector::FORMAT,
    chakra::FORMAT,
    chakra_et::FORMAT,
    nsys_csv::FORMAT,
    nsys_sqlite::FORMAT,
    probe::FORMAT,
    nccl_log::FORMAT,
    engine_log::FORMAT,
];

/// A call as one rank made it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Call {
    /// Rank, or whatever tells one process of the trace from another.
    pub rank: u64,
    /// What it computes.
    pub collective: Collective,
    /// Bytes as nccl-tests counts them, where the trace tells the size.
    pub bytes: Option<u64>,
    /// Type of the elements as the trace calls it; may be empty.
    pub dtype: String,
    /// Ranks that take part, where the trace tells it.
    pub ranks: Option<u32>,
    /// When its kernel started, us.
    pub start_us: Option<f64>,
    /// How long its kernel ran, us, waiting included.
    pub duration_us: Option<f64>,
    /// The kernel, or the choice of algorithm and protocol; may be empty.
    pub by: String,
}

/// What a file says of the calls that were made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// What was read, in words.
    pub sources: Vec<String>,
    /// In the order of the file.
    pub calls: Vec<Call>,
    /// Ranks, where the file says it for all calls.
    pub ranks: Option<u32>,
    /// The rank that the file is of.
    pub rank: Option<u64>,
    /// Circumstances, such as versions, transports and choices.
    pub facts: Vec<String>,
    /// What is odd or lost.
    pub warnings: Vec<String>,
    /// What was not taken for a call, and how often.
    pub left_out: BTreeMap<String, u64>,
    /// Its steps have clocks of their own: nobody knows what passed between them.
    pub apart: bool,
}

impl Trace {
    /// Traces of one run as one, such as those of its ranks.
    fn joined(traces: Vec<Trace>) -> Trace {
        let mut all = Trace::default();
        let mut ranks = BTreeSet::new();
        for trace in traces {
            let own: BTreeSet<u64> = trace.calls.iter().map(|call| call.rank).collect();
            if let Some(rank) = own.intersection(&ranks).next() {
                let file = trace.sources.join(", ");
                all.warn(format!("{file} has calls of rank {rank}, as a file before it has"));
            }
            ranks.extend(own);
            all.sources.extend(trace.sources);
            all.calls.extend(trace.calls);
            all.ranks = all.ranks.max(trace.ranks);
            all.apart |= trace.apart;
            trace.facts.into_iter().for_each(|fact| all.fact(fact));
            trace.warnings.into_iter().for_each(|warning| all.warn(warning));
            for (what, count) in trace.left_out {
                all.leave_out(what, count);
            }
        }
        all
    }

    /// Drops the times of calls that no clock tells: the calls were made all the same.
    fn drop_impossible_times(&mut self) {
        let mut dropped = 0_u64;
        for call in &mut self.calls {
            let start = call.start_us.filter(|us| us.abs() <= START_MAX_US);
            let stay = call.duration_us.filter(|us| is_time_us(*us));
            if (start, stay) != (call.start_us, call.duration_us) {
                dropped += 1;
                (call.start_us, call.duration_us) = (start, stay);
            }
        }
        if dropped > 0 {
            self.warn(format!(
                "{dropped} calls start or last as no call can, and are taken without that time: {TIMES_US}"
            ));
        }
    }

    /// Counts what is no call that can be kept.
    fn leave_out(&mut self, what: impl Into<String>, count: u64) {
        let what = what.into();
        if self.left_out.len() < FACTS_MAX || self.left_out.contains_key(&what) {
            *self.left_out.entry(what).or_insert(0) += count;
        }
    }

    fn fact(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.facts.len() < FACTS_MAX && !self.facts.contains(&what) {
            self.facts.push(what);
        }
    }

    fn warn(&mut self, what: impl Into<String>) {
        let what = what.into();
        if self.warnings.len() < FACTS_MAX && !self.warnings.contains(&what) {
            self.warnings.push(what);
        }
    }
}

/// Furthest start of a call from zero, us: where zero is, each clock has its own, and some writers put
/// nanoseconds since 1970 there.
const START_MAX_US: f64 = 1e19;
/// More facts than anyone reads.
const FACTS_MAX: usize = 200;
/// How much of a file is looked at to recognise it, bytes.
const HEAD: usize = 1 << 16;

/// Reads a trace: a file or `-`, plain or gzip. `progress` hears the bytes read so far.
///
/// # Errors
/// [`Error::Read`] when it cannot be read, is of no known kind, or breaks off within a structure
/// that must be whole.
pub fn read_trace(
    file: &str,
    format: Option<&TraceFormat>,
    progress: &dyn Fn(u64),
) -> Result<Trace> {
    let source = open(file)?;
    let name = if file == "-" { "standard input" } else { file };
    read_from(name, source, format, progress)
}

/// The scenario of a trace, where a file is one; `None` of other files, of none and of pipes.
///
/// # Errors
/// As [`read_trace`] and [`import`].
pub fn scenario_of(file: &str) -> Option<Result<Scenario>> {
    let mut head = Vec::new();
    let bytes = BufReader::new(File::open(file).ok()?.take(HEAD as u64));
    read_head(bytes, &mut head);
    let text = match utf16::order(&head) {
        Some((order, before)) => utf16::lossy(&head[before..], order),
        None => String::from_utf8_lossy(&head[mark(&head)..]).into_owned(),
    };
    recognise(&text)?;
    let stem = Path::new(file).file_name().and_then(|name| name.to_str()).unwrap_or("trace");
    let name = stem.split('.').next().unwrap_or(stem).to_owned();
    let read = read_trace(file, None, &|_| ());
    Some(
        read.and_then(|trace| import(vec![trace], &Import { name, ..Import::default() }))
            .map(|both| both.0)
            .map_err(|error| by_import(file, error)),
    )
}

/// Flags that an error of [`import`] advises are flags of the command that imports.
fn by_import(file: &str, error: Error) -> Error {
    match error {
        Error::Request { message, help } if help.contains("--") => {
            let first = format!("`simulate import {file} -o FILE.json` makes a scenario of it");
            Error::request(message, format!("{first}; {help}"))
        }
        other => other,
    }
}

/// Whether a file is packed by gzip (RFC 1952, section 2.3.1).
fn is_packed(start: &[u8]) -> bool {
    start.starts_with(&[0x1f, 0x8b])
}

/// The start of a text that may be packed; a packed one breaks off, which is no matter.
fn read_head(mut bytes: impl BufRead, head: &mut Vec<u8>) {
    let packed = bytes.fill_buf().is_ok_and(is_packed);
    let _ = match packed {
        true => MultiGzDecoder::new(bytes).take(HEAD as u64).read_to_end(head),
        false => bytes.read_to_end(head),
    };
}

/// As [`read_trace`], from any source.
///
/// # Errors
/// As [`read_trace`].
pub fn read_from(
    file: &str,
    source: impl Read,
    format: Option<&TraceFormat>,
    progress: &dyn Fn(u64),
) -> Result<Trace> {
    let failed = |error: io::Error| failure(file, error.to_string(), "is it whole?");
    let counted = Counted { source, bytes: 0, progress };
    let mut bytes = BufReader::with_capacity(1 << 18, counted);
    let packed = is_packed(bytes.fill_buf().map_err(failed)?);
    let mut stream: Box<dyn BufRead> = match packed {
        true => Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(bytes))),
        false => Box::new(bytes),
    };
    let mut head = Vec::new();
    stream.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    if let Some((order, before)) = utf16::order(&head) {
        let wide = io::Cursor::new(head.split_off(before)).chain(stream);
        stream = Box::new(BufReader::with_capacity(1 << 18, Narrowed::new(wide, order)));
        head.clear();
        stream.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    }
    head.drain(..mark(&head));
    let text = String::from_utf8_lossy(&head).into_owned();
    let format = match format {
        Some(format) => format,
        None => recognise(&text).ok_or_else(|| unknown(file, &text))?,
    };
    let mut trace =
        Trace { sources: vec![format!("{file} ({})", format.title)], ..Trace::default() };
    let mut whole = BufReader::with_capacity(1 << 18, io::Cursor::new(head).chain(stream));
    (format.read)(file, &mut whole, &mut trace)?;
    trace.drop_impossible_times();
    Ok(trace)
}

/// The kind of a text by its start.
pub fn recognise(head: &str) -> Option<&'static TraceFormat> {
    TRACES.iter().find(|format| (format.sniff)(head))
}

fn failure(file: &str, reason: impl Into<String>, help: &str) -> Error {
    Error::Read { file: file.to_owned(), reason: reason.into(), help: help.to_owned() }
}

fn unknown(file: &str, head: &str) -> Error {
    let titles: Vec<&str> = TRACES.iter().map(|format| format.title).collect();
    let first: String =
        head.lines().find(|line| !line.trim().is_empty()).unwrap_or("").chars().take(60).collect();
    if head.trim().is_empty() {
        let help = "did what wrote it end as it should, and is it the right file?";
        return failure(file, "it is empty", help);
    }
    let (reason, help) = match kind(head) {
        Some(kind) => (format!("it is {}, and tells no calls", kind.title), kind.advice()),
        None => (
            format!("it is no trace that I know; it starts with `{first}`"),
            format!("known: {}", titles.join(", ")),
        ),
    };
    failure(file, reason, &help)
}

/// Counts what is read.
struct Counted<'a, R> {
    source: R,
    bytes: u64,
    progress: &'a dyn Fn(u64),
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.bytes += count as u64;
        (self.progress)(self.bytes);
        Ok(count)
    }
}

/// Longest line of a log that is kept; of a longer one the rest is dropped, bytes.
const LINE_MAX: u64 = 1 << 20;

/// Calls `each` with every line of a stream and its number.
fn each_line(
    file: &str,
    stream: &mut dyn BufRead,
    mut each: impl FnMut(usize, &str),
) -> Result<()> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let read = (&mut *stream).take(LINE_MAX).read_until(b'\n', &mut bytes);
        if read.map_err(|error| failure(file, error.to_string(), "is it whole?"))? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&bytes);
        each(number, &crate::lines::plain(text.trim_end_matches(['\n', '\r'])));
    }
    Ok(())
}
