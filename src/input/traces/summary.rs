//! Calls of traces by kind: how many, how long, after what pause, and how much of it was waiting.

use std::collections::BTreeMap;

use serde::Serialize;

use super::scenario::by_rank;
use super::{Call, Trace};
use crate::statistics::{median, quantile};
use crate::workload::Collective;

/// What traces say of the calls that were made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// What was read, in words.
    pub sources: Vec<String>,
    /// Ranks, or processes, that the calls are of.
    pub seen: Vec<u64>,
    /// Ranks that take part, where the traces tell it for all calls.
    pub ranks: Option<u32>,
    /// Calls of all of them.
    pub calls: usize,
    /// From the start of a rank's first call to the end of its last, us; the longest of all ranks.
    pub span_us: Option<f64>,
    /// In the order in which each first comes.
    pub kinds: Vec<Kind>,
    /// Circumstances, such as versions, transports and choices.
    pub facts: Vec<String>,
    /// What is odd or lost.
    pub warnings: Vec<String>,
    /// What was not taken for a call, and how often.
    pub left_out: BTreeMap<String, u64>,
}

/// Calls that are alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kind {
    /// What they compute.
    pub collective: Collective,
    /// Bytes as nccl-tests counts them, where the trace tells the size.
    pub bytes: Option<u64>,
    /// Type of the elements as the trace calls it; may be empty.
    pub dtype: String,
    /// Ranks that take part, where the trace tells it.
    pub ranks: Option<u32>,
    /// The kernel, or the choice of algorithm and protocol; may be empty.
    pub by: String,
    /// Fewest and most calls of a rank.
    pub calls: [usize; 2],
    /// A rank's stay in a call, us, waiting included.
    pub stay_us: Option<Spread>,
    /// From the end of a rank's call before to the start of this one, us: what it computed.
    pub pause_us: Option<Spread>,
    /// What a call takes without waiting, us: its shortest stay of any rank, mean over the calls.
    pub moving_us: Option<f64>,
    /// What a rank waits in a call for the last one, us: mean stay less moving.
    pub waiting_us: Option<f64>,
    /// Time of a rank in all these calls, us, mean over ranks.
    pub total_us: Option<f64>,
}

/// Where figures lie.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// A tenth lies below.
    pub low: f64,
    /// A tenth lies above.
    pub high: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Option<Spread> {
        let at = |share| quantile(values.iter().copied(), share);
        let spread = Spread { median: median(values.iter().copied()), low: at(0.1), high: at(0.9) };
        (!values.is_empty()).then_some(spread)
    }
}

/// What makes calls alike.
type Alike<'a> = (Collective, Option<u64>, &'a str, Option<u32>, &'a str);

fn alike(call: &Call) -> Alike<'_> {
    (call.collective, call.bytes, &call.dtype, call.ranks, &call.by)
}

/// What a rank did in calls of one kind: its stays, and its pauses before them.
#[derive(Default)]
struct OfRank {
    calls: usize,
    stays: Vec<f64>,
    pauses: Vec<f64>,
}

/// Groups the calls of one or several traces; of several ranks that were traced apart, theirs together.
pub fn summary(traces: Vec<Trace>) -> Summary {
    let all = Trace::joined(traces);
    let ranks = by_rank(&all.calls);
    let kinds = kinds(&ranks);
    let span = |calls: &Vec<Call>| {
        let end = |call: &Call| Some(call.start_us? + call.duration_us.unwrap_or(0.0));
        let ends: Option<Vec<f64>> = calls.iter().map(end).collect();
        let last = ends?.into_iter().reduce(f64::max)?;
        Some(last - calls.first()?.start_us?)
    };
    Summary {
        seen: ranks.keys().copied().collect(),
        ranks: all.ranks,
        calls: all.calls.len(),
        span_us: ranks.values().filter_map(span).reduce(f64::max).filter(|_| !all.apart),
        kinds,
        sources: all.sources,
        facts: all.facts,
        warnings: all.warnings,
        left_out: all.left_out,
    }
}

/// Every call of one or several traces, rank by rank, in the order of its time.
pub fn in_order(traces: Vec<Trace>) -> Vec<Call> {
    by_rank(&Trace::joined(traces).calls).into_values().flatten().collect()
}

/// Kinds of the calls of each rank.
pub(super) fn kinds(ranks: &BTreeMap<u64, Vec<Call>>) -> Vec<Kind> {
    let mut order: Vec<Alike> = Vec::new();
    let mut found: BTreeMap<Alike, BTreeMap<u64, OfRank>> = BTreeMap::new();
    for (rank, calls) in ranks {
        let mut end: Option<f64> = None;
        for call in calls {
            let kind = alike(call);
            let of_kind = found.entry(kind).or_insert_with(|| {
                order.push(kind);
                BTreeMap::new()
            });
            let own = of_kind.entry(*rank).or_default();
            own.calls += 1;
            own.stays.extend(call.duration_us);
            let pause = call.start_us.zip(end).map(|(start, end)| (start - end).max(0.0));
            own.pauses.extend(pause);
            end = call.start_us.zip(call.duration_us).map(|(start, stay)| start + stay);
        }
    }
    order.iter().map(|key| kind(*key, &found[key], ranks.len())).collect()
}

fn kind(key: Alike, ranks: &BTreeMap<u64, OfRank>, seen: usize) -> Kind {
    let (collective, bytes, dtype, group, by) = key;
    let counts = ranks.values().map(|rank| rank.calls);
    // A rank without such a call is one with none.
    let fewest = if ranks.len() < seen { 0 } else { counts.clone().min().unwrap_or(0) };
    let most = counts.max().unwrap_or(0);
    let all = |of: fn(&OfRank) -> &Vec<f64>| -> Vec<f64> {
        ranks.values().flat_map(|rank| of(rank).iter().copied()).collect()
    };
    let stays = all(|rank| &rank.stays);
    let moving = moving(ranks, fewest == most, group);
    let mean = stays.iter().sum::<f64>() / stays.len().max(1) as f64;
    Kind {
        collective,
        bytes,
        dtype: dtype.to_owned(),
        ranks: group,
        by: by.to_owned(),
        calls: [fewest, most],
        stay_us: Spread::of(&stays),
        pause_us: Spread::of(&all(|rank| &rank.pauses)),
        moving_us: moving,
        waiting_us: moving.map(|moving| mean - moving),
        total_us: (!stays.is_empty()).then(|| stays.iter().sum::<f64>() / ranks.len() as f64),
    }
}

/// Mean of the shortest stays of each call, where all ranks made the same calls and tell all stays. Of
/// more ranks than take part, several groups were traced, and nobody says whose calls belong together.
fn moving(ranks: &BTreeMap<u64, OfRank>, same: bool, group: Option<u32>) -> Option<f64> {
    let calls = ranks.values().next()?.calls;
    let one_group = group.is_none_or(|group| ranks.len() <= group as usize);
    let told = ranks.values().all(|rank| rank.stays.len() == calls);
    if ranks.len() < 2 || !same || !one_group || !told {
        return None;
    }
    let shortest =
        |call: usize| ranks.values().map(|rank| rank.stays[call]).fold(f64::INFINITY, f64::min);
    Some((0..calls).map(shortest).sum::<f64>() / calls as f64)
}
