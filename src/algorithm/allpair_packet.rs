//! MSCCL++'s all-pair all-reduce in packets: groups of blocks send the whole buffer to one peer each,
//! in packets of 4 data and 4 flag bytes, and all blocks add what arrives.

use super::kernel::Implementation;
use super::lines::line_trips;
use super::{Algorithm, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::Builder;
use crate::schedule::{Action, Collective, Lines, MessageId, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "allpair_packet",
    title: "all-pair packets",
    collective: Collective::AllReduce,
    structure: Structure::Flat,
    protocols: &[Protocol::Ll],
    implementations: &[Implementation::Mscclpp],
    build,
};

/// Threads of a block, and blocks that send to one peer.
const THREADS: u32 = 512;
const BLOCKS_A_PEER: u32 = 4;

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let each = request.blocks.unwrap_or(BLOCKS_A_PEER) as usize;
    let blocks = each * (n as usize - 1);
    let lines = Lines::Ll8;
    let whole = (0, request.bytes as u32);
    let mut builder = Builder::new("all-pair packets", &request.gpus, blocks, THREADS);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    // Of each rank: the first of the messages from its peers, in rank order.
    let mut inboxes: Vec<MessageId> = Vec::new();
    for to in 0..n {
        let ids: Vec<MessageId> = (0..n)
            .filter(|&from| from != to)
            .map(|from| builder.message(from, to, request.inbox(from, to), whole.1, lines))
            .collect();
        inboxes.push(ids[0]);
    }
    if let Some(start) = request.kernel.start_op(blocks) {
        builder.push_all(start);
    }
    for rank in 0..n {
        let own = inputs[rank as usize];
        for block in 0..blocks {
            let peer = (rank + 1 + (block / each) as u32) % n;
            for trip in line_trips(lines, whole, (block % each, each), THREADS) {
                builder.load(rank, block, own, trip.data, Action::Set);
                builder.push(rank, block, Op::WaitLoads);
                let message = inboxes[peer as usize] + rank - u32::from(rank > peer);
                let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
                builder.push(rank, block, Op::Send { message, offset, bytes, data });
            }
            for trip in line_trips(lines, whole, (block, blocks), THREADS) {
                builder.load(rank, block, own, trip.data, Action::Set);
                let (offset, bytes, data) = (trip.wire.offset, trip.wire.bytes, trip.data.offset);
                let (base, count, action) = (inboxes[rank as usize], n - 1, Action::Add);
                let poll = Op::PollEach { base, count, offset, bytes, data, action };
                builder.push(rank, block, poll);
                builder.push(rank, block, Op::WaitLoads);
                let delay = request.kernel.line_trip * u64::from(count);
                builder.push(rank, block, Op::Delay(delay));
                let (buffer, bytes) = (outputs[rank as usize], trip.data.bytes);
                builder.push(rank, block, Op::Write { buffer, offset: data, bytes, data });
            }
        }
    }
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
