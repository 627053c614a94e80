//! A recorded run as a trace for Perfetto or Chrome: tracks of ranks and blocks, tracks of link
//! directions, flows from a store to who waited for it, counters of links.
//!
//! All calls of a run have a box on the track of their rank; operations and flows are told of the
//! first [`DETAILED`] calls only, since the others repeat and a file has to stay small. Boxes of one
//! track never overlap.

mod chrome;
mod perfetto;
pub mod protobuf;

pub use chrome::chrome;
pub use perfetto::perfetto;

use std::collections::BTreeMap;

use crate::engine::{Outcome, Timeline};
use crate::fabric::{EndpointId, Fabric};
use crate::schedule::messages::Part;
use crate::schedule::{Collective, Op, Schedule};
use crate::units::Time;

/// Calls whose operations are told.
pub const DETAILED: u32 = 4;
/// Most intervals of a link's counters.
const INTERVALS_MAX: usize = 384;

/// A trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What ran.
    pub title: String,
    /// What the calls compute; nothing of probes.
    pub collective: Option<Collective>,
    /// Bytes of a call as nccl-tests counts them.
    pub bytes: u64,
    /// Algorithm and protocol.
    pub by: String,
    /// Ranks, then links.
    pub processes: Vec<Process>,
}

/// Tracks that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// Boxes.
    pub tracks: Vec<Track>,
    /// Curves.
    pub counters: Vec<Counter>,
}

/// A row of boxes that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// Its name.
    pub name: String,
    /// In order of time.
    pub slices: Vec<Slice>,
}

/// A box.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// What is done.
    pub name: String,
    /// From when.
    pub start: Time,
    /// Until when.
    pub end: Time,
    /// Figures: name and value.
    pub figures: Vec<(&'static str, f64)>,
    /// Flows that leave it.
    pub sends: Vec<u64>,
    /// Flows that end in it.
    pub receives: Vec<u64>,
}

/// A curve that stays at each value until the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Counter {
    /// Its name.
    pub name: String,
    /// Of the values.
    pub unit: &'static str,
    /// Where it changes.
    pub points: Vec<(Time, f64)>,
}

impl Trace {
    /// Of a recorded run.
    pub fn of(
        fabric: &Fabric,
        schedule: &Schedule,
        outcome: &Outcome,
        timeline: &Timeline,
    ) -> Trace {
        let calls = outcome.call_ends.len();
        let title = format!("{} of {} B, {calls} calls", schedule.name, schedule.bytes);
        let mut processes = ranks(fabric, schedule, outcome, timeline);
        let coarse = timeline.clone().coarsened(INTERVALS_MAX);
        processes.push(links(fabric, &coarse));
        Trace {
            title,
            collective: schedule.collective,
            bytes: schedule.bytes,
            by: schedule.name.clone(),
            processes,
        }
    }
}

/// A process for each rank: its calls, then its blocks.
fn ranks(
    fabric: &Fabric,
    schedule: &Schedule,
    outcome: &Outcome,
    timeline: &Timeline,
) -> Vec<Process> {
    let flows = Flows::of(schedule, timeline);
    let mut processes = Vec::new();
    for (rank, program) in schedule.ranks.iter().enumerate() {
        let mut before = Time::ZERO;
        let mut calls = Vec::new();
        for (call, ends) in outcome.call_ends.iter().enumerate() {
            let name = format!("call {call}");
            calls.push(Slice::new(name, before, ends[rank]));
            before = ends[rank];
        }
        let mut tracks = vec![Track { name: "calls".to_owned(), slices: calls }];
        for (index, track) in timeline.blocks.iter().enumerate() {
            if track.rank as usize == rank {
                let slices = flows.slices(fabric, schedule, timeline, index);
                tracks.push(Track { name: format!("block {}", track.block), slices });
            }
        }
        let name = format!("rank {rank} ({})", fabric.device_name(program.gpu));
        processes.push(Process { name, tracks, counters: Vec::new() });
    }
    processes
}

