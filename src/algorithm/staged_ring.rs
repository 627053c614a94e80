//! FlashInfer's `pcie_ipc` ring: 2(n-1) passes of an nth each, one stream out and one in at a time;
//! data mark their own arrival, so that there is neither flag nor fence nor credit.

use super::kernel::Implementation;
use super::lines::{LineTrip, line_trips};
use super::one_shot_push::LAMPORT_THREADS;
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, slice};
use crate::schedule::{Action, BufferId, Collective, Lines, MessageId, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "staged_ring",
    title: "staged ring",
    collective: Collective::AllReduce,
    structure: Structure::Flat,
    protocols: &[Protocol::Simple],
    implementations: &[Implementation::PcieIpc],
    build,
};

/// One block for each 256 KiB of the call, at most four.
const BYTES_A_BLOCK: u64 = 256 << 10;
const BLOCKS_MAX: u64 = 4;

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let by_size = (request.bytes / BYTES_A_BLOCK).clamp(1, BLOCKS_MAX) as u32;
    let blocks = request.blocks.unwrap_or(by_size) as usize;
    let mut builder = Builder::new("staged ring", &request.gpus, blocks, LAMPORT_THREADS);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    if let Some(start) = request.kernel.start_op(blocks) {
        builder.push_all(start);
    }
    let passes = 2 * (n - 1);
    // The nth that a rank stores in a pass: its own first, then what it received before.
    let sent = |rank: u32, pass: u32| slice(request.bytes, n, (rank + 2 * n - 1 - pass) % n);
    let mut messages: Vec<Vec<MessageId>> = Vec::new();
    for rank in 0..n {
        let next = (rank + 1) % n;
        let home = request.inbox(rank, next);
        let one = |pass| builder.message(rank, next, home, sent(rank, pass).1, Lines::Plain);
        messages.push((0..passes).map(one).collect());
    }
    let mut ring = Ring { request, builder, inputs, outputs, messages };
    for rank in 0..n {
        let previous = (rank + n - 1) % n;
        for block in 0..blocks {
            let trips = |range| line_trips(Lines::Plain, range, (block, blocks), LAMPORT_THREADS);
            for trip in trips(sent(rank, 0)) {
                ring.first(rank, block, trip);
            }
            for pass in 0..passes {
                for trip in trips(sent(previous, pass)) {
                    ring.pass((rank, previous), block, pass, trip);
                }
            }
        }
    }
    let mut builder = ring.builder;
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}

struct Ring<'a> {
    request: &'a Request<'a>,
    builder: Builder,
    inputs: Vec<BufferId>,
    outputs: Vec<BufferId>,
    /// `[rank][pass]`: what it stores at the next rank.
    messages: Vec<Vec<MessageId>>,
}

impl Ring<'_> {
    /// Stores a part of the own nth.
    fn first(&mut self, rank: u32, block: usize, trip: LineTrip) {
        self.builder.load(rank, block, self.inputs[rank as usize], trip.data, Action::Set);
        self.builder.push(rank, block, Op::WaitLoads);
        self.send(rank, block, 0, trip);
    }

    fn send(&mut self, rank: u32, block: usize, pass: u32, trip: LineTrip) {
        let message = self.messages[rank as usize][pass as usize];
        let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
        self.builder.push(rank, block, Op::Send { message, offset, bytes, data });
    }

    /// Receives a part, adds own data in the first half, and stores the result on.
    fn pass(&mut self, ranks: (u32, u32), block: usize, pass: u32, trip: LineTrip) {
        let (n, (rank, previous)) = (self.request.ranks(), ranks);
        let reduces = pass + 1 < n;
        let message = self.messages[previous as usize][pass as usize];
        let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
        let action = if reduces { Action::Add } else { Action::Set };
        if reduces {
            self.builder.load(rank, block, self.inputs[rank as usize], trip.data, Action::Set);
        }
        self.builder.push(rank, block, Op::Poll { message, offset, bytes, data, action });
        self.builder.push(rank, block, Op::WaitLoads);
        self.builder.push(rank, block, Op::Delay(self.request.kernel.line_trip));
        if pass + 1 < 2 * (n - 1) {
            self.send(rank, block, pass + 1, trip);
        }
        if pass + 2 >= n {
            let (buffer, bytes) = (self.outputs[rank as usize], trip.data.bytes);
            self.builder.push(rank, block, Op::Write { buffer, offset: data, bytes, data });
        }
    }
}
