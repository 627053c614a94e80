//! What happened when, as plain data: the operations of each block, and what each link did in equal
//! intervals of time.
//!
//! Packets are too many to keep, so that a link's doings are added up by interval. The intervals
//! start narrow; when the run outgrows them, each two become one, and no sum changes.

use super::observer::Observer;
use crate::fabric::LinkId;
use crate::schedule::Schedule;
use crate::units::Time;

/// An operation of a block, as its first warp saw it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Which call of the run.
    pub call: u32,
    /// Index into the block's operations.
    pub position: u32,
    /// When it began.
    pub start: Time,
    /// When the warp went on.
    pub end: Time,
}

impl Operation {
    /// Whether it is the same one, tried again.
    fn is_same(&self, other: &Operation) -> bool {
        (self.call, self.position) == (other.call, other.position)
    }
}

/// A block's operations in order; those that took no time are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockTrack {
    /// Its rank.
    pub rank: u32,
    /// Which block of its rank.
    pub block: u32,
    /// One after another, without overlap.
    pub operations: Vec<Operation>,
}

/// What a link did in one interval.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkInterval {
    /// Time that it was sending.
    pub busy: Time,
    /// Time that packets waited for it, summed over the packets.
    pub waiting: Time,
    /// Bytes held by the buffer at its far end, times picoseconds.
    pub held: u64,
    /// Payload of the packets whose sending began in it.
    pub payload: u64,
}

impl LinkInterval {
    fn add(&mut self, other: LinkInterval) {
        self.busy += other.busy;
        self.waiting += other.waiting;
        self.held += other.held;
        self.payload += other.payload;
    }
}

/// What happened when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// End of the run.
    pub ended: Time,
    /// By rank and block, in their order.
    pub blocks: Vec<BlockTrack>,
    /// Length of an interval.
    pub interval: Time,
    /// `[link][interval]`, up to the last in which a link did something.
    pub links: Vec<Vec<LinkInterval>>,
}

impl Timeline {
    /// Number of intervals until the end of the run.
    pub fn interval_count(&self) -> usize {
        self.ended.as_ps().div_ceil(self.interval.as_ps()) as usize
    }

    /// Share of an interval in which a link was sending.
    pub fn utilization(&self, link: usize, interval: usize) -> f64 {
        let busy = self.links[link].get(interval).map_or(Time::ZERO, |own| own.busy);
        busy.as_ps() as f64 / self.interval.as_ps() as f64
    }

    /// Packets that waited for a link, mean of an interval.
    pub fn depth(&self, link: usize, interval: usize) -> f64 {
        let waiting = self.links[link].get(interval).map_or(Time::ZERO, |own| own.waiting);
        waiting.as_ps() as f64 / self.interval.as_ps() as f64
    }

    /// The same with at most so many intervals.
    #[must_use]
    pub fn coarsened(mut self, most: usize) -> Timeline {
        while self.interval_count() > most.max(1) {
            self.links.iter_mut().for_each(|link| *link = pairs(link));
            self.interval += self.interval;
        }
        self
    }
}

/// Each two intervals as one.
fn pairs(intervals: &[LinkInterval]) -> Vec<LinkInterval> {
    let both = intervals.chunks(2).map(|pair| {
        let mut sum = pair[0];
        pair[1..].iter().for_each(|other| sum.add(*other));
        sum
    });
    both.collect()
}

/// Most intervals that are kept.
const INTERVALS_MAX: u64 = 4096;
/// Length of an interval at the start.
const INTERVAL_FIRST: Time = Time::from_ps(1000);

/// Writes a [`Timeline`].
#[derive(Debug)]
pub struct Recorder {
    blocks: Vec<BlockTrack>,
    /// By block: the operation under way.
    open: Vec<Option<Operation>>,
    interval: u64,
    links: Vec<Vec<LinkInterval>>,
    /// By link: since when its far end has held so many bytes.
    held: Vec<(Time, u32)>,
}

impl Recorder {
    /// Of a schedule on a machine of so many directed links.
    pub fn new(schedule: &Schedule, links: usize) -> Recorder {
        let mut blocks = Vec::new();
        for (rank, program) in schedule.ranks.iter().enumerate() {
            for block in 0..program.blocks.len() as u32 {
                blocks.push(BlockTrack { rank: rank as u32, block, ..BlockTrack::default() });
            }
        }
        Recorder {
            open: vec![None; blocks.len()],
            blocks,
            interval: INTERVAL_FIRST.as_ps(),
            links: vec![Vec::new(); links],
            held: vec![(Time::ZERO, 0); links],
        }
    }

