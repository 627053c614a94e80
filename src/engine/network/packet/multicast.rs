//! NVSwitches that copy and reduce. A packet to a group waits for every member's output at once, and
//! keeps its place in its port's buffer until the last has taken a copy. A reduced load is such a
//! packet too; its completions are summed at the ports where they enter, and the last of a packet goes
//! on as the sum.

use std::collections::VecDeque;

use super::super::{Store, Wrapped};
use super::{COMPLETION, Event, MULTICAST, NON_POSTED, NONE, Packet, Queue, Queued, Tlp};
use crate::engine::observer::Observer;
use crate::engine::pool::Pool;
use crate::fabric::{Fabric, LinkId, MulticastGroup, MulticastPort};
use crate::schedule::Schedule;
use crate::units::Time;

/// One sum under way in a switch.
#[derive(Copy, Clone)]
struct Gather {
    /// The load that asked, at its GPU.
    transaction: u32,
    /// Port by which it asked.
    ingress: LinkId,
    /// Members whose data are missing.
    left: u32,
}

/// What a switch port knows of multicast.
#[derive(Clone, Default)]
struct Port {
    /// Requests that wait for room among the sums of this port.
    held: VecDeque<Tlp>,
    /// Payload of sums under way that were asked for here.
    gathering: u32,
    /// When its share of the reduction units is free.
    free: Time,
}

/// Multicast of all switches.
pub(super) struct Multicast<'a> {
    groups: Vec<Option<MulticastGroup<'a>>>,
    /// By link to a switch.
    ports: Vec<Port>,
    gathers: Pool<Gather>,
    /// Copies that have still to leave, of each packet that waits for outputs.
    copies: Pool<u32>,
    /// Bytes that a packet to a group is longer by, by link.
    pub(super) overhead: Vec<u32>,
    /// Where a link from a switch stands at the end of a path, by link.
    down_at: Vec<u32>,
}

impl<'a> Multicast<'a> {
    pub(super) fn new(fabric: &'a Fabric, schedule: &Schedule) -> Multicast<'a> {
        let groups: Vec<Option<MulticastGroup<'a>>> =
            schedule.groups.iter().map(|gpus| fabric.multicast(gpus).ok()).collect();
        let links = fabric.links.len();
        let (mut overhead, mut down_at) = (vec![0; links], vec![NONE; links]);
        for group in groups.iter().flatten() {
            for port in &group.ports {
                overhead[port.up as usize] = group.switch.overhead;
                overhead[port.down as usize] = group.switch.overhead;
                down_at[port.down as usize] = port.down_at;
            }
        }
        let ports = vec![Port::default(); links];
        let (gathers, copies) = (Pool::new(), Pool::new());
        Multicast { groups, ports, gathers, copies, overhead, down_at }
    }

    fn group(&self, group: u32) -> Option<&MulticastGroup<'a>> {
        self.groups.get(group as usize)?.as_ref()
    }

    /// How many members a group has; one for plain traffic.
    pub(super) fn members(&self, group: u32) -> u32 {
        self.group(group).map_or(1, |group| group.ports.len() as u32)
    }
}

