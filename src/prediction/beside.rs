//! Other traffic beside the calls, as blocks of a schedule that never end.

use super::adapters;
use crate::engine::Outcome;
use crate::error::{Error, Result};
use crate::fabric::{EndpointId, Fabric};
use crate::schedule::{Action, Block, Buffer, BufferId, Executor, Op, RankProgram, Role, Schedule};
use crate::topology::TrafficKind;
use crate::units::Time;
use crate::workload::{Beside, Traffic};

/// Bytes of one copy by an engine; the next one follows at once.
const COPY_BYTES: u32 = 64 << 20;
/// Kernels of such traffic: enough stores, and loads in flight, to fill a PCIe link
/// (`measured/h200-one-link`, `sm_read16` and `sm_write16`).
const BLOCKS: u32 = 8;
const THREADS: u32 = 512;
/// Loads in flight a thread.
const LOADS: u32 = 2;

/// Calls beside traffic: they do not repeat, so the mean of many counts.
const CALLS: u32 = 24;
const CALLS_LARGE: u32 = 8;
const LARGE_BYTES: u64 = 64 << 10;
/// Before this the queues of the traffic are still filling: a GPU's stores need 15 us.
const FILLED: Time = Time::from_ps(40_000_000);

/// Calls of `bytes` to run beside traffic.
pub fn calls(bytes: u64) -> u32 {
    if bytes > LARGE_BYTES { CALLS_LARGE } else { CALLS }
}

/// Mean time of the calls that began when the queues of the traffic were full; of all after the first
/// when none did.
pub fn mean(outcome: &Outcome) -> Time {
    let last = outcome.call_ends.len() - 1;
    let first = (0..last).find(|&call| outcome.call_end(call) >= FILLED);
    first.map_or(outcome.mean_call_time(), |first| {
        let time = outcome.call_end(last).saturating_sub(outcome.call_end(first));
        time / (last - first) as u64
    })
}

/// Of a copy that an adapter shares out over several GPUs in turn.
const SHARED_BYTES: u32 = 1 << 20;

/// One stream without an end.
pub(super) struct Stream {
    /// The GPU or adapter that makes it.
    pub(super) device: EndpointId,
    /// Where to, or where from; several in turn.
    pub(super) memories: Vec<EndpointId>,
    /// By what.
    pub(super) by: By,
}

/// What makes it.
#[derive(Copy, Clone)]
pub(super) enum By {
    EngineWrites,
    EngineReads,
    Stores,
    Loads,
}

/// Whose copies or accesses a kind of traffic is, and with what memory.
#[derive(Copy, Clone)]
enum Between {
    /// Each GPU and the host memory nearest to it.
    GpuAndHost,
    /// Each GPU and the next one.
    GpuAndNext,
    /// Adapters and the host memory nearest to them.
    AdapterAndHost,
    /// Adapters and the GPUs to which they are the nearest.
    AdapterAndGpus,
}

/// What makes a kind of traffic, and where it goes.
fn how(traffic: Traffic) -> (Between, By) {
    match traffic {
        Traffic::D2h => (Between::GpuAndHost, By::EngineWrites),
        Traffic::H2d => (Between::GpuAndHost, By::EngineReads),
        Traffic::D2hSm => (Between::GpuAndHost, By::Stores),
        Traffic::H2dSm => (Between::GpuAndHost, By::Loads),
        Traffic::Ring => (Between::GpuAndNext, By::Stores),
        Traffic::Peer => (Between::GpuAndNext, By::EngineWrites),
        Traffic::NicIn => (Between::AdapterAndHost, By::EngineWrites),
        Traffic::NicOut => (Between::AdapterAndHost, By::EngineReads),
        Traffic::RdmaIn => (Between::AdapterAndGpus, By::EngineWrites),
        Traffic::RdmaOut => (Between::AdapterAndGpus, By::EngineReads),
    }
}

/// Lets traffic go on while a schedule of calls on `ranks` runs: a rank more for each stream.
///
/// # Errors
/// GPUs that there are not, no host memory, a ring of one GPU, no way between two.
pub fn add(
    schedule: &mut Schedule,
    fabric: &Fabric,
    ranks: &[u32],
    beside: &[Beside],
) -> Result<()> {
    for one in beside {
        for stream in streams(fabric, ranks, one)? {
            push(schedule, &stream);
        }
    }
    Ok(())
}

