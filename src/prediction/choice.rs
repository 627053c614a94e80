//! What a person lays down about how calls are done: algorithms, protocol, channels, ring order,
//! GPUs. What is not laid down is the library's.

use super::cases::cases;
use super::ring_order::nvlink_ring;
use super::{Case, CaseOptions, Machine};
use crate::algorithm::{self, Protocol, Transport};
use crate::error::{Error, Result};
use crate::schedule::Collective;
use crate::suggestion::known;
use crate::topology::Topology;
use crate::topology::edit::{Edit, Kind};
use crate::units::{format_gpus, parse_gpus};

/// What is laid down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// Only these algorithms, by their names.
    pub algorithms: Vec<String>,
    /// Only this protocol.
    pub protocol: Option<Protocol>,
    /// Blocks or channels of each rank.
    pub channels: Option<u32>,
    /// GPU of each rank; empty: those that the question takes.
    pub gpus: Vec<u32>,
    /// Order of the ranks around the ring; empty: theirs.
    pub ring: Vec<u32>,
    /// Islands of ranks, for algorithms that go by islands; empty: those of the paths.
    pub islands: Vec<Vec<u32>>,
    /// GPUs along the ring of a graph file that came with the machine.
    pub graph: Vec<u32>,
    /// With what nobody would choose here.
    pub all: bool,
    /// With what goes by host memory.
    pub by_host: bool,
}

/// All kinds of change of what is laid down.
pub const KINDS: &[Kind<Choice>] = &[
    Kind {
        name: "algorithm",
        form: "algorithm=ring,one_shot_pull",
        what: "only these algorithms",
        apply: |choice, edit| {
            edit.of_nothing()?;
            choice.algorithms = edit.to.split(',').map(|name| name.trim().to_owned()).collect();
            Ok(format!("only {}", edit.to))
        },
    },
    Kind {
        name: "protocol",
        form: "protocol=Simple | LL | LL128",
        what: "only this protocol",
        apply: |choice, edit| {
            edit.of_nothing()?;
            choice.protocol = Some(protocol(&edit.to)?);
            Ok(format!("protocol {}", edit.to))
        },
    },
    Kind {
        name: "channels",
        form: "channels=8",
        what: "channels or blocks of each rank",
        apply: |choice, edit| {
            edit.of_nothing()?;
            choice.channels = Some(edit.number(1, 64)? as u32);
            Ok(format!("{} channels", edit.to))
        },
    },
    Kind {
        name: "ring",
        form: "ring=0,1,3,2",
        what: "order of the ranks around the ring",
        apply: |choice, edit| {
            edit.of_nothing()?;
            choice.ring = numbers(edit)?;
            Ok(format!("ring {}", edit.to))
        },
    },
    Kind {
        name: "islands",
        form: "islands=0-3/4-7",
        what: "ranks that work together first, for algorithms by islands",
        apply: |choice, edit| {
            edit.of_nothing()?;
            let island = |ranks: &str| match parse_gpus(ranks) {
                Ok(ranks) if !ranks.is_empty() => Ok(ranks),
                _ => {
                    Err(edit.refused(format!("`{ranks}` is no island"), "write 0-3/4-7 or 0,2/1,3"))
                }
            };
            choice.islands = edit.to.split('/').map(island).collect::<Result<_>>()?;
            Ok(format!("islands {}", edit.to))
        },
    },
    Kind {
        name: "gpus",
        form: "gpus=0,1,4,5",
        what: "GPU of each rank, in the order of ranks",
        apply: |choice, edit| {
            edit.of_nothing()?;
            choice.gpus = numbers(edit)?;
            Ok(format!("ranks on GPUs {}", edit.to))
        },
    },
];

fn numbers(edit: &Edit) -> Result<Vec<u32>> {
    let number = |digits: &str| {
        let help = "write numbers, such as 0,1,3,2";
        digits.trim().parse().map_err(|_| edit.refused(format!("`{digits}` is no number"), help))
    };
    edit.to.split(',').map(number).collect()
}

/// The protocol of this name.
///
/// # Errors
/// When there is none, with the names that are.
pub fn protocol(name: &str) -> Result<Protocol> {
    Protocol::from_name(name).ok_or_else(|| {
        let help = known(name, "known", Protocol::ALL.map(|entry| entry.1));
        Error::request(format!("there is no protocol `{name}`"), help)
    })
}

