//! Host threads that work for the blocks of a rank in turn, as NCCL's proxy does.

use super::super::network::{ActorId, Network, Notice};
use super::super::slots::SlotRange;
use super::Machine;
use super::ops::Next;
use crate::schedule::{Executor as BlockExecutor, MessageId};
use crate::units::Time;

impl<N: Network> Machine<'_, N> {
    /// Whether a block is the work of a host thread.
    pub(super) fn is_proxy(&self, block: usize) -> bool {
        self.blocks[block].executor == BlockExecutor::Proxy
    }

    /// The rank's host thread works so long for a block, after what it was asked for before.
    pub(super) fn host_turn(&mut self, block: usize, time: Time) -> Next {
        let rank = &mut self.ranks[self.blocks[block].rank as usize];
        rank.host_free = rank.host_free.max(self.now) + time;
        Next::At(rank.host_free)
    }

    /// A host thread sets a flag in its own memory, where it is visible at once.
    pub(super) fn host_flag(&mut self, actor: ActorId, message: MessageId) -> Next {
        let slot = SlotRange::one(self.slot(actor, message, 0));
        self.notices.push(Notice::Visible(slot, self.now));
        Next::Now
    }
}
