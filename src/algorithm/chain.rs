//! Chain all-reduce, NCCL's tree inside one node: sums travel up the chain to rank 0 and results
//! travel down, chunk by chunk, in two groups of threads at once.

use super::{Algorithm, Protocol, Request};
use crate::error::Result;
use crate::schedule::build::{Builder, Part, trips};
use crate::schedule::{Action, Collective, Lines, MessageId, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "chain",
    title: "tree (chain in a node)",
    collective: Collective::AllReduce,
    protocols: &[Protocol::Ll],
    build,
};

/// NCCL's tree kernels run 640 threads, about 70 % of them reducing; here two blocks share them.
const UP_THREADS: u32 = 448;

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let lines = Lines::Ll;
    let data_bytes = request.bytes as u32;
    let wire = lines.wire_bytes(request.bytes) as u32;
    let mut builder = Builder::new("chain LL", &request.gpus, 2, UP_THREADS);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    // Up: rank r to r - 1; down: rank r to r + 1.
    let up: Vec<MessageId> = (1..n)
        .map(|rank| {
            builder.message(rank, rank - 1, request.inbox(rank, rank - 1), data_bytes, lines)
        })
        .collect();
    let down: Vec<MessageId> = (1..n)
        .map(|rank| {
            builder.message(rank - 1, rank, request.inbox(rank - 1, rank), data_bytes, lines)
        })
        .collect();
    if let Some(start) = request.kernel.start_op(2) {
        builder.push_all(start);
    }
    for rank in 0..n {
        for part in trips(0, wire, 0, 1, UP_THREADS) {
            let Part { offset, bytes } = part;
            let data = Part {
                offset: lines.data_bytes(u64::from(offset)) as u32,
                bytes: lines.data_bytes(u64::from(bytes)) as u32,
            };
            let write = Op::Write {
                buffer: outputs[rank as usize],
                offset: data.offset,
                bytes: data.bytes,
            };
            let send = |message| Op::Send { message, offset, bytes, data: data.offset };
            let poll =
                |message, action| Op::Poll { message, offset, bytes, data: data.offset, action };
            builder.load(rank, 0, inputs[rank as usize], data, Action::Set);
            if rank + 1 < n {
                builder.push(rank, 0, poll(up[rank as usize], Action::Add));
            }
            builder.push(rank, 0, Op::WaitLoads);
            builder.push(rank, 0, Op::Delay(request.kernel.line_trip));
            if rank == 0 {
                builder.push(rank, 0, send(down[0]));
                builder.push(rank, 0, write);
                continue;
            }
            builder.push(rank, 0, send(up[rank as usize - 1]));
            builder.push(rank, 1, poll(down[rank as usize - 1], Action::Set));
            builder.push(rank, 1, Op::Delay(request.kernel.line_trip));
            if rank + 1 < n {
                builder.push(rank, 1, send(down[rank as usize]));
            }
            builder.push(rank, 1, write);
        }
    }
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
