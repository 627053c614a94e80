//! Whose kernel runs an algorithm: launch costs, barriers, order and grouping of loads.

use super::Protocol;
use super::nccl::{BLOCK_THREADS_MIN, WARP};
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
    /// NCCL's own instructions a slice of the Simple protocol, and one that is empty.
    pub slice: Time,
    /// As [`Kernel::slice`], for a slice without data.
    pub empty_slice: Time,
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
    /// What NCCL's Simple adds to the start, and what LL128 does.
    pub simple: Time,
    /// As [`Kernel::simple`], for LL128.
    pub ll128: Time,
    /// What each warp of a block adds to the start: in LL, whose code is the kernel's own, and in
    /// Simple and LL128, which it calls.
    pub warp: [Time; 2],
    /// What each warp of a block adds to a step of lines, and to a slice of the Simple protocol.
    pub step_warp: Time,
    /// As [`Kernel::step_warp`], for a slice.
    pub slice_warp: Time,
    /// What the loads of a group of the Simple protocol take beyond one load of own memory.
    pub group: Time,
    /// What grouped sends and receives add to the start.
    pub sends: Time,
    /// From the second on, what the first use of a kind of primitive takes in Simple and in LL128,
    /// whose code is not part of the kernel's own.
    pub code: [Time; 2],
    /// What a host thread takes for a slice that a copy engine carries: to see it, to start the copy, to
    /// see that it has ended and to say so; and for a slice without data.
    pub host_copy: [Time; 2],
    /// Loads of 16 bytes from each source that a thread of the Simple protocol has in flight.
    pub unroll: u32,
    /// Channels of NCCL's NVLS kernels on this GPU.
    pub nvls_channels: u32,
}

/// The GPU whose clock NCCL's instructions were timed at.
const PACE_OF: &str = "h200";

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
        let nccl = implementation == Implementation::Nccl;
        // Instructions of NCCL's kernels take so many clocks, whatever the GPU.
        let pace = if nccl { calibration.pace(PACE_OF, gpu_model)? } else { 1.0 };
        let own = |name: &str| library(name).map(|time| Time::from_ns(time.as_ns() * pace));
        let only_nccl = |name: &str| if nccl { own(name) } else { Ok(Time::ZERO) };
        let count = |name: &str| {
            calibration.value(DeviceClass::Library, "nccl", name).map(|value| value as u32)
        };
        let of_gpu = |name: &str| {
            calibration.value(DeviceClass::Gpu, gpu_model, name).map(|value| value as u32)
        };
        let probe = matches!(implementation, Implementation::Probe | Implementation::PairProbe);
        Ok(Kernel {
            implementation,
            start: if probe { None } else { Some(own("kernel_start")? + gpu("graph_node")?) },
            end: own("kernel_end")?,
            step: if nccl || probe { own("step_overhead")? } else { Time::ZERO },
            slice: only_nccl("slice_overhead")?,
            empty_slice: only_nccl("empty_slice")?,
            trip: gpu("loop_overhead")?,
            line_trip: own("line_trip")?,
            pointer: gpu("pointer_load")?,
            block: library("block")?,
            channels: if nccl { [count("channels_nvlink")?, count("channels")?] } else { [1, 1] },
            simple: only_nccl("simple_start")?,
            ll128: only_nccl("ll128_start")?,
            warp: [only_nccl("warp")?, only_nccl("called_warp")?],
            step_warp: only_nccl("step_warp")?,
            slice_warp: only_nccl("slice_warp")?,
            group: only_nccl("load_group")?,
            sends: only_nccl("sends_start")?,
            code: [only_nccl("simple_code")?, only_nccl("ll128_code")?],
            // The host's clock, not the GPU's.
            host_copy: match nccl {
                true => [library("host_copy")?, library("host_empty_copy")?],
                false => [Time::ZERO; 2],
            },
            unroll: of_gpu("nccl_unroll")?,
            nvls_channels: of_gpu("nvls_channels")?,
        })
    }

    /// The operation that a call of `blocks` blocks begins with, if any.
    pub fn start_op(&self, blocks: usize) -> Option<Op> {
        let further = self.block * blocks.saturating_sub(1) as u64;
        self.start.map(|start| Op::KernelStart(start + further))
    }

    /// What a protocol of NCCL's adds to the start of blocks of so many threads; sends and receives
    /// have a kernel of their own, which calls neither.
    pub fn protocol_start(&self, protocol: Protocol, threads: u32, sends: bool) -> Time {
        let warps = u64::from(threads.max(BLOCK_THREADS_MIN) / WARP);
        let called = self.warp[usize::from(!sends)] * warps;
        match protocol {
            _ if sends && protocol == Protocol::Ll => self.sends + called,
            Protocol::Ll => self.warp[0] * warps,
            Protocol::Ll128 => self.ll128 + called,
            Protocol::Simple if sends => self.sends + self.simple + called,
            Protocol::Simple => self.simple + called,
        }
    }

    /// NCCL's own instructions of a step of lines in a block of so many threads.
    pub fn step_of(&self, threads: u32) -> Time {
        self.step + self.step_warp * u64::from(threads / WARP)
    }

    /// NCCL's own instructions of a slice with data in a block of so many threads.
    pub fn slice_of(&self, threads: u32) -> Time {
        self.slice + self.slice_warp * u64::from(threads / WARP)
    }

    /// What the first use of a further kind of primitive takes.
    pub fn code(&self, protocol: Protocol) -> Time {
        match protocol {
            Protocol::Ll => Time::ZERO,
            Protocol::Ll128 => self.code[1],
            Protocol::Simple => self.code[0],
        }
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
