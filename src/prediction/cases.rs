//! Which algorithms are compared on a machine.

use super::case::Case;
use super::machine::Machine;
use crate::algorithm::islands::islands;
use crate::algorithm::{self, Implementation, Protocol, Transport};
use crate::error::Result;
use crate::schedule::Collective;

/// The ways to do a collective on these GPUs.
///
/// # Errors
/// Never for the embedded table of algorithms.
pub fn cases(collective: Collective, machine: &Machine, gpus: &[u32]) -> Result<Vec<Case>> {
    if collective == Collective::AllReduce {
        return all_reduces(machine, gpus);
    }
    let nvlink = machine.has_nvlink(gpus);
    let mut cases = Vec::new();
    for algorithm in algorithm::of(collective) {
        for &protocol in algorithm.protocols {
            let lines_first = algorithm.protocols.contains(&Protocol::Ll);
            cases.push(Case {
                algorithm,
                protocol,
                large: (protocol == Protocol::Ll).then_some(Protocol::Simple),
                implementation: Implementation::Nccl,
                transport: Transport::Peer,
                title: format!("{} {} (NCCL)", algorithm.title, protocol.name()),
                // LL changes to Simple by itself, and LL128 needs NVLink.
                extra: match protocol {
                    Protocol::Ll => false,
                    Protocol::Ll128 => !nvlink,
                    Protocol::Simple => lines_first,
                },
            });
        }
    }
    Ok(cases)
}

/// On which wires a row stands.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Wires {
    Any,
    /// Some pair is joined by NVLink.
    Nvlink,
    /// Every pair is: peers' memory takes atomics.
    AllNvlink,
    /// No pair is.
    Pcie,
    /// An NVSwitch that copies and sums joins all.
    Switch,
    /// Some GPUs are nearer to each other than to the rest, and no pair is joined by NVLink.
    Islands,
}

/// A way to do an all-reduce.
struct Row {
    algorithm: &'static str,
    protocol: Protocol,
    implementation: Implementation,
    title: &'static str,
    wires: Wires,
    /// On the first screen; the others are shown when all are asked for.
    shown: bool,
}

const fn row(
    algorithm: &'static str,
    protocol: Protocol,
    implementation: Implementation,
    title: &'static str,
    wires: Wires,
) -> Row {
    Row { algorithm, protocol, implementation, title, wires, shown: false }
}

const fn shown(row: Row) -> Row {
    Row { shown: true, ..row }
}

/// `{reads}` stands for the number of buffers that are read from peers at once.
const ROWS: &[Row] = {
    use Implementation as By;
    use Protocol::{Ll, Ll128, Simple};
    use Wires::{AllNvlink, Any, Islands, Nvlink, Pcie, Switch};
    &[
        shown(row("ring", Ll, By::Nccl, "ring LL (NCCL)", Any)),
        shown(row("ring", Ll128, By::Nccl, "ring LL128 (NCCL)", Nvlink)),
        row("ring", Simple, By::Nccl, "ring Simple (NCCL)", Any),
        row("chain", Ll, By::Nccl, "chain LL (NCCL tree)", Any),
        row("chain", Ll128, By::Nccl, "chain LL128 (NCCL tree)", Nvlink),
        row("chain", Simple, By::Nccl, "chain Simple (NCCL tree)", Any),
        shown(row(
            "two_shot_pull",
            Simple,
            By::CustomAllReduce,
            "two-stage (custom all-reduce)",
            Any,
        )),
        shown(row(
            "one_shot_pull",
            Simple,
            By::CustomAllReduce,
            "one-stage ({reads} reads at once)",
            Any,
        )),
        shown(row("one_shot_push", Simple, By::PcieIpc, "one-stage push (Lamport)", Pcie)),
        shown(row("one_shot_push", Simple, By::FlashInfer, "one-stage push (Lamport)", Nvlink)),
        row("island_push", Simple, By::PcieIpc, "by islands (no library has it)", Islands),
        row("island_pull", Simple, By::CustomAllReduce, "by islands, reading", Islands),
        row("staged_push", Simple, By::PcieIpc, "staged by islands (pcie_ipc)", Islands),
        row("two_shot_push", Simple, By::PcieIpc, "two-stage push (pcie_ipc)", Pcie),
        row("staged_ring", Simple, By::PcieIpc, "staged ring (pcie_ipc)", Pcie),
        row("allpair_packet", Ll, By::Mscclpp, "all-pair packets (MSCCL++)", Any),
        row("two_shot_push", Ll, By::Mscclpp, "two-round packets (MSCCL++)", Any),
        row("two_shot_pull_push", Simple, By::Mscclpp, "read, write (MSCCL++)", Any),
        row("two_shot_pull_push", Simple, By::FlashInfer, "two-shot (FlashInfer)", Any),
        row("one_shot_push", Simple, By::SglangV2, "one-stage push (SGLang v2)", AllNvlink),
        row("one_shot_pull", Simple, By::SglangV2, "one-stage (SGLang v2)", AllNvlink),
        row("two_shot_pull_push", Simple, By::SglangV2, "two-stage (SGLang v2)", AllNvlink),
        row("one_shot_pull", Simple, By::TorchSymmMem, "one-shot (torch symm_mem)", AllNvlink),
        row("two_shot_pull", Simple, By::TorchSymmMem, "two-shot (torch symm_mem)", AllNvlink),
        row("two_shot_pull_push", Simple, By::TorchSymmMem, "in place (torch symm_mem)", AllNvlink),
        shown(row("nvls", Simple, By::Nccl, "NVLS (NCCL)", Switch)),
        row("nvls_two_shot", Simple, By::NcclSymmetric, "in-switch two-stage (NCCL symm)", Switch),
        row("nvls_packet", Ll, By::NcclSymmetric, "multicast lines (NCCL symm)", Switch),
        row("nvls_two_shot", Simple, By::Mscclpp, "in-switch two-stage (MSCCL++)", Switch),
        row("nvls_packet", Ll, By::Mscclpp, "multicast packets (MSCCL++)", Switch),
        row("nvls_two_shot", Simple, By::TorchSymmMem, "in-switch two-stage (torch)", Switch),
        row("nvls_one_shot", Simple, By::TorchSymmMem, "in-switch one-stage (torch)", Switch),
    ]
};

