//! A connection: one way from a rank to a neighbour on one channel, a buffer of eight steps with
//! flags that say what is there and credits that say what is free again. Where copy engines carry the
//! data there is a buffer at each end of a copy, and flags before and behind it.

use super::STEPS;
use crate::algorithm::{Hop, Protocol, Request};
use crate::fabric::EndpointId;
use crate::schedule::build::Builder;
use crate::schedule::{Block, BufferId, Executor, Lines, MessageId, Op, Role};
use crate::units::Time;

/// One way between two ranks.
pub(in crate::algorithm) struct Connection {
    from: u32,
    to: u32,
    /// Memory of what the receiver polls: lines, or the flag of a slice.
    inbox: EndpointId,
    /// Memory of the credits, which the sender polls.
    back: EndpointId,
    /// Simple: the buffers on the way, the sender's first, and the bytes of a slot of each.
    buffers: Vec<BufferId>,
    slice: u32,
    /// The copies from each buffer to the next.
    carriers: Vec<Carrier>,
    /// Lines or slice flags by step, as the receiver polls them, and the credits for them.
    sent: Vec<MessageId>,
    credits: Vec<MessageId>,
    /// Steps that the sender and the receiver have begun.
    sends: usize,
    receives: usize,
    /// The probe's kernel gives none with lines.
    has_credits: bool,
    counters_in_host: bool,
}

/// A host thread's part of a connection: it starts copies from one buffer to the next.
struct Carrier {
    /// Whose host thread and copy engine, and its block.
    rank: u32,
    block: usize,
    /// The engine writes; otherwise it reads.
    push: bool,
    /// Memory and flags by step of what tells the host thread that a slice is there.
    inbox: EndpointId,
    filled: Vec<MessageId>,
}

/// Where one end of a connection finds a step in the Simple protocol.
#[derive(Copy, Clone)]
pub(super) struct End {
    pub(super) buffer: BufferId,
    /// First byte of the slot.
    pub(super) offset: u32,
    /// The slice's flag, and its credit: given by the receiver, waited for by the sender.
    pub(super) flag: MessageId,
    pub(super) credit: Option<MessageId>,
}

impl Connection {
    /// A connection whose Simple slots hold `slice` bytes.
    pub(super) fn new(
        request: &Request<'_>,
        builder: &mut Builder,
        (from, to): (u32, u32),
        slice: u32,
    ) -> Connection {
        let hop = request.hop(from, to);
        let simple = request.protocol == Protocol::Simple;
        let counters_in_host = hop.is_by_host() || hop == Hop::Engine;
        let by_engine = simple && hop.is_by_engine();
        let mut carriers = Vec::new();
        let mut buffers = Vec::new();
        if simple {
            let homes = homes(request, (from, to), hop);
            let bytes = u64::from(slice) * STEPS as u64;
            buffers.extend(
                homes.iter().map(|&(rank, home)| builder.buffer(rank, home, Role::Scratch, bytes)),
            );
        }
        if by_engine {
            let mut add = |rank: u32, push: bool| {
                let (executor, background, ops) = (Executor::Proxy, false, Vec::new());
                let proxy = Block { executor, threads: 32, beside: None, background, ops };
                let block = builder.add_block(rank, proxy);
                let inbox = request.host_memory(rank);
                carriers.push(Carrier { rank, block, push, inbox, filled: Vec::new() });
            };
            let (send, receive) = match hop {
                Hop::HostEngine { send, receive } => (send, receive),
                _ => (true, false),
            };
            if send {
                add(from, true);
            }
            if receive {
                add(to, false);
            }
        }
        let inbox = match by_engine {
            // The host thread that carries last says so in its own memory.
            true => carriers.last().map_or(request.host_memory(to), |last| last.inbox),
            false => request.inbox(from, to),
        };
        Connection {
            from,
            to,
            inbox,
            back: match counters_in_host {
                true => request.host_memory(from),
                false => request.gpus[from as usize],
            },
            has_credits: !request.kernel.is_probe() || simple,
            buffers,
            slice,
            carriers,
            sent: Vec::new(),
            credits: Vec::new(),
            sends: 0,
            receives: 0,
            counters_in_host,
        }
    }

    /// Counters of steps, and where data pass through host memory these too, lie there.
    pub(super) fn has_counters_in_host(&self) -> bool {
        self.counters_in_host
    }