impl<O: Observer> Packet<'_, O> {
    /// Flag of a store or load that goes to a group.
    pub(super) fn group_flag(group: u32) -> u8 {
        if group == NONE { 0 } else { MULTICAST }
    }

    /// A packet to or from all members is at the switch.
    pub(super) fn for_group(&mut self, now: Time, link: LinkId, tlp: Tlp, context: &mut Queue<'_>) {
        match tlp.class {
            COMPLETION => self.gather(now, link, tlp, context),
            NON_POSTED => self.begin_sum(now, link, tlp, context),
            _ => {
                let group = self.transactions[tlp.transaction].group;
                self.fan_out(now, link, tlp, group, context);
            }
        }
    }

    /// A request for a sum goes to all members, or waits for others of its port to end.
    fn begin_sum(&mut self, now: Time, ingress: LinkId, tlp: Tlp, context: &mut Queue<'_>) {
        let number = self.transactions[tlp.transaction].group;
        let Some(group) = self.multicast.groups[number as usize].as_ref() else { return };
        let (room, left) = (group.switch.reduce_buffer, group.ports.len() as u32);
        let payload = u32::from(tlp.payload);
        let port = &mut self.multicast.ports[ingress as usize];
        if port.gathering > 0 && port.gathering + payload > room {
            port.held.push_back(tlp);
            return;
        }
        port.gathering += payload;
        let gather = Gather { transaction: tlp.transaction, ingress, left };
        let transaction = self.multicast.gathers.keep(gather);
        self.fan_out(now, ingress, Tlp { transaction, ..tlp }, number, context);
    }

    /// A copy of a packet waits for each member's output.
    fn fan_out(
        &mut self,
        now: Time,
        ingress: LinkId,
        tlp: Tlp,
        group: u32,
        context: &mut Queue<'_>,
    ) {
        let members = self.multicast.members(group);
        let order = self.multicast.copies.keep(members);
        for member in 0..members as usize {
            let port = self.multicast.group(group).map(|group| group.ports[member]);
            let Some(MulticastPort { down, down_at, .. }) = port else { return };
            let copy = Tlp { cursor: down_at, ..tlp };
            let queued = Queued { tlp: copy, order, since: now };
            self.links[down as usize].crossing.push_back((ingress, queued));
            self.serve(now, down, context);
        }
    }

    /// A copy has left; true when it was the last of its packet.
    pub(super) fn was_last_copy(&mut self, order: u32) -> bool {
        let left = &mut self.multicast.copies[order];
        *left -= 1;
        let last = *left == 0;
        if last {
            self.multicast.copies.take(order);
        }
        last
    }

    /// A member's copy of a store's last packet has arrived.
    pub(super) fn member_written(
        &mut self,
        visible: Time,
        gpu: u32,
        tlp: Tlp,
        context: &mut Queue<'_>,
    ) {
        let record = &mut self.transactions[tlp.transaction];
        record.copies -= 1;
        let (slots, stride, copies) = (record.slots, record.member_stride, record.copies);
        let group = self.multicast.group(record.group);
        let member = group.and_then(|group| group.ports.iter().position(|port| port.gpu == gpu));
        let store = Store { slots, member_stride: stride, ..Store::new(gpu, gpu, 0, 0) };
        self.visible(store.member_slots(member.unwrap_or(0)), visible, context);
        if copies == 0 {
            self.transactions.take(tlp.transaction);
        }
    }

    /// A member's data leave it for the switch.
    pub(super) fn complete_member(&mut self, now: Time, tlp: Tlp, context: &mut Queue<'_>) {
        let link = self.fabric.path_links[tlp.cursor as usize];
        let gpu = self.fabric.links[link as usize].to;
        let gather = self.multicast.gathers[tlp.transaction];
        let group = self.multicast.group(self.transactions[gather.transaction].group);
        let port = group.and_then(|group| group.ports.iter().find(|port| port.gpu == gpu));
        let Some(cursor) = port.map(|port| port.up_at) else { return };
        self.answer(now, Tlp { cursor, ..tlp }, context);
    }

    /// A member's data are at the switch: they pass the reduction unit of their port.
    pub(super) fn gather(&mut self, now: Time, link: LinkId, tlp: Tlp, context: &mut Queue<'_>) {
        let gather = self.multicast.gathers[tlp.transaction];
        let group = self.transactions[gather.transaction].group;
        let Some(group) = self.multicast.groups[group as usize].as_ref() else { return };
        let passes = u64::from(tlp.payload) * group.switch.reduce_fs_per_byte / 1000;
        let latency = group.switch.reduce_latency;
        let port = &mut self.multicast.ports[link as usize];
        port.free = port.free.max(now) + Time::from_ps(passes);
        let event = Event::Reduced(link, tlp);
        context.queue.push(port.free + latency, Wrapped::Network(event));
    }

    /// A member's data are added. The last one's place in the buffer becomes that of the sum, which
    /// goes down to the GPU that asked.
    pub(super) fn reduced(&mut self, now: Time, link: LinkId, tlp: Tlp, context: &mut Queue<'_>) {
        let gather = &mut self.multicast.gathers[tlp.transaction];
        gather.left -= 1;
        if gather.left > 0 {
            self.release(now, link, &tlp, context);
            return;
        }
        let Gather { transaction, ingress, .. } = self.multicast.gathers.take(tlp.transaction);
        let port = &mut self.multicast.ports[ingress as usize];
        port.gathering -= u32::from(tlp.payload);
        if let Some(held) = port.held.pop_front() {
            self.begin_sum(now, ingress, held, context);
        }
        let out = ingress ^ 1;
        let cursor = self.multicast.down_at[out as usize];
        let sum = Tlp { cursor, transaction, flags: tlp.flags & !MULTICAST, ..tlp };
        self.pass(now, link, out, sum, context);
    }
}
