//! Ring all-reduce: n-1 steps of receive, add, send, then n-1 of receive, copy, send.
//!
//! NCCL's LL kernel polls a line, adds and stores the next line in one trip; the probe's kernel
//! stores all lines of a step before it polls any. Simple moves slices through a buffer at the
//! receiver, announced by a flag behind a fence.

use super::nccl::ring_split;
use super::{Algorithm, Implementation, Protocol, Request, Transport};
use crate::error::Result;
use crate::fabric::LinkClass;
use crate::schedule::build::{Builder, Part, slice, trips};
use crate::schedule::{Action, BufferId, Collective, Lines, MessageId, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "ring",
    title: "ring",
    collective: Collective::AllReduce,
    protocols: &[Protocol::Ll, Protocol::Ll128, Protocol::Simple],
    implementations: &[Implementation::Nccl, Implementation::Probe],
    build,
};

/// Data bytes of one LL slot and of one Simple chunk (NCCL's default buffers: 512 KiB of 8 LL steps,
/// half of it data; 4 MiB of 8 steps, 4 a chunk).
const LL_CHUNK: u64 = 32_768;
const LL128_CHUNK: u64 = 576_000;
const SIMPLE_CHUNK: u64 = 2 << 20;
/// NCCL leaves LL for Simple at about this many bytes a rank (measured/wrx90-7955wx-4xpm50100-flat,
/// measured/dual-turin-9575f-direct: between 256 KB and 1 MB for eight GPUs); the tuner
/// of 2.28 changes at 512 KB for eight ranks on PCIe.
pub const LL_BYTES_A_RANK: u64 = 64 << 10;
/// NCCL cuts a chunk into two slices and none below this.
const SIMPLE_SLICES: u32 = 2;

/// Channels of the communicator: many where the first two ranks are joined by NVLink.
pub(super) fn channels(request: &Request<'_>) -> u32 {
    let class = request.fabric.first_class(request.gpus[0], request.gpus[1]);
    let nvlink = class == Some(LinkClass::Nvlink) && request.transport == Transport::Peer;
    request.kernel.channels[usize::from(!nvlink)]
}

/// One loop of a channel: where its data start and how long each chunk is.
struct Round {
    start: u32,
    chunk: u32,
    length: u32,
}

fn build(request: &Request<'_>) -> Result<Schedule> {
    let probe = request.kernel.is_probe();
    let (channels, threads) = if probe {
        (request.blocks.unwrap_or(1), 512)
    } else {
        let channels = request.blocks.unwrap_or_else(|| channels(request));
        ring_split(request.bytes, request.ranks(), request.protocol, channels)
    };
    let name = format!("ring {}", request.protocol.name());
    let mut builder = Builder::new(name, &request.gpus, channels as usize, threads);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    let lines = if request.protocol == Protocol::Ll { Lines::Ll } else { Lines::Ll128 };
    let ring = Ring { request, inputs, outputs, threads, lines, probe };
    if let Some(start) = request.kernel.start_op(channels as usize) {
        builder.push_all(start);
    }
    if request.protocol == Protocol::Simple {
        builder.push_all(Op::Delay(request.kernel.simple));
    }
    for channel in 0..channels {
        let (start, length) = slice(request.bytes, channels, channel);
        for round in rounds(start, length, request.ranks(), ring.chunk_max()) {
            match request.protocol {
                Protocol::Simple => ring.simple(&mut builder, channel as usize, &round),
                _ => ring.lines(&mut builder, channel as usize, &round),
            }
        }
    }
    if !probe {
        builder.push_all(Op::Delay(request.kernel.end));
    }
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}

/// NCCL's loops over a channel's data: chunks as large as a slot holds, the last loop's smaller.
fn rounds(start: u32, length: u32, ranks: u32, chunk_max: u64) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut at = 0;
    while at < length {
        let rest = length - at;
        let even = u64::from(rest).div_ceil(u64::from(ranks)).div_ceil(16) * 16;
        let chunk = even.min(chunk_max) as u32;
        let taken = rest.min(chunk * ranks);
        rounds.push(Round { start: start + at, chunk, length: taken });
        at += taken;
    }
    rounds
}

struct Ring<'a> {
    request: &'a Request<'a>,
    inputs: Vec<BufferId>,
    outputs: Vec<BufferId>,
    threads: u32,
    /// Lines of the protocol, unless it is Simple.
    lines: Lines,
    /// The probe's kernel, not NCCL's.
    probe: bool,
}

