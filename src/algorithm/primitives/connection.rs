//! A connection: one way from a rank to a neighbour on one channel, a buffer of eight steps with
//! flags that say what is there and credits that say what is free again.

use super::STEPS;
use crate::algorithm::{Hop, Protocol, Request};
use crate::fabric::EndpointId;
use crate::schedule::build::Builder;
use crate::schedule::{BufferId, Lines, MessageId};

/// One way between two ranks.
pub(in crate::algorithm) struct Connection {
    from: u32,
    to: u32,
    /// Memory of what the receiver polls: lines, or the flag of a slice.
    inbox: EndpointId,
    /// Memory of the credits, which the sender polls.
    back: EndpointId,
    /// Simple: the buffer, and the bytes of one of its slots.
    buffer: Option<(BufferId, u32)>,
    /// Lines or slice flags by step, and the credits for them.
    sent: Vec<MessageId>,
    credits: Vec<MessageId>,
    /// Steps that the sender and the receiver have begun.
    sends: usize,
    receives: usize,
    /// The probe's kernel gives none with lines.
    has_credits: bool,
    by_host: bool,
}

impl Connection {
    /// Data and counters pass through host memory.
    pub(super) fn is_by_host(&self) -> bool {
        self.by_host
    }

    /// A connection whose Simple slots hold `slice` bytes.
    pub(super) fn new(
        request: &Request<'_>,
        builder: &mut Builder,
        (from, to): (u32, u32),
        slice: u32,
    ) -> Connection {
        let inbox = request.inbox(from, to);
        let buffer = (request.protocol == Protocol::Simple).then(|| {
            // A receiver that reads leaves the buffer with the sender.
            let reads = request.hop(from, to) == Hop::Read;
            let home = if reads { request.gpus[from as usize] } else { inbox };
            let bytes = u64::from(slice) * STEPS as u64;
            let owner = if reads { from } else { to };
            (builder.buffer(owner, home, crate::schedule::Role::Scratch, bytes), slice)
        });
        Connection {
            from,
            to,
            inbox,
            back: request.inbox(to, from),
            sent: Vec::new(),
            credits: Vec::new(),
            sends: 0,
            receives: 0,
            has_credits: !request.kernel.is_probe() || buffer.is_some(),
            buffer,
            by_host: request.hop(from, to) == Hop::Host,
        }
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
        let message = self.message(builder, step, data, lines);
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

    /// The buffer and the first byte of the slot of a step, of `slots`.
    pub(super) fn slot(&self, step: usize, slots: usize) -> Option<(BufferId, u32)> {
        self.buffer.map(|(buffer, slice)| (buffer, (step % slots) as u32 * slice))
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

    fn credit(&mut self, builder: &mut Builder, step: usize) -> MessageId {
        while self.credits.len() <= step {
            let credit = builder.message(self.to, self.from, self.back, FLAG, Lines::Plain);
            self.credits.push(credit);
        }
        self.credits[step]
    }
}

/// Bytes of a flag or a credit: a step count.
pub(super) const FLAG: u32 = 8;
