//! Symbolic proof: the schedule is run on sets of contributions instead of numbers, and every rank
//! must end with every contribution exactly once.
//!
//! It is run under several orders of the blocks, eager and reluctant, so that a missing barrier
//! shows as data that are not there yet.

mod known;
mod sum;

use std::fmt;

use known::{Known, Run, Value, side_by_side};
use sum::added;

use super::{Action, Collective, ELEMENT_BYTES, Op, Role, Schedule};

/// The root of a broadcast or a reduce.
const ROOT: u32 = 0;

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
    /// A buffer is used beyond its end.
    Outside {
        /// By whom.
        rank: usize,
        /// Index of the buffer.
        buffer: u32,
        /// End of the elements used.
        end: usize,
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
            Flaw::Outside { rank, buffer, end } => {
                write!(
                    out,
                    "rank {rank}: buffer {buffer} is used up to element {end}, past its end"
                )
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
    buffers: Vec<Known>,
    /// What was stored into each message so far, by element of its data.
    messages: Vec<Known>,
    flags: Vec<bool>,
    /// Running values of each block by element of the call's data.
    running: Vec<Vec<Known>>,
    position: Vec<Vec<usize>>,
    /// What an operation found, what it added to, and the sum: kept to spare allocations.
    lists: [Vec<Run>; 3],
}

fn elements(bytes: u64) -> u32 {
    bytes.div_ceil(u64::from(ELEMENT_BYTES)) as u32
}

impl<'a> Machine<'a> {
    fn new(schedule: &'a Schedule) -> Machine<'a> {
        let buffer = |buffer: &super::Buffer| match buffer.role {
            Role::Input | Role::InPlace => {
                let value = Value { ranks: 1 << buffer.rank, element: 1 };
                Known::of(Run { first: 0, count: elements(buffer.bytes), value })
            }
            _ => Known::default(),
        };
        let per_block = |rank: &super::RankProgram| rank.blocks.len();
        Machine {
            schedule,
            buffers: schedule.buffers.iter().map(buffer).collect(),
            messages: vec![Known::default(); schedule.messages.len()],
            flags: vec![false; schedule.messages.len()],
            running: schedule.ranks.iter().map(|r| vec![Known::default(); per_block(r)]).collect(),
            position: schedule.ranks.iter().map(|r| vec![0; per_block(r)]).collect(),
            lists: Default::default(),
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
                let (first, count) = self.buffer_range(rank, buffer, offset, bytes)?;
                let mut found = std::mem::take(&mut self.lists[0]);
                self.buffers[buffer as usize].read(first, count, &mut found);
                self.act(rank, block, data / ELEMENT_BYTES, &found, action)?;
                self.lists[0] = found;
            }
            Op::Write { buffer, offset, bytes, data } => {
                let (first, count) = self.buffer_range(rank, buffer, offset, bytes)?;
                let values = &mut self.lists[0];
                self.running[rank][block].read(data / ELEMENT_BYTES, count, values);
                self.buffers[buffer as usize].store(first, values);
            }
            Op::Send { message, offset, bytes, data } => {
                let (at, count) = self.message_range(message, offset, bytes);
                let values = &mut self.lists[0];
                self.running[rank][block].read(data / ELEMENT_BYTES, count, values);
                self.messages[message as usize].store(at, values);
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
            Op::Flag(message) | Op::Post { message, .. } => self.flags[message as usize] = true,
            Op::PollFlag { message, .. } | Op::PollCredit(message) | Op::PollStep(message) => {
                return Ok(self.flags[message as usize]);
            }
            Op::PollEach { base, count, offset, bytes, data, action } => {
                let each = base..base + count;
                return self.poll_each((rank, block), each, (offset, bytes), data, action);
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
            Op::Move { from, from_offset, to, to_offset, bytes }
            | Op::Copy { from, from_offset, to, to_offset, bytes, .. } => {
                self.move_data(rank, (from, from_offset), (to, to_offset), bytes)?;
            }
            Op::KernelStart(_)
            | Op::Delay(_)
            | Op::HostTurn(_)
            | Op::WaitLoads
            | Op::WaitPosts
            | Op::Fence
            | Op::BlockBarrier => {}
        }
        Ok(true)
    }

    /// Copies between buffers, each given with its first byte.
    fn move_data(
        &mut self,
        rank: usize,
        from: (u32, u32),
        to: (u32, u32),
        bytes: u32,
    ) -> Result<(), Flaw> {
        let (first, count) = self.buffer_range(rank, from.0, from.1, bytes)?;
        self.buffers[from.0 as usize].read(first, count, &mut self.lists[0]);
        let (first, _) = self.buffer_range(rank, to.0, to.1, bytes)?;
        self.buffers[to.0 as usize].store(first, &self.lists[0]);
        Ok(())
    }

    /// First element and number of elements of a range of a buffer.
    fn buffer_range(
        &self,
        rank: usize,
        buffer: u32,
        offset: u32,
        bytes: u32,
    ) -> Result<(u32, u32), Flaw> {
        let (first, count) = (offset / ELEMENT_BYTES, elements(u64::from(bytes)));
        if first + count > elements(self.schedule.buffers[buffer as usize].bytes) {
            return Err(Flaw::Outside { rank, buffer, end: (first + count) as usize });
        }
        Ok((first, count))
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
        for message in messages.clone() {
            let (at, count) = self.message_range(message, offset, bytes);
            if !self.messages[message as usize].holds(at, count) {
                return Ok(false);
            }
        }
        for (index, message) in messages.enumerate() {
            let (at, count) = self.message_range(message, offset, bytes);
            let mut found = std::mem::take(&mut self.lists[0]);
            self.messages[message as usize].read(at, count, &mut found);
            let action = if index == 0 { action } else { Action::Add };
            self.act(rank, block, data / ELEMENT_BYTES, &found, action)?;
            self.lists[0] = found;
        }
        Ok(true)
    }

    /// First element and number of elements of a range of a message.
    fn message_range(&self, message: u32, offset: u32, bytes: u32) -> (u32, u32) {
        let record = &self.schedule.messages[message as usize];
        let data = |wire: u32| record.lines.data_bytes(u64::from(wire)).min(u64::from(record.data));
        let at = (data(offset) / u64::from(ELEMENT_BYTES)) as u32;
        (at, elements(data(offset + bytes)) - at)
    }

    fn act(
        &mut self,
        rank: usize,
        block: usize,
        first: u32,
        found: &[Run],
        action: Action,
    ) -> Result<(), Flaw> {
        let running = &mut self.running[rank][block];
        match action {
            Action::Discard => {}
            Action::Set => running.store(first, found),
            Action::Add => {
                let count = found.iter().map(|run| run.count).sum();
                let [_, old, sum] = &mut self.lists;
                running.read(first, count, old);
                added(old, found, rank, first, sum)?;
                running.store(first, sum);
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Flaw> {
        let Some(collective) = self.schedule.collective else {
            return Ok(());
        };
        let mut found = Vec::new();
        for (buffer, values) in self.schedule.buffers.iter().zip(&self.buffers) {
            if !matches!(buffer.role, Role::Output | Role::InPlace) {
                continue;
            }
            for wanted in self.wanted(collective, buffer.rank) {
                values.read(wanted.first, wanted.count, &mut found);
                for (run, value) in side_by_side(&found, &[wanted]) {
                    if run.value != value {
                        let (rank, element) = (buffer.rank as usize, run.first as usize);
                        return Err(Flaw::Wrong { rank, element, found: run.value.ranks });
                    }
                }
            }
        }
        Ok(())
    }

    /// What a rank's output must hold at the end.
    fn wanted(&self, collective: Collective, rank: u32) -> Vec<Run> {
        let n = self.schedule.rank_count() as u32;
        let all = if n == 64 { u64::MAX } else { (1 << n) - 1 };
        let total = elements(self.schedule.bytes);
        let piece = total / n;
        let run = |first: u32, count: u32, ranks: u64, from: u32| Run {
            first,
            count,
            value: Value { ranks, element: from + 1 },
        };
        match collective {
            Collective::AllReduce => vec![run(0, total, all, 0)],
            Collective::Reduce if rank == ROOT => vec![run(0, total, all, 0)],
            Collective::Reduce => Vec::new(),
            Collective::ReduceScatter => vec![run(rank * piece, piece, all, rank * piece)],
            Collective::Broadcast => vec![run(0, total, 1 << ROOT, 0)],
            Collective::AllGather => {
                (0..n).map(|of| run(of * piece, piece, 1 << of, of * piece)).collect()
            }
            Collective::AllToAll => {
                (0..n).map(|of| run(of * piece, piece, 1 << of, rank * piece)).collect()
            }
        }
    }
}
