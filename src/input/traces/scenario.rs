//! Calls of traces -> a scenario: kinds of calls with their number in a step, and when ranks came.

use std::collections::BTreeMap;

use super::super::scenario_json::sound;
use super::summary::kinds;
use super::{Call, Trace, names};
use crate::error::{Error, Result};
use crate::statistics::median;
use crate::workload::{Arrival, CALLS_MAX, Collective, ElementType, Scenario, Step};

/// What a person states of calls that the trace does not tell.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// Name of the scenario.
    pub name: String,
    /// Bytes of calls without a size.
    pub bytes: Option<u64>,
    /// Ranks.
    pub ranks: Option<u32>,
    /// Steps in the trace.
    pub steps: Option<u32>,
}

/// Calls of which arrival times are kept, for each kind.
const ARRIVALS_MAX: usize = 128;
/// A pause this many times the usual one starts a step.
const STEP_PAUSE: f64 = 20.0;

/// Equal calls.
type Key = (Collective, u64, ElementType);

/// Joins the traces of one or several ranks into a scenario; also what was found, in sentences.
///
/// # Errors
/// [`Error::Request`] when there is no call, or when sizes or the number of ranks are not known.
pub fn import(traces: Vec<Trace>, stated: &Import) -> Result<(Scenario, Vec<String>)> {
    let mut all = Trace::joined(traces);
    let mut notes = std::mem::take(&mut all.facts);
    notes.append(&mut all.warnings);
    let left_out = std::mem::take(&mut all.left_out);
    notes.extend(left_out.iter().map(|(what, count)| format!("left out: {count} {what}")));
    if all.calls.is_empty() {
        return Err(Error::request(
            format!("there is no collective call in {}", all.sources.join(", ")),
            match notes.first() {
                Some(_) => format!("it says: {}", notes.join("; ")),
                None => "was the profiler on while the model ran, and on the GPU?".to_owned(),
            },
        ));
    }
    let group = usual_group(&mut all, &mut notes);
    let ranks = ranks(&all, group, stated)?;
    let by_rank = by_rank(&all.calls);
    let first = by_rank.values().next().cloned().unwrap_or_default();
    let mut steps = steps(&first, &by_rank, stated, &mut notes)?;
    readable_arrivals(&mut steps, ranks, &mut notes);
    let scenario = Scenario {
        schema: Some("scenario.schema.json".to_owned()),
        schema_version: 1,
        name: stated.name.clone(),
        title: format!("{} calls of {ranks} ranks", first.len()),
        sources: all.sources,
        tensor_parallel: ranks,
        model: None,
        steps,
        beside: Vec::new(),
        reported_on: None,
        reported: Vec::new(),
    };
    sound(&scenario)?;
    notes.extend(waiting(&by_rank));
    Ok((scenario, notes))
}

/// Keeps the calls of the group of ranks that makes most of them.
fn usual_group(all: &mut Trace, notes: &mut Vec<String>) -> Option<u32> {
    let mut groups: BTreeMap<u32, usize> = BTreeMap::new();
    for ranks in all.calls.iter().filter_map(|call| call.ranks) {
        *groups.entry(ranks).or_insert(0) += 1;
    }
    let (&most, _) = groups.iter().max_by_key(|entry| *entry.1)?;
    for (ranks, calls) in groups.iter().filter(|entry| *entry.0 != most) {
        notes.push(format!("{calls} calls of {ranks} ranks are left out: {most} ranks make most"));
    }
    all.calls.retain(|call| call.ranks.is_none_or(|ranks| ranks == most));
    Some(most)
}

fn ranks(all: &Trace, group: Option<u32>, stated: &Import) -> Result<u32> {
    let seen = by_rank(&all.calls).len() as u32;
    let known = stated.ranks.or(group).or(all.ranks).or((seen > 1).then_some(seen));
    known.ok_or_else(|| {
        Error::request(
            "the trace does not say how many ranks take part",
            "state it, such as --ranks 8",
        )
    })
}

/// Calls of each rank, in the order of their time, or of the file.
pub(super) fn by_rank(calls: &[Call]) -> BTreeMap<u64, Vec<Call>> {
    let mut ranks: BTreeMap<u64, Vec<Call>> = BTreeMap::new();
    for call in calls {
        ranks.entry(call.rank).or_default().push(call.clone());
    }
    for calls in ranks.values_mut() {
        calls.sort_by(|a, b| {
            let time = |call: &Call| call.start_us.unwrap_or(0.0);
            time(a).total_cmp(&time(b))
        });
    }
    ranks
}

fn key(call: &Call, stated: &Import) -> Option<Key> {
    let element = names::element(&call.dtype).map_or(ElementType::Bf16, |element| element.1);
    Some((call.collective, call.bytes.or(stated.bytes).filter(|bytes| *bytes > 0)?, element))
}

