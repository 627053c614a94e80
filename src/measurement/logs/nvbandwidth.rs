//! NVIDIA's nvbandwidth, as text and, with `-j`, as JSON.

use super::pairs::{Cells, Columns, add, copy};
use super::{LogFormat, Reading, number_of, whole_json};
use crate::error::Result;
use crate::lines::lines;
use crate::measurement::Memory;

/// The text.
pub(super) const FORMAT: LogFormat = LogFormat {
    title: "nvbandwidth",
    sniff: |text| {
        let text_of_it = text.contains("nvbandwidth Version") || text.contains("memcpy CE ");
        text_of_it && !is_json(text)
    },
    read,
};

/// The JSON.
pub(super) const JSON: LogFormat =
    LogFormat { title: "nvbandwidth JSON", sniff: is_json, read: read_json };

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && text.contains("\"nvbandwidth\"")
        && text.contains("\"testcases\"")
}

/// What a test of the program copies.
#[derive(Clone, Copy)]
enum Test {
    ToHost,
    FromHost,
    /// From the GPU of the row to that of the column, or back.
    Pair {
        row_sends: bool,
    },
    Skipped(&'static str),
}

/// The test of this name under a heading such as `memcpy CE GPU(row) -> GPU(column) bandwidth
/// (GB/s)`; `None` of lines that are no heading.
fn test(name: &str, heading: &str) -> Option<Test> {
    if !heading.contains("bandwidth (GB/s)") {
        return None;
    }
    let one = |sign: &str| heading.matches(sign).count() == 1;
    let both = heading.contains("<->") || heading.contains("bidirectional");
    let other = name.contains("latency") || name.starts_with("all_") || name.contains("multicast");
    let (row, column) = (heading.contains("GPU(row)"), heading.contains("GPU(column)"));
    let from_host = heading.contains("CPU(row)") && column;
    Some(if other {
        Test::Skipped("no experiment for this test")
    } else if both || name.contains("bidirectional") {
        Test::Skipped("both directions at once: which one is printed differs by version")
    } else if from_host && one("->") {
        Test::FromHost
    } else if from_host && one("<-") {
        Test::ToHost
    } else if row && column {
        Test::Pair { row_sends: heading.contains("->") }
    } else {
        Test::Skipped("no experiment for this test")
    })
}

/// Adds a row of a test's matrix.
fn row(
    reading: &mut Reading,
    line: usize,
    (name, test): (&str, Test),
    row: u32,
    cells: impl IntoIterator<Item = (u32, Option<f64>)>,
) {
    let kernel = name.ends_with("_sm");
    for (column, rate) in cells {
        let Some(rate) = rate else { continue };
        let (near, far) = (Memory::Gpu(row), Memory::Gpu(column));
        let copy = match test {
            Test::FromHost => copy(Memory::HostNear(column), far, column, kernel),
            Test::ToHost => copy(far, Memory::HostNear(column), column, kernel),
            Test::Pair { row_sends: true } => copy(near, far, row, kernel),
            Test::Pair { row_sends: false } => copy(far, near, row, kernel),
            Test::Skipped(reason) => return reading.skip(line, reason),
        };
        let experiment = format!("nvbandwidth {name}");
        add(reading, line, experiment.trim(), vec![copy], rate);
    }
}

fn read(text: &str, reading: &mut Reading) -> Result<()> {
    let (mut current, mut columns, mut name) = (None, Columns::default(), String::new());
    for line in lines(text) {
        if let Some((_, rest)) = line.text.split_once("Running ") {
            rest.trim().trim_end_matches('.').clone_into(&mut name);
            current = None;
            continue;
        }
        if let Some(test) = test(&name, &line.text) {
            (current, columns) = (Some(test), Columns::default());
            continue;
        }
        let Some(test) = current else { continue };
        let Cells::Row(number, cells) = columns.read(&line) else { continue };
        row(reading, line.number, (&name, test), number, cells);
    }
    Ok(())
}

/// `{"nvbandwidth": {"testcases": [{"name", "bandwidth_description", "bandwidth_matrix": [[".."]]}]}}`.
fn read_json(text: &str, reading: &mut Reading) -> Result<()> {
    let value = whole_json(text, reading)?;
    let cases = value["nvbandwidth"]["testcases"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, case) in cases.iter().enumerate() {
        let word = |key: &str| case[key].as_str().unwrap_or("");
        let (name, place) = (word("name"), index + 1);
        let matrix = case["bandwidth_matrix"].as_array();
        let test = test(name, word("bandwidth_description"));
        let (Some(matrix), Some(test)) = (matrix, test) else {
            let status = word("status");
            reading.warn(format!("test {place} ({name}): no bandwidths, status `{status}`"));
            continue;
        };
        for (number, cells) in (0..).zip(matrix) {
            let cells = (0..).zip(cells.as_array().into_iter().flatten().map(number_of));
            row(reading, place, (name, test), number, cells);
        }
    }
    Ok(())
}
