//! Reads of host memory that a GPU has under way: a system fence waits for them.

use super::Machine;
use crate::engine::network::{Load, Network};
use crate::fabric::EndpointId;
use crate::units::Time;
use std::collections::VecDeque;

/// One GPU's, by SMs and copy engines.
#[derive(Default)]
pub(super) struct HostReads {
    /// When each of those under way was sent, the first of them first: they come back in order, or
    /// nearly so.
    sent: VecDeque<Time>,
    /// What the last one back took.
    round_trip: Time,
}

impl HostReads {
    /// How long a fence at `now` waits for them: until the youngest is back, which takes as long as the
    /// last one did. Beside copies from the host, which always have one just sent, a fence takes 3.5 us
    /// where a dependent read takes 3.4, and 0.5 alone (`measured/h200-probe-3`, `beside`).
    pub(super) fn fence(&self, now: Time) -> Time {
        self.sent.back().map_or(Time::ZERO, |&sent| (sent + self.round_trip).saturating_sub(now))
    }
}

impl<N: Network> Machine<'_, N> {
    /// Notes that a load leaves.
    pub(super) fn read_sent(&mut self, at: Time, load: &Load) {
        if !self.fabric.is_gpu(load.target) {
            self.host_reads[load.gpu as usize].sent.push_back(at);
        }
    }

    /// Notes that a load is back at a GPU.
    pub(super) fn read_back(&mut self, gpu: u32, target: EndpointId, at: Time) {
        if !self.fabric.is_gpu(target) {
            let reads = &mut self.host_reads[gpu as usize];
            if let Some(sent) = reads.sent.pop_front() {
                reads.round_trip = at.saturating_sub(sent);
            }
        }
    }
}
