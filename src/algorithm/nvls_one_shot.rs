//! One-stage all-reduce in the switch: a barrier, every rank loads the whole sum
//! (`multimem.ld_reduce`) into its own output, and a barrier. Every GPU serves n times its buffer.

use super::nvls_two_shot::launch;
use super::waiting::{self, barrier};
use super::{Algorithm, Implementation, Protocol, Request};
use crate::error::Result;
use crate::schedule::build::{Builder, trips};
use crate::schedule::{Collective, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "nvls_one_shot",
    title: "one-stage in the switch",
    collective: Collective::AllReduce,
    protocols: &[Protocol::Simple],
    implementations: &[Implementation::TorchSymmMem],
    build,
};

fn build(request: &Request<'_>) -> Result<Schedule> {
    request.fabric.multicast(&request.gpus)?;
    let kernel = request.kernel;
    waiting::check(request)?;
    let (blocks, threads) = launch(request, request.bytes);
    let mut builder = Builder::new("one-stage in the switch", &request.gpus, blocks, threads);
    let local = |rank: u32| request.gpus[rank as usize];
    let all: Vec<u32> = (0..request.ranks()).collect();
    let group = builder.multicast_group(&all);
    let inputs = builder.buffers(Role::Input, request.bytes, local);
    let outputs = builder.buffers(Role::Output, request.bytes, local);
    if let Some(start) = kernel.start_op(blocks) {
        builder.push_all(start);
    }
    barrier(&mut builder, request, false);
    for rank in 0..request.ranks() {
        for block in 0..blocks {
            for part in trips(0, request.bytes as u32, block, blocks, threads) {
                builder.load_reduce((rank, block), group, inputs[0], part);
                builder.push(rank, block, Op::WaitLoads);
                builder.write(rank, block, outputs[rank as usize], part);
            }
        }
    }
    // Nobody overwrites an input that is still summed.
    barrier(&mut builder, request, false);
    builder.push_all(Op::Delay(kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
