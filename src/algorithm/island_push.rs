//! Island-hierarchical all-reduce by writing: shares are stored at their owner in the island, island
//! sums at the owners in the other islands, and sums at all of the island; data mark their arrival.
//!
//! FlashInfer's `pcie_ipc` in stages is cruder: whole buffers inside the island, then the island's
//! sum to one counterpart in each other island ([`STAGED`]).

use super::islands::Shares;
use super::kernel::Implementation;
use super::lines::{LineTrip, Range, line_trips};
use super::one_shot_push::LAMPORT_THREADS;
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::Builder;
use crate::schedule::{Action, BufferId, Collective, Lines, MessageId, Op, Role, Schedule};

/// Shares inside the island, across, and inside again.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "island_push",
    title: "by islands, writing",
    collective: Collective::AllReduce,
    structure: Structure::Islands,
    protocols: &[Protocol::Simple],
    implementations: &[Implementation::PcieIpc],
    build: shared,
};

/// Whole buffers inside the island, its sum across.
pub const STAGED: Algorithm = Algorithm {
    name: "staged_push",
    title: "staged by islands",
    collective: Collective::AllReduce,
    structure: Structure::Islands,
    protocols: &[Protocol::Simple],
    implementations: &[Implementation::PcieIpc],
    build: staged,
};

/// Most blocks of the kernel.
const BLOCKS_MAX: u64 = 16;

/// What a rank has at hand while its program is written.
struct Push<'a> {
    request: &'a Request<'a>,
    builder: Builder,
    inputs: Vec<BufferId>,
    outputs: Vec<BufferId>,
    blocks: usize,
}

impl<'a> Push<'a> {
    fn new(request: &'a Request<'a>, name: &str) -> Push<'a> {
        let by_size = request.bytes.div_ceil(u64::from(LAMPORT_THREADS) * 16);
        let blocks = request.blocks.unwrap_or(by_size.clamp(1, BLOCKS_MAX) as u32) as usize;
        let mut builder = Builder::new(name, &request.gpus, blocks, LAMPORT_THREADS);
        let local = |rank: u32| request.gpus[rank as usize];
        let inputs = builder.buffers(Role::Input, request.bytes, local);
        let outputs = builder.buffers(Role::Output, request.bytes, local);
        if let Some(start) = request.kernel.start_op(blocks) {
            builder.push_all(start);
        }
        Push { request, builder, inputs, outputs, blocks }
    }

    fn finish(mut self) -> Schedule {
        self.builder.push_all(Op::Delay(self.request.kernel.end));
        self.builder.finish(self.request.bytes, Some(Collective::AllReduce))
    }

    /// Messages from each of some ranks to another, next to each other: the first's number.
    fn inbox(&mut self, from: &[u32], to: u32, length: u32) -> MessageId {
        let request = self.request;
        let mut ids = from.iter().map(|&from| {
            self.builder.message(from, to, request.inbox(from, to), length, Lines::Plain)
        });
        let first = ids.next().unwrap_or_default();
        ids.for_each(drop);
        first
    }

    fn trips(&self, range: Range, block: usize) -> Vec<LineTrip> {
        line_trips(Lines::Plain, range, (block, self.blocks), LAMPORT_THREADS)
    }

    fn load(&mut self, rank: u32, block: usize, trip: LineTrip) {
        self.builder.load(rank, block, self.inputs[rank as usize], trip.data, Action::Set);
        self.builder.push(rank, block, Op::WaitLoads);
    }

    fn send(&mut self, rank: u32, block: usize, message: MessageId, trip: LineTrip) {
        let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
        self.builder.push(rank, block, Op::Send { message, offset, bytes, data });
    }

    /// Waits for `count` messages and adds them to what is at hand, or takes the one there is.
    fn take(
        &mut self,
        (rank, block): (u32, usize),
        (base, count): (MessageId, usize),
        trip: LineTrip,
        action: Action,
    ) {
        if count == 0 {
            return;
        }
        let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
        let count = count as u32;
        let poll = Op::PollEach { base, count, offset, bytes, data, action };
        self.builder.push(rank, block, poll);
        let delay = self.request.kernel.line_trip * u64::from(count);
        self.builder.push(rank, block, Op::Delay(delay));
    }

    fn keep(&mut self, rank: u32, block: usize, trip: LineTrip) {
        let (buffer, offset, bytes) =
            (self.outputs[rank as usize], trip.data.offset, trip.data.bytes);
        self.builder.push(rank, block, Op::Write { buffer, offset, bytes, data: offset });
    }
}

/// Inboxes of one piece at its owner in an island, and of its sum at the others of the island.
struct Inboxes {
    owner: u32,
    /// Others of the island, who send their part.
    members: Vec<u32>,
    parts: MessageId,
    /// Owners in the other islands, who send their sum.
    abroad: Vec<u32>,
    island_sums: MessageId,
    /// The sum at each of `members`.
    sums: Vec<MessageId>,
}

fn without(ranks: impl IntoIterator<Item = u32>, one: u32) -> Vec<u32> {
    ranks.into_iter().filter(|&rank| rank != one).collect()
}

