//! Fences, and what threads beside those that move data do: posts of flags, looks at counters.

use super::super::network::{ActorId, Network, Store};
use super::super::slots::SlotRange;
use super::Machine;
use super::ops::{Next, SECTOR};
use crate::schedule::{Executor as BlockExecutor, MessageId, Op};
use crate::units::Time;

impl<N: Network> Machine<'_, N> {
    /// A system fence: a constant, or what queued stores need to leave and reads of host memory to
    /// come back.
    pub(super) fn fence(&mut self, block: usize) -> Next {
        match self.blocks[block].executor {
            BlockExecutor::CopyEngine | BlockExecutor::Proxy => Next::Now,
            BlockExecutor::Sm => Next::At(self.now + self.fence_time(block)),
        }
    }

    fn fence_time(&self, block: usize) -> Time {
        let gpu = self.blocks[block].gpu;
        let model = &self.fabric.gpus[gpu as usize];
        let drained = self.network.drain(gpu, self.now);
        let waited = drained.max(self.host_reads[gpu as usize].fence(self.now));
        // The block's own stores are outstanding, local ones too.
        let mut cost =
            if self.blocks[block].actor_count > 1 { model.fence_block } else { model.fence };
        if waited > Time::ZERO {
            cost = cost.max(waited + model.fence_drain);
        }
        if self.last_nvlink_store[gpu as usize]
            .is_some_and(|last| self.now < last + model.fence_nvlink)
        {
            cost = cost.max(model.fence_nvlink);
        }
        cost
    }

    /// Stores a flag when earlier posts and the fence are done, and lets the block go on.
    pub(super) fn post(
        &mut self,
        actor: ActorId,
        block: usize,
        message: MessageId,
        fenced: bool,
    ) -> Next {
        let fence = if fenced { self.fence_time(block) } else { Time::ZERO };
        let slots = SlotRange::one(self.slot(actor, message, 0));
        let record = self.schedule.messages[message as usize];
        let store = Store { slots, ..self.sm_store(block, record.home, record.bytes) };
        let start = self.now.max(self.blocks[block].posted) + fence;
        let gpu = self.blocks[block].gpu;
        let issued = start + self.fabric.gpus[gpu as usize].flag_lane;
        self.blocks[block].posted = issued;
        self.put(store, start, issued);
        Next::Now
    }

    /// Goes on at once when the last look at the counter showed this step, and looks otherwise.
    pub(super) fn poll_step(&mut self, actor: ActorId, block: usize, message: MessageId) -> Next {
        let slot = SlotRange::one(self.slot(actor, message, 0));
        if self.slots.visible(slot.first) <= self.blocks[block].looked {
            return Next::Now;
        }
        self.poll(actor, block, message, slot, SECTOR, false)
    }

    /// Notes when a poll of a counter that comes back at `back` looked at it, `ago` before.
    pub(super) fn note_look(&mut self, actor: ActorId, back: Time, ago: Time) {
        let record = &self.actors[actor as usize];
        let block = &mut self.blocks[record.block as usize];
        let before = (record.position as usize).checked_sub(1);
        if before.is_some_and(|at| matches!(block.ops[at], Op::PollStep(_))) {
            block.looked = back.saturating_sub(ago);
        }
    }
}
