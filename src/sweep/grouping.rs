//! Which ranks belong together: islands for schedules that go by islands, and GPUs for several groups
//! of ranks, such as two of TP 4.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::Serialize;

use super::in_parallel;
use super::plan::{fastest, some_left};
use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::prediction::cases::cases;
use crate::prediction::{Case, CaseOptions, Choice, Machine};
use crate::schedule::Collective;

/// Groups of ranks or GPUs, and what a call takes with them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grouped {
    /// The groups, each in order, by their first.
    pub groups: Vec<Vec<u32>>,
    /// A call, us: of all ranks by islands, of the slowest group for groups that call by themselves.
    pub us: f64,
    /// By which implementation.
    pub by: String,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Groups {
    /// As the paths say, or GPUs in their own order.
    pub own: Grouped,
    /// The best of all that were tried.
    pub best: Grouped,
    /// The worst of them.
    pub worst: Grouped,
    /// How many ways to group were tried.
    pub tried: usize,
    /// All groupings were tried; otherwise exchanges between two groups, from the own ones on, until
    /// none helps.
    pub exact: bool,
}

/// Ways to group that are tried one by one at most.
const EXACT_MAX: usize = 600;

/// The time of a call, us, and by what.
type Timed = (f64, String);
/// What groups cost.
type Cost<'a> = dyn Fn(&Vec<Vec<u32>>) -> Result<Timed> + Sync + 'a;
/// What is known of calls on some GPUs.
type Known = BTreeMap<(Vec<u32>, Fidelity), Timed>;

/// Islands of equal size for ranks on `gpus`, for calls of `bytes`: each split with the fastest
/// algorithm by islands. Nothing where no such algorithm stands on these wires. Splits are compared
/// on max-min flows; own, best and worst are told by packets.
///
/// # Errors
/// Those of the algorithms and the engine.
pub fn islands(machine: &Machine, gpus: &[u32], bytes: u64) -> Result<Option<Groups>> {
    let all = cases(Collective::AllReduce, machine, gpus)?;
    let by_islands: Vec<Case> =
        all.into_iter().filter(|case| case.algorithm.is_by_islands()).collect();
    if by_islands.is_empty() {
        return Ok(None);
    }
    let own = crate::algorithm::islands::islands(&machine.nominal.fabric, gpus);
    let cost = |islands: &Vec<Vec<u32>>, fidelity: Fidelity| {
        let options =
            CaseOptions { islands: islands.clone(), ..CaseOptions::of(gpus.to_vec(), fidelity) };
        timed(machine, &by_islands, bytes, &options)
    };
    let count = gpus.len();
    let sizes: Vec<usize> = (2..count).filter(|size| count.is_multiple_of(*size)).collect();
    let found = search(&own, count, &sizes, &|one| cost(one, Fidelity::MaxMin))?;
    told(own, found, &|one| cost(one, Fidelity::Packet)).map(Some)
}