/// The GPUs of some traffic beside calls on `ranks`.
fn gpus(fabric: &Fabric, ranks: &[u32], beside: &Beside) -> Result<Vec<u32>> {
    let refused = |message: String, help: &str| Err(Error::request(message, help));
    let name = beside.traffic.name();
    if let Some(gpu) = beside.gpus.iter().find(|&&gpu| gpu as usize >= fabric.gpu_count) {
        let last = fabric.gpu_count - 1;
        return refused(
            format!("traffic `{name}` beside the calls: there is no GPU {gpu}"),
            &format!("this machine has GPUs 0 to {last}"),
        );
    }
    let gpus: Vec<u32> = match (beside.gpus.is_empty(), beside.traffic) {
        (false, _) => beside.gpus.clone(),
        (true, Traffic::Ring) => {
            (0..fabric.gpu_count as u32).filter(|gpu| !ranks.contains(gpu)).collect()
        }
        (true, _) => ranks.to_vec(),
    };
    if matches!(how(beside.traffic).0, Between::GpuAndNext) && gpus.len() < 2 {
        return refused(
            format!(
                "traffic `{name}` beside the calls needs two GPUs, and {} are there",
                gpus.len()
            ),
            "name them, such as beside:4-7=ring, or give the calls fewer GPUs (--gpus, tp=4)",
        );
    }
    Ok(gpus)
}

fn streams(fabric: &Fabric, ranks: &[u32], beside: &Beside) -> Result<Vec<Stream>> {
    let gpus = gpus(fabric, ranks, beside)?;
    let (between, by) = how(beside.traffic);
    let host = |gpu: u32| {
        fabric.home_memory[gpu as usize].ok_or_else(|| {
            Error::request(
                format!("GPU {gpu} has no host memory to copy to or from"),
                "the topology needs a socket with memory for this traffic",
            )
        })
    };
    let next = |index: usize| {
        let (gpu, next) = (gpus[index], gpus[(index + 1) % gpus.len()]);
        if fabric.peer_to_peer && fabric.path_at(gpu, next).is_some() {
            Ok(next)
        } else {
            host(next)
        }
    };
    let stream = |device: u32, memory: EndpointId| Stream { device, memories: vec![memory], by };
    match between {
        Between::GpuAndHost => gpus.iter().map(|&gpu| Ok(stream(gpu, host(gpu)?))).collect(),
        Between::GpuAndNext => {
            let one = |(index, &gpu): (usize, &u32)| Ok(stream(gpu, next(index)?));
            gpus.iter().enumerate().map(one).collect()
        }
        Between::AdapterAndHost => adapters::streams(fabric, beside, &gpus, by, false),
        Between::AdapterAndGpus => adapters::streams(fabric, beside, &gpus, by, true),
    }
}

/// A rank more, whose blocks never end.
fn push(schedule: &mut Schedule, stream: &Stream) {
    let rank = schedule.ranks.len() as u32;
    let mut buffer = |home: EndpointId| -> BufferId {
        let bytes = u64::from(COPY_BYTES);
        schedule.buffers.push(Buffer { home, rank, role: Role::Scratch, bytes, cold: true });
        schedule.buffers.len() as u32 - 1
    };
    let own = buffer(stream.device);
    let others: Vec<BufferId> = stream.memories.iter().map(|&home| buffer(home)).collect();
    let whole = if others.len() == 1 { COPY_BYTES } else { SHARED_BYTES };
    let copies = |push: bool| -> Vec<Op> {
        let copy = |&other: &BufferId| {
            let (from, to) = if push { (own, other) } else { (other, own) };
            Op::Copy { from, from_offset: 0, to, to_offset: 0, bytes: whole, push, kernel: false }
        };
        others.iter().map(copy).collect()
    };
    let (bytes, other) = (THREADS * 16, others[0]);
    let (executor, blocks, threads, ops) = match stream.by {
        By::EngineWrites => (Executor::CopyEngine, 1, 32, copies(true)),
        By::EngineReads => (Executor::CopyEngine, 1, 32, copies(false)),
        By::Stores => {
            let ops = vec![Op::Write { buffer: other, offset: 0, bytes, data: 0 }];
            (Executor::Sm, BLOCKS, THREADS, ops)
        }
        By::Loads => {
            let (action, kind) = (Action::Discard, TrafficKind::SmRead);
            let load = Op::Load { buffer: other, offset: 0, bytes, data: 0, action, kind };
            let mut ops = vec![load; LOADS as usize];
            ops.push(Op::WaitLoads);
            (Executor::Sm, BLOCKS, THREADS, ops)
        }
    };
    let block = Block { executor, threads, beside: None, background: true, ops };
    let blocks = vec![block; blocks as usize];
    schedule.ranks.push(RankProgram { gpu: stream.device, blocks });
}
