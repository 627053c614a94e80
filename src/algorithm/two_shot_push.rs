//! Two-stage all-reduce by writing: each rank stores every peer's nth at its owner, owners add and
//! store their sum at every peer; data mark their own arrival. No barrier, no fence.
//!
//! MSCCL++'s `packet` algorithm sends lines of 8 data and 8 flag bytes, four or eight blocks for each
//! peer; FlashInfer's `pcie_ipc` (flat, staged) sends bare data with a mark for what is absent.

use super::kernel::Implementation;
use super::lines::{Range, line_trips};
use super::one_shot_push::LAMPORT_THREADS;
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, slice};
use crate::schedule::{Action, BufferId, Collective, Lines, MessageId, Op, Role, Schedule};

/// This algorithm: LL lines, or marked data as `Simple`.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "two_shot_push",
    title: "two-stage push",
    collective: Collective::AllReduce,
    structure: Structure::Flat,
    protocols: &[Protocol::Ll, Protocol::Simple],
    implementations: &[Implementation::Mscclpp, Implementation::PcieIpc],
    build,
};

/// MSCCL++: threads of a block, blocks for each peer, and the size above which they are doubled.
const MSCCLPP_THREADS: u32 = 512;
const MSCCLPP_BLOCKS: u32 = 4;
const MSCCLPP_DOUBLED: u64 = 32 << 10;
/// `pcie_ipc` launches at most so many blocks.
const PCIE_BLOCKS: u64 = 16;

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let lines = if request.protocol == Protocol::Ll { Lines::Ll } else { Lines::Plain };
    let by_peer = request.kernel.implementation == Implementation::Mscclpp;
    let (per_peer, threads) = if by_peer {
        let doubled = if request.bytes > MSCCLPP_DOUBLED { 2 } else { 1 };
        (request.blocks.unwrap_or(MSCCLPP_BLOCKS * doubled), MSCCLPP_THREADS)
    } else {
        let each = request.bytes.div_ceil(u64::from(n)) / u64::from(LAMPORT_THREADS * 16);
        (request.blocks.unwrap_or((each + 1).min(PCIE_BLOCKS) as u32), LAMPORT_THREADS)
    };
    let blocks = (if by_peer { per_peer * (n - 1) } else { per_peer }) as usize;
    let mut builder = Builder::new("two-stage push", &request.gpus, blocks, threads);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    if let Some(start) = request.kernel.start_op(blocks) {
        builder.push_all(start);
    }
    let (shares, sums) = messages(&mut builder, request, lines);
    let per_peer = by_peer.then_some(per_peer as usize);
    let mut push =
        Push { request, builder, inputs, outputs, shares, sums, lines, threads, blocks, per_peer };
    for rank in 0..n {
        for block in 0..blocks {
            push.scatter(rank, block);
            push.reduce(rank, block);
            push.gather(rank, block);
        }
    }
    let mut builder = push.builder;
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}

/// First messages of each rank's inboxes, from its peers in rank order: the peers' parts of its own
/// nth, and the sum of each peer's nth.
fn messages(
    builder: &mut Builder,
    request: &Request<'_>,
    lines: Lines,
) -> (Vec<MessageId>, Vec<MessageId>) {
    let n = request.ranks();
    let mut inboxes = |length: &dyn Fn(u32, u32) -> u32| {
        let mut first = Vec::new();
        for to in 0..n {
            let ids: Vec<MessageId> = (0..n)
                .filter(|&from| from != to)
                .map(|from| {
                    let home = request.inbox(from, to);
                    builder.message(from, to, home, length(from, to), lines)
                })
                .collect();
            first.push(ids[0]);
        }
        first
    };
    let nth = |owner: u32| slice(request.bytes, n, owner).1;
    let shares = inboxes(&|_, to| nth(to));
    let sums = inboxes(&|from, _| nth(from));
    (shares, sums)
}

struct Push<'a> {
    request: &'a Request<'a>,
    builder: Builder,
    inputs: Vec<BufferId>,
    outputs: Vec<BufferId>,
    shares: Vec<MessageId>,
    sums: Vec<MessageId>,
    lines: Lines,
    threads: u32,
    blocks: usize,
    /// Blocks that serve one peer; all serve every peer otherwise.
    per_peer: Option<usize>,
}

impl Push<'_> {
    fn range(&self, owner: u32) -> Range {
        slice(self.request.bytes, self.request.ranks(), owner)
    }

    /// The block's place among those that serve the peer `step` ranks on, and their number.
    fn place(&self, block: usize, step: u32) -> Option<(usize, usize)> {
        match self.per_peer {
            None => Some((block, self.blocks)),
            Some(each) => (block / each + 1 == step as usize).then_some((block % each, each)),
        }
    }

    /// Stores each peer's nth at its owner.
    fn scatter(&mut self, rank: u32, block: usize) {
        let n = self.request.ranks();
        for step in 1..n {
            let peer = (rank + step) % n;
            let Some(place) = self.place(block, step) else { continue };
            for trip in line_trips(self.lines, self.range(peer), place, self.threads) {
                let own = self.inputs[rank as usize];
                self.builder.load(rank, block, own, trip.data, Action::Set);
                self.builder.push(rank, block, Op::WaitLoads);
                let message = self.shares[peer as usize] + rank - u32::from(rank > peer);
                let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
                self.builder.push(rank, block, Op::Send { message, offset, bytes, data });
            }
        }
    }

    /// Adds what arrives of the own nth and stores the sum everywhere.
    fn reduce(&mut self, rank: u32, block: usize) {
        let n = self.request.ranks();
        let place = (block, self.blocks);
        for trip in line_trips(self.lines, self.range(rank), place, self.threads) {
            let own = self.inputs[rank as usize];
            self.builder.load(rank, block, own, trip.data, Action::Set);
            let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
            let (base, count, action) = (self.shares[rank as usize], n - 1, Action::Add);
            let poll = Op::PollEach { base, count, offset, bytes, data, action };
            self.builder.push(rank, block, poll);
            self.builder.push(rank, block, Op::WaitLoads);
            let delay = self.request.kernel.line_trip * u64::from(count);
            self.builder.push(rank, block, Op::Delay(delay));
            for step in 1..n {
                let peer = (rank + step) % n;
                let message = self.sums[peer as usize] + rank - u32::from(rank > peer);
                self.builder.push(rank, block, Op::Send { message, offset, bytes, data });
            }
            self.keep(rank, block, data, trip.data.bytes);
        }
    }

    /// Keeps the sums of the others' nths.
    fn gather(&mut self, rank: u32, block: usize) {
        let n = self.request.ranks();
        for step in 1..n {
            let peer = (rank + step) % n;
            let Some(place) = self.place(block, step) else { continue };
            for trip in line_trips(self.lines, self.range(peer), place, self.threads) {
                let message = self.sums[rank as usize] + peer - u32::from(peer > rank);
                let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
                let poll = Op::Poll { message, offset, bytes, data, action: Action::Set };
                self.builder.push(rank, block, poll);
                self.builder.push(rank, block, Op::Delay(self.request.kernel.line_trip));
                self.keep(rank, block, data, trip.data.bytes);
            }
        }
    }

    fn keep(&mut self, rank: u32, block: usize, offset: u32, bytes: u32) {
        let buffer = self.outputs[rank as usize];
        self.builder.push(rank, block, Op::Write { buffer, offset, bytes, data: offset });
    }
}
