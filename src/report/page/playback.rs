//! A call to play: what each link and each rank does, moment by moment.

use serde::Serialize;

use crate::fabric::Fabric;
use crate::report::number::short;
use crate::report::plot::timeline::Doing;
use crate::sweep::study::RecordedCall;
use crate::units::format_thousands;

/// Moments of a call.
const MOMENTS: usize = 120;

/// What happens at each moment.
#[derive(Clone, Debug, Serialize)]
pub struct Playback {
    /// What plays.
    pub title: String,
    /// Time of each moment from the start of the call, us.
    pub times: Vec<String>,
    /// By directed link: its label, percent of the time that it sends, and packets that wait for it;
    /// nothing for a link that does neither.
    pub links: Vec<Option<LinkMoments>>,
    /// By GPU: which of [`Playback::doings`] its first block does.
    pub ranks: Vec<RankMoments>,
    /// Words.
    pub doings: Vec<&'static str>,
}

/// A link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkMoments {
    /// Its label.
    pub label: String,
    /// Percent.
    pub busy: Vec<u32>,
    /// Packets.
    pub queue: Vec<u32>,
}

/// A rank.
#[derive(Clone, Debug, Serialize)]
pub struct RankMoments {
    /// Its GPU.
    pub gpu: u32,
    /// Index of a word; one past the last for nothing.
    pub does: Vec<usize>,
}

impl Playback {
    /// Of a recorded call.
    pub fn of(call: &RecordedCall, fabric: &Fabric) -> Playback {
        let span = (call.end - call.start).as_ps();
        let moments = (MOMENTS as u64).min(span.max(1));
        let at = |moment: u64| call.start.as_ps() + span * moment / moments;
        let step = call.timeline.interval.as_ps();
        let links = (0..fabric.links.len()).map(|link| {
            let mean = |moment: u64, of: &dyn Fn(usize) -> f64| {
                let (from, to) =
                    (at(moment) / step, (at(moment + 1) / step).max(at(moment) / step + 1));
                let sum: f64 = (from..to).map(|index| of(index as usize)).sum();
                (sum / (to - from) as f64).round() as u32
            };
            let busy = |index| 100.0 * call.timeline.utilization(link, index);
            let depth = |index| call.timeline.depth(link, index);
            let busy: Vec<u32> = (0..moments).map(|moment| mean(moment, &busy)).collect();
            let queue: Vec<u32> = (0..moments).map(|moment| mean(moment, &depth)).collect();
            let idle = busy.iter().chain(&queue).all(|value| *value == 0);
            (!idle).then(|| LinkMoments { label: fabric.links[link].label.clone(), busy, queue })
        });
        let links = links.collect();
        let times =
            (0..moments).map(|moment| short((at(moment) - call.start.as_ps()) as f64 / 1e6));
        let ranks = (0..call.schedule.ranks.len()).map(|rank| RankMoments {
            gpu: call.schedule.ranks[rank].gpu,
            does: (0..moments).map(|moment| does(call, rank, at(moment))).collect(),
        });
        Playback {
            title: format!("{} of {} B", call.title, format_thousands(call.bytes)),
            times: times.collect(),
            links,
            ranks: ranks.collect(),
            doings: Doing::ALL.iter().map(|entry| entry.1).collect(),
        }
    }
}

/// What the first block of a rank does at a time.
fn does(call: &RecordedCall, rank: usize, ps: u64) -> usize {
    let none = Doing::ALL.len();
    let track = call.timeline.blocks.iter().find(|track| track.rank as usize == rank);
    let Some(track) = track else { return none };
    let ops = &call.schedule.ranks[rank].blocks[track.block as usize].ops;
    let next = track.operations.partition_point(|one| one.start.as_ps() <= ps);
    let Some(one) = next.checked_sub(1).map(|index| track.operations[index]) else { return none };
    if one.end.as_ps() <= ps {
        return none;
    }
    let doing = Doing::of(&ops[one.position as usize]);
    Doing::ALL.iter().position(|entry| entry.0 == doing).unwrap_or(none)
}
