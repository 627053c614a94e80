//! CUDA's p2pBandwidthLatencyTest.

use super::pairs::{Cells, Columns, add, copy};
use super::{LogFormat, Reading};
use crate::error::Result;
use crate::lines::lines;
use crate::measurement::Memory;

/// The format.
pub(super) const FORMAT: LogFormat = LogFormat {
    title: "p2pBandwidthLatencyTest",
    sniff: |text| text.contains("P2P=Enabled") || text.contains("P2P Connectivity Matrix"),
    read,
};

/// A matrix of the program.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Section {
    Bandwidth { both: bool },
    Skipped(&'static str),
}

fn section(text: &str) -> Option<Section> {
    if text.contains("P2P Connectivity Matrix") {
        return Some(Section::Skipped("says what may address what, no time"));
    }
    if !text.contains("Matrix (") {
        return None;
    }
    Some(if text.contains("P2P=Disabled") {
        Section::Skipped("P2P off: the driver's copies through host memory are not modelled")
    } else if text.contains("Latency") {
        Section::Skipped("p2pBandwidthLatencyTest times the issue of queued copies")
    } else {
        Section::Bandwidth { both: text.contains("Bidirectional") }
    })
}

fn read(text: &str, reading: &mut Reading) -> Result<()> {
    let (mut current, mut columns) = (None, Columns::default());
    for line in lines(text) {
        if let Some(next) = section(&line.text) {
            (current, columns) = (Some(next), Columns::default());
            continue;
        }
        let Some(section) = current else { continue };
        let Cells::Row(from, cells) = columns.read(&line) else { continue };
        let both = match section {
            Section::Bandwidth { both } => both,
            Section::Skipped(reason) => {
                reading.skip(line.number, reason);
                continue;
            }
        };
        if columns.missing(&cells) > 0 {
            let place = reading.place(line.number);
            reading.warn(format!("{place}: the row is cut off: its last value may be too"));
        }
        for (to, rate) in cells {
            let Some(rate) = rate.filter(|_| from != to) else { continue };
            // GPU i's engines write to j and, in the second test, read from j at once.
            let write = copy(Memory::Gpu(from), Memory::Gpu(to), from, false);
            let back = copy(Memory::Gpu(to), Memory::Gpu(from), from, false);
            let name = if both { "p2p_bandwidth_bidirectional" } else { "p2p_bandwidth" };
            let copies = if both { vec![write, back] } else { vec![write] };
            add(reading, line.number, name, copies, rate);
        }
    }
    Ok(())
}
