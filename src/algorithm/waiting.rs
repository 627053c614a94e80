//! How the ranks of a kernel wait for each other: flags, or atomics on the peers' memory.

use super::Request;
use super::kernel::BarrierKind;
use crate::error::{Error, Result};
use crate::fabric::LinkClass;
use crate::schedule::build::Builder;

/// A barrier of all ranks by the kernel's own means, its flags at the polling rank.
///
/// A remote add is posted like a flag: nobody waits for its answer, and the owner polls one word.
/// `fenced`: what was stored before must be visible behind it.
pub(super) fn barrier(builder: &mut Builder, request: &Request<'_>, fenced: bool) {
    let all: Vec<u32> = (0..request.ranks()).collect();
    group_barrier(builder, request, &all, fenced);
}

/// A barrier of some ranks; none for a rank alone.
pub(super) fn group_barrier(
    builder: &mut Builder,
    request: &Request<'_>,
    group: &[u32],
    fenced: bool,
) {
    let home = |rank: u32| request.flag_home(rank);
    match request.kernel.implementation.barrier() {
        BarrierKind::Flags | BarrierKind::RemoteAdd => builder.group_barrier(group, fenced, home),
        BarrierKind::RemoteSwap => builder.atomic_barrier(group, fenced, home),
        BarrierKind::SwitchFlags => builder.switch_barrier(group, fenced, home),
    }
}

/// Refuses atomics on a peer's memory where the wires do not carry them.
///
/// # Errors
/// When two ranks are not joined by NVLink and the kernel's barrier needs a remote atomic.
pub(super) fn check(request: &Request<'_>) -> Result<()> {
    let implementation = request.kernel.implementation;
    let kind = implementation.barrier();
    if matches!(kind, BarrierKind::Flags | BarrierKind::SwitchFlags) {
        return Ok(());
    }
    let pairs = request.gpus.iter().flat_map(|&a| request.gpus.iter().map(move |&b| (a, b)));
    for (a, b) in pairs.filter(|(a, b)| a != b) {
        if request.fabric.first_class(a, b) != Some(LinkClass::Nvlink) {
            return Err(Error::request(
                format!(
                    "{} waits by atomics on the peers' memory, and GPU {a} reaches GPU {b} over \
                     PCIe, which carries none between GPUs",
                    implementation.key()
                ),
                "needs NVLink between all GPUs; kernels that wait by flags run here",
            ));
        }
    }
    Ok(())
}
