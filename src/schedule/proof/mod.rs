//! Symbolic proof: the schedule is run on sets of contributions instead of numbers, and every rank
//! must end with every contribution exactly once.
//!
//! It is run under several orders of the blocks, eager and reluctant, so that a missing barrier
//! shows as data that are not there yet.

mod sum;

use std::collections::BTreeMap;
use std::fmt;

use sum::added;

use super::{Action, Collective, ELEMENT_BYTES, Op, Role, Schedule};

/// The root of a broadcast or a reduce.
const ROOT: usize = 0;

/// One element's value: which ranks' inputs are summed in it, and which input element they were.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
struct Value {
    /// Bit r: the input of rank r.
    ranks: u64,
    /// Element of the input, plus one; zero for no data at all.
    element: u32,
}

/// Why a schedule is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Blocks wait for each other.
    Deadlock {
        /// Rank, block and operation number of each.
        waiting: Vec<(usize, usize, usize)>,
    },
    /// A contribution is added twice.
    Twice {
        /// Where it happens.
        rank: usize,
        /// Element of the data.
        element: usize,
        /// Bits of the ranks that are in both.
        ranks: u64,
    },
    /// Different elements are added.
    Mixed {
        /// Where it happens.
        rank: usize,
        /// Element of the data.
        element: usize,
    },
    /// A result is not what the collective asks for.
    Wrong {
        /// Whose.
        rank: usize,
        /// Element of the output.
        element: usize,
        /// Bits of the ranks found in it.
        found: u64,
    },
    /// More ranks than the proof's sets hold.
    TooManyRanks,
}

impl fmt::Display for Flaw {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Deadlock { waiting } => write!(out, "blocks wait for each other: {waiting:?}"),
            Flaw::Twice { rank, element, ranks } => {
                write!(out, "rank {rank}, element {element}: contributions {ranks:#b} added twice")
            }
            Flaw::Mixed { rank, element } => {
                write!(out, "rank {rank}, element {element}: different elements are added")
            }
            Flaw::Wrong { rank, element, found } => {
                write!(out, "rank {rank}, element {element}: ends with contributions {found:#b}")
            }
            Flaw::TooManyRanks => out.write_str("the proof holds at most 64 ranks"),
        }
    }
}

/// In which order runnable blocks are taken.
#[derive(Copy, Clone, Debug)]
enum Order {
    Ascending,
    Descending,
    OneStepEach,
}

/// Proves that the schedule does what its collective asks for; a schedule without one is only run
/// to its end.
///
/// # Errors
/// The first flaw found.
pub fn prove(schedule: &Schedule) -> Result<(), Flaw> {
    if schedule.rank_count() > 64 {
        return Err(Flaw::TooManyRanks);
    }
    for order in [Order::Ascending, Order::Descending, Order::OneStepEach] {
        let mut machine = Machine::new(schedule);
        machine.run(order)?;
        machine.check()?;
    }
    Ok(())
}

struct Machine<'a> {
    schedule: &'a Schedule,
    buffers: Vec<Vec<Value>>,
    /// Elements stored into each message so far; a line of data is one element of 16 data bytes.
    messages: Vec<Vec<Option<Value>>>,
    flags: Vec<bool>,
    /// Running values of each block by first element.
    running: Vec<Vec<BTreeMap<u32, Vec<Value>>>>,
    position: Vec<Vec<usize>>,
}

/// Puts values over what was known of these elements; the rest of older pieces stays known.
fn replace(known: &mut BTreeMap<u32, Vec<Value>>, first: u32, new: Vec<Value>) {
    let end = first + new.len() as u32;
    let overlaps = |(&start, values): (&u32, &Vec<Value>)| start + values.len() as u32 > first;
    let old: Vec<u32> =
        known.range(..end).rev().take_while(|&piece| overlaps(piece)).map(|p| *p.0).collect();
    for start in old {
        let mut piece = known.remove(&start).unwrap_or_default();
        if start + piece.len() as u32 > end {
            known.insert(end, piece[(end - start) as usize..].to_vec());
        }
        if start < first {
            piece.truncate((first - start) as usize);
            known.insert(start, piece);
        }
    }
    known.insert(first, new);
}

fn elements(bytes: u64) -> usize {
    bytes.div_ceil(u64::from(ELEMENT_BYTES)) as usize
}