/// GPUs that were named, each there and named once, two at least.
///
/// # Errors
/// When they are not.
pub fn chosen_gpus(gpus: &[u32], gpu_count: usize) -> Result<Vec<u32>> {
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

/// GPUs that were named, as [`chosen_gpus`], or the first `count` of a machine where none were.
///
/// # Errors
/// As [`chosen_gpus`].
pub fn chosen_or_first(gpus: &[u32], count: usize, gpu_count: usize) -> Result<Vec<u32>> {
    match gpus {
        [] => Ok((0..count.min(gpu_count) as u32).collect()),
        _ => chosen_gpus(gpus, gpu_count),
    }
}

impl Choice {
    /// GPUs in the order of ranks, where a workload wants `wanted`, and what to note about them.
    ///
    /// # Errors
    /// GPUs that are not there, named twice, or fewer than two.
    pub fn ranks(
        &self,
        topology: &Topology,
        wanted: u32,
        notes: &mut Vec<String>,
    ) -> Result<Vec<u32>> {
        let gpu_count = topology.gpus().len();
        if !self.gpus.is_empty() {
            return chosen_gpus(&self.gpus, gpu_count);
        }
        let count = (wanted as usize).min(gpu_count) as u32;
        if gpu_count > 1 && count < wanted {
            notes.push(format!(
                "the scenario wants {wanted} GPUs; this machine has {count}, and TP {count} is shown"
            ));
        }
        if gpu_count > count as usize {
            notes.push(format!("the first {count} of {gpu_count} GPUs; others with --gpus"));
        }
        if !self.graph.is_empty() && self.graph.len() == count as usize {
            notes.push(format!("ranks follow the graph file: {}", format_gpus(&self.graph)));
            return Ok(self.graph.clone());
        }
        if let Some(ring) = nvlink_ring(topology, count as usize) {
            notes.push(format!("ranks follow NVLinks: {}; others with --gpus", format_gpus(&ring)));
            return Ok(ring);
        }
        Ok((0..count).collect())
    }

    /// The options of cases, with what is laid down.
    #[must_use]
    pub fn within(&self, options: CaseOptions) -> CaseOptions {
        let orders = if self.ring.is_empty() { options.orders } else { vec![self.ring.clone()] };
        let islands = if self.islands.is_empty() { options.islands } else { self.islands.clone() };
        CaseOptions { blocks: self.channels.or(options.blocks), orders, islands, ..options }
    }

    /// The cases that are left.
    ///
    /// # Errors
    /// An algorithm that there is not.
    pub fn cases(
        &self,
        collective: Collective,
        machine: &Machine,
        gpus: &[u32],
    ) -> Result<Vec<Case>> {
        let mut cases = cases(collective, machine, gpus)?;
        if self.protocol.is_some() {
            // Whoever names a protocol gets it at every size.
            cases.iter_mut().for_each(|case| case.large = None);
        }
        if self.algorithms.is_empty() {
            cases.retain(|case| {
                let by_host = self.by_host && case.transport != Transport::Peer;
                let by_islands = !self.islands.is_empty() && case.algorithm.is_by_islands();
                (!case.extra || self.all || by_host || by_islands || self.protocol.is_some())
                    && self.protocol.is_none_or(|protocol| protocol == case.protocol)
            });
            return Ok(cases);
        }
        let mut chosen: Vec<Case> = Vec::new();
        for name in &self.algorithms {
            let algorithm = algorithm::find(collective, name)?;
            let fits = |case: &&Case| {
                case.algorithm.name == algorithm.name
                    && self.protocol.is_none_or(|p| p == case.protocol)
            };
            let found: Vec<Case> = cases.iter().filter(fits).cloned().collect();
            if !found.is_empty() {
                // Without a protocol, the rows of the first screen say what is meant, if there is one.
                let all = self.protocol.is_some() || found.iter().all(|case| case.extra);
                chosen.extend(found.into_iter().filter(|case| all || !case.extra));
                continue;
            }
            let protocol = self.protocol.unwrap_or(algorithm.protocols[0]);
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
}
