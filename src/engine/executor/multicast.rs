//! What goes to all members of a multicast group at once, and remote atomics.

use super::super::network::{ActorId, Load, Network, Notice, Store};
use super::super::slots::SlotRange;
use super::ops::{FLAG, Next};
use super::{Machine, pieces};
use crate::fabric::EndpointId;
use crate::schedule::{GroupId, MessageId, Op, WARP_BYTES};

impl<N: Network> Machine<'_, N> {
    /// Runs an operation of this file.
    pub(super) fn for_group(&mut self, actor: ActorId, block: usize, op: Op) -> Next {
        let first_warp = self.actors[actor as usize].warp == 0;
        match op {
            Op::LoadReduce { group, base, offset, bytes, .. } => {
                let (skip, bytes) = self.share(actor, bytes);
                if bytes == 0 {
                    return Next::Now;
                }
                let address = self.buffer_address[base as usize] + u64::from(offset + skip);
                let load = self.sm_load(actor, block, self.any_other(group, block), bytes);
                self.load(actor, block, Load { address, group, ..load })
            }
            Op::WriteAll { group, bytes, .. } => {
                let (_, bytes) = self.share(actor, bytes);
                if bytes == 0 {
                    return Next::Now;
                }
                let store = self.sm_store(block, self.any_other(group, block), bytes);
                self.store(actor, block, Store { group, ..store })
            }
            Op::SendAll { group, base, stride, offset, bytes, .. } => {
                let (skip, bytes) = self.share(actor, bytes);
                if bytes == 0 {
                    return Next::Now;
                }
                let piece = (offset + skip) / WARP_BYTES;
                let store = self.to_messages(actor, block, group, base, piece);
                let member_stride = store.member_stride * stride;
                self.store(actor, block, Store { bytes, member_stride, ..store })
            }
            Op::FlagAll { group, base } if first_warp => {
                let store = self.to_messages(actor, block, group, base, 0);
                Next::At(self.flag_store(block, store))
            }
            Op::AtomicPeers { base, index, count } if first_warp => {
                self.atomic_peers(actor, block, base, (index, count))
            }
            _ => Next::Now,
        }
    }

    /// A member of a group other than the block's own GPU: the way to it leads to the switch.
    fn any_other(&self, group: GroupId, block: usize) -> EndpointId {
        let gpu = self.blocks[block].gpu;
        let members = &self.schedule.groups[group as usize];
        members.iter().copied().find(|&member| member != gpu).unwrap_or(gpu)
    }

    /// A store into the same piece of the messages `base + k` of all members.
    fn to_messages(
        &self,
        actor: ActorId,
        block: usize,
        group: GroupId,
        base: MessageId,
        piece: u32,
    ) -> Store {
        let slots = SlotRange::one(self.slot(actor, base, piece));
        let member_stride = pieces(self.schedule.messages[base as usize].bytes);
        let store = self.sm_store(block, self.any_other(group, block), FLAG);
        Store { slots, group, member_stride, ..store }
    }

    /// A lane a peer: each sets a flag by an atomic and waits for the old value.
    fn atomic_peers(
        &mut self,
        actor: ActorId,
        block: usize,
        base: MessageId,
        (index, count): (u32, u32),
    ) -> Next {
        let first = base + index * count;
        let gpu = self.blocks[block].gpu;
        let own = SlotRange::one(self.slot(actor, first + index, 0));
        self.notices.push(Notice::Visible(own, self.now));
        let model = &self.fabric.gpus[gpu as usize];
        let mut last = self.now;
        for peer in (0..count).filter(|&peer| peer != index) {
            let message = first + peer;
            let marks = SlotRange::one(self.slot(actor, message, 0));
            let home = self.schedule.messages[message as usize].home;
            let unit = self.blocks[block].unit as usize;
            let start = last.max(self.blocks[unit].unit_free);
            last = start + model.flag_lane;
            self.blocks[unit].unit_free = last;
            if home == gpu {
                let done = start + model.local_load + model.atomic;
                self.notices.push(Notice::Visible(marks, done));
                let record = &mut self.actors[actor as usize];
                record.loads_done = record.loads_done.max(done);
                continue;
            }
            self.actors[actor as usize].outstanding += 1;
            let load = Load { marks, ..self.sm_load(actor, block, home, FLAG) };
            self.issue_load(start + model.load_request, load);
        }
        let wait = self.wait_loads(actor, 0);
        if let Next::At(time) = wait { Next::At(time.max(last)) } else { wait }
    }
}
