//! Building blocks of schedules: messages, buffers, trips, barriers.

use super::{
    Action, Block, Buffer, BufferId, ELEMENT_BYTES, Executor, GroupId, Lines, Message, MessageId,
    Op, RankProgram, Role, Schedule,
};
use crate::fabric::EndpointId;
use crate::topology::TrafficKind;

/// A schedule under construction.
pub struct Builder {
    schedule: Schedule,
}

impl Builder {
    /// An empty schedule over ranks on these GPUs, each with `blocks` blocks of `threads`.
    pub fn new(name: impl Into<String>, gpus: &[u32], blocks: usize, threads: u32) -> Builder {
        let block = Block {
            executor: Executor::Sm,
            threads,
            beside: None,
            background: false,
            ops: Vec::new(),
        };
        let ranks = gpus
            .iter()
            .map(|&gpu| RankProgram { gpu, blocks: vec![block.clone(); blocks] })
            .collect();
        Builder {
            schedule: Schedule {
                name: name.into(),
                bytes: 0,
                collective: None,
                ranks,
                messages: Vec::new(),
                buffers: Vec::new(),
                groups: Vec::new(),
            },
        }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.schedule.ranks.len() as u32
    }

    /// The GPU of a rank.
    pub fn gpu(&self, rank: u32) -> u32 {
        self.schedule.ranks[rank as usize].gpu
    }

    /// Adds a message of `data` bytes.
    pub fn message(
        &mut self,
        from: u32,
        to: u32,
        home: EndpointId,
        data: u32,
        lines: Lines,
    ) -> MessageId {
        let bytes = lines.wire_bytes(u64::from(data)) as u32;
        self.schedule.messages.push(Message { from, to, home, bytes, data, lines });
        self.schedule.messages.len() as u32 - 1
    }

    /// Adds a buffer.
    pub fn buffer(&mut self, rank: u32, home: EndpointId, role: Role, bytes: u64) -> BufferId {
        self.schedule.buffers.push(Buffer { home, rank, role, bytes, cold: false });
        self.schedule.buffers.len() as u32 - 1
    }

    /// A buffer of every rank, in rank order.
    pub fn buffers(
        &mut self,
        role: Role,
        bytes: u64,
        home: impl Fn(u32) -> EndpointId,
    ) -> Vec<BufferId> {
        (0..self.ranks()).map(|rank| self.buffer(rank, home(rank), role, bytes)).collect()
    }

    /// The multicast group of some ranks' GPUs, in their order; made when first asked for.
    pub fn multicast_group(&mut self, members: &[u32]) -> GroupId {
        let gpus: Vec<EndpointId> = members.iter().map(|&rank| self.gpu(rank)).collect();
        let groups = &mut self.schedule.groups;
        let found = groups.iter().position(|group| *group == gpus);
        let place = found.unwrap_or_else(|| {
            groups.push(gpus);
            groups.len() - 1
        });
        place as GroupId
    }

    /// Marks a buffer as streamed over: its lines are not in the host's cache.
    pub fn cold(&mut self, buffer: BufferId) {
        self.schedule.buffers[buffer as usize].cold = true;
    }

    /// Adds a block to a rank and returns its number.
    pub fn add_block(&mut self, rank: u32, block: Block) -> usize {
        let blocks = &mut self.schedule.ranks[rank as usize].blocks;
        blocks.push(block);
        blocks.len() - 1
    }

    /// Gives a block another number of threads.
    pub fn set_threads(&mut self, rank: u32, block: usize, threads: u32) {
        self.schedule.ranks[rank as usize].blocks[block].threads = threads;
    }

    /// Puts a block of every rank beside an earlier one, as other warps of its thread block.
    pub fn set_beside(&mut self, block: usize, first: usize) {
        for rank in &mut self.schedule.ranks {
            rank.blocks[block].beside = Some(first as u32);
        }
    }

    /// Threads of a block.
    pub fn threads(&self, rank: u32, block: usize) -> u32 {
        self.schedule.ranks[rank as usize].blocks[block].threads
    }

    /// Appends an operation.
    pub fn push(&mut self, rank: u32, block: usize, op: Op) {
        self.schedule.ranks[rank as usize].blocks[block].ops.push(op);
    }

    /// Appends an operation to every block of every rank.
    pub fn push_all(&mut self, op: Op) {
        for block in self.schedule.ranks.iter_mut().flat_map(|rank| &mut rank.blocks) {
            block.ops.push(op);
        }
    }

    /// The flag messages between a group's members, a row a sender; flags are in the memory that
    /// `home` names for the polling rank.
    pub fn barrier_flags(&mut self, group: &[u32], home: impl Fn(u32) -> EndpointId) -> MessageId {
        let base = self.schedule.messages.len() as u32;
        for &from in group {
            for &to in group {
                self.message(from, to, home(to), 4, Lines::Plain);
            }
        }
        base
    }

    /// A barrier of all ranks, block by block: a thread for each peer stores a flag to it and polls
    /// one of it, between two block barriers. `fenced`: with a system fence before and acquire polls.
    pub fn barrier(&mut self, fenced: bool, home: impl Fn(u32) -> EndpointId + Copy) {
        let all: Vec<u32> = (0..self.ranks()).collect();
        self.group_barrier(&all, fenced, home);
    }

    /// A barrier of some ranks, as [`Builder::barrier`]; none for a rank alone.
    pub fn group_barrier(
        &mut self,
        group: &[u32],
        fenced: bool,
        home: impl Fn(u32) -> EndpointId + Copy,
    ) {
        let signal = |base, index, count| Op::SignalPeers { base, index, count };
        self.barrier_by(group, fenced, home, signal);
    }

