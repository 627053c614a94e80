//! Forwarding nodes: three class queues an ingress port with PCIe's passing rules, and outputs that
//! take ingress ports in turn, packet by packet.

use super::{COMPLETION, MULTICAST, NON_POSTED, NONE, POSTED, Packet, Queue, Queued, Tlp};
use crate::engine::observer::Observer;
use crate::fabric::LinkId;
use crate::units::Time;

/// All classes, as numbers of queues.
const CLASSES: [usize; 3] = [POSTED as usize, NON_POSTED as usize, COMPLETION as usize];

impl<O: Observer> Packet<'_, O> {
    /// A packet is at the far end of a link.
    pub(super) fn arrive(&mut self, now: Time, link: LinkId, tlp: Tlp, context: &mut Queue<'_>) {
        let Some(out) = self.next_link(&tlp) else {
            self.deliver(now, link, tlp, context);
            return;
        };
        let tlp = Tlp { cursor: tlp.cursor + 1, ..tlp };
        if tlp.flags & MULTICAST != 0 {
            self.for_group(now, link, tlp, context);
            return;
        }
        self.pass(now, link, out, tlp, context);
    }

    /// A packet in the buffer of a port goes on over an output, or waits for it.
    pub(super) fn pass(
        &mut self,
        now: Time,
        link: LinkId,
        out: LinkId,
        tlp: Tlp,
        context: &mut Queue<'_>,
    ) {
        let alone = self.links[link as usize].queues.iter().all(|queue| queue.is_empty());
        let state = &self.links[out as usize];
        let waiting = state.any_waits();
        let idle = state.busy_until <= now && !state.armed && !waiting;
        if alone && idle && self.has_credit(out, &tlp) {
            self.transmit(now, out, tlp, context);
            self.release(now, link, &tlp, context);
            return;
        }
        if self.fabric.crossbars[self.fabric.links[out as usize].from as usize] {
            let queued = Queued { tlp, order: NONE, since: now };
            self.links[out as usize].crossing.push_back((link, queued));
            self.serve(now, out, context);
            return;
        }
        let state = &mut self.links[link as usize];
        let order = state.arrivals;
        state.arrivals = state.arrivals.wrapping_add(1);
        let class = usize::from(tlp.class);
        state.queues[class].push_back(Queued { tlp, order, since: now });
        if state.queues[class].len() == 1 {
            self.links[out as usize].waiting[class] |=
                1 << self.fabric.links[link as usize].in_port;
            self.serve(now, out, context);
        }
    }

    /// Whether the head of a queue may be sent before what arrived earlier at its port: reads and
    /// completions do not pass posted writes; posted writes pass everything but each other (PCIe
    /// base specification, table 2-42).
    fn may_pass(&self, ingress: LinkId, class: usize) -> bool {
        let queues = &self.links[ingress as usize].queues;
        if class == usize::from(POSTED) {
            return true;
        }
        match (queues[usize::from(POSTED)].front(), queues[class].front()) {
            (Some(posted), Some(own)) => (own.order.wrapping_sub(posted.order) as i32) < 0,
            _ => true,
        }
    }

    /// Sends one packet over an output of a forwarding node; false when none may go.
    pub(super) fn serve_switch(&mut self, now: Time, out: LinkId, context: &mut Queue<'_>) -> bool {
        if let Some(&(ingress, head)) = self.links[out as usize].crossing.front() {
            let room = self.has_credit(out, &head.tlp);
            let state = &mut self.links[out as usize];
            state.starved |= !room;
            if room {
                state.crossing.pop_front();
                state.stats.queued += now - head.since;
                self.observer.waited(out, head.since, now);
                self.transmit(now, out, head.tlp, context);
                if head.order == NONE || self.was_last_copy(head.order) {
                    self.release(now, ingress, &head.tlp, context);
                }
                return true;
            }
        }
        let state = &self.links[out as usize];
        let node = self.fabric.links[out as usize].from as usize;
        let any = state.ports_waiting();
        if any == 0 {
            return false;
        }
        let (mut late, mut early) = (any >> state.turn << state.turn, any);
        if state.turn > 0 {
            early &= (1 << state.turn) - 1;
        } else {
            early = 0;
        }
        let mut starved = false;
        for mask in [&mut late, &mut early] {
            while *mask != 0 {
                let port = mask.trailing_zeros();
                *mask &= *mask - 1;
                let ingress = self.ports[node][port as usize];
                match self.pick_class(ingress, out, port) {
                    Pick::Class(class) => {
                        self.forward(now, ingress, out, class, context);
                        return true;
                    }
                    Pick::Starved => starved = true,
                    Pick::Blocked => {}
                }
            }
        }
        self.links[out as usize].starved |= starved;
        false
    }

    /// Which class of a port goes next over an output: the one that came first of those that may.
    fn pick_class(&self, ingress: LinkId, out: LinkId, port: u32) -> Pick {
        let mut best: Option<(u32, usize)> = None;
        let mut starved = false;
        for class in CLASSES {
            if self.links[out as usize].waiting[class] >> port & 1 == 0 {
                continue;
            }
            if !self.may_pass(ingress, class) {
                continue;
            }
            let Some(head) = self.links[ingress as usize].queues[class].front() else {
                continue;
            };
            if !self.has_credit(out, &head.tlp) {
                starved = true;
                continue;
            }
            if best.is_none_or(|(order, _)| (head.order.wrapping_sub(order) as i32) < 0) {
                best = Some((head.order, class));
            }
        }
        match best {
            Some((_, class)) => Pick::Class(class),
            None if starved => Pick::Starved,
            None => Pick::Blocked,
        }
    }

    /// Moves the head of a queue to its output, and lets what it held up be looked at.
    fn forward(
        &mut self,
        now: Time,
        ingress: LinkId,
        out: LinkId,
        class: usize,
        context: &mut Queue<'_>,
    ) {
        let port = self.fabric.links[ingress as usize].in_port;
        let Some(head) = self.links[ingress as usize].queues[class].pop_front() else {
            return;
        };
        let state = &mut self.links[out as usize];
        state.waiting[class] &= !(1 << port);
        state.turn = (port + 1) & 127;
        state.stats.queued += now - head.since;
        self.observer.waited(out, head.since, now);
        self.transmit(now, out, head.tlp, context);
        self.release(now, ingress, &head.tlp, context);
        self.ask(now, ingress, class, out, context);
        if class == usize::from(POSTED) {
            // Reads and completions may have waited for this write only.
            for other in &CLASSES[1..] {
                self.ask(now, ingress, *other, out, context);
            }
        }
    }

    /// The head of a queue, new or no longer held up, asks for its output.
    fn ask(
        &mut self,
        now: Time,
        ingress: LinkId,
        class: usize,
        served: LinkId,
        context: &mut Queue<'_>,
    ) {
        let Some(head) = self.links[ingress as usize].queues[class].front() else {
            return;
        };
        let wants = self.fabric.path_links[head.tlp.cursor as usize];
        let port = self.fabric.links[ingress as usize].in_port;
        self.links[wants as usize].waiting[class] |= 1 << port;
        if wants != served {
            self.serve(now, wants, context);
        }
    }
}

/// What a port offers an output.
enum Pick {
    Class(usize),
    /// Only credits of the far end are missing.
    Starved,
    /// Order forbids it for now.
    Blocked,
}
