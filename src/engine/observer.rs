//! Who watches a run: told of operations and packets as they happen, compiled in or not at all.

use crate::fabric::LinkId;
use crate::units::Time;

/// Hears what happens. Nothing that it does changes the run.
pub trait Observer {
    /// The first warp of a block, counted over all ranks, begins an operation that takes time or
    /// waits.
    fn begins(&mut self, block: u32, call: u32, position: u32, now: Time);

    /// It goes on.
    fn goes_on(&mut self, block: u32, now: Time);

    /// A link sends a packet of so much payload for a time.
    fn sends(&mut self, link: LinkId, now: Time, busy: Time, payload: u32);

    /// A packet that is sent over a link now has waited for it since then.
    fn waited(&mut self, link: LinkId, since: Time, now: Time);

    /// The buffer at the far end of a link holds so many bytes from now on.
    fn holds(&mut self, link: LinkId, now: Time, bytes: u32);
}

/// Nobody watches: every call is empty and leaves nothing in the program.
#[derive(Copy, Clone, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    #[inline(always)]
    fn begins(&mut self, _: u32, _: u32, _: u32, _: Time) {}
    #[inline(always)]
    fn goes_on(&mut self, _: u32, _: Time) {}
    #[inline(always)]
    fn sends(&mut self, _: LinkId, _: Time, _: Time, _: u32) {}
    #[inline(always)]
    fn waited(&mut self, _: LinkId, _: Time, _: Time) {}
    #[inline(always)]
    fn holds(&mut self, _: LinkId, _: Time, _: u32) {}
}
