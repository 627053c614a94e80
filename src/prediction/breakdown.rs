//! What the time of a call is made of, along the chain of operations that ends it.
//!
//! From the block that ends last the chain is followed back: through a block's own operations, and
//! from a wait to the block that stored what was waited for. Every piece of time on it is given to
//! one part, so that the parts add up to the call. A block is followed by its first warp.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::timeline::{BlockTrack, Operation};
use crate::engine::{Outcome, Timeline};
use crate::fabric::{EndpointId, Fabric};
use crate::schedule::messages::Part as MessagePart;
use crate::schedule::{Executor, Op, Schedule, WARP_BYTES};
use crate::units::Time;

/// A part of a call's time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The kernel's start.
    Launch,
    /// Flags that all ranks exchange, with their way over the wires.
    Barrier,
    /// Data on idle wires: latency of links and switches, and sending one piece.
    Wire,
    /// What the wires take beyond that: waiting for others, and for one's own earlier bytes.
    Queueing,
    /// GPUs and host memories: issuing, completing, local memory, the kernel's own work.
    Endpoint,
    /// Seeing that data or a flag is there.
    Poll,
}

impl Part {
    /// All, in the order in which they are shown, with a word for each.
    pub const ALL: [(Part, &'static str); 6] = [
        (Part::Launch, "launch"),
        (Part::Barrier, "barrier"),
        (Part::Wire, "wire"),
        (Part::Queueing, "queueing"),
        (Part::Endpoint, "endpoint"),
        (Part::Poll, "poll"),
    ];
}

/// Time of each part, in the order of [`Part::ALL`].
pub type Parts = [Time; Part::ALL.len()];

/// A call that was recorded.
pub struct Recorded<'a> {
    /// The machine.
    pub fabric: &'a Fabric,
    /// What the ranks did.
    pub schedule: &'a Schedule,
    /// What happened.
    pub outcome: &'a Outcome,
    /// When.
    pub timeline: &'a Timeline,
}

/// Takes the last call of a run apart.
pub fn breakdown(recorded: &Recorded<'_>) -> Parts {
    let call = recorded.outcome.call_ends.len() - 1;
    let before = call.checked_sub(1).map_or(Time::ZERO, |before| recorded.outcome.call_end(before));
    let mut chain = Chain {
        recorded,
        stores: stores(recorded, call as u32),
        call: call as u32,
        start: before,
        parts: Parts::default(),
    };
    let ends = &recorded.outcome.call_ends[call];
    let last = (0..ends.len()).rev().max_by_key(|&rank| ends[rank]).unwrap_or(0) as u32;
    let own = |block: &usize| recorded.timeline.blocks[*block].rank == last;
    let end_of = |&block: &usize| chain.last_end(block);
    let blocks = 0..recorded.timeline.blocks.len();
    if let Some(block) = blocks.filter(own).max_by_key(end_of) {
        chain.follow(block, recorded.outcome.call_end(call));
    }
    chain.parts
}

/// The blocks and the time at which they begin to store each part of a message in a call.
fn stores(recorded: &Recorded<'_>, call: u32) -> BTreeMap<MessagePart, (usize, Time)> {
    let mut found = BTreeMap::new();
    for (index, track) in recorded.timeline.blocks.iter().enumerate() {
        for operation in track.operations.iter().filter(|one| one.call == call) {
            for part in recorded.schedule.stored(&op(recorded, track, operation)) {
                found.insert(part, (index, operation.start));
            }
        }
    }
    found
}

fn op(recorded: &Recorded<'_>, track: &BlockTrack, operation: &Operation) -> Op {
    let rank = &recorded.schedule.ranks[track.rank as usize];
    rank.blocks[track.block as usize].ops[operation.position as usize]
}

struct Chain<'a> {
    recorded: &'a Recorded<'a>,
    stores: BTreeMap<MessagePart, (usize, Time)>,
    call: u32,
    /// Start of the call.
    start: Time,
    parts: Parts,
}

