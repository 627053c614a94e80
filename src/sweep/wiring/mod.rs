//! Where the uplinks of given switches go: which root ports of which socket, below another switch, one
//! uplink or two. Each way is a list of edits that turns the machine into it.

mod shape;
mod space;

use std::collections::BTreeSet;

use serde::Serialize;

use self::shape::shape;
use self::space::{Above, Place, Space};
use super::compare::change;
use super::in_parallel;
use super::plan::{Plan, Terms, parse_edits, some_left};
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::prediction::{CasePrediction, Range};
use crate::topology::{NodeId, Topology};
use crate::units::format_gpus;

/// A way to plug the switches in.
#[derive(Clone, Debug, Serialize)]
pub struct Wired {
    /// What makes it of the machine, in words; empty for the machine as it is.
    pub edits: Vec<String>,
    /// The fastest call, with its range, us.
    pub time_us: Range,
    /// By which implementation.
    pub by: String,
    /// Against the machine as it is, with its range; -0.1 is a tenth less.
    pub change: Range,
    /// What kind of wiring it is.
    pub family: Family,
    /// So many other wirings make no difference to these calls.
    pub alike: usize,
}

/// Kinds of wirings, of each of which the best are told.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Every switch hangs on root ports.
    Flat,
    /// Some switch hangs below another.
    Hierarchy,
    /// Some switch gets a second uplink.
    TwoUplinks,
}

impl Family {
    /// In words.
    pub fn word(self) -> &'static str {
        match self {
            Family::Flat => "flat",
            Family::Hierarchy => "hierarchy",
            Family::TwoUplinks => "two uplinks",
        }
    }
}

/// A wiring that was run on flows.
struct Tried {
    edits: Vec<String>,
    plan: Plan,
    us: f64,
    family: Family,
    alike: usize,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Wirings {
    /// The machine as it is.
    pub now: Wired,
    /// The best of each kind, the fastest first.
    pub best: Vec<Wired>,
    /// How many different wirings were tried; those that are alike but for names count once.
    pub tried: usize,
    /// How many more cannot be built, such as for want of lanes, and why the first of them cannot.
    pub refused: usize,
    /// The first reason.
    pub reason: Option<String>,
    /// All were tried; otherwise one uplink after another was changed, from the machine as it is and
    /// from every switch on root ports of its own, until none helps.
    pub exact: bool,
}

/// Of each kind that was compared on flows, so many of the fastest are run by packets.
const TOLD: usize = 3;

/// Finds wirings of the plan's switches for calls of `bytes` between its ranks. They are compared on
/// max-min flows by the fastest implementation; the best are told by packets.
///
/// # Errors
/// A machine without switches, and those of the engine.
pub fn wirings(
    plan: &Plan,
    bytes: u64,
    calibration: &Calibration,
    regimes: bool,
) -> Result<Wirings> {
    let space = Space::of(plan)?;
    let mut seen = Seen::default();
    let all = space.all();
    let exact = all.is_some();
    let quick = Terms { regimes, ranges: false, fidelity: Fidelity::MaxMin };
    let us = |plan: &Plan| {
        let prepared = plan.clone().prepared(calibration, quick)?;
        Ok(prepared.fastest(bytes)?.map_or(f64::INFINITY, |(_, us)| us))
    };
    let mut tried: Vec<Tried> = Vec::new();
    let mut run = |places: &[Vec<Place>], seen: &mut Seen| -> Result<Vec<(usize, f64)>> {
        let mut new: Vec<(usize, Vec<String>, Plan)> = Vec::new();
        for (index, places) in places.iter().enumerate() {
            if let Some((edits, plan)) = seen.wired(&space, places, calibration) {
                new.push((index, edits, plan));
            }
        }
        let times = in_parallel(&new, |one| us(&one.2))?;
        let told = new.iter().zip(&times).map(|(one, &us)| (one.0, us)).collect();
        tried.extend(new.into_iter().zip(times).map(|((at, edits, plan), us)| Tried {
            edits,
            plan,
            us,
            family: family(&places[at]),
            alike: 0,
        }));
        Ok(told)
    };
    run(std::slice::from_ref(&space.now), &mut seen)?;
    if let Some(all) = &all {
        run(all, &mut seen)?;
    } else {
        for start in [space.now.clone(), space.flat()] {
            let mut here = start;
            let mut best = f64::INFINITY;
            loop {
                let near = space.near(&here);
                let times = run(&near, &mut seen)?;
                match times.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
                    Some(&(at, us)) if us < best * (1.0 - 1e-9) => {
                        (here, best) = (near[at].clone(), us);
                    }
                    _ => break,
                }
            }
        }
    }
    let count = tried.len();
    let (now, best) = told(tried, bytes, calibration, regimes)?;
    Ok(Wirings { now, best, tried: count, refused: seen.refused, reason: seen.reason, exact })
}

