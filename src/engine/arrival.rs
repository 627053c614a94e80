//! When ranks come to their calls, and what their stay in a call is made of.
//!
//! Between two calls a rank computes. Ranks that compute for different times come to the next call
//! one after another, and the early ones wait inside its kernel: a profile shows that as a long call.

use crate::units::Time;

/// How long each rank computes before each call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrivals {
    /// By call, then by rank.
    gaps: Vec<Vec<Time>>,
}

impl Arrivals {
    /// Nobody computes: every rank comes to a call when it has ended the one before.
    pub const AT_ONCE: Arrivals = Arrivals { gaps: Vec::new() };

    /// `gaps[call][rank]`: from the rank's end of the call before (or the start of the run) to its
    /// arrival. Calls and ranks beyond do not compute.
    pub fn after(gaps: Vec<Vec<Time>>) -> Arrivals {
        Arrivals { gaps }
    }

    /// Whether nobody computes.
    pub fn at_once(&self) -> bool {
        self.gaps.is_empty()
    }

    /// How long a rank computes before a call.
    pub fn gap(&self, call: usize, rank: usize) -> Time {
        let gap = self.gaps.get(call).and_then(|ranks| ranks.get(rank));
        gap.copied().unwrap_or(Time::ZERO)
    }
}

/// A rank's time in a call, from its arrival to its end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stay {
    /// When it came: nothing of the call has begun on it.
    pub arrived: Time,
    /// When it ended the call.
    pub ended: Time,
    /// Spent until the last rank came, or until it had ended, if it need not wait for that one.
    pub waiting: Time,
    /// The rest: what the call takes.
    pub moving: Time,
}

impl Stay {
    /// A stay among ranks of which the last came at `last`.
    pub(super) fn new(arrived: Time, ended: Time, last: Time) -> Stay {
        let waiting = last.min(ended).saturating_sub(arrived);
        Stay { arrived, ended, waiting, moving: ended.saturating_sub(arrived) - waiting }
    }

    /// From arrival to end, as a profile shows the kernel.
    pub fn in_place(&self) -> Time {
        self.waiting + self.moving
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stay_is_waiting_and_moving() {
        let us = Time::from_us;
        let early = Stay::new(us(1.0), us(30.0), us(20.0));
        assert_eq!((early.waiting, early.moving), (us(19.0), us(10.0)));
        let last = Stay::new(us(20.0), us(30.0), us(20.0));
        assert_eq!((last.waiting, last.moving, last.in_place()), (Time::ZERO, us(10.0), us(10.0)));
        // A root's first receiver may be gone before the last rank comes.
        let gone = Stay::new(us(1.0), us(5.0), us(20.0));
        assert_eq!((gone.waiting, gone.moving), (us(4.0), Time::ZERO));
    }
}
