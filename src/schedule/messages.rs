//! Which messages an operation stores or waits for: what ties the blocks of a schedule together.

use super::{MessageId, Op, Schedule};

/// A part of a message: the message, and where in it the part begins.
pub type Part = (MessageId, u32);

impl Schedule {
    /// Parts of messages that an operation stores.
    pub fn stored(&self, op: &Op) -> Vec<Part> {
        match *op {
            Op::Send { message, offset, .. } => vec![(message, offset)],
            Op::Flag(message) | Op::Post { message, .. } => vec![(message, 0)],
            Op::SignalPeers { base, index, count } | Op::AtomicPeers { base, index, count } => {
                let peers = (0..count).filter(|&peer| peer != index);
                peers.map(|peer| (base + index * count + peer, 0)).collect()
            }
            Op::SendAll { group, base, stride, offset, .. } => {
                (0..self.members(group)).map(|member| (base + member * stride, offset)).collect()
            }
            Op::FlagAll { group, base } => {
                (0..self.members(group)).map(|member| (base + member, 0)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Parts of messages that an operation waits for.
    pub fn awaited(&self, op: &Op) -> Vec<Part> {
        match *op {
            Op::Poll { message, offset, .. } => vec![(message, offset)],
            Op::PollEach { base, count, offset, .. } => {
                (base..base + count).map(|message| (message, offset)).collect()
            }
            Op::PollFlag { message, .. } | Op::PollCredit(message) | Op::PollStep(message) => {
                vec![(message, 0)]
            }
            Op::PollPeers { base, index, count, .. } => {
                let peers = (0..count).filter(|&peer| peer != index);
                peers.map(|peer| (base + peer * count + index, 0)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn members(&self, group: u32) -> u32 {
        self.groups.get(group as usize).map_or(0, |group| group.len() as u32)
    }
}
