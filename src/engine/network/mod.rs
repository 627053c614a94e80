//! How bytes get from one memory to another: one file or folder a fidelity, behind one interface.
//!
//! The executor of schedules knows only [`Network`]: it stores, loads and copies, and is told when
//! something is back or has gone. A network schedules its own events in the common queue.

pub mod alpha_beta;
mod flows;
pub mod max_min;
pub mod packet;
mod pipe;

use crate::engine::event_queue::EventQueue;
use crate::engine::observer::Observer;
use crate::engine::slots::{SlotRange, Slots};
use crate::fabric::EndpointId;
use crate::fabric::regime::SlowedLink;
use crate::topology::TrafficKind;
use crate::units::Time;

/// An executing thread group: a warp, or a whole block where the network fuses warps.
pub type ActorId = u32;
/// No actor, no slot.
pub const NONE: u32 = u32::MAX;

/// A store that leaves a GPU.
#[derive(Copy, Clone, Debug)]
pub struct Store {
    /// GPU it leaves.
    pub gpu: u32,
    /// Memory it goes to.
    pub target: EndpointId,
    /// Payload.
    pub bytes: u32,
    /// Payload of each packet.
    pub packet: u32,
    /// Slots to mark when the last byte is visible; none for plain stores.
    pub slots: SlotRange,
    /// Told when the bytes have left the GPU and when they have arrived; none for SM stores.
    pub copier: ActorId,
    /// The switch copies it to all members of this group, of which `target` is one; none for plain
    /// stores. Member k marks the slots `member_stride * k` after `slots`.
    pub group: u32,
    /// Slots from one member's to the next's.
    pub member_stride: u32,
}

impl Store {
    /// A plain store of these bytes.
    pub fn new(gpu: u32, target: EndpointId, bytes: u32, packet: u32) -> Store {
        let (slots, copier, group) = (SlotRange::EMPTY, NONE, NONE);
        Store { gpu, target, bytes, packet, slots, copier, group, member_stride: 0 }
    }

    /// The slots that the copy of a member marks.
    pub fn member_slots(&self, member: usize) -> SlotRange {
        SlotRange { first: self.slots.first + self.member_stride * member as u32, ..self.slots }
    }
}

/// A load by a GPU.
#[derive(Copy, Clone, Debug)]
pub struct Load {
    /// GPU that loads.
    pub gpu: u32,
    /// Memory it loads from.
    pub target: EndpointId,
    /// Address within that memory, for lines of host memory that several SMs read.
    pub address: u64,
    /// Payload.
    pub bytes: u32,
    /// Payload of each request.
    pub packet: u32,
    /// Told when all is back.
    pub actor: ActorId,
    /// What makes it.
    pub kind: TrafficKind,
    /// Which poll of its actor this is; zero for plain loads.
    pub poll_number: u32,
    /// Polled: whether these slots were marked when the memory was read is reported back.
    pub poll: SlotRange,
    /// Lines are not in the host's cache.
    pub cold: bool,
    /// The switch sums it over all members of this group, of which `target` is one; none for plain
    /// loads.
    pub group: u32,
    /// A remote atomic: its request carries an operand and marks these slots at the memory.
    pub marks: SlotRange,
}

impl Load {
    /// A plain load of these bytes by loads of an SM.
    pub fn new(gpu: u32, target: EndpointId, bytes: u32, packet: u32, actor: ActorId) -> Load {
        Load {
            gpu,
            target,
            address: 0,
            bytes,
            packet,
            actor,
            kind: TrafficKind::SmRead,
            poll_number: 0,
            poll: SlotRange::EMPTY,
            cold: false,
            group: NONE,
            marks: SlotRange::EMPTY,
        }
    }

    /// Bytes that each request carries beside its header: an atomic's operand, one flit.
    pub fn operand(&self) -> u32 {
        if self.marks.count > 0 { OPERAND } else { 0 }
    }
}

/// Bytes of an atomic's operands on the wire, a flit of NVLink: compare and swap hold two words.
pub const OPERAND: u32 = 16;

/// What a network tells the executor.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Slots were marked; what polls them locally may go on from this time.
    Visible(SlotRange, Time),
    /// An actor's load is back; `seen` when it polled and found its slots marked.
    Loaded {
        /// Whose.
        actor: ActorId,
        /// From which memory.
        target: EndpointId,
        /// When.
        at: Time,
        /// When that memory was read, of a poll.
        looked: Time,
        /// Which poll it was; zero for plain loads.
        poll_number: u32,
        /// All polled slots were marked.
        seen: bool,
        /// Bytes.
        bytes: u32,
    },
    /// A copier's bytes have left the GPU.
    Departed(ActorId, u32),
    /// A copier's bytes have arrived.
    Arrived(ActorId, u32, Time),
    /// A GPU's egress has room again.
    Room(u32),
}

/// What a network may touch while it handles something.
pub struct Context<'a, E> {
    /// Common event queue.
    pub queue: &'a mut EventQueue<E>,
    /// For the executor, in order.
    pub notices: &'a mut Vec<Notice>,
    /// Which slots are marked.
    pub slots: &'a Slots,
}

/// Use of one directed link.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Time it was sending.
    pub busy: Time,
    /// Bytes on the wire, overhead included.
    pub wire_bytes: u64,
    /// Payload bytes.
    pub payload_bytes: u64,
    /// Time that packets waited to be sent on it, summed.
    pub queued: Time,
    /// Packets sent.
    pub packets: u64,
    /// Part of `busy` that a declared regime added.
    pub regime: Time,
}

/// One fidelity.
pub trait Network {
    /// Its own events.
    type Event: Copy;

    /// Who watches.
    type Observer: Observer;

    /// Whether a block's warps are one actor.
    const FUSES_WARPS: bool;

    /// Starts a store that reaches the GPU's egress at `at`.
    fn store(&mut self, at: Time, store: Store, context: &mut Context<'_, Wrapped<Self::Event>>);

    /// Starts a load whose requests reach the GPU's egress at `at`.
    fn load(&mut self, at: Time, load: Load, context: &mut Context<'_, Wrapped<Self::Event>>);

    /// Whether a GPU may store towards a memory now, or must wait for [`Notice::Room`].
    fn has_room(&mut self, gpu: u32, target: EndpointId) -> bool;

    /// Asks for [`Notice::Room`] at the next departure that leaves room.
    fn want_room(&mut self, gpu: u32, target: EndpointId);

    /// How long what a GPU has queued needs to leave it.
    fn drain(&self, gpu: u32, now: Time) -> Time;

    /// Handles one of its events.
    fn handle(
        &mut self,
        now: Time,
        event: Self::Event,
        context: &mut Context<'_, Wrapped<Self::Event>>,
    );

    /// Links that regimes slow in this run.
    fn set_slowed(&mut self, slowed: &[SlowedLink]);

    /// Use of every link so far.
    fn link_use(&self) -> Vec<LinkUse>;

    /// Packets sent over links so far, each link counted.
    fn hops(&self) -> u64;

    /// Who watches, to be told of operations too.
    fn observer(&mut self) -> &mut Self::Observer;

    /// Who watched, at the end.
    fn into_observer(self) -> Self::Observer;
}

/// An event of the common queue.
#[derive(Copy, Clone, Debug)]
pub enum Wrapped<E> {
    /// An actor goes on.
    Wake(ActorId),
    /// A poll by load is sent again.
    Repoll(ActorId),
    /// The network's.
    Network(E),
}
