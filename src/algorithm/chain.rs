//! Chain all-reduce, NCCL's tree inside one node: sums travel up the chain to rank 0 and results
//! travel down, chunk by chunk, in two groups of threads at once.

use super::nccl::ring_split;
use super::{Algorithm, Implementation, Protocol, Request, ring};
use crate::error::Result;
use crate::schedule::build::{Builder, Part, slice, trips};
use crate::schedule::{Action, BufferId, Collective, Lines, MessageId, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "chain",
    title: "tree (chain in a node)",
    collective: Collective::AllReduce,
    protocols: &[Protocol::Ll],
    implementations: &[Implementation::Nccl],
    build,
};

/// NCCL's tree kernels run 640 threads, about 70 % of them reducing; here two blocks share them.
const UP_THREADS: u32 = 448;
/// NCCL's tree for small calls.
const LINES: Lines = Lines::Ll;

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let channels = request.blocks.unwrap_or_else(|| ring::channels(request));
    let (channels, _) = ring_split(request.bytes, n, Protocol::Ll, channels);
    let blocks = 2 * channels as usize;
    let mut builder = Builder::new("chain LL", &request.gpus, blocks, UP_THREADS);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    if let Some(start) = request.kernel.start_op(blocks) {
        builder.push_all(start);
    }
    for channel in 0..channels {
        let (start, length) = slice(request.bytes, channels, channel);
        let chain = Chain { request, inputs: &inputs, outputs: &outputs, channel, start };
        chain.add(&mut builder, length);
    }
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}

/// One channel: a slice of the data, a block that reduces and one that broadcasts.
struct Chain<'a> {
    request: &'a Request<'a>,
    inputs: &'a [BufferId],
    outputs: &'a [BufferId],
    channel: u32,
    start: u32,
}

impl Chain<'_> {
    fn add(&self, builder: &mut Builder, length: u32) {
        let n = self.request.ranks();
        let inbox = |from: u32, to: u32| self.request.inbox(from, to);
        // Up: rank r to r - 1; down: rank r - 1 to r.
        let up: Vec<MessageId> =
            (1..n).map(|r| builder.message(r, r - 1, inbox(r, r - 1), length, LINES)).collect();
        let down: Vec<MessageId> =
            (1..n).map(|r| builder.message(r - 1, r, inbox(r - 1, r), length, LINES)).collect();
        let wire = LINES.wire_bytes(u64::from(length)) as u32;
        for rank in 0..n {
            for part in trips(0, wire, 0, 1, UP_THREADS) {
                self.trip(builder, rank, part, &up, &down);
            }
        }
    }

    fn trip(
        &self,
        builder: &mut Builder,
        rank: u32,
        part: Part,
        up: &[MessageId],
        down: &[MessageId],
    ) {
        let n = self.request.ranks();
        let line_trip = self.request.kernel.line_trip;
        let (reduce, broadcast) = (2 * self.channel as usize, 2 * self.channel as usize + 1);
        let Part { offset, bytes } = part;
        let data = Part {
            offset: self.start + LINES.data_bytes(u64::from(offset)) as u32,
            bytes: LINES.data_bytes(u64::from(bytes)) as u32,
        };
        let buffer = self.outputs[rank as usize];
        let write = Op::Write { buffer, offset: data.offset, bytes: data.bytes };
        let send = |message| Op::Send { message, offset, bytes, data: data.offset };
        let poll = |message, action| Op::Poll { message, offset, bytes, data: data.offset, action };
        builder.load(rank, reduce, self.inputs[rank as usize], data, Action::Set);
        if rank + 1 < n {
            builder.push(rank, reduce, poll(up[rank as usize], Action::Add));
        }
        builder.push(rank, reduce, Op::WaitLoads);
        builder.push(rank, reduce, Op::Delay(line_trip));
        if rank == 0 {
            builder.push(rank, reduce, send(down[0]));
            builder.push(rank, reduce, write);
            return;
        }
        builder.push(rank, reduce, send(up[rank as usize - 1]));
        builder.push(rank, broadcast, poll(down[rank as usize - 1], Action::Set));
        builder.push(rank, broadcast, Op::Delay(line_trip));
        if rank + 1 < n {
            builder.push(rank, broadcast, send(down[rank as usize]));
        }
        builder.push(rank, broadcast, write);
    }
}
