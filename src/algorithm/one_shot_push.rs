//! One-stage all-reduce by writing: every rank stores its whole buffer, with flags in the lines,
//! into an inbox at every peer, and polls its own inboxes. No barrier, no fence.
//!
//! The probe writes 16-byte lines of 8 data and 8 flag bytes; Lamport kernels (FlashInfer,
//! TensorRT-LLM, SGLang v2) mark absent data by a value that does not occur, so all bytes are data.

use super::one_shot_pull::THREADS;
use super::{Algorithm, Protocol, Request};
use crate::error::Result;
use crate::schedule::build::{Builder, Part, trips};
use crate::schedule::{Action, Collective, Lines, MessageId, Op, Role, Schedule};

/// This algorithm: LL lines, or Lamport buffers as `Simple`.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "one_shot_push",
    title: "one-stage push",
    collective: Collective::AllReduce,
    protocols: &[Protocol::Simple, Protocol::Ll],
    build,
};

/// Most blocks of a Lamport kernel over PCIe (FlashInfer's `pcie_ipc`, 16 of 256 threads = 8 of 512).
const LAMPORT_BLOCKS: u64 = 8;

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let kernel = request.kernel;
    let probe = kernel.is_probe();
    let lines = if request.protocol == Protocol::Ll { Lines::Ll } else { Lines::Plain };
    let data_bytes = request.bytes as u32;
    let wire = lines.wire_bytes(request.bytes) as u32;
    let by_size = u64::from(wire).div_ceil(u64::from(THREADS) * 16).clamp(1, LAMPORT_BLOCKS);
    let blocks = request.blocks.unwrap_or(if probe { 1 } else { by_size as u32 }) as usize;
    let mut builder = Builder::new("one-stage push", &request.gpus, blocks, THREADS);
    let local = |rank: u32| request.gpus[rank as usize];
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    let inbox: Vec<Vec<MessageId>> = (0..n)
        .map(|from| {
            (0..n)
                .map(|to| builder.message(from, to, request.inbox(from, to), data_bytes, lines))
                .collect()
        })
        .collect();
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    for rank in 0..n {
        for block in 0..blocks {
            let parts: Vec<Part> = trips(0, wire, block, blocks, THREADS).collect();
            let data = |part: Part| Part {
                offset: lines.data_bytes(u64::from(part.offset)) as u32,
                bytes: lines.data_bytes(u64::from(part.bytes)) as u32,
            };
            for &part in &parts {
                builder.load(rank, block, inputs[rank as usize], data(part), Action::Set);
                builder.push(rank, block, Op::WaitLoads);
                for step in 1..n {
                    let message = inbox[rank as usize][((rank + step) % n) as usize];
                    let Part { offset, bytes } = part;
                    let send = Op::Send { message, offset, bytes, data: data(part).offset };
                    builder.push(rank, block, send);
                }
            }
            for &part in &parts {
                for peer in (0..n).filter(|&peer| peer != rank) {
                    let message = inbox[peer as usize][rank as usize];
                    let Part { offset, bytes } = part;
                    let (data, action) = (data(part).offset, Action::Add);
                    let poll = Op::Poll { message, offset, bytes, data, action };
                    builder.push(rank, block, poll);
                    builder.push(rank, block, Op::Delay(kernel.line_trip + kernel.pointer));
                }
                let Part { offset, bytes } = data(part);
                let buffer = outputs[rank as usize];
                builder.push(rank, block, Op::Write { buffer, offset, bytes });
            }
        }
    }
    if !probe {
        builder.push_all(Op::Delay(kernel.end));
    }
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
