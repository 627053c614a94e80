//! What a block does: one operation, what it costs to whom, and what it does to the data.

use serde::Serialize;

use super::{BufferId, GroupId, MessageId};
use crate::topology::TrafficKind;
use crate::units::Time;

/// What an operation does with the data it brings.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// They become the running value.
    Set,
    /// They are added to the running value.
    Add,
    /// They are not part of the result.
    Discard,
}

/// One operation of a block. Offsets and sizes are bytes of the block's part of one trip.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// The rank's kernel begins: all its blocks have ended the call before; then this long.
    KernelStart(Time),
    /// Every warp passes this time.
    Delay(Time),
    /// Loads are sent; the block goes on. The data act on the running value at `data`.
    Load {
        /// Loaded from.
        buffer: BufferId,
        /// Within the buffer.
        offset: u32,
        /// Of the block.
        bytes: u32,
        /// Of the first byte within the call's data.
        data: u32,
        /// On the data.
        action: Action,
        /// What kind of traffic it is, for declared regimes.
        kind: TrafficKind,
    },
    /// Each warp waits until its loads are back.
    WaitLoads,
    /// The running value at `data` is stored to a buffer.
    Write {
        /// Stored to.
        buffer: BufferId,
        /// Within the buffer.
        offset: u32,
        /// Of the block.
        bytes: u32,
        /// Of the first byte within the call's data.
        data: u32,
    },
    /// The running value is stored into a message.
    Send {
        /// Stored to.
        message: MessageId,
        /// Within the message, wire bytes.
        offset: u32,
        /// Of the block, wire bytes.
        bytes: u32,
        /// Of the first byte within the call's data.
        data: u32,
    },
    /// Each warp polls its part of a message until it is there.
    Poll {
        /// Polled.
        message: MessageId,
        /// Within the message, wire bytes.
        offset: u32,
        /// Of the block, wire bytes.
        bytes: u32,
        /// Of the first byte within the call's data.
        data: u32,
        /// On the data.
        action: Action,
    },
    /// One thread stores a flag message.
    Flag(MessageId),
    /// One thread polls a flag message.
    PollFlag {
        /// Polled.
        message: MessageId,
        /// With acquire loads.
        acquire: bool,
    },
    /// Each warp polls the same part of several messages of equal size, one after another in the
    /// list of messages, until all of it is there: the loads of a trip are out together.
    PollEach {
        /// The first.
        base: MessageId,
        /// How many.
        count: u32,
        /// Within each message, wire bytes.
        offset: u32,
        /// Of the block, wire bytes of each.
        bytes: u32,
        /// Of the first byte within the call's data.
        data: u32,
        /// On the first message's data; the others' are added.
        action: Action,
    },
    /// One thread makes sure that a credit is there. The sender counts credits as they come and looks
    /// beside its other waits, so that it costs time only when it is not there yet.
    PollCredit(MessageId),
    /// Member `index` of a group stores a flag to each other member, a thread each: messages
    /// `base + index * count + peer`.
    SignalPeers {
        /// First message of the matrix of `count` rows and columns.
        base: MessageId,
        /// Own place in the group.
        index: u32,
        /// Members.
        count: u32,
    },
    /// Member `index` of a group polls a flag of each other member, a thread each: messages
    /// `base + peer * count + index`.
    PollPeers {
        /// First message of the matrix of `count` rows and columns.
        base: MessageId,
        /// Own place in the group.
        index: u32,
        /// Members.
        count: u32,
        /// With acquire loads, each followed by an invalidation.
        acquire: bool,
    },
    /// The first warp fences at system scope.
    Fence,
    /// A thread beside those that move data stores a flag, behind a fence at system scope if `fenced`;
    /// the block goes on at once. Later posts of the block wait for this one.
    Post {
        /// The flag.
        message: MessageId,
        /// What was stored before is visible behind it.
        fenced: bool,
    },
    /// All posts of the block have left.
    WaitPosts,
    /// One thread makes sure that a step is there. It remembers how many steps its last look at the
    /// counter showed, and looks again only when these are used up.
    PollStep(MessageId),
    /// All warps of the block meet.
    BlockBarrier,
    /// Own data are loaded and stored elsewhere, as a send does.
    Move {
        /// Loaded from, in own memory.
        from: BufferId,
        /// Within that buffer.
        from_offset: u32,
        /// Stored to.
        to: BufferId,
        /// Within that buffer.
        to_offset: u32,
        /// Of the block.
        bytes: u32,
    },
    /// The switch loads the same place of a buffer of every member of a group and sends back the sum
    /// (`multimem.ld_reduce`); the block goes on, as with a load.
    LoadReduce {
        /// The members.
        group: GroupId,
        /// Member k's buffer is `base + k`.
        base: BufferId,
        /// Within each buffer, and within the call's data.
        offset: u32,
        /// Of the block, of one buffer.
        bytes: u32,
        /// On the sum.
        action: Action,
    },
    /// The running value at `offset` is stored once, and the switch copies it to a buffer of every
    /// member (`multimem.st`).
    WriteAll {
        /// The members.
        group: GroupId,
        /// Member k's buffer is `base + k`.
        base: BufferId,
        /// Within each buffer, and within the call's data.
        offset: u32,
        /// Of the block, of one buffer.
        bytes: u32,
    },
    /// The running value is stored once, and the switch copies it into a message to every member.
    SendAll {
        /// The members.
        group: GroupId,
        /// The message to member k is `base + k * stride`; all are alike.
        base: MessageId,
        /// From a member's message to the next one's.
        stride: u32,
        /// Within each message, wire bytes.
        offset: u32,
        /// Of the block, wire bytes of one message.
        bytes: u32,
        /// Of the first byte within the call's data.
        data: u32,
    },
    /// One thread stores a flag that the switch copies to every member: messages `base + k`.
    FlagAll {
        /// The members.
        group: GroupId,
        /// The flag of member k is `base + k`.
        base: MessageId,
    },
    /// As [`Op::SignalPeers`], but each thread sets its flag by a remote atomic (compare-and-swap or
    /// add) and waits for the old value: a non-posted round trip.
    AtomicPeers {
        /// First message of the matrix of `count` rows and columns.
        base: MessageId,
        /// Own place in the group.
        index: u32,
        /// Members.
        count: u32,
    },
    /// The rank's host thread works so long for this block, when it has no other to work for.
    HostTurn(Time),
    /// A copy engine moves bytes by writing (`push`) or by reading.
    Copy {
        /// Copied from.
        from: BufferId,
        /// Within that buffer.
        from_offset: u32,
        /// Copied to.
        to: BufferId,
        /// Within that buffer.
        to_offset: u32,
        /// How many.
        bytes: u32,
        /// The engine sits at the source and writes.
        push: bool,
        /// A bulk copy kernel does it, whose many blocks issue in large bursts.
        kernel: bool,
    },
}
