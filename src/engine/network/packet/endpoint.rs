//! GPUs: one egress queue for writes and read requests, another for completions, which share the
//! link in turn; the completer; and what comes back.

use std::collections::VecDeque;

use super::super::{Load, NONE, Notice, Store, Wrapped};
use super::transaction::Transaction;
use super::{
    ATOMIC, COMPLETION, COPY, Event, LAST, LINE, MULTICAST, NON_POSTED, POSTED, Packet, Pending,
    Queue, SPLIT, Tlp,
};
use crate::engine::observer::Observer;
use crate::fabric::{DirectedLink, EndpointId, Fabric, LinkClass, LinkId};
use crate::topology::TrafficKind;
use crate::units::Time;

/// Packets of one store or load that follow each other in an egress queue.
#[derive(Copy, Clone)]
struct Group {
    cursor: u32,
    transaction: u32,
    /// Bytes not yet sent.
    bytes: u32,
    packet: u16,
    class: u8,
    flags: u8,
    since: Time,
}

/// What waits to leave an endpoint over one link.
pub(super) struct Egress {
    /// Writes and read requests, in order.
    fifo: VecDeque<Group>,
    completions: VecDeque<Group>,
    completions_turn: bool,
    /// Posted payload queued or on its way to the queue.
    posted: u32,
    posted_max: u32,
    /// Somebody was refused.
    wanted: bool,
}

impl Egress {
    pub(super) fn new(fabric: &Fabric, link: &DirectedLink) -> Egress {
        let posted_max = match fabric.gpus.get(link.from as usize) {
            Some(gpu) if link.class == LinkClass::Nvlink => gpu.egress_posted_nvlink,
            Some(gpu) => gpu.egress_posted_pcie,
            None => u32::MAX,
        };
        Egress {
            fifo: VecDeque::new(),
            completions: VecDeque::new(),
            completions_turn: false,
            posted: 0,
            posted_max,
            wanted: false,
        }
    }

    pub(super) fn has_room(&mut self) -> bool {
        let room = self.posted < self.posted_max;
        self.wanted |= !room;
        room
    }

    pub(super) fn want_room(&mut self) {
        self.wanted = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fifo.is_empty() && self.completions.is_empty()
    }

    /// Posted payload that has still to leave.
    pub(super) fn queued_bytes(&self) -> u64 {
        u64::from(self.posted)
    }
}

