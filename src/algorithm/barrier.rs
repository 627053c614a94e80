//! A barrier of GPUs alone, as a probe: what the flags of a custom all-reduce cost without its data,
//! by the memory that holds them.

use crate::error::{Error, Result};
use crate::fabric::Fabric;
use crate::schedule::build::{Builder, Part};
use crate::schedule::{Action, Op, Role, Schedule};

/// Threads of a block, as in vLLM's and SGLang's kernels.
const THREADS: u32 = 512;
/// Bytes of a flag.
const FLAG: u32 = 4;

/// The memory that holds the flags of a barrier.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlagPlace {
    /// Of the GPU that waits: peers store across the links, it polls its own memory.
    Waiting,
    /// Of the GPU that has arrived: it stores at home, its peers poll across the links.
    Arrived,
    /// Of the host, near the GPU that waits: peers store into it, the GPU polls it across its link.
    Host,
}

impl FlagPlace {
    /// All, as they are told.
    pub const ALL: [(FlagPlace, &'static str); 3] = [
        (FlagPlace::Waiting, "memory of the GPU that waits"),
        (FlagPlace::Arrived, "memory of the GPU that has arrived"),
        (FlagPlace::Host, "host's memory"),
    ];
}

/// One barrier of the GPUs, `blocks` blocks each, without fences as in the start and end barriers of
/// the custom all-reduce. All arrive together, so of flags polled across the links the first poll
/// finds them: that layout is shown at its best.
///
/// # Errors
/// Host memory that the machine does not have.
pub fn barrier(fabric: &Fabric, gpus: &[u32], blocks: usize, place: FlagPlace) -> Result<Schedule> {
    let mut builder = Builder::new("barrier", gpus, blocks, THREADS);
    let ranks = gpus.len() as u32;
    match place {
        FlagPlace::Waiting => builder.barrier(false, |rank| gpus[rank as usize]),
        FlagPlace::Host => {
            let memory = |rank: u32| fabric.home_memory[gpus[rank as usize] as usize];
            if let Some(rank) = (0..ranks).find(|&rank| memory(rank).is_none()) {
                return Err(no_host_memory(gpus[rank as usize]));
            }
            builder.barrier(false, |rank| memory(rank).unwrap_or(gpus[rank as usize]));
        }
        FlagPlace::Arrived => {
            for block in 0..blocks {
                let page = |builder: &mut Builder| {
                    builder.buffers(Role::Scratch, u64::from(FLAG), |rank| gpus[rank as usize])
                };
                let flags = page(&mut builder);
                for rank in 0..ranks {
                    builder.push(rank, block, Op::BlockBarrier);
                    let buffer = flags[rank as usize];
                    builder.push(
                        rank,
                        block,
                        Op::Write { buffer, offset: 0, bytes: FLAG, data: 0 },
                    );
                    for step in 1..ranks {
                        let peer = flags[((rank + step) % ranks) as usize];
                        let part = Part { offset: 0, bytes: FLAG };
                        builder.load(rank, block, peer, part, Action::Discard);
                    }
                    builder.push(rank, block, Op::WaitLoads);
                    builder.push(rank, block, Op::BlockBarrier);
                }
            }
        }
    }
    Ok(builder.finish(0, None))
}

/// That flags cannot live where there is no memory.
pub fn no_host_memory(gpu: u32) -> Error {
    Error::request(
        format!("the machine has no host memory near GPU {gpu}"),
        "add a host_memory node to its topology file, or leave flags with the peers",
    )
}
