//! Trips over data that travel in lines with flags, or in plain words that mark themselves.

use crate::schedule::Lines;
use crate::schedule::build::{Part, trips};

/// One trip of a block over a range that travels as one message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct LineTrip {
    /// Within the message.
    pub(super) wire: Part,
    /// Within the call's data.
    pub(super) data: Part,
}

/// A range of the call's data: first byte and length.
pub(super) type Range = (u32, u32);

/// The trips of block `block` of `blocks` over a range of the data.
pub(super) fn line_trips(
    lines: Lines,
    (start, length): Range,
    (block, blocks): (usize, usize),
    threads: u32,
) -> Vec<LineTrip> {
    let wire = lines.wire_bytes(u64::from(length)) as u32;
    // A thread of an LL8 kernel stores 8 bytes at a time, not 16.
    let threads = if lines == Lines::Ll8 { threads / 2 } else { threads };
    let data = |part: Part| {
        let offset = lines.data_bytes(u64::from(part.offset)) as u32;
        let bytes = lines.data_bytes(u64::from(part.bytes)) as u32;
        Part { offset: start + offset, bytes: bytes.min(length - offset) }
    };
    trips(0, wire, block, blocks, threads).map(|wire| LineTrip { wire, data: data(wire) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ll8_packets_take_twice_the_trips_of_a_plain_kernel() {
        // 14,336 B are 28,672 B of packets; 4 blocks of 512 threads store 8 B each a trip, 16,384 B.
        let of = |lines| line_trips(lines, (0, 14_336), (0, 4), 512);
        assert_eq!(of(Lines::Ll8).len(), 2);
        assert_eq!(of(Lines::Plain).len(), 1);
        let last = LineTrip {
            wire: Part { offset: 16_384, bytes: 4096 },
            data: Part { offset: 8192, bytes: 2048 },
        };
        assert_eq!(of(Lines::Ll8)[1], last);
    }
}