    /// Everything, at the end of the run.
    pub fn finish(mut self, ended: Time) -> Timeline {
        for block in 0..self.blocks.len() as u32 {
            self.goes_on(block, ended);
        }
        let interval = Time::from_ps(self.interval);
        // A run may go on after its last packet.
        Timeline { ended, blocks: self.blocks, interval, links: self.links }
            .coarsened(INTERVALS_MAX as usize)
    }

    /// Adds something that lasts from `start` to `end` to each interval that it touches.
    fn spread(
        &mut self,
        link: LinkId,
        start: Time,
        end: Time,
        add: impl Fn(&mut LinkInterval, u64),
    ) {
        let (start, end) = (start.as_ps(), end.as_ps());
        if end <= start {
            return;
        }
        while (end - 1) / self.interval >= INTERVALS_MAX {
            self.links.iter_mut().for_each(|link| *link = pairs(link));
            self.interval *= 2;
        }
        let (first, last) = (start / self.interval, (end - 1) / self.interval);
        let intervals = &mut self.links[link as usize];
        if intervals.len() as u64 <= last {
            intervals.resize(last as usize + 1, LinkInterval::default());
        }
        for index in first..=last {
            let from = start.max(index * self.interval);
            let to = end.min((index + 1) * self.interval);
            add(&mut intervals[index as usize], to - from);
        }
    }
}

impl Observer for Recorder {
    fn begins(&mut self, block: u32, call: u32, position: u32, now: Time) {
        self.open[block as usize] = Some(Operation { call, position, start: now, end: now });
    }

    fn goes_on(&mut self, block: u32, now: Time) {
        if let Some(operation) = self.open[block as usize].take()
            && now > operation.start
        {
            let operations = &mut self.blocks[block as usize].operations;
            match operations.last_mut() {
                Some(last) if last.is_same(&operation) => last.end = now,
                _ => operations.push(Operation { end: now, ..operation }),
            }
        }
    }

    fn sends(&mut self, link: LinkId, now: Time, busy: Time, payload: u32) {
        self.spread(link, now, now + busy, |interval, ps| interval.busy += Time::from_ps(ps));
        let index = (now.as_ps() / self.interval) as usize;
        if let Some(interval) = self.links[link as usize].get_mut(index) {
            interval.payload += u64::from(payload);
        }
    }

    fn waited(&mut self, link: LinkId, since: Time, now: Time) {
        self.spread(link, since, now, |interval, ps| interval.waiting += Time::from_ps(ps));
    }

    fn holds(&mut self, link: LinkId, now: Time, bytes: u32) {
        let (since, before) = std::mem::replace(&mut self.held[link as usize], (now, bytes));
        if before > 0 {
            self.spread(link, since, now, |interval, ps| interval.held += ps * u64::from(before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_when_intervals_grow() {
        let schedule = Schedule {
            name: String::new(),
            bytes: 0,
            collective: None,
            ranks: Vec::new(),
            messages: Vec::new(),
            buffers: Vec::new(),
            groups: Vec::new(),
        };
        let mut recorder = Recorder::new(&schedule, 1);
        let us = |us: u64| Time::from_ps(us * 1_000_000);
        for at in 0..100 {
            recorder.sends(0, us(at), Time::from_ps(300_500), 128);
            recorder.waited(0, us(at), us(at + 2));
        }
        let timeline = recorder.finish(us(102));
        assert!(timeline.interval > INTERVAL_FIRST && timeline.interval_count() <= 4096);
        let sums = |timeline: &Timeline| {
            timeline.links[0].iter().fold(LinkInterval::default(), |mut sum, one| {
                sum.add(*one);
                sum
            })
        };
        let sum = sums(&timeline);
        assert_eq!(sum.busy.as_ps(), 100 * 300_500);
        assert_eq!(sum.waiting, us(200));
        assert_eq!(sum.payload, 12_800);
        let coarse = timeline.coarsened(16);
        assert!(coarse.interval_count() <= 16);
        assert_eq!(sums(&coarse), sum);
    }
}
