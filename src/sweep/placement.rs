//! Where to put ranks: which GPUs, in which order around the ring, and which implementation at which
//! size.

use serde::Serialize;

use super::in_parallel;
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::prediction::cases::cases;
use crate::prediction::{Case, CaseOptions, Machine};
use crate::schedule::Collective;

/// An order of GPUs and what a call takes with it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Placed {
    /// GPU of each rank; the ring follows it.
    pub gpus: Vec<u32>,
    /// A call, us.
    pub us: f64,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Placement {
    /// The GPUs in their own order.
    pub own: Placed,
    /// The best order of all that were tried.
    pub best: Placed,
    /// The worst of them.
    pub worst: Placed,
    /// How many orders were tried.
    pub tried: usize,
    /// All orders and all choices of GPUs were tried; otherwise exchanges of two ranks were, from the
    /// own order on, until none helps.
    pub exact: bool,
}

/// The fastest implementation at a size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Winner {
    /// Bytes of the call.
    pub bytes: u64,
    /// Which, and its time, us.
    pub best: (String, f64),
    /// The second.
    pub second: Option<(String, f64)>,
}

/// Orders that are tried one by one at most.
const EXACT_MAX: usize = 3_000;

/// Finds GPUs and their order for a ring of `ranks`, for calls of `bytes`. Orders are compared on
/// max-min flows; own, best and worst are told by packets.
///
/// # Errors
/// Fewer than two ranks, more than there are GPUs, and those of the engine.
pub fn place(machine: &Machine, ranks: usize, bytes: u64) -> Result<Placement> {
    let count = machine.nominal.fabric.gpu_count;
    if !(2..=count).contains(&ranks) {
        return Err(Error::request(
            format!("{ranks} ranks have no place: {} has {count} GPUs", machine.topology.name),
            "two ranks or more, one a GPU",
        ));
    }
    let own: Vec<u32> = (0..ranks as u32).collect();
    let all = cases(Collective::AllReduce, machine, &own)?;
    let Some(ring) = all.iter().find(|case| case.algorithm.name == "ring") else {
        return Err(Error::request("no ring runs here", ""));
    };
    let us = |gpus: &[u32], fidelity: Fidelity| {
        let options = CaseOptions::of(gpus.to_vec(), fidelity);
        ring.nominal_us(machine, bytes, &options)
    };
    let quick = |gpus: &Vec<u32>| us(gpus, Fidelity::MaxMin);
    let orders = all_orders(count, ranks);
    let exact = orders.is_some();
    let orders = match orders {
        Some(orders) => orders,
        None => exchanges(&own, count, &quick)?,
    };
    let times = in_parallel(&orders, quick)?;
    let at = |better: fn(f64, f64) -> bool| {
        let pick = |best: usize, next: usize| match better(times[next], times[best]) {
            true => next,
            false => best,
        };
        (0..times.len()).fold(0, pick)
    };
    let told = |gpus: &[u32]| {
        Ok::<Placed, Error>(Placed { gpus: gpus.to_vec(), us: us(gpus, Fidelity::Packet)? })
    };
    let (best, worst) = (at(|a, b| a < b), at(|a, b| a > b));
    let (own, best) = (told(&own)?, told(&orders[best])?);
    let worst = told(&orders[worst])?;
    // Packets may see the two otherwise than flows do: the own order stays where it is no slower.
    let best = if own.us <= best.us { own.clone() } else { best };
    Ok(Placement { own, best, worst, tried: orders.len(), exact })
}

/// Every choice of GPUs and every ring of them once: the first stays in front, and of a ring and its
/// mirror image both are kept, since links and kernels need not be alike both ways.
fn all_orders(count: usize, ranks: usize) -> Option<Vec<Vec<u32>>> {
    // count! / (count - ranks)! / ranks rings.
    let rings = (count - ranks + 1..=count).try_fold(1_usize, |rings, n| {
        rings.checked_mul(n).filter(|&rings| rings <= EXACT_MAX * ranks * 4)
    })? / ranks;
    if rings > EXACT_MAX * 2 {
        return None;
    }
    let mut orders = Vec::with_capacity(rings);
    for first in 0..count as u32 {
        extend(&mut vec![first], count as u32, ranks, &mut orders);
    }
    Some(orders)
}

/// Orders that begin so; the first is the lowest of its ring.
fn extend(order: &mut Vec<u32>, count: u32, ranks: usize, orders: &mut Vec<Vec<u32>>) {
    if order.len() == ranks {
        orders.push(order.clone());
        return;
    }
    for next in order[0] + 1..count {
        if !order.contains(&next) {
            order.push(next);
            extend(order, count, ranks, orders);
            order.pop();
        }
    }
}

/// Exchanges two ranks, or a rank's GPU for a free one, as long as that helps: all orders that were
/// looked at.
fn exchanges(
    own: &[u32],
    count: usize,
    quick: &(dyn Fn(&Vec<u32>) -> Result<f64> + Sync),
) -> Result<Vec<Vec<u32>>> {
    let mut seen = vec![own.to_vec()];
    let (mut here, mut us) = (own.to_vec(), quick(&own.to_vec())?);
    loop {
        let mut near: Vec<Vec<u32>> = Vec::new();
        for a in 0..here.len() {
            for b in a + 1..here.len() {
                let mut other = here.clone();
                other.swap(a, b);
                near.push(other);
            }
            for gpu in (0..count as u32).filter(|gpu| !here.contains(gpu)) {
                let mut other = here.clone();
                other[a] = gpu;
                near.push(other);
            }
        }
        let times = in_parallel(&near, quick)?;
        let best = times.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1)).map(|(at, _)| at);
        seen.extend(near.iter().cloned());
        match best {
            Some(at) if times[at] < us * (1.0 - 1e-9) => {
                here.clone_from(&near[at]);
                us = times[at];
            }
            _ => return Ok(seen),
        }
    }
}

/// The fastest and the second of these cases at each size.
///
/// # Errors
/// Those of the engine.
pub fn winners(
    machine: &Machine,
    cases: &[Case],
    sizes: &[u64],
    options: &CaseOptions,
) -> Result<Vec<Winner>> {
    let jobs: Vec<(usize, usize)> =
        (0..sizes.len()).rev().flat_map(|s| (0..cases.len()).map(move |c| (s, c))).collect();
    let times =
        in_parallel(&jobs, |&(size, case)| cases[case].nominal_us(machine, sizes[size], options))?;
    let mut winners: Vec<Winner> = Vec::new();
    for (size, times) in sizes.iter().rev().zip(times.chunks(cases.len().max(1))) {
        let mut order: Vec<usize> = (0..cases.len()).collect();
        order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
        let told = |at: usize| (cases[at].title_at(*size, options), times[at]);
        let second = order.get(1).map(|&at| told(at));
        winners.push(Winner { bytes: *size, best: told(order[0]), second });
    }
    winners.reverse();
    Ok(winners)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ring_is_tried_once() {
        // 4 of 5 GPUs: 5 choices of 3! rings each.
        let orders = all_orders(5, 4).expect("few");
        assert_eq!(orders.len(), 30);
        let mut sorted = orders.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), 30);
        // 7! rings of 8 GPUs are tried, 15! of 16 are not.
        assert_eq!(all_orders(8, 8).map(|orders| orders.len()), Some(5040));
        assert_eq!(all_orders(16, 16), None);
    }
}