/// Kinds of calls with their number in a step.
fn steps(
    calls: &[Call],
    by_rank: &BTreeMap<u64, Vec<Call>>,
    stated: &Import,
    notes: &mut Vec<String>,
) -> Result<Vec<Step>> {
    let parts = parts(calls, stated, notes);
    let mut kinds: Vec<(Key, Vec<u32>)> = Vec::new();
    let mut lost = 0;
    for part in &parts {
        let mut counts: BTreeMap<Key, u32> = BTreeMap::new();
        for call in *part {
            match key(call, stated) {
                Some(key) => *counts.entry(key).or_insert(0) += 1,
                None => lost += 1,
            }
        }
        for (key, count) in counts {
            match kinds.iter_mut().find(|kind| kind.0 == key) {
                Some(kind) => kind.1.push(count),
                None => kinds.push((key, vec![count])),
            }
        }
    }
    if kinds.is_empty() {
        return Err(Error::request(
            format!("{lost} calls, and the size of none is known"),
            "kernels have no sizes: state them, such as --bytes 14336",
        ));
    }
    if lost > 0 {
        notes.push(format!("{lost} calls without a size are left out; --bytes states it"));
    }
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.1.iter().sum::<u32>()));
    let split = stated.steps.filter(|_| parts.len() == 1).unwrap_or(1).max(1);
    let steps = kinds.iter().map(|(key, counts)| {
        let usual = usual(counts);
        let other = counts.iter().filter(|count| **count != usual).count();
        if other > 0 {
            notes.push(format!(
                "{} steps of {} have another number of calls than {usual}",
                other,
                name(*key)
            ));
        }
        Step {
            name: name(*key),
            calls: (usual / split).clamp(1, CALLS_MAX),
            bytes: key.1,
            collective: key.0,
            dtype: key.2,
            arrival: arrival(by_rank, *key, stated),
        }
    });
    Ok(steps.collect())
}

fn name((collective, bytes, element): Key) -> String {
    format!("{}-{bytes}-{}", collective.name(), element.name())
}

/// The most common number; of equally common ones the largest.
fn usual(counts: &[u32]) -> u32 {
    let often = |count: u32| counts.iter().filter(|other| **other == count).count();
    counts.iter().copied().max_by_key(|&count| (often(count), count)).unwrap_or(1)
}

/// The calls of each step: pauses much longer than the usual one divide them.
fn parts<'a>(calls: &'a [Call], stated: &Import, notes: &mut Vec<String>) -> Vec<&'a [Call]> {
    let gap = |pair: &[Call]| {
        Some(pair[1].start_us? - pair[0].start_us? - pair[0].duration_us.unwrap_or(0.0))
    };
    let gaps: Vec<f64> = calls.windows(2).filter_map(gap).filter(|gap| gap.is_finite()).collect();
    if stated.steps.is_some() || gaps.len() < 2 || gaps.len() + 1 < calls.len() {
        if stated.steps.is_none() {
            notes.push(
                "where steps begin is not known: all calls count as one; --steps N divides them"
                    .to_owned(),
            );
        }
        return vec![calls];
    }
    let usual = median(gaps).max(1.0);
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, pair) in calls.windows(2).enumerate() {
        if gap(pair).is_some_and(|gap| gap > STEP_PAUSE * usual) {
            parts.push(&calls[from..=at]);
            from = at + 1;
        }
    }
    parts.push(&calls[from..]);
    if parts.len() > 1 {
        notes.push(format!(
            "{} steps, divided where the pause is over {STEP_PAUSE} times the usual {usual:.0} us",
            parts.len()
        ));
    }
    parts
}

/// What each rank computed before each call of a kind: its start less the end of the call before.
fn arrival(by_rank: &BTreeMap<u64, Vec<Call>>, wanted: Key, stated: &Import) -> Option<Arrival> {
    if by_rank.len() < 2 {
        return None;
    }
    let of_rank = |calls: &Vec<Call>| -> Option<Vec<f64>> {
        let mut gaps = Vec::new();
        let mut end: Option<f64> = None;
        for call in calls {
            let (start, duration) = (call.start_us?, call.duration_us?);
            if key(call, stated) == Some(wanted) && gaps.len() < ARRIVALS_MAX {
                gaps.push(end.map_or(0.0, |end| (start - end).max(0.0)));
            }
            end = Some(start + duration);
        }
        Some(gaps)
    };
    let ranks: Vec<Vec<f64>> = by_rank.values().map(of_rank).collect::<Option<_>>()?;
    let calls = ranks.iter().map(Vec::len).min().filter(|calls| *calls > 0)?;
    let of_call = |call: usize| ranks.iter().map(|gaps| (gaps[call] * 1e3).round() / 1e3).collect();
    Some(Arrival::ListedUs((0..calls).map(of_call).collect()))
}

/// Leaves out arrivals that a scenario of so many ranks cannot have, such as those of some ranks only.
fn readable_arrivals(steps: &mut [Step], ranks: u32, notes: &mut Vec<String>) {
    for step in steps {
        if let Some(fault) = step.arrival.as_ref().and_then(|arrival| arrival.fault(ranks)) {
            step.arrival = None;
            let name = &step.name;
            notes.push(format!("when ranks come to {name} is left out, since {fault}"));
        }
    }
}

/// Of each call the shortest stay of a rank is its moving; the rest of the others is waiting.
fn waiting(by_rank: &BTreeMap<u64, Vec<Call>>) -> Option<String> {
    let (mut calls, mut moving, mut waiting) = (0.0, 0.0, 0.0);
    for kind in kinds(by_rank) {
        let (Some(moves), Some(waits)) = (kind.moving_us, kind.waiting_us) else { continue };
        let count = kind.calls[1] as f64;
        calls += count;
        moving += count * moves;
        waiting += count * waits;
    }
    let (moving, waiting) = (moving / calls, waiting / calls);
    (calls > 0.0).then(|| {
        format!(
            "a call takes {:.1} us of a rank on average: {moving:.1} moving (its shortest stay), {waiting:.1} \
             waiting for the last rank",
            moving + waiting
        )
    })
}
