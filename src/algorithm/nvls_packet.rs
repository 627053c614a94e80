//! One-stage all-reduce by multicast packets: every rank stores its whole buffer once, as lines that
//! carry their own flags, the switch copies them to all, and each rank adds what arrives. No barrier,
//! no fence. MSCCL++'s NVLS packet kernel and NCCL's symmetric LL kernel over multicast do this.

use super::nvls_two_shot::InSwitch;
use super::{Algorithm, Implementation, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Part, trips};
use crate::schedule::{Action, Collective, Lines, MessageId, Op, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "nvls_packet",
    title: "multicast packets",
    collective: Collective::AllReduce,
    structure: Structure::InSwitch,
    protocols: &[Protocol::Ll],
    implementations: &[Implementation::NcclSymmetric, Implementation::Mscclpp],
    build,
};

/// Half of each line is flags.
const LINES: Lines = Lines::Ll;

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let kernel = request.kernel;
    let wire = LINES.wire_bytes(request.bytes) as u32;
    let all = InSwitch::new(request, "multicast packets", u64::from(wire))?;
    let InSwitch { mut builder, group, inputs, outputs, blocks, threads } = all;
    let local = |rank: u32| request.gpus[rank as usize];
    // Row by receiver, so that what a rank polls lies together: `inbox + to * n + from`.
    let mut inbox: Option<MessageId> = None;
    for to in 0..n {
        for from in 0..n {
            let message = builder.message(from, to, local(to), request.bytes as u32, LINES);
            inbox.get_or_insert(message);
        }
    }
    let inbox = inbox.unwrap_or_default();
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    for rank in 0..n {
        for block in 0..blocks {
            let parts: Vec<Part> = trips(0, wire, block, blocks, threads).collect();
            let data = |part: Part| Part {
                offset: LINES.data_bytes(u64::from(part.offset)) as u32,
                bytes: LINES.data_bytes(u64::from(part.bytes)) as u32,
            };
            for &part in &parts {
                builder.load(rank, block, inputs[rank as usize], data(part), Action::Set);
                builder.push(rank, block, Op::WaitLoads);
                let Part { offset, bytes } = part;
                let (base, stride, data) = (inbox + rank, n, data(part).offset);
                let send = Op::SendAll { group, base, stride, offset, bytes, data };
                builder.push(rank, block, send);
            }
            for &part in &parts {
                // The own copy comes back by the switch like the others.
                let Part { offset, bytes } = part;
                let (base, count, action) = (inbox + rank * n, n, Action::Set);
                let poll =
                    Op::PollEach { base, count, offset, bytes, data: data(part).offset, action };
                builder.push(rank, block, poll);
                builder.push(rank, block, Op::Delay(kernel.line_trip));
                builder.write(rank, block, outputs[rank as usize], data(part));
            }
        }
    }
    builder.push_all(Op::Delay(kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