    /// The next step that the sender fills with `data` bytes, and the credit that it has to wait for
    /// when `slots` steps are on their way.
    pub(super) fn send(
        &mut self,
        builder: &mut Builder,
        data: u32,
        lines: Lines,
        slots: usize,
    ) -> (usize, MessageId, Option<MessageId>) {
        let step = self.sends;
        self.sends += 1;
        let message = match self.carriers.is_empty() {
            true => self.message(builder, step, data, lines),
            false => self.filled(builder, 0, step),
        };
        let waited = step.checked_sub(slots).filter(|_| self.has_credits);
        (step, message, waited.map(|earlier| self.credit(builder, earlier)))
    }

    /// The next step that the receiver takes, of `data` bytes, and the credit that it gives back.
    pub(super) fn receive(
        &mut self,
        builder: &mut Builder,
        data: u32,
        lines: Lines,
    ) -> (usize, MessageId, Option<MessageId>) {
        let step = self.receives;
        self.receives += 1;
        let message = self.message(builder, step, data, lines);
        let credit = self.has_credits.then(|| self.credit(builder, step));
        (step, message, credit)
    }

    /// The sender's end of the next slice, of `bytes`, of which the buffers hold `slots`, with what
    /// host threads do to carry it, which take so long for one with data and without.
    pub(super) fn send_slice(
        &mut self,
        builder: &mut Builder,
        bytes: u32,
        slots: usize,
        host: [Time; 2],
    ) -> Option<End> {
        let (step, flag, credit) = self.send(builder, FLAG, Lines::Plain, slots);
        let offset = (step % slots) as u32 * self.slice;
        for at in 0..self.carriers.len() {
            let filled = self.filled(builder, at, step);
            let carried = match at + 1 < self.carriers.len() {
                true => self.filled(builder, at + 1, step),
                false => self.message(builder, step, FLAG, Lines::Plain),
            };
            let Carrier { rank, block, push, .. } = self.carriers[at];
            let (from, to) = (self.buffers[at], self.buffers[at + 1]);
            let copy = Op::Copy {
                from,
                from_offset: offset,
                to,
                to_offset: offset,
                bytes,
                push,
                kernel: false,
            };
            builder.push(rank, block, Op::PollFlag { message: filled, acquire: false });
            builder.push(rank, block, Op::HostTurn(host[usize::from(bytes == 0)]));
            if bytes > 0 {
                builder.push(rank, block, copy);
            }
            builder.push(rank, block, Op::Flag(carried));
        }
        self.buffers.first().map(|&buffer| End { buffer, offset, flag, credit })
    }

    /// The receiver's end of the next slice.
    pub(super) fn receive_slice(&mut self, builder: &mut Builder, slots: usize) -> Option<End> {
        let (step, flag, credit) = self.receive(builder, FLAG, Lines::Plain);
        let offset = (step % slots) as u32 * self.slice;
        self.buffers.last().map(|&buffer| End { buffer, offset, flag, credit })
    }

    fn message(
        &mut self,
        builder: &mut Builder,
        step: usize,
        data: u32,
        lines: Lines,
    ) -> MessageId {
        if self.sent.len() == step {
            self.sent.push(builder.message(self.from, self.to, self.inbox, data, lines));
        }
        self.sent[step]
    }

    /// What tells the host thread of a copy that a step is there.
    fn filled(&mut self, builder: &mut Builder, at: usize, step: usize) -> MessageId {
        let before = at.checked_sub(1).map_or(self.from, |before| self.carriers[before].rank);
        let carrier = &mut self.carriers[at];
        if carrier.filled.len() == step {
            let (to, home) = (carrier.rank, carrier.inbox);
            carrier.filled.push(builder.message(before, to, home, FLAG, Lines::Plain));
        }
        carrier.filled[step]
    }

    fn credit(&mut self, builder: &mut Builder, step: usize) -> MessageId {
        while self.credits.len() <= step {
            let credit = builder.message(self.to, self.from, self.back, FLAG, Lines::Plain);
            self.credits.push(credit);
        }
        self.credits[step]
    }
}

/// Owners and memories of the buffers on the way, the sender's first.
fn homes(request: &Request<'_>, (from, to): (u32, u32), hop: Hop) -> Vec<(u32, EndpointId)> {
    let own = |rank: u32| (rank, request.gpus[rank as usize]);
    match hop {
        // A receiver that reads leaves the buffer with the sender.
        Hop::Read => vec![own(from)],
        Hop::Write | Hop::Host => vec![(to, request.inbox(from, to))],
        Hop::Engine => vec![own(from), own(to)],
        Hop::HostEngine { send, receive } => {
            let ends =
                [(send, own(from)), (true, (to, request.inbox(from, to))), (receive, own(to))];
            ends.into_iter().filter(|end| end.0).map(|end| end.1).collect()
        }
    }
}

/// Bytes of a flag or a credit: a step count.
pub(super) const FLAG: u32 = 8;