/// GPUs for as many groups of `ranks` as there is room for, each calling by itself at the same time on
/// its own GPUs. A group is timed alone: what two groups that share a link do to each other is not in
/// it.
///
/// # Errors
/// A number of GPUs that is no multiple of `ranks`, and those of the engine.
pub fn groups(machine: &Machine, ranks: usize, bytes: u64) -> Result<Groups> {
    let count = machine.nominal.fabric.gpu_count;
    if ranks < 2 || ranks >= count || !count.is_multiple_of(ranks) {
        return Err(Error::request(
            format!("{count} GPUs are not several groups of {ranks}"),
            "name a number of ranks that divides the GPUs",
        ));
    }
    let own: Vec<Vec<u32>> =
        (0..count as u32).collect::<Vec<u32>>().chunks(ranks).map(<[u32]>::to_vec).collect();
    let known = Mutex::new(Known::new());
    let one = |gpus: &Vec<u32>, fidelity: Fidelity| -> Result<Timed> {
        let key = (gpus.clone(), fidelity);
        if let Some(found) = known.lock().ok().and_then(|known| known.get(&key).cloned()) {
            return Ok(found);
        }
        let cases = Choice::default().cases(Collective::AllReduce, machine, gpus)?;
        let options = CaseOptions::of(gpus.clone(), fidelity);
        let found = timed(machine, &cases, bytes, &options)?;
        if let Ok(mut known) = known.lock() {
            known.insert(key, found.clone());
        }
        Ok(found)
    };
    let cost = |groups: &Vec<Vec<u32>>, fidelity: Fidelity| {
        let each = groups.iter().map(|gpus| one(gpus, fidelity)).collect::<Result<Vec<_>>>()?;
        let slowest = each.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        slowest.ok_or_else(|| Error::request("there is no group", ""))
    };
    // Each set of GPUs once, all threads at a time, where all of them are wanted.
    if ways(count, ranks).is_some() {
        in_parallel(&subsets(count as u32, ranks), |gpus| one(gpus, Fidelity::MaxMin))?;
    }
    let found = search(&own, count, &[ranks], &|groups| cost(groups, Fidelity::MaxMin))?;
    told(own, found, &|groups| cost(groups, Fidelity::Packet))
}

/// The fastest of these cases, us, and what people call it.
fn timed(machine: &Machine, cases: &[Case], bytes: u64, options: &CaseOptions) -> Result<Timed> {
    let bytes = Collective::AllReduce.round_up(bytes, options.gpus.len());
    let (case, us) = some_left(fastest(machine, cases, bytes, options)?)?;
    Ok((us, case.title_at(bytes, options)))
}

/// The groupings that were looked at, with their times, and whether these are all.
struct Found {
    groupings: Vec<Vec<Vec<u32>>>,
    us: Vec<f64>,
    exact: bool,
}

fn search(own: &[Vec<u32>], count: usize, sizes: &[usize], cost: &Cost<'_>) -> Result<Found> {
    let (mut found, mut exact) = (vec![own.to_vec()], true);
    for &size in sizes {
        if ways(count, size).is_some() {
            partitions(&mut Vec::new(), &(0..count as u32).collect::<Vec<u32>>(), size, &mut found);
        } else {
            exact = false;
            let first: Vec<u32> = own.concat();
            let mut here: Vec<Vec<u32>> = first.chunks(size).map(sorted).collect();
            here.sort();
            exchange(here, cost, &mut found)?;
        }
    }
    let groupings = found;
    let us = in_parallel(&groupings, |one| Ok(cost(one)?.0))?;
    Ok(Found { groupings, us, exact })
}

fn told(own: Vec<Vec<u32>>, found: Found, cost: &Cost<'_>) -> Result<Groups> {
    let by_time = |a: &usize, b: &usize| found.us[*a].total_cmp(&found.us[*b]);
    let at = |index: Option<usize>| index.map_or(own.clone(), |at| found.groupings[at].clone());
    let best = at((0..found.us.len()).min_by(by_time));
    let worst = at((0..found.us.len()).max_by(by_time));
    let told = |groups: Vec<Vec<u32>>| {
        let (us, by) = cost(&groups)?;
        Ok::<Grouped, Error>(Grouped { groups, us, by })
    };
    let (own, best, worst) = (told(own)?, told(best)?, told(worst)?);
    // Packets may see the two otherwise than flows do: the own groups stay where they are no slower.
    let best = if own.us <= best.us { own.clone() } else { best };
    Ok(Groups { own, best, worst, tried: found.us.len(), exact: found.exact })
}

/// In how many ways `count` fall into groups of `size`, if they are few.
fn ways(count: usize, size: usize) -> Option<usize> {
    // The first of those left has (left - 1 choose size - 1) sets of companions.
    let mut ways: usize = 1;
    for left in (size..=count).rev().step_by(size) {
        let companions = (1..size).fold(1, |chosen, k| chosen * (left - k) / k);
        ways = ways.checked_mul(companions).filter(|&ways| ways <= EXACT_MAX)?;
    }
    Some(ways)
}