impl Chain<'_> {
    fn add(&mut self, part: Part, time: Time) {
        self.parts[part as usize] += time;
    }

    /// Gives the time from `from` to `to`, cut off at the start of the call: to each part in turn
    /// what it takes at idle, the rest to the last one.
    fn give(&mut self, from: Time, to: Time, idle: &[(Part, Time)], rest: Part) {
        let mut left = to.saturating_sub(from.max(self.start));
        for &(part, time) in idle {
            let given = time.min(left);
            self.add(part, given);
            left = left - given;
        }
        self.add(rest, left);
    }

    fn last_end(&self, block: usize) -> Time {
        let operations = &self.recorded.timeline.blocks[block].operations;
        operations.last().map_or(Time::ZERO, |operation| operation.end)
    }

    /// Follows the chain back from a block at a time.
    fn follow(&mut self, mut block: usize, mut time: Time) {
        while time > self.start {
            let operations = &self.recorded.timeline.blocks[block].operations;
            let index = operations.partition_point(|operation| operation.start < time);
            let Some(index) = index.checked_sub(1) else {
                return self.give(self.start, time, &[], Part::Endpoint);
            };
            let operation = operations[index];
            if operation.end < time {
                // Other warps went on after the first.
                self.give(operation.end, time, &[], Part::Endpoint);
                time = operation.end;
                continue;
            }
            (block, time) = self.step(block, index, time);
        }
    }

    /// Gives an operation's time and says where the chain goes on.
    fn step(&mut self, block: usize, index: usize, time: Time) -> (usize, Time) {
        let recorded = self.recorded;
        let track = &recorded.timeline.blocks[block];
        let operation = track.operations[index];
        let program = &recorded.schedule.ranks[track.rank as usize];
        let model = &recorded.fabric.gpus[program.gpu as usize];
        let own = op(recorded, track, &operation);
        let start = operation.start;
        match own {
            Op::KernelStart(_) => self.give(start, time, &[], Part::Launch),
            Op::HostTurn(own) => {
                self.give(start, time, &[(Part::Endpoint, own)], Part::Queueing);
            }
            Op::Fence
            | Op::Post { .. }
            | Op::WaitPosts
            | Op::SignalPeers { .. }
            | Op::AtomicPeers { .. }
            | Op::FlagAll { .. } => {
                self.give(start, time, &[], Part::Barrier);
            }
            Op::Poll { .. }
            | Op::PollEach { .. }
            | Op::PollFlag { .. }
            | Op::PollCredit(_)
            | Op::PollStep(_)
            | Op::PollPeers { .. } => return self.wait(block, &operation, &own, time),
            Op::WaitLoads => return self.loads(block, index, time),
            Op::BlockBarrier => {
                self.give(start, time, &[(Part::Endpoint, model.block_barrier)], Part::Queueing);
            }
            Op::Copy { .. } => self.give(start, time, &[], Part::Wire),
            Op::Delay(_) => self.give(start, time, &[], Part::Endpoint),
            Op::Load { .. } | Op::LoadReduce { .. } => {
                self.issue(track, start, time, model.sm_load_interval);
            }
            Op::Write { .. }
            | Op::Move { .. }
            | Op::Send { .. }
            | Op::Flag(_)
            | Op::WriteAll { .. }
            | Op::SendAll { .. } => {
                self.issue(track, start, time, model.sm_store_interval);
            }
        }
        (block, start)
    }

    /// Stores or loads of a block: its warps share the SM's unit; beyond that they wait for room.
    fn issue(&mut self, track: &BlockTrack, start: Time, time: Time, each: Time) {
        let program = &self.recorded.schedule.ranks[track.rank as usize];
        let model = &self.recorded.fabric.gpus[program.gpu as usize];
        let warps = u64::from(program.blocks[track.block as usize].threads.div_ceil(32));
        let unit = each * warps;
        let idle = unit.max(model.warp_store_interval);
        self.give(start, time, &[(Part::Endpoint, idle)], Part::Queueing);
    }

    /// A wait for messages: on to the block whose part came last, unless all were there before.
    fn wait(&mut self, block: usize, operation: &Operation, own: &Op, time: Time) -> (usize, Time) {
        let recorded = self.recorded;
        let fabric = recorded.fabric;
        let track = &recorded.timeline.blocks[block];
        let gpu = recorded.schedule.ranks[track.rank as usize].gpu;
        let model = &fabric.gpus[gpu as usize];
        let parts = recorded.schedule.awaited(own);
        let arrivals = parts.iter().filter_map(|part| {
            let &(from, sent) = self.stores.get(part)?;
            let message = recorded.schedule.messages[part.0 as usize];
            let rank = recorded.timeline.blocks[from].rank;
            let source = recorded.schedule.ranks[rank as usize].gpu;
            let piece = message.bytes.min(WARP_BYTES);
            // A host thread's flag lies where it is stored.
            let stored = match self.executor(from) {
                Executor::Proxy => Time::ZERO,
                Executor::Sm | Executor::CopyEngine => self.way(source, message.home, piece),
            };
            Some((sent + stored, from, sent))
        });
        let barrier = !matches!(own, Op::Poll { .. } | Op::PollEach { .. });
        // What was there before is found at once.
        let acquire =
            matches!(own, Op::PollFlag { acquire: true, .. } | Op::PollPeers { acquire: true, .. });
        let seen = model.poll_detect.max(model.poll_found) + model.poll_extra(acquire);
        let found = operation.start + model.poll_found + model.poll_extra(acquire);
        let critical = arrivals.max().filter(|&(_, _, sent)| time > found && sent < time);
        let Some((arrival, from, sent)) = critical else {
            let part = if barrier { Part::Barrier } else { Part::Poll };
            self.give(operation.start, time, &[(part, seen)], part);
            return (block, operation.start);
        };
        let wire = arrival - sent;
        let ends = model.store_pipeline + model.write_visible;
        if barrier {
            self.give(sent, time, &[(Part::Barrier, wire + ends + seen)], Part::Queueing);
        } else {
            let idle = [(Part::Wire, wire), (Part::Endpoint, ends), (Part::Poll, seen)];
            self.give(sent, time, &idle, Part::Queueing);
        }
        (from, sent)
    }

    fn executor(&self, block: usize) -> Executor {
        let track = &self.recorded.timeline.blocks[block];
        let rank = &self.recorded.schedule.ranks[track.rank as usize];
        rank.blocks[track.block as usize].executor
    }

    /// A wait for loads: back to where the block began to send them.
    fn loads(&mut self, block: usize, index: usize, time: Time) -> (usize, Time) {
        let recorded = self.recorded;
        let fabric = recorded.fabric;
        let track = &recorded.timeline.blocks[block];
        let program = &recorded.schedule.ranks[track.rank as usize];
        let (gpu, ops) = (program.gpu, &program.blocks[track.block as usize].ops);
        let waits_at = track.operations[index].position as usize;
        let before = ops[..waits_at].iter().rposition(|op| *op == Op::WaitLoads);
        let first = before.map_or(0, |before| before + 1);
        let mut farthest: Option<EndpointId> = None;
        for op in &ops[first..waits_at] {
            let home = match *op {
                Op::Load { buffer, .. } => recorded.schedule.buffers[buffer as usize].home,
                Op::LoadReduce { group, .. } => {
                    let members = &recorded.schedule.groups[group as usize];
                    members.iter().copied().find(|&member| member != gpu).unwrap_or(gpu)
                }
                _ => continue,
            };
            if home != gpu {
                let latency = |home| fabric.path_latency(gpu, home);
                farthest = farthest.into_iter().chain([home]).max_by_key(|&home| latency(home));
            }
        }
        // Sending loads takes no time: they are sent when the operation before them ends.
        let loads = |op: &Op| matches!(op, Op::Load { .. } | Op::LoadReduce { .. });
        let load = ops[first..waits_at].iter().position(loads).map_or(waits_at, |at| first + at);
        let mut before = track.operations[..index].iter().rev();
        let ended = before
            .find(|one| one.call < self.call || (one.position as usize) < load)
            .map_or(self.start, |one| one.end);
        let from = ended.min(track.operations[index].start);
        let Some(home) = farthest else {
            self.give(from, time, &[], Part::Endpoint);
            return (block, from);
        };
        let wire = self.way(gpu, home, 0) + self.way(home, gpu, 128);
        let all = fabric.read_latency(gpu as usize, home, 128).unwrap_or_default();
        let idle = [(Part::Wire, wire), (Part::Endpoint, all.saturating_sub(wire))];
        self.give(from, time, &idle, Part::Queueing);
        (block, from)
    }

    /// Idle way of a piece between memories: latencies, and sending it once.
    fn way(&self, source: EndpointId, target: EndpointId, bytes: u32) -> Time {
        let fabric = self.recorded.fabric;
        let latency = fabric.path_latency(source, target).unwrap_or_default();
        let links = fabric.path(source, target).unwrap_or_default().iter();
        let link = links.map(|&link| &fabric.links[link as usize]).max_by_key(|l| l.fs_per_byte);
        latency + link.map_or(Time::ZERO, |link| link.serialization(u64::from(bytes)))
    }
}
