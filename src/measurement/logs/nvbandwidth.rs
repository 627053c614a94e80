//! NVIDIA's nvbandwidth, as text.

use super::pairs::{Cells, Columns, add, copy};
use super::{LogFormat, Reading};
use crate::error::Result;
use crate::lines::lines;
use crate::measurement::Memory;

/// The format.
pub(super) const FORMAT: LogFormat = LogFormat {
    title: "nvbandwidth",
    sniff: |text| text.contains("nvbandwidth Version") || text.contains("memcpy CE "),
    read,
};

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

/// A heading such as `memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)`.
fn heading(text: &str) -> Option<Test> {
    if !text.contains("bandwidth (GB/s)") {
        return None;
    }
    let one = |sign: &str| text.matches(sign).count() == 1;
    let both = text.contains("<->") || text.contains("bidirectional");
    Some(if both {
        Test::Skipped("both directions at once: which one is printed differs by version")
    } else if text.contains("CPU(row)") && one("->") && text.contains("GPU(column)") {
        Test::FromHost
    } else if text.contains("CPU(row)") && one("<-") && text.contains("GPU(column)") {
        Test::ToHost
    } else if text.contains("GPU(row)") && text.contains("GPU(column)") {
        Test::Pair { row_sends: text.contains("->") }
    } else {
        Test::Skipped("no experiment for this test")
    })
}

fn read(text: &str, reading: &mut Reading) -> Result<()> {
    let (mut current, mut columns, mut name) = (None, Columns::default(), String::new());
    for line in lines(text) {
        if let Some((_, rest)) = line.text.split_once("Running ") {
            rest.trim().trim_end_matches('.').clone_into(&mut name);
            current = None;
            continue;
        }
        if let Some(test) = heading(&line.text) {
            let other =
                name.contains("latency") || name.starts_with("all_") || name.contains("multicast");
            let test = match other {
                true => Test::Skipped("no experiment for this test"),
                false if name.contains("bidirectional") => Test::Skipped(
                    "both directions at once: which one is printed differs by version",
                ),
                false => test,
            };
            (current, columns) = (Some(test), Columns::default());
            continue;
        }
        let Some(test) = current else { continue };
        let Cells::Row(row, cells) = columns.read(&line) else { continue };
        if let Test::Skipped(reason) = test {
            reading.skip(line.number, reason);
            continue;
        }
        let kernel = name.ends_with("_sm");
        for (column, rate) in cells {
            let Some(rate) = rate else { continue };
            let (near, far) = (Memory::Gpu(row), Memory::Gpu(column));
            let copy = match test {
                Test::FromHost => copy(Memory::HostNear(column), far, column, kernel),
                Test::ToHost => copy(far, Memory::HostNear(column), column, kernel),
                Test::Pair { row_sends: true } => copy(near, far, row, kernel),
                Test::Pair { row_sends: false } => copy(far, near, row, kernel),
                Test::Skipped(_) => continue,
            };
            let experiment = format!("nvbandwidth {name}");
            add(reading, line.number, experiment.trim(), vec![copy], rate);
        }
    }
    Ok(())
}