impl Slice {
    fn new(name: String, start: Time, end: Time) -> Slice {
        Slice { name, start, end, figures: Vec::new(), sends: Vec::new(), receives: Vec::new() }
    }
}

/// Who stores what others wait for: the number of a flow for each part of a message in a call.
struct Flows {
    numbers: BTreeMap<(u32, Part), u64>,
}

impl Flows {
    /// Flows with both ends among the operations that are told.
    fn of(schedule: &Schedule, timeline: &Timeline) -> Flows {
        let mut stored = BTreeMap::new();
        let mut awaited = BTreeMap::new();
        for track in &timeline.blocks {
            let ops = &schedule.ranks[track.rank as usize].blocks[track.block as usize].ops;
            for one in track.operations.iter().filter(|one| one.call < DETAILED) {
                let op = &ops[one.position as usize];
                for part in schedule.stored(op) {
                    stored.insert((one.call, part), one.start);
                }
                for part in schedule.awaited(op) {
                    awaited.insert((one.call, part), one.end);
                }
            }
        }
        let both =
            stored.iter().filter(|(key, start)| awaited.get(key).is_some_and(|end| end >= start));
        let numbers = both.enumerate().map(|(number, (key, _))| (*key, number as u64 + 1));
        Flows { numbers: numbers.collect() }
    }

    fn numbers(&self, call: u32, parts: &[Part]) -> Vec<u64> {
        parts.iter().filter_map(|part| self.numbers.get(&(call, *part)).copied()).collect()
    }

    /// Boxes of a block in the calls that are told; alike ones that follow each other are one.
    fn slices(
        &self,
        fabric: &Fabric,
        schedule: &Schedule,
        timeline: &Timeline,
        index: usize,
    ) -> Vec<Slice> {
        let track = &timeline.blocks[index];
        let ops = &schedule.ranks[track.rank as usize].blocks[track.block as usize].ops;
        let mut slices: Vec<Slice> = Vec::new();
        for one in track.operations.iter().filter(|one| one.call < DETAILED) {
            let op = &ops[one.position as usize];
            let name = name_of(fabric, schedule, op);
            let sends = self.numbers(one.call, &schedule.stored(op));
            let receives = self.numbers(one.call, &schedule.awaited(op));
            let tied = !sends.is_empty() || !receives.is_empty();
            match slices.last_mut() {
                Some(last) if !tied && last.end == one.start && last.name == name => {
                    last.end = one.end;
                }
                _ => {
                    let slice = Slice::new(name, one.start, one.end);
                    slices.push(Slice { sends, receives, ..slice });
                }
            }
        }
        slices
    }
}

/// An operation in a few words.
fn name_of(fabric: &Fabric, schedule: &Schedule, op: &Op) -> String {
    let memory = |home: EndpointId| {
        if fabric.is_gpu(home) {
            format!("GPU {home}")
        } else {
            format!("host memory {}", home as usize - fabric.gpu_count)
        }
    };
    let buffer = |buffer: u32| memory(schedule.buffers[buffer as usize].home);
    let from = |message: u32| format!("rank {}", schedule.messages[message as usize].from);
    let to = |message: u32| format!("rank {}", schedule.messages[message as usize].to);
    match *op {
        Op::KernelStart(_) => "kernel start".to_owned(),
        Op::Delay(_) => "kernel".to_owned(),
        Op::HostTurn(_) => "host thread".to_owned(),
        Op::Load { buffer: at, .. } => format!("load from {}", buffer(at)),
        Op::WaitLoads => "wait for loads".to_owned(),
        Op::Write { buffer: at, .. } | Op::Move { to: at, .. } => {
            format!("store to {}", buffer(at))
        }
        Op::Send { message, .. } => format!("send to {}", to(message)),
        Op::Poll { message, .. } => format!("wait for data of {}", from(message)),
        Op::PollEach { .. } => "wait for data of others".to_owned(),
        Op::Flag(message) => format!("flag to {}", to(message)),
        Op::Post { message, .. } => format!("post to {}", to(message)),
        Op::WaitPosts => "wait for posts".to_owned(),
        Op::PollStep(message) => format!("wait for step of {}", from(message)),
        Op::PollFlag { message, .. } => format!("wait for flag of {}", from(message)),
        Op::PollCredit(message) => format!("wait for credit of {}", from(message)),
        Op::SignalPeers { .. } => "barrier: flags to all".to_owned(),
        Op::AtomicPeers { .. } => "barrier: atomics to all".to_owned(),
        Op::FlagAll { .. } => "barrier: flag by the switch".to_owned(),
        Op::PollPeers { .. } => "barrier: wait for all".to_owned(),
        Op::Fence => "fence".to_owned(),
        Op::BlockBarrier => "block barrier".to_owned(),
        Op::LoadReduce { .. } => "load sums of the switch".to_owned(),
        Op::WriteAll { .. } => "store to all by the switch".to_owned(),
        Op::SendAll { .. } => "send to all by the switch".to_owned(),
        Op::Copy { from, to, .. } => format!("copy from {} to {}", buffer(from), buffer(to)),
    }
}