impl<O: Observer> Packet<'_, O> {
    /// Counts a store against the egress' room when it is issued.
    pub(super) fn reserve(&mut self, link: LinkId, bytes: u32) {
        if let Some(egress) = self.egress.get_mut(link as usize).and_then(Option::as_mut) {
            egress.posted += bytes;
        }
    }

    /// A store or load reaches its GPU's egress.
    pub(super) fn inject(&mut self, now: Time, index: u32, context: &mut Queue<'_>) {
        match self.pending.take(index) {
            Pending::Store(store) => self.inject_store(now, store, context),
            Pending::Load(load) => self.inject_load(now, load, context),
        }
    }

    fn inject_store(&mut self, now: Time, store: Store, context: &mut Queue<'_>) {
        let Some(cursor) = self.fabric.path_at(store.gpu, store.target) else {
            return;
        };
        let copies = store.copier != NONE;
        let told = copies || store.slots.count > 0 || store.group != NONE;
        let transaction = if told {
            let members = self.multicast.members(store.group);
            self.transactions.keep(Transaction::of_store(&store, members))
        } else {
            NONE
        };
        let group = Group {
            cursor,
            transaction,
            bytes: store.bytes,
            packet: store.packet as u16,
            class: POSTED,
            flags: if copies { COPY } else { 0 }
                | self.split_flag(store.gpu, store.target)
                | Self::group_flag(store.group),
            since: now,
        };
        self.enqueue(now, group, context);
    }

    fn split_flag(&self, source: EndpointId, target: EndpointId) -> u8 {
        if self.fabric.split(source, target) == 0 { 0 } else { SPLIT }
    }

    fn inject_load(&mut self, now: Time, load: Load, context: &mut Queue<'_>) {
        let transaction = self.transactions.keep(Transaction::of_load(&load));
        let by_line = !self.fabric.is_gpu(load.target)
            && load.poll.count == 0
            && load.kind == TrafficKind::SmRead
            && !load.cold;
        if by_line {
            self.inject_lines(now, load, transaction, context);
            return;
        }
        let copy = if load.kind == TrafficKind::CopyRead { COPY } else { 0 };
        let atomic = if load.marks.count > 0 { ATOMIC } else { 0 };
        let flags = copy | atomic | Self::group_flag(load.group);
        self.request(now, transaction, load.packet as u16, flags, context);
    }

    /// Queues the read requests of a transaction.
    pub(super) fn request(
        &mut self,
        now: Time,
        transaction: u32,
        packet: u16,
        flags: u8,
        context: &mut Queue<'_>,
    ) {
        let record = self.transactions[transaction];
        let Some(cursor) = self.fabric.path_at(record.gpu, record.target) else {
            return;
        };
        let group = Group {
            cursor,
            transaction,
            bytes: record.bytes,
            packet,
            class: NON_POSTED,
            flags: flags | self.split_flag(record.gpu, record.target),
            since: now,
        };
        self.enqueue(now, group, context);
    }

    fn enqueue(&mut self, now: Time, group: Group, context: &mut Queue<'_>) {
        let link = self.fabric.path_links[group.cursor as usize];
        if let Some(egress) = self.egress[link as usize].as_mut() {
            if group.class == COMPLETION {
                egress.completions.push_back(group);
            } else {
                egress.fifo.push_back(group);
            }
        }
        self.serve(now, link, context);
    }

    /// Sends one packet of an endpoint's egress; false when none may go.
    pub(super) fn serve_egress(
        &mut self,
        now: Time,
        link: LinkId,
        context: &mut Queue<'_>,
    ) -> bool {
        let Some(egress) = &self.egress[link as usize] else {
            return false;
        };
        let first = egress.completions_turn;
        let mut starved = false;
        for completions in [first, !first] {
            let Some(egress) = &self.egress[link as usize] else {
                return false;
            };
            let queue = if completions { &egress.completions } else { &egress.fifo };
            let Some(group) = queue.front().copied() else {
                continue;
            };
            let payload = group.bytes.min(u32::from(group.packet));
            let last = if payload == group.bytes { LAST } else { 0 };
            let tlp = Tlp {
                cursor: group.cursor,
                transaction: group.transaction,
                payload: payload as u16,
                class: group.class,
                flags: group.flags | last,
            };
            if !self.has_credit(link, &tlp) {
                starved = true;
                continue;
            }
            self.links[link as usize].stats.queued += now - group.since;
            self.observer.waited(link, group.since, now);
            self.transmit(now, link, tlp, context);
            self.take(link, completions, payload, context);
            return true;
        }
        self.links[link as usize].starved |= starved;
        false
    }

    /// Takes the packet just sent off the queue, and tells who waits for room or departure.
    fn take(&mut self, link: LinkId, completions: bool, payload: u32, context: &mut Queue<'_>) {
        let gpu = self.fabric.links[link as usize].from;
        let Some(egress) = self.egress[link as usize].as_mut() else {
            return;
        };
        egress.completions_turn = !completions;
        let queue = if completions { &mut egress.completions } else { &mut egress.fifo };
        let Some(group) = queue.front_mut() else {
            return;
        };
        group.bytes -= payload;
        let (class, left, transaction, flags) =
            (group.class, group.bytes, group.transaction, group.flags);
        if left == 0 {
            queue.pop_front();
        }
        if class == POSTED {
            egress.posted -= payload;
            if egress.wanted && egress.posted < egress.posted_max {
                egress.wanted = false;
                context.notices.push(Notice::Room(gpu));
            }
            if left == 0 && flags & COPY != 0 {
                let record = self.transactions[transaction];
                context.notices.push(Notice::Departed(record.actor, record.bytes));
            }
        }
    }

    /// A packet has reached the end of its path.
    pub(super) fn deliver(&mut self, now: Time, link: LinkId, tlp: Tlp, context: &mut Queue<'_>) {
        if tlp.class == NON_POSTED && tlp.flags & MULTICAST == 0 {
            self.transactions[tlp.transaction].looked = now;
        }
        if self.memory_ports[link as usize].is_some() && tlp.class != COMPLETION {
            self.serve_memory(now, link, tlp, context);
            return;
        }
        self.release(now, link, &tlp, context);
        match tlp.class {
            POSTED => {
                if tlp.flags & LAST != 0 && tlp.transaction != NONE {
                    let gpu = self.fabric.links[link as usize].to;
                    let visible = now + self.fabric.gpus[gpu as usize].write_visible;
                    if tlp.flags & MULTICAST != 0 {
                        self.member_written(visible, gpu, tlp, context);
                    } else {
                        self.written(visible, tlp, context);
                    }
                }
            }
            NON_POSTED => {
                let gpu = self.fabric.links[link as usize].to as usize;
                let model = &self.fabric.gpus[gpu];
                let mut at = now + model.completer;
                if tlp.flags & ATOMIC != 0 {
                    at += model.atomic;
                    let slots = self.transactions[tlp.transaction].slots;
                    self.visible(slots, now + model.write_visible + model.atomic, context);
                }
                context.queue.push(at, Wrapped::Network(Event::Complete(tlp)));
            }
            _ => self.returned(now, tlp, context),
        }
    }

    /// The last byte of a store is visible.
    pub(super) fn written(&mut self, visible: Time, tlp: Tlp, context: &mut Queue<'_>) {
        let record = self.transactions.take(tlp.transaction);
        if record.actor != NONE {
            context.notices.push(Notice::Arrived(record.actor, record.bytes, visible));
        }
        self.visible(record.slots, visible, context);
    }

    /// Read data leave the memory or GPU that was asked.
    pub(super) fn complete(&mut self, now: Time, tlp: Tlp, context: &mut Queue<'_>) {
        if tlp.flags & MULTICAST != 0 {
            self.complete_member(now, tlp, context);
            return;
        }
        let record = &mut self.transactions[tlp.transaction];
        let (source, target) = (record.target, record.gpu);
        if record.poll_number > 0 {
            record.seen &= context.slots.all_visible(record.slots) <= now;
            // It is read half way between the request and the answer.
            record.looked += now.saturating_sub(record.looked) / 2;
        }
        let Some(cursor) = self.fabric.path_at(source, target) else {
            return;
        };
        self.answer(now, Tlp { cursor, ..tlp }, context);
    }

    /// Queues the completion of a request, on the way that starts at the packet's cursor.
    pub(super) fn answer(&mut self, now: Time, tlp: Tlp, context: &mut Queue<'_>) {
        let group = Group {
            cursor: tlp.cursor,
            transaction: tlp.transaction,
            bytes: u32::from(tlp.payload),
            packet: tlp.payload,
            class: COMPLETION,
            flags: tlp.flags & !LAST,
            since: now,
        };
        self.enqueue(now, group, context);
    }

    /// Read data are back at the GPU that asked.
    fn returned(&mut self, now: Time, tlp: Tlp, context: &mut Queue<'_>) {
        let record = &mut self.transactions[tlp.transaction];
        record.left -= u32::from(tlp.payload);
        if record.left > 0 {
            return;
        }
        if tlp.flags & LINE != 0 {
            self.line_returned(now, tlp.transaction, context);
            return;
        }
        let record = self.transactions.take(tlp.transaction);
        context.notices.push(record.loaded(now));
    }
}
