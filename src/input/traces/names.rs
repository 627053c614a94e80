//! Names of kernels, types and collectives as libraries write them.

use crate::workload::{Collective, ElementType};

/// What NCCL calls a collective.
const COLLECTIVES: [(&str, Collective); 8] = [
    ("AllReduce", Collective::AllReduce),
    ("AllGather", Collective::AllGather),
    ("ReduceScatter", Collective::ReduceScatter),
    ("Broadcast", Collective::Broadcast),
    ("AlltoAll", Collective::AllToAll),
    ("AllToAll", Collective::AllToAll),
    ("Bcast", Collective::Broadcast),
    ("Reduce", Collective::Reduce),
];

/// Parts of names of kernels that add over all ranks without NCCL.
const ALL_REDUCES: [&str; 9] = [
    "cross_device_reduce",
    "allreduce_fusion_kernel",
    "multimem_all_reduce",
    "one_shot_all_reduce",
    "two_shot_all_reduce",
    "pcie_allreduce",
    "oneShotAllReduce",
    "twoShotAllReduce",
    "userbuffers_fp16_sum_inplace",
];

/// The collective of a name of NCCL's, such as `AllReduce`.
pub(super) fn collective(name: &str) -> Option<Collective> {
    COLLECTIVES.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}

/// The collective of torch's names, such as `allreduce`, `_allgather_base` or `all_reduce`.
pub(super) fn of_torch(name: &str) -> Option<Collective> {
    let plain: String = name.to_lowercase().chars().filter(char::is_ascii_alphabetic).collect();
    let names = [
        ("reducescatter", Collective::ReduceScatter),
        ("allreduce", Collective::AllReduce),
        ("allgather", Collective::AllGather),
        ("alltoall", Collective::AllToAll),
        ("broadcast", Collective::Broadcast),
        ("reduce", Collective::Reduce),
    ];
    names.iter().find(|entry| plain.contains(entry.0)).map(|entry| entry.1)
}

/// The collective that a kernel does; `None` of other kernels.
pub(super) fn of_kernel(name: &str) -> Option<Collective> {
    if ALL_REDUCES.iter().any(|part| name.contains(part)) {
        return Some(Collective::AllReduce);
    }
    let at = ["ncclDevKernel_", "ncclKernel_", "ncclSymkDevKernel_"]
        .iter()
        .find_map(|start| name.split_once(start))?;
    let word = at.1.split('_').next().unwrap_or("");
    collective(word)
}

/// What a kernel is that is no collective.
pub(super) fn other(name: &str) -> &'static str {
    match name.contains("SendRecv") && name.contains("nccl") {
        true => "sends and receives of NCCL",
        false => "kernels that are no collectives",
    }
}

/// Bytes of an element and our type for it, by any of its names.
pub(super) fn element(name: &str) -> Option<(u64, ElementType)> {
    Some(match name.to_lowercase().trim_start_matches("torch.") {
        "bfloat16" | "bf16" | "c10::bfloat16" => (2, ElementType::Bf16),
        "half" | "float16" | "fp16" | "f16" | "c10::half" => (2, ElementType::Fp16),
        "float" | "float32" | "fp32" | "f32" => (4, ElementType::Fp32),
        "int" | "int32" | "uint32" => (4, ElementType::Fp32),
        "long" | "int64" | "uint64" | "double" | "float64" | "fp64" => (8, ElementType::Fp32),
        "byte" | "char" | "int8" | "uint8" | "bool" => (1, ElementType::Bf16),
        name if name.starts_with("float8") || name.starts_with("fp8") => (1, ElementType::Bf16),
        _ => return None,
    })
}

/// The type of a number of NCCL's, as its logs have it.
pub(super) fn nccl_type(number: u64) -> String {
    const TYPES: [&str; 12] = [
        "int8", "uint8", "int32", "uint32", "int64", "uint64", "fp16", "fp32", "fp64", "bf16",
        "fp8_e4m3", "fp8_e5m2",
    ];
    let known = usize::try_from(number).ok().and_then(|at| TYPES.get(at));
    known.map_or_else(|| format!("datatype {number}"), |name| (*name).to_owned())
}

/// The type within a kernel's name, such as `bf16` of `.._AllReduce_Sum_bf16_RING_LL`.
pub(super) fn type_of_kernel(name: &str) -> &str {
    let known = |word: &&str| matches!(*word, "bf16" | "f16" | "f32" | "f64" | "i8" | "u8" | "i32");
    name.split(['_', '(', '<']).find(known).unwrap_or("")
}

/// Bytes as nccl-tests counts them, of a call in which one rank sends and receives so many
/// elements.
pub(super) fn size(collective: Collective, sent: u64, received: u64, element: u64) -> u64 {
    let elements = match collective {
        Collective::AllGather => received,
        Collective::ReduceScatter | Collective::AllToAll => sent,
        _ => sent.max(received),
    };
    elements.saturating_mul(element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_and_types() {
        let name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
        assert_eq!((of_kernel(name), type_of_kernel(name)), (Some(Collective::AllReduce), "bf16"));
        assert_eq!(
            of_kernel("ncclKernel_ReduceScatter_RING_LL_Sum_half"),
            Some(Collective::ReduceScatter)
        );
        let custom = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)";
        assert_eq!(of_kernel(custom), Some(Collective::AllReduce));
        assert_eq!(of_kernel("void at::native::reduce_kernel<512>"), None);
        assert_eq!(of_torch("_reduce_scatter_base"), Some(Collective::ReduceScatter));
        assert_eq!(element("BFloat16"), Some((2, ElementType::Bf16)));
        assert_eq!(element("Float8_e4m3fn"), Some((1, ElementType::Bf16)));
        // 8 ranks gather 100 elements each.
        assert_eq!(size(Collective::AllGather, 100, 800, 2), 1600);
        assert_eq!(size(Collective::ReduceScatter, 800, 100, 2), 1600);
    }
}
