//! Whose kernel runs an algorithm: launch costs, barriers, order and grouping of loads.

use crate::error::Result;
use crate::fabric::{Calibration, DeviceClass};
use crate::schedule::Op;
use crate::units::Time;

/// A library or benchmark.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Implementation {
    /// NCCL, calls captured in a CUDA graph.
    Nccl,
    /// vLLM's and SGLang's `custom_all_reduce` (cross_device_reduce_1stage / 2stage).
    CustomAllReduce,
    /// One-shot all-reduce for PCIe of a fork of SGLang.
    PcieOneShot,
    /// SGLang's second custom all-reduce (`CustomAllReduceV2`): push, and pull behind atomics.
    SglangV2,
    /// TensorRT-LLM's fused all-reduce, which FlashInfer ships too: Lamport, and two-shot.
    FlashInfer,
    /// FlashInfer's `pcie_ipc` backend.
    PcieIpc,
    /// MSCCL++'s packet and read-write algorithms.
    Mscclpp,
    /// PyTorch's symmetric memory.
    TorchSymmMem,
    /// DeepEP's dispatch and combine.
    DeepEp,
    /// NCCL's kernels for symmetric memory, over multicast.
    NcclSymmetric,
    /// p2pmark's one-shot all-reduce: rotated order, no end barrier.
    P2pmark,
    /// Virtual-rank kernels of the H200 probe (`measured/h200-one-link/README.md`).
    Probe,
    /// The same kernels as compiled for two GPUs: other groups of loads.
    PairProbe,
}

/// How the ranks of a kernel wait for each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum BarrierKind {
    /// Each rank stores a flag into each peer's memory and polls its own.
    Flags,
    /// Each rank adds one to a counter of each peer and polls its own: a remote atomic.
    RemoteAdd,
    /// Each rank sets each peer's flag by compare-and-swap, and resets its own: a remote atomic
    /// whose answer is waited for.
    RemoteSwap,
    /// Each rank stores one flag, which an NVSwitch copies to all members.
    SwitchFlags,
}

impl Implementation {
    /// All, with their entry in `calibration/libraries.json` and the barrier that they use.
    const ALL: [(Implementation, &'static str, BarrierKind); 13] = [
        (Implementation::Nccl, "nccl", BarrierKind::Flags),
        (Implementation::CustomAllReduce, "custom_all_reduce", BarrierKind::Flags),
        (Implementation::PcieOneShot, "pcie_one_shot", BarrierKind::Flags),
        (Implementation::SglangV2, "sglang_v2", BarrierKind::RemoteAdd),
        (Implementation::FlashInfer, "flashinfer", BarrierKind::Flags),
        (Implementation::PcieIpc, "pcie_ipc", BarrierKind::Flags),
        (Implementation::Mscclpp, "mscclpp", BarrierKind::Flags),
        (Implementation::TorchSymmMem, "torch_symm_mem", BarrierKind::RemoteSwap),
        (Implementation::DeepEp, "deep_ep", BarrierKind::Flags),
        (Implementation::NcclSymmetric, "nccl_symmetric", BarrierKind::SwitchFlags),
        (Implementation::P2pmark, "p2pmark", BarrierKind::Flags),
        (Implementation::Probe, "probe", BarrierKind::Flags),
        (Implementation::PairProbe, "probe", BarrierKind::Flags),
    ];

    fn entry(self) -> &'static (Implementation, &'static str, BarrierKind) {
        let found = Self::ALL.iter().find(|entry| entry.0 == self);
        found.expect("every implementation is in the table, which a test holds")
    }

    /// Its entry in `calibration/libraries.json`.
    pub fn key(self) -> &'static str {
        self.entry().1
    }

    /// How its ranks wait for each other where they do.
    pub fn barrier(self) -> BarrierKind {
        self.entry().2
    }
}