    /// A barrier of some ranks by remote atomics: a thread for each peer sets its flag by
    /// compare-and-swap, whose answer it waits for, and polls one of its own.
    pub fn atomic_barrier(
        &mut self,
        group: &[u32],
        fenced: bool,
        home: impl Fn(u32) -> EndpointId + Copy,
    ) {
        let signal = |base, index, count| Op::AtomicPeers { base, index, count };
        self.barrier_by(group, fenced, home, signal);
    }

    /// A barrier of some ranks, each of whose flags their switch copies to all of them.
    pub fn switch_barrier(
        &mut self,
        members: &[u32],
        fenced: bool,
        home: impl Fn(u32) -> EndpointId + Copy,
    ) {
        let group = self.multicast_group(members);
        let signal = |base, index, count| Op::FlagAll { group, base: base + index * count };
        self.barrier_by(members, fenced, home, signal);
    }

    fn barrier_by(
        &mut self,
        group: &[u32],
        fenced: bool,
        home: impl Fn(u32) -> EndpointId + Copy,
        signal: impl Fn(MessageId, u32, u32) -> Op,
    ) {
        if group.len() < 2 {
            return;
        }
        let count = group.len() as u32;
        let blocks = self.schedule.ranks[0].blocks.len();
        for block in 0..blocks {
            let base = self.barrier_flags(group, home);
            for (&rank, index) in group.iter().zip(0..) {
                self.push(rank, block, Op::BlockBarrier);
                if fenced {
                    self.push(rank, block, Op::Fence);
                }
                self.push(rank, block, signal(base, index, count));
                self.push(rank, block, Op::PollPeers { base, index, count, acquire: fenced });
                self.push(rank, block, Op::BlockBarrier);
            }
        }
    }

    /// The sum of a part of the buffers `base + k` of all members, with the running value.
    pub fn load_reduce(
        &mut self,
        (rank, block): (u32, usize),
        group: GroupId,
        base: BufferId,
        part: Part,
    ) {
        let (offset, bytes, action) = (part.offset, part.bytes, Action::Set);
        self.push(rank, block, Op::LoadReduce { group, base, offset, bytes, action });
    }

    /// A load with the running value.
    pub fn load(&mut self, rank: u32, block: usize, from: BufferId, part: Part, action: Action) {
        self.load_at(rank, block, from, part, part.offset, action);
    }

    /// A load from elsewhere in a buffer than its data lie in the call: `data` is their first byte.
    pub fn load_at(
        &mut self,
        rank: u32,
        block: usize,
        from: BufferId,
        part: Part,
        data: u32,
        action: Action,
    ) {
        let Part { offset, bytes } = part;
        let kind = TrafficKind::SmRead;
        self.push(rank, block, Op::Load { buffer: from, offset, bytes, data, action, kind });
    }

    /// A store of the running value.
    pub fn write(&mut self, rank: u32, block: usize, to: BufferId, part: Part) {
        self.write_at(rank, block, to, part, part.offset);
    }

    /// A store to elsewhere in a buffer than the data lie in the call: `data` is their first byte.
    pub fn write_at(&mut self, rank: u32, block: usize, to: BufferId, part: Part, data: u32) {
        let Part { offset, bytes } = part;
        self.push(rank, block, Op::Write { buffer: to, offset, bytes, data });
    }

    /// The finished schedule.
    pub fn finish(self, bytes: u64, collective: Option<super::Collective>) -> Schedule {
        Schedule { bytes, collective, ..self.schedule }
    }
}

/// A block's part of one trip.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// First byte.
    pub offset: u32,
    /// Bytes, at most 16 a thread.
    pub bytes: u32,
}

/// The trips of one block over `[start, start + length)` when `blocks` blocks of `threads` share it:
/// element i belongs to thread i mod (blocks x threads).
pub fn trips(
    start: u32,
    length: u32,
    block: usize,
    blocks: usize,
    threads: u32,
) -> impl Iterator<Item = Part> {
    let width = threads * ELEMENT_BYTES;
    let stride = width * blocks as u32;
    let first = width * block as u32;
    (0..length.div_ceil(stride)).filter_map(move |trip| {
        let from = trip * stride + first;
        (from < length).then(|| Part { offset: start + from, bytes: width.min(length - from) })
    })
}

/// Cuts `bytes` into `parts` contiguous pieces, all but the last a multiple of 16 bytes and of
/// equal size: `(offset, length)` of piece `index`; late pieces may be empty.
pub fn slice(bytes: u64, parts: u32, index: u32) -> (u32, u32) {
    let each = bytes.div_ceil(u64::from(parts)).div_ceil(u64::from(ELEMENT_BYTES))
        * u64::from(ELEMENT_BYTES);
    let start = (each * u64::from(index)).min(bytes);
    let end = (start + each).min(bytes);
    (start as u32, (end - start) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trips_of_14336_bytes_by_two_blocks() {
        // 896 elements over 2 x 512 threads: block 0 has 512 in one trip, block 1 has 384.
        let of = |block| trips(0, 14_336, block, 2, 512).collect::<Vec<_>>();
        assert_eq!(of(0), [Part { offset: 0, bytes: 8192 }]);
        assert_eq!(of(1), [Part { offset: 8192, bytes: 6144 }]);
    }

    #[test]
    fn slices_cover_everything() {
        for bytes in [16_u64, 48, 14_336, 14_352, 100_000] {
            for parts in 1..=16 {
                let total: u64 = (0..parts).map(|i| u64::from(slice(bytes, parts, i).1)).sum();
                assert_eq!(total, bytes);
            }
        }
        // 14,336 bytes over 8 ranks: 1,792 bytes each.
        assert_eq!(slice(14_336, 8, 7), (12_544, 1_792));
    }
}