/// A track and counters for each direction of a link that sends.
fn links(fabric: &Fabric, timeline: &Timeline) -> Process {
    let mut process =
        Process { name: "links".to_owned(), tracks: Vec::new(), counters: Vec::new() };
    for (link, intervals) in timeline.links.iter().enumerate() {
        if intervals.iter().all(|interval| interval.busy == Time::ZERO) {
            continue;
        }
        let directed = &fabric.links[link];
        let room: u32 = directed.buffer.iter().fold(0, |sum, class| sum.saturating_add(*class));
        let length = timeline.interval.as_ps() as f64;
        let held = |at: usize| intervals.get(at).map_or(0.0, |one| one.held as f64 / length);
        let label = &directed.label;
        process.tracks.push(Track { name: label.clone(), slices: busy(timeline, link) });
        process.counters.push(curve(timeline, format!("{label} sends"), "%", |at| {
            timeline.utilization(link, at) * 100.0
        }));
        let depth = |at| timeline.depth(link, at);
        process.counters.push(curve(timeline, format!("{label} queue"), "packets", depth));
        let credits = |at| 100.0 * (1.0 - held(at) / f64::from(room.max(1)));
        process.counters.push(curve(timeline, format!("{label} credits"), "%", credits));
    }
    process.counters.retain(|counter| counter.points.len() > 1);
    process
}

/// Boxes of a link: intervals in a row in which it sends, with how long it does.
fn busy(timeline: &Timeline, link: usize) -> Vec<Slice> {
    let intervals = &timeline.links[link];
    let mut slices = Vec::new();
    let mut at = 0;
    while at < intervals.len() {
        let run = intervals[at..].iter().take_while(|one| one.busy > Time::ZERO).count();
        if run == 0 {
            at += 1;
            continue;
        }
        let own = &intervals[at..at + run];
        let busy: Time = own.iter().map(|one| one.busy).sum();
        let waiting: Time = own.iter().map(|one| one.waiting).sum();
        let payload: u64 = own.iter().map(|one| one.payload).sum();
        let start = timeline.interval * at as u64;
        let slice = Slice::new("sends".to_owned(), start, start + timeline.interval * run as u64);
        let figures = vec![
            ("busy_ns", busy.as_ns()),
            ("waiting_ns", waiting.as_ns()),
            ("payload_bytes", payload as f64),
        ];
        slices.push(Slice { figures, ..slice });
        at += run;
    }
    slices
}

/// A counter, told where it changes, to three digits after the point.
fn curve(
    timeline: &Timeline,
    name: String,
    unit: &'static str,
    value: impl Fn(usize) -> f64,
) -> Counter {
    let mut points: Vec<(Time, f64)> = Vec::new();
    for at in 0..timeline.interval_count() {
        let value = (value(at) * 1e3).round() / 1e3;
        if points.last().is_none_or(|last| last.1 != value) {
            points.push((timeline.interval * at as u64, value));
        }
    }
    Counter { name, unit, points }
}