fn shared(request: &Request<'_>) -> Result<Schedule> {
    let shares = Shares::of(request);
    let mut push = Push::new(request, "islands push");
    // `[piece][island]`.
    let mut inboxes: Vec<Vec<Inboxes>> = Vec::new();
    for (piece, &(_, length)) in shares.pieces.iter().enumerate() {
        let mut of_piece = Vec::new();
        for (owner, island) in shares.owners(piece).zip(&shares.islands) {
            let members = without(island.iter().copied(), owner);
            let abroad = without(shares.owners(piece), owner);
            let parts = push.inbox(&members, owner, length);
            let island_sums = push.inbox(&abroad, owner, length);
            let sums = members.iter().map(|&to| push.inbox(&[owner], to, length)).collect();
            of_piece.push(Inboxes { owner, members, parts, abroad, island_sums, sums });
        }
        inboxes.push(of_piece);
    }
    for (number, island) in shares.islands.iter().enumerate() {
        for &rank in island {
            for block in 0..push.blocks {
                let pieces = shares.pieces.iter().zip(&inboxes);
                // Each starts at a piece of its own, so that not all store to one owner at first.
                let turned = pieces.clone().cycle().skip(rank as usize).take(inboxes.len());
                for (&range, inboxes) in turned {
                    push.scatter((rank, block), range, &inboxes[number]);
                }
                for (&range, inboxes) in pieces.clone() {
                    push.reduce((rank, block), range, inboxes, number);
                }
                for (&range, inboxes) in pieces {
                    push.gather((rank, block), range, &inboxes[number]);
                }
            }
        }
    }
    Ok(push.finish())
}

impl Push<'_> {
    /// Stores a part of another's piece at its owner in the island.
    fn scatter(&mut self, (rank, block): (u32, usize), range: Range, inboxes: &Inboxes) {
        let Some(place) = inboxes.members.iter().position(|&member| member == rank) else { return };
        for trip in self.trips(range, block) {
            self.load(rank, block, trip);
            self.send(rank, block, inboxes.parts + place as u32, trip);
        }
    }

    /// Adds up an own piece, exchanges it with the other islands, and stores the sum in the island.
    fn reduce(
        &mut self,
        (rank, block): (u32, usize),
        range: Range,
        islands: &[Inboxes],
        number: usize,
    ) {
        let own = &islands[number];
        if own.owner != rank {
            return;
        }
        let trips = self.trips(range, block);
        for &trip in &trips {
            self.load(rank, block, trip);
            self.take((rank, block), (own.parts, own.members.len()), trip, Action::Add);
            for other in islands.iter().filter(|other| other.owner != rank) {
                let place = other.abroad.iter().position(|&from| from == rank).unwrap_or(0);
                self.send(rank, block, other.island_sums + place as u32, trip);
            }
        }
        for &trip in &trips {
            self.take((rank, block), (own.island_sums, own.abroad.len()), trip, Action::Add);
            for &message in &own.sums {
                self.send(rank, block, message, trip);
            }
            self.keep(rank, block, trip);
        }
    }

    /// Keeps the sum of another's piece.
    fn gather(&mut self, (rank, block): (u32, usize), range: Range, inboxes: &Inboxes) {
        let Some(place) = inboxes.members.iter().position(|&member| member == rank) else { return };
        for trip in self.trips(range, block) {
            self.take((rank, block), (inboxes.sums[place], 1), trip, Action::Set);
            self.keep(rank, block, trip);
        }
    }
}

fn staged(request: &Request<'_>) -> Result<Schedule> {
    let islands = request.islands();
    let mut push = Push::new(request, "staged by islands");
    let bytes = request.bytes as u32;
    // In the other islands, the member at the same place; a shorter island's members serve several.
    let counterpart = |island: &Vec<u32>, place: usize| island[place % island.len()];
    let (mut inside, mut across) = (Vec::new(), Vec::new());
    for (number, island) in islands.iter().enumerate() {
        for (place, &rank) in island.iter().enumerate() {
            let members = without(island.iter().copied(), rank);
            inside.push((rank, push.inbox(&members, rank, bytes), members));
            let others = islands.iter().enumerate().filter(|other| other.0 != number);
            let abroad: Vec<u32> = others.map(|(_, island)| counterpart(island, place)).collect();
            across.push((rank, push.inbox(&abroad, rank, bytes), abroad));
        }
    }
    for rank in 0..request.ranks() {
        for block in 0..push.blocks {
            let trips = push.trips((0, bytes), block);
            for &trip in &trips {
                push.load(rank, block, trip);
                push.send_to_all(rank, block, &inside, trip);
            }
            for &trip in &trips {
                push.take_all(rank, block, &inside, trip);
                push.send_to_all(rank, block, &across, trip);
            }
            for &trip in &trips {
                push.take_all(rank, block, &across, trip);
                push.keep(rank, block, trip);
            }
        }
    }
    Ok(push.finish())
}

/// A rank's inbox: its owner, its first message, and who sends to it, in order.
type Inbox = (u32, MessageId, Vec<u32>);

impl Push<'_> {
    /// Sends to everybody who has an inbox for this rank.
    fn send_to_all(&mut self, rank: u32, block: usize, inboxes: &[Inbox], trip: LineTrip) {
        for (_, base, senders) in inboxes {
            if let Some(place) = senders.iter().position(|&from| from == rank) {
                self.send(rank, block, base + place as u32, trip);
            }
        }
    }

    fn take_all(&mut self, rank: u32, block: usize, inboxes: &[Inbox], trip: LineTrip) {
        if let Some((_, base, senders)) = inboxes.iter().find(|inbox| inbox.0 == rank) {
            self.take((rank, block), (*base, senders.len()), trip, Action::Add);
        }
    }
}
