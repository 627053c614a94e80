//! Loads, and stores of which somebody is told, while they are under way.

use super::super::{ActorId, Load, NONE, Notice, Store};
use crate::engine::slots::SlotRange;
use crate::fabric::EndpointId;
use crate::units::Time;

/// A load (or copied store) that is under way.
#[derive(Copy, Clone)]
pub(super) struct Transaction {
    pub(super) actor: ActorId,
    pub(super) gpu: u32,
    pub(super) target: EndpointId,
    /// Bytes not yet back.
    pub(super) left: u32,
    pub(super) bytes: u32,
    pub(super) slots: SlotRange,
    /// Which poll of its actor it is; zero for none.
    pub(super) poll_number: u32,
    pub(super) seen: bool,
    /// When its last request arrived; of a poll that is on its way back, when its memory was read.
    pub(super) looked: Time,
    pub(super) cold: bool,
    /// Line of host memory, for single-line requests.
    pub(super) line: u32,
    /// Transaction of the whole load, for single-line requests.
    pub(super) parent: u32,
    /// Next in the line's queue.
    pub(super) next: u32,
    /// Multicast group, members that have still to be reached, and slots from one to the next.
    pub(super) group: u32,
    pub(super) copies: u32,
    pub(super) member_stride: u32,
}

impl Transaction {
    /// Of a store that `copies` members' memories take.
    pub(super) fn of_store(store: &Store, copies: u32) -> Transaction {
        Transaction {
            actor: store.copier,
            gpu: store.gpu,
            target: store.target,
            left: store.bytes,
            bytes: store.bytes,
            slots: store.slots,
            poll_number: 0,
            seen: true,
            looked: Time::ZERO,
            cold: false,
            line: NONE,
            parent: NONE,
            next: NONE,
            group: store.group,
            copies,
            member_stride: store.member_stride,
        }
    }

    /// Of a load, plain, summed or atomic.
    pub(super) fn of_load(load: &Load) -> Transaction {
        Transaction {
            actor: load.actor,
            gpu: load.gpu,
            target: load.target,
            left: load.bytes,
            bytes: load.bytes,
            slots: if load.marks.count > 0 { load.marks } else { load.poll },
            poll_number: load.poll_number,
            seen: true,
            looked: Time::ZERO,
            cold: load.cold,
            line: NONE,
            parent: NONE,
            next: NONE,
            group: load.group,
            copies: 0,
            member_stride: 0,
        }
    }

    /// What the executor is told when all of a load is back.
    pub(super) fn loaded(self, at: Time) -> Notice {
        let Transaction { actor, target, looked, poll_number, seen, bytes, .. } = self;
        let seen = poll_number > 0 && seen;
        Notice::Loaded { actor, target, at, looked, poll_number, seen, bytes }
    }
}