impl Ring<'_> {
    fn chunk_max(&self) -> u64 {
        match self.request.protocol {
            _ if self.probe => u64::from(u32::MAX),
            Protocol::Ll => LL_CHUNK,
            Protocol::Ll128 => LL128_CHUNK,
            Protocol::Simple => SIMPLE_CHUNK,
        }
    }

    /// First byte and length of a chunk of a round; late chunks may be short or empty.
    fn chunk(round: &Round, index: u32) -> (u32, u32) {
        let from = (index * round.chunk).min(round.length);
        (round.start + from, round.chunk.min(round.length - from))
    }

    /// The chunk that a rank sends in step `step`: its own in step 0, then what it received before.
    fn sent_chunk(&self, rank: u32, step: u32) -> u32 {
        let n = self.request.ranks();
        (rank + 2 * n - 1 - step) % n
    }

    /// A round in lines that carry their flags.
    fn lines(&self, builder: &mut Builder, channel: usize, round: &Round) {
        let n = self.request.ranks();
        let steps = 2 * (n - 1);
        // Message of each (rank, step): what it sends to the next rank.
        let mut messages: Vec<Vec<MessageId>> = Vec::new();
        let mut credits: Vec<Vec<MessageId>> = Vec::new();
        for rank in 0..n {
            let next = (rank + 1) % n;
            let (mut sent, mut credit) = (Vec::new(), Vec::new());
            for step in 0..steps {
                let (_, length) = Self::chunk(round, self.sent_chunk(rank, step));
                let home = self.request.inbox(rank, next);
                sent.push(builder.message(rank, next, home, length, self.lines));
                if !self.probe {
                    let back = self.request.inbox(next, rank);
                    credit.push(builder.message(next, rank, back, 8, Lines::Plain));
                }
            }
            messages.push(sent);
            credits.push(credit);
        }
        for rank in 0..n {
            let previous = (rank + n - 1) % n;
            for step in 0..steps {
                let (at, length) = Self::chunk(round, self.sent_chunk(rank, step));
                if step == 0 || self.probe {
                    let message = messages[rank as usize][step as usize];
                    let own = (step == 0).then(|| self.inputs[rank as usize]);
                    self.send(builder, rank, channel, message, own, at, length);
                }
                // What arrives in this step is what goes out in the next.
                let (at, length) = Self::chunk(round, self.sent_chunk(previous, step));
                let onward = (step + 1 < steps && !self.probe)
                    .then(|| messages[rank as usize][step as usize + 1]);
                let incoming = messages[previous as usize][step as usize];
                self.receive(builder, rank, channel, incoming, onward, at, length, step);
                builder.push(rank, channel, Op::Delay(self.request.kernel.step));
                builder.push(rank, channel, Op::BlockBarrier);
                if !self.probe {
                    builder.push(
                        rank,
                        channel,
                        Op::Flag(credits[previous as usize][step as usize]),
                    );
                }
            }
        }
    }

    fn wire_trips(&self, length: u32) -> Vec<Part> {
        let wire = self.lines.wire_bytes(u64::from(length)) as u32;
        trips(0, wire, 0, 1, self.threads).collect()
    }

    /// Sends a chunk: of `own` data, loaded first, or of what is held since the step before.
    #[expect(clippy::too_many_arguments, reason = "the parts of one step")]
    fn send(
        &self,
        builder: &mut Builder,
        rank: u32,
        channel: usize,
        message: MessageId,
        own: Option<BufferId>,
        at: u32,
        length: u32,
    ) {
        for part in self.wire_trips(length) {
            let data = self.data_part(at, length, part);
            if let Some(own) = own {
                builder.load(rank, channel, own, data, Action::Set);
                builder.push(rank, channel, Op::WaitLoads);
            }
            let Part { offset, bytes } = part;
            builder.push(rank, channel, Op::Send { message, offset, bytes, data: data.offset });
        }
    }

    /// Polls a chunk, adds own data in the first half, keeps the result, and passes it on.
    #[expect(clippy::too_many_arguments, reason = "the parts of one step")]
    fn receive(
        &self,
        builder: &mut Builder,
        rank: u32,
        channel: usize,
        incoming: MessageId,
        onward: Option<MessageId>,
        at: u32,
        length: u32,
        step: u32,
    ) {
        let n = self.request.ranks();
        let reduces = step + 1 < n;
        let last_sum = step + 2 == n;
        for part in self.wire_trips(length) {
            let data = self.data_part(at, length, part);
            let Part { offset, bytes } = part;
            let own = self.inputs[rank as usize];
            let poll =
                |action| Op::Poll { message: incoming, offset, bytes, data: data.offset, action };
            // NCCL asks for its own data before it polls; the probe's kernel after.
            if reduces && self.probe {
                builder.push(rank, channel, poll(Action::Set));
                builder.load(rank, channel, own, data, Action::Add);
            } else if reduces {
                builder.load(rank, channel, own, data, Action::Set);
                builder.push(rank, channel, poll(Action::Add));
            } else {
                builder.push(rank, channel, poll(Action::Set));
            }
            builder.push(rank, channel, Op::WaitLoads);
            builder.push(rank, channel, Op::Delay(self.request.kernel.line_trip));
            if let Some(message) = onward {
                let send = Op::Send { message, offset, bytes, data: data.offset };
                builder.push(rank, channel, send);
            }
            if last_sum || !reduces {
                let (offset, bytes) = (data.offset, data.bytes);
                let buffer = self.outputs[rank as usize];
                builder.push(rank, channel, Op::Write { buffer, offset, bytes });
            }
        }
    }

    /// The data bytes behind a part of a message's wire bytes.
    fn data_part(&self, at: u32, length: u32, part: Part) -> Part {
        let offset = self.lines.data_bytes(u64::from(part.offset)) as u32;
        let bytes = self.lines.data_bytes(u64::from(part.bytes)) as u32;
        Part { offset: at + offset, bytes: bytes.min(length - offset) }
    }

    /// A round in slices through the receiver's buffer, each behind a fence and a flag.
    fn simple(&self, builder: &mut Builder, channel: usize, round: &Round) {
        let n = self.request.ranks();
        let steps = 2 * (n - 1);
        let bytes = self.request.bytes;
        // The first half and the second half of the steps pass through buffers of their own: NCCL's
        // eight steps never let a slot be reused while it is read.
        let halves: Vec<Vec<BufferId>> = (0..2)
            .map(|_| {
                (0..n)
                    .map(|rank| {
                        let home = self.request.inbox((rank + n - 1) % n, rank);
                        builder.buffer(rank, home, Role::Scratch, bytes)
                    })
                    .collect()
            })
            .collect();
        let mut tails = Vec::new();
        let mut heads = Vec::new();
        for rank in 0..n {
            let next = (rank + 1) % n;
            let slots = steps * SIMPLE_SLICES;
            let home = self.request.inbox(rank, next);
            let back = self.request.inbox(next, rank);
            tails.push(
                (0..slots)
                    .map(|_| builder.message(rank, next, home, 8, Lines::Plain))
                    .collect::<Vec<_>>(),
            );
            heads.push(
                (0..slots)
                    .map(|_| builder.message(next, rank, back, 8, Lines::Plain))
                    .collect::<Vec<_>>(),
            );
        }
        for rank in 0..n {
            let (next, previous) = ((rank + 1) % n, (rank + n - 1) % n);
            for step in 0..=steps {
                for slice in 0..SIMPLE_SLICES {
                    if step > 0 {
                        let flag =
                            tails[previous as usize][((step - 1) * SIMPLE_SLICES + slice) as usize];
                        builder.push(rank, channel, Op::PollFlag { message: flag, acquire: false });
                    }
                    builder.push(rank, channel, Op::BlockBarrier);
                    builder.push(rank, channel, Op::Delay(self.request.kernel.slice));
                    let chunk = if step < steps {
                        self.sent_chunk(rank, step)
                    } else {
                        self.sent_chunk(previous, steps - 1)
                    };
                    let (at, length) = Self::slice_of(round, chunk, slice);
                    let from = (step > 0).then(|| halves[usize::from(step > n - 1)][rank as usize]);
                    let to = (step < steps)
                        .then(|| halves[usize::from(step + 1 > n - 1)][next as usize]);
                    for part in trips(at, length, 0, 1, self.threads) {
                        self.simple_trip(builder, rank, channel, part, step, from, to);
                    }
                    builder.push(rank, channel, Op::BlockBarrier);
                    if step > 0 {
                        let flag =
                            heads[previous as usize][((step - 1) * SIMPLE_SLICES + slice) as usize];
                        builder.push(rank, channel, Op::Flag(flag));
                    }
                    if step < steps {
                        if length > 0 {
                            builder.push(rank, channel, Op::Fence);
                        }
                        let flag = tails[rank as usize][(step * SIMPLE_SLICES + slice) as usize];
                        builder.push(rank, channel, Op::Flag(flag));
                    }
                }
            }
        }
    }

    /// A slice of a chunk: NCCL's slices are no smaller than a 32nd of the largest, so a small chunk
    /// is all in the first.
    fn slice_of(round: &Round, chunk: u32, slice: u32) -> (u32, u32) {
        let (at, length) = Self::chunk(round, chunk);
        let least = (SIMPLE_CHUNK as u32) / SIMPLE_SLICES / 32;
        let each = (length.div_ceil(SIMPLE_SLICES).div_ceil(16) * 16).max(least);
        let from = (slice * each).min(length);
        (at + from, each.min(length - from))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one trip")]
    fn simple_trip(
        &self,
        builder: &mut Builder,
        rank: u32,
        channel: usize,
        part: Part,
        step: u32,
        from: Option<BufferId>,
        to: Option<BufferId>,
    ) {
        let n = self.request.ranks();
        let reduces = step < n;
        if let Some(from) = from {
            builder.load(rank, channel, from, part, Action::Set);
        }
        if reduces {
            let action = if from.is_some() { Action::Add } else { Action::Set };
            builder.load(rank, channel, self.inputs[rank as usize], part, action);
        }
        builder.push(rank, channel, Op::WaitLoads);
        let Part { offset, bytes } = part;
        if let Some(buffer) = to {
            builder.push(rank, channel, Op::Write { buffer, offset, bytes });
        }
        if step + 1 >= n {
            let buffer = self.outputs[rank as usize];
            builder.push(rank, channel, Op::Write { buffer, offset, bytes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_round_is_shared_evenly() {
        // 14,336 bytes over 8 ranks: one round of 1,792-byte chunks.
        let found = rounds(0, 14_336, 8, LL_CHUNK);
        assert_eq!((found.len(), found[0].chunk), (1, 1792));
    }
}
