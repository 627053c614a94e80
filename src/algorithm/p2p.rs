//! How NCCL's host code shares out sends and receives: parts, channels and protocol of what goes to
//! one peer (`init.cc`, ncclP2pSchedule; `enqueue.cc`, addP2pToPlan of NCCL 2.30).

use serde::Serialize;

use super::Protocol;

/// Channels of send and receive inside a machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub struct P2p {
    /// Channels of all.
    pub channels: u32,
    /// Most channels to one peer.
    pub channels_a_peer: u32,
    /// Bytes of a step in Simple.
    pub chunk: u64,
    /// Bytes of a step in LL.
    pub ll_step: u64,
    /// Bytes of a part up to which it goes in LL.
    pub ll_max: u64,
    /// Whether LL is settled before the parts are, with all the channels that a peer may have.
    pub parts_follow_ll: bool,
    /// Ranks of the communicator.
    pub ranks: u32,
}

impl P2p {
    /// In how many parts, each on a channel of its own, `bytes` go to a peer, and in which
    /// protocol. A rank's copy to itself (`to_self`) is never LL.
    pub fn parts(&self, bytes: u64, to_self: bool) -> (u32, Protocol) {
        let mut least = self.channels_a_peer;
        while least * self.ranks > self.channels && least > 1 {
            least /= 2;
        }
        let fits = |parts: u32| !to_self && bytes <= u64::from(parts) * self.ll_max;
        let early_ll = self.parts_follow_ll && fits(self.channels_a_peer);
        let step = if early_ll { self.ll_step } else { self.chunk };
        let mut parts = u64::from(least).min(bytes.div_ceil(step / 8)).max(1) as u32;
        // A part has at most 32 steps.
        while bytes.div_ceil(u64::from(parts)) > 32 * step && parts <= self.channels_a_peer / 2 {
            parts *= 2;
        }
        let ll = if self.parts_follow_ll { early_ll } else { fits(parts) };
        (parts, if ll { Protocol::Ll } else { Protocol::Simple })
    }

    /// First channel of the round in which rank r sends to r + `round`: the round's number with its
    /// bits reversed, so that successive rounds are far apart.
    pub fn first_channel(&self, round: u32) -> u32 {
        let bits = self.channels.ilog2();
        if bits == 0 { 0 } else { round.reverse_bits() >> (32 - bits) }
    }

    /// Channel of a part of a round: parts take successive ones.
    pub fn channel(&self, round: u32, part: u32) -> u32 {
        (self.first_channel(round % self.channels) + part) % self.channels
    }

    /// Channels, and so blocks, that an all-to-all of `bytes` to each rank keeps busy.
    pub fn all_to_all_blocks(&self, bytes: u64) -> u32 {
        let mut busy = 0u64;
        for round in 0..self.ranks {
            let (parts, _) = self.parts(bytes, round == 0);
            for part in 0..parts {
                busy |= 1 << self.channel(round, part);
            }
        }
        busy.count_ones()
    }
}
