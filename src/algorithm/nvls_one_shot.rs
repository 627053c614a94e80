//! One-stage all-reduce in the switch: a barrier, every rank loads the whole sum
//! (`multimem.ld_reduce`) into its own output, and a barrier. Every GPU serves n times its buffer.

use super::nvls_two_shot::InSwitch;
use super::waiting::barrier;
use super::{Algorithm, Implementation, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::trips;
use crate::schedule::{Collective, Op, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "nvls_one_shot",
    title: "one-stage in the switch",
    collective: Collective::AllReduce,
    structure: Structure::InSwitch,
    protocols: &[Protocol::Simple],
    implementations: &[Implementation::TorchSymmMem],
    build,
};

fn build(request: &Request<'_>) -> Result<Schedule> {
    let kernel = InSwitch::start(request, "one-stage in the switch", request.bytes)?;
    let InSwitch { mut builder, group, inputs, outputs, blocks, threads } = kernel;
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
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
