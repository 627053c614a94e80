//! Which GPUs and which algorithms an answer is about.

use super::arguments::Predict;
use crate::algorithm::{self, Protocol, Transport};
use crate::error::{Error, Result};
use crate::prediction::cases::cases as prediction_cases;
use crate::prediction::ring_order::nvlink_ring;
use crate::prediction::{Case, Machine};
use crate::schedule::Collective;
use crate::suggestion::did_you_mean;
use crate::topology::Topology;
use crate::workload::{Scenario, Step};

/// GPUs in the order of ranks, and what to note about them.
pub(super) fn gpus(
    options: &Predict,
    topology: &Topology,
    scenario: &Scenario,
    ring: Option<&[u32]>,
    notes: &mut Vec<String>,
) -> Result<Vec<u32>> {
    let (wanted, gpu_count) = (scenario.tensor_parallel, topology.gpus().len());
    if options.gpus.is_empty() {
        let count = (wanted as usize).min(gpu_count) as u32;
        if gpu_count > 1 && count < wanted {
            notes.push(format!(
                "the scenario wants {wanted} GPUs; this machine has {count}, and TP {count} is shown"
            ));
        }
        if gpu_count > count as usize {
            notes.push(format!("the first {count} of {gpu_count} GPUs; others with --gpus"));
        }
        if let Some(ring) = ring.filter(|ring| ring.len() == count as usize) {
            let order: Vec<String> = ring.iter().map(u32::to_string).collect();
            notes.push(format!("ranks follow the graph file: {}", order.join(",")));
            return Ok(ring.to_vec());
        }
        if let Some(ring) = nvlink_ring(topology, count as usize) {
            let order: Vec<String> = ring.iter().map(u32::to_string).collect();
            notes.push(format!("ranks follow NVLinks: {}; others with --gpus", order.join(",")));
            return Ok(ring);
        }
        return Ok((0..count).collect());
    }
    chosen_gpus(&options.gpus, gpu_count)
}

/// GPUs that were named, each there and named once.
pub(super) fn chosen_gpus(gpus: &[u32], gpu_count: usize) -> Result<Vec<u32>> {
    for (index, &gpu) in gpus.iter().enumerate() {
        if gpu as usize >= gpu_count {
            return Err(Error::request(
                format!("there is no GPU {gpu}"),
                format!("this machine has GPUs 0 to {}", gpu_count - 1),
            ));
        }
        if gpus[..index].contains(&gpu) {
            return Err(Error::request(
                format!("GPU {gpu} is named twice"),
                "each rank has a GPU of its own",
            ));
        }
    }
    if gpus.len() < 2 {
        return Err(Error::request(
            "one GPU has nothing to reduce",
            "name two or more: --gpus 0,1",
        ));
    }
    Ok(gpus.to_vec())
}

/// The cases that the options leave.
pub(super) fn cases(
    options: &Predict,
    collective: Collective,
    machine: &Machine,
    gpus: &[u32],
) -> Result<Vec<Case>> {
    let protocol = options.proto.as_deref().map(protocol).transpose()?;
    let mut cases = prediction_cases(collective, machine, gpus)?;
    if protocol.is_some() {
        // Whoever names a protocol gets it at every size.
        cases.iter_mut().for_each(|case| case.large = None);
    }
    if options.algo.is_empty() {
        cases.retain(|case| {
            // What --explain says of slow transports needs the ring through host memory.
            let explained = options.explain && case.transport != Transport::Peer;
            (!case.extra || options.all || explained || protocol.is_some())
                && protocol.is_none_or(|protocol| protocol == case.protocol)
        });
        return Ok(cases);
    }
    let mut chosen: Vec<Case> = Vec::new();
    for name in &options.algo {
        let algorithm = algorithm::find(collective, name)?;
        let fits = |case: &&Case| {
            case.algorithm.name == algorithm.name && protocol.is_none_or(|p| p == case.protocol)
        };
        let found: Vec<Case> = cases.iter().filter(fits).cloned().collect();
        if !found.is_empty() {
            // Without a protocol, the rows of the first screen say what is meant, if there is one.
            let all = protocol.is_some() || found.iter().all(|case| case.extra);
            chosen.extend(found.into_iter().filter(|case| all || !case.extra));
            continue;
        }
        let protocol = protocol.unwrap_or(algorithm.protocols[0]);
        chosen.push(Case {
            algorithm,
            large: None,
            protocol,
            implementation: algorithm.implementations[0],
            transport: Transport::Peer,
            title: format!("{} {}", algorithm.title, protocol.name()),
            extra: false,
        });
    }
    Ok(chosen)
}

fn protocol(name: &str) -> Result<Protocol> {
    Protocol::from_name(name).ok_or_else(|| {
        let names = Protocol::ALL.map(|entry| entry.1);
        let guess = did_you_mean(name, names);
        Error::request(
            format!("there is no protocol `{name}`"),
            format!("{guess}{}known: {}", space(&guess), names.join(", ")),
        )
    })
}

/// The collective of this name; none: the first step's.
pub(super) fn collective(options: &Predict, scenario: &Scenario) -> Result<Collective> {
    options.collective.as_deref().map_or(Ok(scenario.steps[0].collective), named_collective)
}

/// The collective of this name.
pub(super) fn named_collective(name: &str) -> Result<Collective> {
    Collective::from_name(name).ok_or_else(|| {
        let names = Collective::ALL.map(|entry| entry.1);
        let guess = did_you_mean(name, names);
        Error::request(
            format!("there is no collective `{name}`"),
            format!("{guess}{}known: {}", space(&guess), names.join(", ")),
        )
    })
}

/// Leaves the steps of one collective; where there is none, all steps are asked of it.
pub(super) fn steps(scenario: &mut Scenario, collective: Collective, notes: &mut Vec<String>) {
    let (wanted, others): (Vec<Step>, Vec<Step>) =
        std::mem::take(&mut scenario.steps).into_iter().partition(|s| s.collective == collective);
    if wanted.is_empty() {
        notes.push(format!("the steps of {} as {}", scenario.name, collective.title()));
        scenario.steps = others.into_iter().map(|step| Step { collective, ..step }).collect();
        scenario.reported.clear();
        return;
    }
    for step in &others {
        let (name, flag) = (&step.name, step.collective.name());
        notes.push(format!("step {name} is another collective: --collective {flag}"));
    }
    scenario.steps = wanted;
}

fn space(guess: &str) -> &'static str {
    if guess.is_empty() { "" } else { " " }
}
