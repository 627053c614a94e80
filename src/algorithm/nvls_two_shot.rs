//! Two-stage all-reduce in the switch, zero copy: a barrier, each rank loads its own nth summed over
//! all members (`multimem.ld_reduce`) and stores it to all of them (`multimem.st`), and a barrier.
//!
//! MSCCL++'s NVLS zero-copy kernel, PyTorch's `multimem_all_reduce_` and NCCL's symmetric kernels do
//! this; they differ in barriers and in how many threads run. A GPU's links carry S (1 + 1/n) each
//! way instead of the 2 S (n-1)/n of a ring: it serves every sum with its S and receives every result,
//! and its own nth travels once more each way.

use super::waiting::{self, barrier};
use super::{Algorithm, Implementation, Protocol, Request, Structure};
use crate::error::Result;
use crate::schedule::build::{Builder, slice, trips};
use crate::schedule::{BufferId, Collective, GroupId, Op, Role, Schedule};

/// This algorithm.
pub const ALGORITHM: Algorithm = Algorithm {
    name: "nvls_two_shot",
    title: "two-stage in the switch",
    collective: Collective::AllReduce,
    structure: Structure::InSwitch,
    protocols: &[Protocol::Simple],
    implementations: &[
        Implementation::NcclSymmetric,
        Implementation::Mscclpp,
        Implementation::TorchSymmMem,
    ],
    build,
};

/// Threads of a block; NCCL's symmetric kernels have half as many.
const THREADS: u32 = 1024;

/// Blocks and threads of a multimem kernel for `bytes` of one rank: few full blocks.
fn launch(request: &Request<'_>, bytes: u64) -> (usize, u32) {
    let blocks_max = match request.kernel.implementation {
        // PyTorch launches at most 8 blocks of its multimem kernels.
        Implementation::TorchSymmMem => 8,
        // NCCL's NVLS channels; MSCCL++ at most 32.
        Implementation::NcclSymmetric => request.kernel.nvls_channels,
        _ => 32,
    };
    let symmetric = request.kernel.implementation == Implementation::NcclSymmetric;
    let threads_max = if symmetric { THREADS / 2 } else { THREADS };
    let elements = bytes.div_ceil(16);
    let threads = (elements.min(u64::from(threads_max)) as u32).next_multiple_of(32);
    let by_size = elements.div_ceil(u64::from(threads)).clamp(1, u64::from(blocks_max));
    let blocks = request.blocks.unwrap_or(by_size as u32);
    (blocks as usize, threads)
}

/// A kernel of all ranks over the switch.
pub(super) struct InSwitch {
    pub(super) builder: Builder,
    /// All ranks, as the switch knows them.
    pub(super) group: GroupId,
    pub(super) inputs: Vec<BufferId>,
    pub(super) outputs: Vec<BufferId>,
    pub(super) blocks: usize,
    pub(super) threads: u32,
}

impl InSwitch {
    /// A kernel whose ranks work on `share` bytes each, without operations.
    ///
    /// # Errors
    /// GPUs without a switch that copies and adds.
    pub(super) fn new(request: &Request<'_>, name: &str, share: u64) -> Result<InSwitch> {
        request.fabric.multicast(&request.gpus)?;
        let (blocks, threads) = launch(request, share);
        let mut builder = Builder::new(name, &request.gpus, blocks, threads);
        let local = |rank: u32| request.gpus[rank as usize];
        let all: Vec<u32> = (0..request.ranks()).collect();
        let group = builder.multicast_group(&all);
        let inputs = builder.buffers(Role::Input, request.bytes, local);
        let outputs = builder.buffers(Role::Output, request.bytes, local);
        Ok(InSwitch { builder, group, inputs, outputs, blocks, threads })
    }

    /// The same up to the end of its first barrier.
    ///
    /// # Errors
    /// As [`InSwitch::new`], and barriers that the machine cannot do.
    pub(super) fn start(request: &Request<'_>, name: &str, share: u64) -> Result<InSwitch> {
        let mut kernel = InSwitch::new(request, name, share)?;
        waiting::check(request)?;
        if let Some(start) = request.kernel.start_op(kernel.blocks) {
            kernel.builder.push_all(start);
        }
        barrier(&mut kernel.builder, request, false);
        Ok(kernel)
    }
}

fn build(request: &Request<'_>) -> Result<Schedule> {
    let n = request.ranks();
    let share = request.bytes.div_ceil(u64::from(n));
    let kernel = InSwitch::start(request, "two-stage in the switch", share)?;
    let InSwitch { mut builder, group, inputs, outputs, blocks, threads } = kernel;
    for rank in 0..n {
        let (start, length) = slice(request.bytes, n, rank);
        for block in 0..blocks {
            for part in trips(start, length, block, blocks, threads) {
                builder.load_reduce((rank, block), group, inputs[0], part);
                builder.push(rank, block, Op::WaitLoads);
                let (base, offset, bytes) = (outputs[0], part.offset, part.bytes);
                builder.push(rank, block, Op::WriteAll { group, base, offset, bytes });
            }
        }
    }
    barrier(&mut builder, request, true);
    builder.push_all(Op::Delay(request.kernel.end));
    Ok(builder.finish(request.bytes, Some(Collective::AllReduce)))
}
