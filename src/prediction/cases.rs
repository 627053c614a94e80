//! Which algorithms are compared on a machine.

use super::case::Case;
use super::machine::Machine;
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

/// The ways to do an all-reduce on these GPUs, those of the first screen and the extra ones.
///
/// # Errors
/// Never for the embedded table of algorithms.
pub fn all_reduces(machine: &Machine, gpus: &[u32]) -> Result<Vec<Case>> {
    let n = gpus.len();
    let nvlink = machine.has_nvlink(gpus);
    let case = |name: &str, protocol, implementation, title: String, extra| -> Result<Case> {
        let algorithm = algorithm::find(Collective::AllReduce, name)?;
        let transport = Transport::Peer;
        let large = (name == "ring" && protocol == Protocol::Ll).then_some(Protocol::Simple);
        Ok(Case { algorithm, protocol, large, implementation, transport, title, extra })
    };
    let (nccl, custom) = (Implementation::Nccl, Implementation::CustomAllReduce);
    let mut cases = vec![case("ring", Protocol::Ll, nccl, "ring LL (NCCL)".into(), false)?];
    if nvlink {
        let title = "ring LL128 (NCCL)".into();
        cases.push(case("ring", Protocol::Ll128, nccl, title, false)?);
    }
    let by_host = machine.topology.ranks_apart(gpus);
    if !by_host.is_empty() && machine.nominal.fabric.peer_to_peer {
        let title = "ring LL, far by host memory".into();
        let mut host = case("ring", Protocol::Ll, nccl, title, true)?;
        host.transport = Transport::HostFor(by_host);
        cases.push(host);
    }
    cases.push(case("ring", Protocol::Simple, nccl, "ring Simple (NCCL)".into(), true)?);
    for &protocol in algorithm::find(Collective::AllReduce, "chain")?.protocols {
        let title = format!("chain {} (NCCL tree)", protocol.name());
        cases.push(case("chain", protocol, nccl, title, true)?);
    }
    let simple = Protocol::Simple;
    cases.push(case(
        "two_shot_pull",
        simple,
        custom,
        "two-stage (custom all-reduce)".into(),
        false,
    )?);
    let title = format!("one-stage ({} reads at once)", n * (n - 1));
    cases.push(case("one_shot_pull", simple, custom, title, false)?);
    cases.push(case("one_shot_push", simple, custom, "one-stage push (Lamport)".into(), false)?);
    for case in &mut cases {
        // vLLM and SGLang run their kernels on 2, 4, 6 or 8 GPUs that may address each other.
        let theirs = case.implementation == Implementation::CustomAllReduce;
        let offered = matches!(n, 2 | 4 | 6 | 8) && machine.nominal.fabric.peer_to_peer;
        case.extra |= theirs && !offered;
    }
    Ok(cases)
}