/// How a kernel behaves around and inside an algorithm.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Whose it is.
    pub implementation: Implementation,
    /// From the end of the call before to the first useful instruction; `None` for calls inside
    /// one kernel.
    pub start: Option<Time>,
    /// From the last useful instruction to the end of the kernel.
    pub end: Time,
    /// NCCL's own instructions a ring step.
    pub step: Time,
    /// NCCL's own instructions a slice of the Simple protocol.
    pub slice: Time,
    /// A pull loop's own instructions a trip.
    pub trip: Time,
    /// A line loop's own instructions a trip.
    pub line_trip: Time,
    /// A peer's base pointer, loaded before what it points to.
    pub pointer: Time,
    /// What each further block of a launch adds to the start.
    pub block: Time,
    /// Most channels of NCCL's communicator: over NVLink, and otherwise.
    pub channels: [u32; 2],
    /// What the Simple protocol's kernel adds to the start.
    pub simple: Time,
    /// Loads of 16 bytes from each source that a thread of the Simple protocol has in flight.
    pub unroll: u32,
    /// Channels of NCCL's NVLS kernels on this GPU.
    pub nvls_channels: u32,
}

impl Kernel {
    /// The kernel of an implementation on GPUs of a model, replayed from a CUDA graph.
    ///
    /// # Errors
    /// When a constant is missing.
    pub fn of(
        implementation: Implementation,
        calibration: &Calibration,
        gpu_model: &str,
    ) -> Result<Kernel> {
        let library = |name: &str| {
            calibration.value(DeviceClass::Library, implementation.key(), name).map(Time::from_ns)
        };
        let gpu =
            |name: &str| calibration.value(DeviceClass::Gpu, gpu_model, name).map(Time::from_ns);
        let start = match implementation {
            Implementation::Probe | Implementation::PairProbe => None,
            _ => Some(library("kernel_start")? + gpu("graph_node")?),
        };
        let (step, slice) = match implementation {
            Implementation::Nccl => (library("step_overhead")?, library("slice_overhead")?),
            Implementation::Probe | Implementation::PairProbe => {
                (library("step_overhead")?, Time::ZERO)
            }
            _ => (Time::ZERO, Time::ZERO),
        };
        Ok(Kernel {
            implementation,
            start,
            end: library("kernel_end")?,
            step,
            slice,
            trip: gpu("loop_overhead")?,
            line_trip: library("line_trip")?,
            pointer: gpu("pointer_load")?,
            block: library("block")?,
            channels: if implementation == Implementation::Nccl {
                let count = |name: &str| {
                    calibration.value(DeviceClass::Library, "nccl", name).map(|v| v as u32)
                };
                [count("channels_nvlink")?, count("channels")?]
            } else {
                [1, 1]
            },
            simple: if implementation == Implementation::Nccl {
                library("simple_start")?
            } else {
                Time::ZERO
            },
            unroll: 1,
            nvls_channels: calibration.value(DeviceClass::Gpu, gpu_model, "nvls_channels")? as u32,
        })
    }

    /// The operation that a call of `blocks` blocks begins with, if any.
    pub fn start_op(&self, blocks: usize) -> Option<Op> {
        let further = self.block * blocks.saturating_sub(1) as u64;
        self.start.map(|start| Op::KernelStart(start + further))
    }

    /// Whether barriers fence and poll with acquire loads.
    pub fn fenced_barriers(&self) -> bool {
        self.is_probe()
    }

    /// Whether all calls run inside one kernel of a probe.
    pub fn is_probe(&self) -> bool {
        matches!(self.implementation, Implementation::Probe | Implementation::PairProbe)
    }

    /// Sizes of the groups in which `count` loads are issued, with a wait after each group.
    pub fn load_groups(&self, count: u32) -> Vec<u32> {
        match (self.implementation, count) {
            // Read off the machine code: `measured/h200-one-link/README.md`.
            (Implementation::Probe | Implementation::PairProbe, 2) => vec![1, 1],
            (Implementation::PairProbe, 4) => vec![1; 4],
            (Implementation::PairProbe, 8) => vec![2; 4],
            (Implementation::Probe, 8) => vec![2, 2, 4],
            _ => vec![count],
        }
    }
}
