//! Plain copies between memories: single flows, both ways at once, permutations, all pairs at once.

use crate::fabric::EndpointId;
use crate::schedule::build::Builder;
use crate::schedule::{Block, Executor, Op, Role, Schedule};

/// One copy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Memory copied from.
    pub from: EndpointId,
    /// Memory copied to.
    pub to: EndpointId,
    /// GPU whose engine does it.
    pub engine: u32,
    /// Bytes.
    pub bytes: u32,
    /// A bulk copy kernel of that GPU does it instead of its copy engine.
    pub kernel: bool,
}

impl Stream {
    /// A copy by the source GPU's engine, by writing.
    pub fn write(from: u32, to: EndpointId, bytes: u32) -> Stream {
        Stream { from, to, engine: from, bytes, kernel: false }
    }

    /// A copy by the target GPU's engine, by reading.
    pub fn read(from: EndpointId, to: u32, bytes: u32) -> Stream {
        Stream { from, to, engine: to, bytes, kernel: false }
    }
}

/// All streams at once, each a rank of its own.
pub fn streams(streams: &[Stream]) -> Schedule {
    let gpus: Vec<u32> = streams.iter().map(|stream| stream.engine).collect();
    let mut builder = Builder::new("streams", &gpus, 0, 32);
    for (rank, stream) in streams.iter().enumerate() {
        let rank = rank as u32;
        let from = builder.buffer(rank, stream.from, Role::Scratch, u64::from(stream.bytes));
        let to = builder.buffer(rank, stream.to, Role::Scratch, u64::from(stream.bytes));
        builder.cold(from);
        builder.cold(to);
        let push = stream.engine == stream.from;
        let ops = vec![Op::Copy {
            from,
            from_offset: 0,
            to,
            to_offset: 0,
            bytes: stream.bytes,
            push,
            kernel: stream.kernel,
        }];
        let executor = Executor::CopyEngine;
        builder
            .add_block(rank, Block { executor, threads: 32, beside: None, background: false, ops });
    }
    let total = streams.iter().map(|stream| u64::from(stream.bytes)).sum();
    builder.finish(total, None)
}

/// GPU i reads from GPU (i + distance) mod n, all at once.
pub fn staggered_reads(gpus: &[u32], distance: usize, bytes: u32) -> Vec<Stream> {
    let n = gpus.len();
    (0..n).map(|i| Stream::read(gpus[(i + distance) % n], gpus[i], bytes)).collect()
}

/// Every GPU reads from every other at once, each in the order of the GPUs, as a program that
/// launches pair after pair does.
pub fn all_pairs_reads(gpus: &[u32], bytes: u32) -> Vec<Stream> {
    pairs(gpus).map(|(from, to)| Stream::read(from, to, bytes)).collect()
}

/// Every GPU writes to every other at once.
pub fn all_pairs_writes(gpus: &[u32], bytes: u32) -> Vec<Stream> {
    pairs(gpus).map(|(from, to)| Stream::write(from, to, bytes)).collect()
}

/// All ordered pairs, by target, then by source.
fn pairs(gpus: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    gpus.iter().flat_map(move |&to| {
        gpus.iter().filter(move |&&from| from != to).map(move |&from| (from, to))
    })
}
