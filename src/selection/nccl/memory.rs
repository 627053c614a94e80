//! Memory that NCCL's connections take (`init.cc`, `transport/p2p.cc`, `transport/shm.cc`).

use serde::Serialize;

use super::constants::Constants;
use super::environment::Settings;

/// How a connection carries data.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The sender writes to the receiver's GPU.
    Write,
    /// In Simple the receiver reads from the sender's GPU.
    Read,
    /// Both use host memory.
    Host,
}

/// Memory of one direction of one channel between two ranks, bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connection {
    /// On the receiver's GPU.
    pub receiver: u64,
    /// On the sender's GPU.
    pub sender: u64,
    /// In host memory.
    pub host: u64,
}

/// Buffers of LL, LL128 and Simple, bytes, as set or NCCL's own.
pub fn buffers(constants: &Constants, settings: &Settings) -> [u64; 3] {
    let own = constants.buffers;
    let [ll, ll128, simple] = settings.buffers;
    [ll.unwrap_or(own.ll), ll128.unwrap_or(own.ll128), simple.unwrap_or(own.simple)]
}

/// What a connection takes: buffers of all three protocols, used or not, and flags at both ends.
pub fn connection(constants: &Constants, settings: &Settings, way: Way) -> Connection {
    let [ll, ll128, simple] = buffers(constants, settings);
    let header = constants.allocation.header;
    let whole = |bytes: u64| bytes.next_multiple_of(constants.allocation.granularity);
    match way {
        Way::Write => Connection {
            receiver: whole(header + ll + ll128 + simple),
            sender: whole(header),
            host: 0,
        },
        Way::Read => Connection {
            receiver: whole(header + ll + ll128),
            sender: whole(header + simple),
            host: 0,
        },
        Way::Host => Connection { receiver: 0, sender: 0, host: 2 * header + ll + ll128 + simple },
    }
}

/// Memory of a rank, bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// On its GPU.
    pub gpu: u64,
    /// In host memory.
    pub host: u64,
}

impl Memory {
    /// Of a rank that receives over `incoming` and sends over `outgoing` connections of this way.
    fn of(each: Connection, incoming: u32, outgoing: u32) -> Memory {
        let (incoming, outgoing) = (u64::from(incoming), u64::from(outgoing));
        Memory {
            gpu: incoming * each.receiver + outgoing * each.sender,
            host: incoming * each.host,
        }
    }

    fn plus(self, other: Memory) -> Memory {
        Memory { gpu: self.gpu + other.gpu, host: self.host + other.host }
    }
}

/// What a communicator connects.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Channels of rings and trees.
    pub channels: u32,
    /// The tree is used too: a rank in the middle of the chain talks to both neighbours both ways,
    /// of which it shares two directions with the ring.
    pub tree: bool,
    /// Peers to which it sends and from which it receives on its own, and the channels to each.
    pub p2p: Option<(u32, u32)>,
}

/// Memory of a rank for its connections. NCCL from 2.22 on connects an algorithm at its first use,
/// and peers of send and receive at theirs, so that this is what a rank has once all were used.
pub fn of_rank(
    constants: &Constants,
    settings: &Settings,
    connections: Connections,
    way: Way,
) -> Memory {
    let each = connection(constants, settings, way);
    let directions = connections.channels * if connections.tree { 2 } else { 1 };
    let collectives = Memory::of(each, directions, directions);
    let (peers, channels) = connections.p2p.unwrap_or((0, 0));
    collectives.plus(Memory::of(each, peers * channels, peers * channels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::nccl::Version;

    const MIB: u64 = 1 << 20;

    fn constants() -> Constants {
        Constants::of(Version::parse("2.30.7").expect("a version")).expect("constants")
    }

    #[test]
    fn a_connection_takes_whole_pieces_of_two_mebibytes() {
        let constants = constants();
        let of = |way| connection(&constants, &Settings::default(), way);
        // 4,096 + 524,288 + 4,915,200 + 4,194,304 = 9,637,888: five pieces; 4,096: one.
        assert_eq!(of(Way::Write), Connection { receiver: 10 * MIB, sender: 2 * MIB, host: 0 });
        // 5,443,584: three pieces; 4,198,400: three.
        assert_eq!(of(Way::Read), Connection { receiver: 6 * MIB, sender: 6 * MIB, host: 0 });
        assert_eq!(of(Way::Host).host, 9_641_984);
    }

    #[test]
    fn a_rank_pays_for_each_channel_and_peer() {
        let constants = constants();
        let settings = Settings::default();
        let ring = Connections { channels: 4, tree: false, p2p: None };
        // 4 x (10 + 2).
        assert_eq!(of_rank(&constants, &settings, ring, Way::Write).gpu, 48 * MIB);
        let all = Connections { tree: true, p2p: Some((7, 2)), ..ring };
        // Twice that, and 7 x 2 x 12.
        assert_eq!(of_rank(&constants, &settings, all, Way::Write).gpu, (96 + 168) * MIB);
        // 1 MiB of Simple instead of 4: 6,492,160 are four pieces of 2 MiB.
        let small = Settings::parse("NCCL_BUFFSIZE=1048576").expect("settings");
        assert_eq!(of_rank(&constants, &small, ring, Way::Write).gpu, 4 * (8 + 2) * MIB);
    }
}
