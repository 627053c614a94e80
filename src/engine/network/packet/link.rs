//! Sending over a link: wire bytes, acknowledgements owed, credits, and what is sent next.

use super::super::{OPERAND, Wrapped};
use super::{
    ATOMIC, COMPLETION, COPY, Event, MULTICAST, NON_POSTED, POSTED, Packet, Queue, SPLIT, Tlp,
};
use crate::engine::observer::Observer;
use crate::fabric::LinkId;
use crate::units::Time;

/// Bytes that a header takes of a receiver's buffer.
const HEADER: u32 = 16;
/// A receiver acknowledges at least every few packets: no more than this is ever owed at once.
const DEBT_MAX: u32 = 64;
/// Pieces that an Intel root complex cuts peer traffic into.
const SPLIT_BYTES: u32 = 64;

/// Buffer that a packet takes.
pub(super) fn buffer_bytes(tlp: &Tlp) -> u32 {
    match tlp.class {
        NON_POSTED => 24,
        _ => u32::from(tlp.payload) + HEADER,
    }
}

impl<O: Observer> Packet<'_, O> {
    /// Bytes on the wire of a packet over a link.
    fn wire_bytes(&self, link: LinkId, tlp: &Tlp) -> u32 {
        let extra = self.multicast.overhead[link as usize];
        let link = &self.fabric.links[link as usize];
        let payload = u32::from(tlp.payload);
        let overhead = match tlp.class {
            POSTED if tlp.flags & MULTICAST != 0 => link.write_overhead + extra,
            POSTED => link.write_overhead,
            NON_POSTED if tlp.flags & ATOMIC != 0 => return link.request + OPERAND,
            NON_POSTED => return link.request,
            _ => link.completion_overhead,
        };
        let pieces = if tlp.flags & SPLIT == 0 { 1 } else { payload.div_ceil(SPLIT_BYTES).max(1) };
        payload + overhead * pieces
    }

    /// Which declared kind of traffic a packet carries payload of; none for requests.
    fn payload_kind(tlp: &Tlp) -> Option<usize> {
        match (tlp.class, tlp.flags & COPY != 0) {
            (POSTED, _) => Some(0),
            (COMPLETION, false) => Some(1),
            (COMPLETION, true) => Some(2),
            _ => None,
        }
    }

    /// Whether the far end has room for the packet.
    pub(super) fn has_credit(&self, link: LinkId, tlp: &Tlp) -> bool {
        let class = usize::from(tlp.class);
        let room = self.fabric.links[link as usize].buffer[class];
        let used = self.links[link as usize].used[class];
        // An empty buffer takes any packet, however large.
        used == 0 || used + buffer_bytes(tlp) <= room
    }

    /// Puts a packet on the wire. The link must be free and have credit.
    pub(super) fn transmit(&mut self, now: Time, link: LinkId, tlp: Tlp, context: &mut Queue<'_>) {
        let bytes = self.wire_bytes(link, &tlp);
        let next = self.next_link(&tlp);
        let fabric = self.fabric;
        let record = &fabric.links[link as usize];
        let other = &mut self.links[link as usize ^ 1];
        other.debt = (other.debt + record.dllp).min(DEBT_MAX);
        let state = &mut self.links[link as usize];
        let wire = u64::from(bytes + state.debt);
        state.debt = 0;
        let mut time = record.serialization(wire);
        if let Some(kind) = Self::payload_kind(&tlp)
            && let Some(group) = state.slowed[kind]
        {
            let regulator = &mut self.regulators[group as usize];
            let passes = Time::from_ps(u64::from(tlp.payload) * regulator.fs_per_byte / 1000);
            regulator.free = regulator.free.max(now) + passes;
            let held = regulator.free - now;
            if held > time {
                state.stats.regime += held - time;
                time = held;
            }
        }
        debug_assert!(state.busy_until <= now, "a link sends one packet at a time");
        state.busy_until = now + time;
        state.used[usize::from(tlp.class)] += buffer_bytes(&tlp);
        state.stats.busy += time;
        state.stats.wire_bytes += wire;
        state.stats.packets += 1;
        // A request carries no data, but for the operands of atomics.
        let carries = tlp.class != NON_POSTED || tlp.flags & ATOMIC != 0;
        let payload = if carries { u32::from(tlp.payload) } else { 0 };
        state.stats.payload_bytes += u64::from(payload);
        self.hops += 1;
        self.observer.sends(link, now, time, payload);
        self.observe_buffer(now, link);
        // Cut-through: the next link may start when the head is there, unless it would run dry.
        let ahead = match next {
            None => time,
            Some(next) => time.saturating_sub(fabric.links[next as usize].serialization(wire)),
        };
        let at = now + record.latency + ahead;
        context.queue.push(at, Wrapped::Network(Event::Arrive(link, tlp)));
    }

    fn observe_buffer(&mut self, now: Time, link: LinkId) {
        let held = self.links[link as usize].used.iter().sum();
        self.observer.holds(link, now, held);
    }

    /// Sends what a link can send now, and arms it for the next.
    pub(super) fn serve(&mut self, now: Time, link: LinkId, context: &mut Queue<'_>) {
        if self.links[link as usize].busy_until > now {
            self.arm(link, context);
            return;
        }
        let sent = if self.egress[link as usize].is_some() {
            self.serve_egress(now, link, context)
        } else {
            self.serve_switch(now, link, context)
        };
        if sent {
            self.arm(link, context);
        }
    }

    /// Sees to it that the link looks again when it is free, if anything waits for it.
    pub(super) fn arm(&mut self, link: LinkId, context: &mut Queue<'_>) {
        let waits = match &self.egress[link as usize] {
            Some(egress) => !egress.is_empty(),
            None => self.links[link as usize].any_waits(),
        };
        let state = &mut self.links[link as usize];
        if waits && !state.armed {
            state.armed = true;
            context.queue.push(state.busy_until, Wrapped::Network(Event::PortFree(link)));
        }
    }

    /// The far end has forwarded or taken a packet: its buffer is free again.
    pub(super) fn release(&mut self, now: Time, link: LinkId, tlp: &Tlp, context: &mut Queue<'_>) {
        let state = &mut self.links[link as usize];
        state.used[usize::from(tlp.class)] -= buffer_bytes(tlp);
        self.observe_buffer(now, link);
        let state = &mut self.links[link as usize];
        if state.starved {
            state.starved = false;
            self.serve(now, link, context);
        }
    }
}