/// All ways to cut `left` into groups of `size`, behind those in `begun`.
fn partitions(
    begun: &mut Vec<Vec<u32>>,
    left: &[u32],
    size: usize,
    found: &mut Vec<Vec<Vec<u32>>>,
) {
    let Some((&first, others)) = left.split_first() else {
        if !found.contains(begun) {
            found.push(begun.clone());
        }
        return;
    };
    for companions in subsets(others.len() as u32, size - 1) {
        let companions: Vec<u32> = companions.iter().map(|&at| others[at as usize]).collect();
        let rest: Vec<u32> =
            others.iter().copied().filter(|rank| !companions.contains(rank)).collect();
        begun.push([vec![first], companions].concat());
        partitions(begun, &rest, size, found);
        begun.pop();
    }
}

/// All sets of `size` of the first `count` numbers, each in order.
fn subsets(count: u32, size: usize) -> Vec<Vec<u32>> {
    let mut sets: Vec<Vec<u32>> = vec![Vec::new()];
    for _ in 0..size {
        let longer = |set: &Vec<u32>| {
            let from = set.last().map_or(0, |last| last + 1);
            let set = set.clone();
            (from..count).map(move |next| [set.clone(), vec![next]].concat()).collect::<Vec<_>>()
        };
        sets = sets.iter().flat_map(longer).collect();
    }
    sets
}

/// Exchanges two ranks of different groups as long as that helps: all groupings that were looked at.
fn exchange(from: Vec<Vec<u32>>, cost: &Cost<'_>, found: &mut Vec<Vec<Vec<u32>>>) -> Result<()> {
    let (mut here, mut us) = (from.clone(), cost(&from)?.0);
    found.push(from);
    loop {
        let mut near = Vec::new();
        for a in 0..here.len() {
            for b in a + 1..here.len() {
                for i in 0..here[a].len() {
                    for j in 0..here[b].len() {
                        let mut other = here.clone();
                        (other[a][i], other[b][j]) = (here[b][j], here[a][i]);
                        let mut other: Vec<Vec<u32>> = other.iter().map(|g| sorted(g)).collect();
                        other.sort();
                        near.push(other);
                    }
                }
            }
        }
        let times = in_parallel(&near, |one| Ok(cost(one)?.0))?;
        let best = (0..near.len()).min_by(|&a, &b| times[a].total_cmp(&times[b]));
        found.extend(near.iter().cloned());
        match best {
            Some(at) if times[at] < us * (1.0 - 1e-9) => {
                here.clone_from(&near[at]);
                us = times[at];
            }
            _ => return Ok(()),
        }
    }
}

fn sorted(group: &[u32]) -> Vec<u32> {
    let mut group = group.to_vec();
    group.sort_unstable();
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_group_is_found_once() {
        // 8! / (2!^4 4!) = 105 ways into four pairs, 8! / (4!^2 2!) = 35 into two fours.
        for (size, count) in [(2, 105), (4, 35)] {
            let mut found = Vec::new();
            partitions(&mut Vec::new(), &[0, 1, 2, 3, 4, 5, 6, 7], size, &mut found);
            assert_eq!((found.len(), ways(8, size)), (count, Some(count)));
            assert!(found.iter().all(|groups| sorted(&groups.concat()).into_iter().eq(0..8)));
        }
        assert_eq!(ways(16, 8), None);
    }

    #[test]
    fn exchanges_end_where_none_helps() {
        // Evens belong together: so many as do not are the cost.
        let cost = |groups: &Vec<Vec<u32>>| {
            let odd = |group: &Vec<u32>| group.iter().filter(|rank| *rank % 2 == 1).count();
            Ok((
                groups.iter().map(|g| odd(g).min(g.len() - odd(g))).sum::<usize>() as f64,
                String::new(),
            ))
        };
        let mut found = Vec::new();
        exchange(vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]], &cost, &mut found).expect("no fault");
        assert!(found.contains(&vec![vec![0, 2, 4, 6], vec![1, 3, 5, 7]]));
    }
}
