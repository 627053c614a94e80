//! Slots: the places that are polled. A slot is marked when its bytes are visible in memory, and
//! one actor may wait for it.

use crate::engine::network::NONE;
use crate::units::Time;

/// Consecutive slots, at most a trip's worth.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SlotRange {
    /// First slot.
    pub first: u32,
    /// How many; zero for none.
    pub count: u32,
    /// From one to the next: flags of a barrier are a column of a matrix.
    pub stride: u32,
}

impl SlotRange {
    /// No slots.
    pub const EMPTY: SlotRange = SlotRange { first: 0, count: 0, stride: 1 };

    /// One slot.
    pub fn one(slot: u32) -> SlotRange {
        SlotRange { first: slot, count: 1, stride: 1 }
    }

    /// The slots.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..self.count).map(move |index| self.first + index * self.stride)
    }
}

#[derive(Copy, Clone)]
struct Slot {
    /// When it became visible; `Time::MAX` while it is not.
    visible: Time,
    waiter: u32,
}

/// All slots of a run.
pub struct Slots {
    slots: Vec<Slot>,
}

impl Slots {
    /// `count` unmarked slots.
    pub fn new(count: usize) -> Slots {
        Slots { slots: vec![Slot { visible: Time::MAX, waiter: NONE }; count] }
    }

    /// Marks a slot; returns the waiting actor, if any.
    pub fn mark(&mut self, slot: u32, visible: Time) -> u32 {
        let slot = &mut self.slots[slot as usize];
        assert!(slot.visible == Time::MAX, "a slot is written once");
        slot.visible = visible;
        std::mem::replace(&mut slot.waiter, NONE)
    }

    /// When the slot became visible; `Time::MAX` while it is not.
    pub fn visible(&self, slot: u32) -> Time {
        self.slots[slot as usize].visible
    }

    /// When the last of the slots became visible; `Time::MAX` while one is not.
    pub fn all_visible(&self, range: SlotRange) -> Time {
        range.iter().map(|slot| self.visible(slot)).max().unwrap_or(Time::ZERO)
    }

    /// Lets an actor wait for a slot that is not marked yet.
    pub fn wait(&mut self, slot: u32, actor: u32) {
        let slot = &mut self.slots[slot as usize];
        assert!(slot.waiter == NONE && slot.visible == Time::MAX, "one actor waits for a slot");
        slot.waiter = actor;
    }
}