impl Row {
    fn stands(&self, machine: &Machine, gpus: &[u32]) -> bool {
        match self.wires {
            Wires::Any => true,
            Wires::Nvlink => machine.has_nvlink(gpus),
            Wires::AllNvlink => machine.all_nvlink(gpus),
            Wires::Switch => machine.nominal.fabric.multicast(gpus).is_ok(),
            Wires::Pcie => !machine.has_nvlink(gpus),
            Wires::Islands => {
                !machine.has_nvlink(gpus) && islands(&machine.nominal.fabric, gpus).len() > 1
            }
        }
    }

    fn case(&self, machine: &Machine, gpus: &[u32]) -> Result<Case> {
        let n = gpus.len();
        let algorithm = algorithm::find(Collective::AllReduce, self.algorithm)?;
        // Libraries run these kernels on 2, 4, 6 or 8 GPUs that may address each other.
        let offered = matches!(n, 2 | 4 | 6 | 8) && machine.nominal.fabric.peer_to_peer;
        let changes = self.algorithm == "ring" && self.protocol == Protocol::Ll;
        Ok(Case {
            algorithm,
            protocol: self.protocol,
            large: changes.then_some(Protocol::Simple),
            implementation: self.implementation,
            transport: Transport::Peer,
            title: self.title.replace("{reads}", &(n * (n - 1)).to_string()),
            extra: !self.shown || self.implementation != Implementation::Nccl && !offered,
        })
    }
}

/// The ways to do an all-reduce on these GPUs, those of the first screen and the extra ones.
///
/// # Errors
/// Never for the embedded table of algorithms.
pub fn all_reduces(machine: &Machine, gpus: &[u32]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for row in ROWS.iter().filter(|row| row.stands(machine, gpus)) {
        let case = row.case(machine, gpus)?;
        if case.algorithm.protocols.contains(&case.protocol) {
            cases.push(case);
        }
    }
    let by_host = machine.topology.ranks_apart(gpus);
    if !by_host.is_empty() && machine.nominal.fabric.peer_to_peer {
        let transport = Transport::host_for(by_host);
        let title = "ring LL, far by host memory".to_owned();
        let host = Case { transport, title, extra: true, ..cases[0].clone() };
        cases.insert(1, host);
    }
    Ok(cases)
}

/// The case of an all-reduce by an algorithm with a library's kernel, whatever wires it wants; `None`
/// where no row has it.
pub fn by_name(
    algorithm: &str,
    implementation: &str,
    machine: &Machine,
    gpus: &[u32],
) -> Option<Case> {
    let row = ROWS
        .iter()
        .find(|row| row.algorithm == algorithm && row.implementation.key() == implementation)?;
    row.case(machine, gpus).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_name_kernels_that_there_are() {
        for row in ROWS {
            let algorithm = algorithm::find(Collective::AllReduce, row.algorithm).expect("known");
            assert!(algorithm.implementations.contains(&row.implementation), "{}", row.title);
            assert!(row.title.len() <= 33, "{} is too long for its column", row.title);
        }
    }
}