impl<'a> Machine<'a> {
    fn new(schedule: &'a Schedule) -> Machine<'a> {
        let buffers = schedule
            .buffers
            .iter()
            .map(|buffer| {
                let mut values = vec![Value::default(); elements(buffer.bytes)];
                if matches!(buffer.role, Role::Input | Role::InPlace) {
                    for (index, value) in values.iter_mut().enumerate() {
                        *value = Value { ranks: 1 << buffer.rank, element: index as u32 + 1 };
                    }
                }
                values
            })
            .collect();
        let messages = schedule
            .messages
            .iter()
            .map(|m| vec![None; elements(u64::from(m.data)).max(1)])
            .collect();
        let per_block = |rank: &super::RankProgram| rank.blocks.len();
        Machine {
            schedule,
            buffers,
            messages,
            flags: vec![false; schedule.messages.len()],
            running: schedule.ranks.iter().map(|r| vec![BTreeMap::new(); per_block(r)]).collect(),
            position: schedule.ranks.iter().map(|r| vec![0; per_block(r)]).collect(),
        }
    }

    fn run(&mut self, order: Order) -> Result<(), Flaw> {
        let mut blocks: Vec<(usize, usize)> = self
            .position
            .iter()
            .enumerate()
            .flat_map(|(rank, blocks)| (0..blocks.len()).map(move |block| (rank, block)))
            .collect();
        if matches!(order, Order::Descending) {
            blocks.reverse();
        }
        loop {
            let mut moved = false;
            let mut unfinished = Vec::new();
            for &(rank, block) in &blocks {
                let ops = &self.schedule.ranks[rank].blocks[block].ops;
                while self.position[rank][block] < ops.len() {
                    if !self.step(rank, block, ops[self.position[rank][block]])? {
                        break;
                    }
                    self.position[rank][block] += 1;
                    moved = true;
                    if matches!(order, Order::OneStepEach) {
                        break;
                    }
                }
                if self.position[rank][block] < ops.len() {
                    unfinished.push((rank, block, self.position[rank][block]));
                }
            }
            if unfinished.is_empty() {
                return Ok(());
            }
            if !moved {
                return Err(Flaw::Deadlock { waiting: unfinished });
            }
        }
    }

    /// Runs one operation; false when it has to wait.
    fn step(&mut self, rank: usize, block: usize, op: Op) -> Result<bool, Flaw> {
        match op {
            Op::Load { buffer, offset, bytes, data, action, .. } => {
                let first = (offset / ELEMENT_BYTES) as usize;
                let values = &self.buffers[buffer as usize];
                let found = values[first..first + elements(u64::from(bytes))].to_vec();
                self.act(rank, block, data / ELEMENT_BYTES, found, action)?;
            }
            Op::Write { buffer, offset, bytes, data } => {
                let first = (offset / ELEMENT_BYTES) as usize;
                let count = elements(u64::from(bytes));
                let values = self.value(rank, block, data / ELEMENT_BYTES, count);
                self.buffers[buffer as usize][first..first + values.len()].copy_from_slice(&values);
            }
            Op::Send { message, offset, bytes, data } => {
                let (at, count) = self.message_range(message, offset, bytes);
                let values = self.value(rank, block, data / ELEMENT_BYTES, count);
                for (slot, value) in self.messages[message as usize][at..].iter_mut().zip(values) {
                    *slot = Some(value);
                }
            }
            Op::LoadReduce { .. }
            | Op::WriteAll { .. }
            | Op::SendAll { .. }
            | Op::FlagAll { .. } => {
                self.multicast(rank, block, op)?;
            }
            Op::Poll { message, offset, bytes, data, action } => {
                let each = message..message + 1;
                return self.poll_each((rank, block), each, (offset, bytes), data, action);
            }
            Op::Flag(message) => self.flags[message as usize] = true,
            Op::PollFlag { message, .. } | Op::PollCredit(message) => {
                return Ok(self.flags[message as usize]);
            }
            Op::PollEach { base, count, offset, bytes, data, action } => {
                return self.poll_each(
                    (rank, block),
                    base..base + count,
                    (offset, bytes),
                    data,
                    action,
                );
            }
            Op::SignalPeers { base, index, count } | Op::AtomicPeers { base, index, count } => {
                for peer in 0..count {
                    self.flags[(base + index * count + peer) as usize] = true;
                }
            }
            Op::PollPeers { base, index, count, .. } => {
                let seen = |peer| self.flags[(base + peer * count + index) as usize];
                return Ok((0..count).all(seen));
            }
            Op::Move { from, from_offset, to, to_offset, bytes } => {
                let count = elements(u64::from(bytes));
                let first = (from_offset / ELEMENT_BYTES) as usize;
                let values = self.buffers[from as usize][first..first + count].to_vec();
                let first = (to_offset / ELEMENT_BYTES) as usize;
                self.buffers[to as usize][first..first + count].copy_from_slice(&values);
            }
            Op::Copy { from, to, bytes, .. } => {
                let count = elements(u64::from(bytes));
                let values = self.buffers[from as usize][..count].to_vec();
                self.buffers[to as usize][..count].copy_from_slice(&values);
            }
            Op::KernelStart(_) | Op::Delay(_) | Op::WaitLoads | Op::Fence | Op::BlockBarrier => {}
        }
        Ok(true)
    }

    /// Polls a part (offset, bytes) of each of some messages; false while something is missing.
    fn poll_each(
        &mut self,
        (rank, block): (usize, usize),
        messages: std::ops::Range<u32>,
        (offset, bytes): (u32, u32),
        data: u32,
        action: Action,
    ) -> Result<bool, Flaw> {
        let mut found = Vec::new();
        for message in messages {
            let (at, count) = self.message_range(message, offset, bytes);
            let slots = &self.messages[message as usize][at..at + count];
            let Some(values) = slots.iter().copied().collect::<Option<Vec<Value>>>() else {
                return Ok(false);
            };
            found.push(values);
        }
        for (index, values) in found.into_iter().enumerate() {
            let action = if index == 0 { action } else { Action::Add };
            self.act(rank, block, data / ELEMENT_BYTES, values, action)?;
        }
        Ok(true)
    }

    /// First element and number of elements of a range of a message.
    fn message_range(&self, message: u32, offset: u32, bytes: u32) -> (usize, usize) {
        let record = &self.schedule.messages[message as usize];
        let data = |wire: u32| record.lines.data_bytes(u64::from(wire)).min(u64::from(record.data));
        let at = data(offset) / u64::from(ELEMENT_BYTES);
        (at as usize, elements(data(offset + bytes)) - at as usize)
    }

    fn value(&self, rank: usize, block: usize, first: u32, count: usize) -> Vec<Value> {
        let known = &self.running[rank][block];
        (0..count as u32)
            .map(|index| {
                let element = first + index;
                known
                    .range(..=element)
                    .next_back()
                    .and_then(|(start, values)| values.get((element - start) as usize))
                    .copied()
                    .unwrap_or_default()
            })
            .collect()
    }

    fn act(
        &mut self,
        rank: usize,
        block: usize,
        first: u32,
        found: Vec<Value>,
        action: Action,
    ) -> Result<(), Flaw> {
        let new = match action {
            Action::Discard => return Ok(()),
            Action::Set => found,
            Action::Add => {
                let old = self.value(rank, block, first, found.len());
                added(old, &found, rank, first as usize)?
            }
        };
        replace(&mut self.running[rank][block], first, new);
        Ok(())
    }

    fn check(&self) -> Result<(), Flaw> {
        let Some(collective) = self.schedule.collective else {
            return Ok(());
        };
        let n = self.schedule.rank_count();
        let all = if n == 64 { u64::MAX } else { (1 << n) - 1 };
        let total = elements(self.schedule.bytes);
        let piece = total / n;
        for (buffer, values) in self.schedule.buffers.iter().zip(&self.buffers) {
            if !matches!(buffer.role, Role::Output | Role::InPlace) {
                continue;
            }
            let rank = buffer.rank as usize;
            let range = match collective {
                Collective::ReduceScatter => rank * piece..(rank + 1) * piece,
                Collective::Reduce if rank != ROOT => 0..0,
                _ => 0..total,
            };
            for element in range {
                let (ranks, origin) = match collective {
                    Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce => {
                        (all, element)
                    }
                    Collective::Broadcast => (1 << ROOT, element),
                    Collective::AllGather => (1 << (element / piece), element),
                    Collective::AllToAll => {
                        (1 << (element / piece), rank * piece + element % piece)
                    }
                };
                if values[element] != (Value { ranks, element: origin as u32 + 1 }) {
                    return Err(Flaw::Wrong { rank, element, found: values[element].ranks });
                }
            }
        }
        Ok(())
    }
}
