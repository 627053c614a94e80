//! One-stage all-reduce by writing: every rank stores its whole buffer into an inbox at every peer
//! and polls its own inboxes. No barrier, no fence.
//!
//! The probe writes 16-byte lines of 8 data and 8 flag bytes. Lamport kernels (FlashInfer and
//! TensorRT-LLM, SGLang v2, `pcie_ipc` unstaged) mark absent data by a value that does not occur, so
//! all bytes are data; whoever has read an inbox marks it empty again, for a later call.

use super::kernel::Implementation;
use super::lines::{LineTrip, line_trips};
use super::one_shot_pull::THREADS;
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, Part};
use crate::schedule::{Action, BufferId, Collective, Lines, MessageId, Op, Role, Schedule};

/// This algorithm: LL lines, or Lamport buffers as `Simple`.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "one_shot_push",
    title: "one-stage push",
    collective: Collective::AllReduce,
    structure: Structure::Flat,
    protocols: &[Protocol::Simple, Protocol::Ll],
    implementations: &[
        Implementation::FlashInfer,
        Implementation::PcieIpc,
        Implementation::SglangV2,
        Implementation::Probe,
    ],
    build,
};

/// Threads of a block of the Lamport kernels.
pub(super) const LAMPORT_THREADS: u32 = 256;
/// `pcie_ipc` launches at most so many blocks below 32 KiB a rank.
const PCIE_BLOCKS: u64 = 16;

/// Blocks and threads of a kernel that gives each thread one element of `wire` bytes.
fn launch(request: &Request<'_>, wire: u64) -> (usize, u32) {
    let most = match request.kernel.implementation {
        Implementation::Probe | Implementation::PairProbe => {
            return (request.blocks.unwrap_or(1) as usize, THREADS);
        }
        Implementation::PcieIpc => PCIE_BLOCKS,
        _ => u64::from(request.fabric.gpus[request.gpus[0] as usize].sms),
    };
    let by_size = wire.div_ceil(u64::from(LAMPORT_THREADS) * 16).clamp(1, most) as u32;
    (request.blocks.unwrap_or(by_size) as usize, LAMPORT_THREADS)
}

fn build(request: &Request<'_>) -> Result<Schedule> {
    let lines = if request.protocol == Protocol::Ll { Lines::Ll } else { Lines::Plain };
    let (blocks, threads) = launch(request, lines.wire_bytes(request.bytes));
    let mut builder = Builder::new("one-stage push", &request.gpus, blocks, threads);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    let cleared = builder.buffers(Role::Scratch, request.bytes, local);
    if let Some(start) = request.kernel.start_op(blocks) {
        builder.push_all(start);
    }
    let mut push = Push { request, builder, inputs, outputs, cleared, inboxes: Vec::new() };
    push.inboxes = push.inboxes(lines);
    for rank in 0..request.ranks() {
        for block in 0..blocks {
            let trips = line_trips(lines, (0, request.bytes as u32), (block, blocks), threads);
            push.block(rank, block, &trips);
        }
    }
    let mut builder = push.builder;
    if !request.kernel.is_probe() {
        builder.push_all(Op::Delay(request.kernel.end));
    }
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}

struct Push<'a> {
    request: &'a Request<'a>,
    builder: Builder,
    inputs: Vec<BufferId>,
    outputs: Vec<BufferId>,
    /// What a rank marks empty, as a stand-in for the inboxes of another call.
    cleared: Vec<BufferId>,
    /// `[to]`: the first of the messages from its peers, in rank order.
    inboxes: Vec<MessageId>,
}

impl Push<'_> {
    fn inboxes(&mut self, lines: Lines) -> Vec<MessageId> {
        let (n, bytes) = (self.request.ranks(), self.request.bytes as u32);
        let mut first = Vec::new();
        for to in 0..n {
            let mut messages = (0..n).filter(|&from| from != to).map(|from| {
                self.builder.message(from, to, self.request.inbox(from, to), bytes, lines)
            });
            first.extend(messages.next());
            messages.for_each(drop);
        }
        first
    }

    /// The message that `from` stores and `to` polls.
    fn message(&self, from: u32, to: u32) -> MessageId {
        self.inboxes[to as usize] + from - u32::from(from > to)
    }

    fn block(&mut self, rank: u32, block: usize, trips: &[LineTrip]) {
        let n = self.request.ranks();
        for trip in trips {
            let own = self.inputs[rank as usize];
            self.builder.load(rank, block, own, trip.data, Action::Set);
            self.builder.push(rank, block, Op::WaitLoads);
            for step in 1..n {
                let message = self.message(rank, (rank + step) % n);
                let Part { offset, bytes } = trip.wire;
                let send = Op::Send { message, offset, bytes, data: trip.data.offset };
                self.builder.push(rank, block, send);
            }
        }
        for trip in trips {
            self.collect(rank, block, *trip);
            let Part { offset, bytes } = trip.data;
            let buffer = self.outputs[rank as usize];
            self.builder.push(rank, block, Op::Write { buffer, offset, bytes, data: offset });
        }
        if !self.request.kernel.is_probe() {
            for trip in trips {
                let Part { offset, bytes } = trip.data;
                let buffer = self.cleared[rank as usize];
                for _ in 0..n {
                    self.builder.push(
                        rank,
                        block,
                        Op::Write { buffer, offset, bytes, data: offset },
                    );
                }
            }
        }
    }

    /// Polls what the peers stored: the probe's kernel one after another, the libraries' at once.
    fn collect(&mut self, rank: u32, block: usize, trip: LineTrip) {
        let n = self.request.ranks();
        let kernel = &self.request.kernel;
        let Part { offset, bytes } = trip.wire;
        let (data, action) = (trip.data.offset, Action::Add);
        if !kernel.is_probe() {
            let (base, count) = (self.inboxes[rank as usize], n - 1);
            let poll = Op::PollEach { base, count, offset, bytes, data, action };
            self.builder.push(rank, block, poll);
            self.builder.push(rank, block, Op::Delay(kernel.line_trip * u64::from(count)));
            return;
        }
        for peer in (0..n).filter(|&peer| peer != rank) {
            let message = self.message(peer, rank);
            let poll = Op::Poll { message, offset, bytes, data, action };
            self.builder.push(rank, block, poll);
            self.builder.push(rank, block, Op::Delay(kernel.line_trip + kernel.pointer));
        }
    }
}