/// The machine as it is, which was tried first, and the fastest of each kind of the others, by packets.
fn told(
    tried: Vec<Tried>,
    bytes: u64,
    calibration: &Calibration,
    regimes: bool,
) -> Result<(Wired, Vec<Wired>)> {
    let chosen = chosen(tried);
    let terms = Terms { regimes, ranges: true, fidelity: Fidelity::Packet };
    let predictions = in_parallel(&chosen, |one| {
        let prepared = one.plan.clone().prepared(calibration, terms)?;
        let (case, _) = some_left(prepared.fastest(bytes)?)?;
        case.predict(&prepared.machine, bytes, &prepared.options)
    })?;
    let wired = |(one, prediction): (Tried, &CasePrediction)| Wired {
        edits: one.edits,
        time_us: prediction.time_us,
        by: prediction.title.clone(),
        change: change(&predictions[0], prediction, 1.0),
        family: one.family,
        alike: one.alike,
    };
    let mut all = chosen.into_iter().zip(&predictions).map(wired);
    let now = all.next().ok_or_else(|| Error::request("no wiring can be built", ""))?;
    let mut best: Vec<Wired> = all.collect();
    best.sort_by(|a, b| a.time_us.value.total_cmp(&b.time_us.value));
    Ok((now, best))
}

/// The first, and the fastest few of each kind. Those that take the same time to the last bit are the
/// same to these calls: of them the one with the fewest edits, with the number of the others.
fn chosen(tried: Vec<Tried>) -> Vec<Tried> {
    let mut tried = tried.into_iter();
    let mut chosen: Vec<Tried> = tried.next().into_iter().collect();
    let mut others: Vec<Tried> = tried.collect();
    others.sort_by(|a, b| a.us.total_cmp(&b.us).then(a.edits.len().cmp(&b.edits.len())));
    for one in others {
        let same = |other: &&mut Tried| {
            (other.family, other.us.to_bits()) == (one.family, one.us.to_bits())
        };
        let of_kind = chosen.iter().skip(1).filter(|other| other.family == one.family).count();
        if let Some(same) = chosen.iter_mut().find(same) {
            same.alike += 1;
        } else if of_kind < TOLD {
            chosen.push(one);
        }
    }
    chosen
}

fn family(places: &[Place]) -> Family {
    if places.iter().any(|place| place.second.is_some()) {
        Family::TwoUplinks
    } else if places.iter().any(|place| matches!(place.up, Above::Switch(_))) {
        Family::Hierarchy
    } else {
        Family::Flat
    }
}

/// Which wirings were looked at, those that are alike once.
#[derive(Default)]
struct Seen {
    shapes: BTreeSet<String>,
    refused: usize,
    reason: Option<String>,
}

impl Seen {
    /// The edits of a wiring and the plan that they make, if it is new and can be built.
    fn wired(
        &mut self,
        space: &Space<'_>,
        places: &[Place],
        calibration: &Calibration,
    ) -> Option<(Vec<String>, Plan)> {
        let mut edits = space.edits(places);
        let made = parse_edits(&edits).and_then(|some| space.plan.edited(&some, calibration));
        let mut plan = match made {
            Ok((plan, _)) => plan,
            Err(error) => {
                self.refused += 1;
                self.reason.get_or_insert_with(|| error.to_string());
                return None;
            }
        };
        if !self.shapes.insert(shape(&plan.topology)) {
            return None;
        }
        // Neighbours in the ring are neighbours in the tree, as they were before.
        let order = tree_order(&plan.topology);
        let ranks = (plan.scenario.tensor_parallel as usize).min(order.len());
        if !edits.is_empty() && plan.choice.gpus.is_empty() && !order[..ranks].is_sorted() {
            plan.choice.gpus = order[..ranks].to_vec();
            edits.push(format!("gpus={}", format_gpus(&plan.choice.gpus)));
        }
        Some((edits, plan))
    }
}

/// GPUs in the order in which sockets, root ports and switches hold them, those with the lowest
/// numbers first.
fn tree_order(topology: &Topology) -> Vec<u32> {
    let gpus = topology.gpus();
    let chain = |gpu: u32| {
        let mut chain = topology.ancestors(gpus[gpu as usize]);
        chain.reverse();
        let socket = chain.first().and_then(|&bridge| topology.socket_of(bridge));
        socket.into_iter().chain(chain).collect::<Vec<NodeId>>()
    };
    let chains: Vec<Vec<NodeId>> = (0..gpus.len() as u32).map(chain).collect();
    let lowest = |id: NodeId| chains.iter().position(|chain| chain.contains(&id)).unwrap_or(0);
    let mut order: Vec<u32> = (0..gpus.len() as u32).collect();
    order.sort_by_key(|&gpu| {
        chains[gpu as usize].iter().map(|&id| lowest(id)).collect::<Vec<usize>>()
    });
    order
}
