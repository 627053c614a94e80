//! The place of a fault in a JSON trace, shown: traces are streamed, so the line is looked up again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use super::super::utf16;
use super::{failure, is_packed};
use crate::error::Error;

/// Bytes shown before and after the place.
const BEFORE: u64 = 60;
const AFTER: u64 = 40;

/// A fault of a trace's JSON: what is wrong, where, and what stands there, where the file can be read again.
pub(super) fn at_fault(file: &str, what: &str, error: &serde_json::Error, help: &str) -> Error {
    let shown = match around(file, error.line() as u64, error.column() as u64) {
        Ok(Some(text)) => format!(": `{text}`"),
        // A pipe, a packed file, or UTF-16: the place must do.
        Ok(None) | Err(_) => String::new(),
    };
    failure(file, format!("{what}: {error}{shown}"), help)
}

/// What stands around a column of a line, both counted from one.
fn around(file: &str, line: u64, column: u64) -> io::Result<Option<String>> {
    if line == 0 || !std::fs::metadata(file)?.is_file() {
        return Ok(None);
    }
    let mut reader = BufReader::new(File::open(file)?);
    let head = reader.fill_buf()?;
    if is_packed(head) || utf16::order(head).is_some() {
        return Ok(None);
    }
    let mut start = 0;
    for _ in 1..line {
        // A line may be as long as the file: it is passed, not kept.
        start += reader.skip_until(b'\n')? as u64;
    }
    let from = column.saturating_sub(BEFORE);
    let mut file = reader.into_inner();
    file.seek(SeekFrom::Start(start + from))?;
    let mut bytes = Vec::new();
    file.take(column - from + AFTER).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let text = text.lines().next().unwrap_or("").trim();
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Ok((!text.is_empty()).then_some(text))
}
