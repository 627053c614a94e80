//! What a call computes, and how nccl-tests counts its bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a call computes. Sizes are those of nccl-tests: what one rank passes to an all-reduce,
/// broadcast or reduce; the gathered data of an all-gather; the input of a reduce-scatter or an
/// all-to-all. The root is rank 0.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Collective {
    /// Every rank ends with the sum of all inputs.
    #[default]
    AllReduce,
    /// Every rank ends with every rank's piece.
    AllGather,
    /// Rank r ends with the sum of all inputs' piece r.
    ReduceScatter,
    /// Every rank ends with the root's data.
    Broadcast,
    /// The root ends with the sum of all inputs.
    Reduce,
    /// Rank r ends with piece r of every rank's input.
    AllToAll,
}

/// Bytes of the smallest access that a schedule knows.
const ELEMENT: u64 = 16;

impl Collective {
    /// All, with their names on the command line and in files.
    pub const ALL: [(Collective, &'static str); 6] = [
        (Collective::AllReduce, "all_reduce"),
        (Collective::AllGather, "all_gather"),
        (Collective::ReduceScatter, "reduce_scatter"),
        (Collective::Broadcast, "broadcast"),
        (Collective::Reduce, "reduce"),
        (Collective::AllToAll, "all_to_all"),
    ];

    /// The name on the command line and in files.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    /// The collective of this name.
    pub fn from_name(name: &str) -> Option<Collective> {
        Self::ALL.iter().find(|entry| entry.1 == name).map(|entry| entry.0)
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Collective::AllReduce => "all-reduce",
            Collective::AllGather => "all-gather",
            Collective::ReduceScatter => "reduce-scatter",
            Collective::Broadcast => "broadcast",
            Collective::Reduce => "reduce",
            Collective::AllToAll => "all-to-all",
        }
    }

    /// Whether each rank has a piece of its own in the data.
    pub fn in_pieces(self) -> bool {
        matches!(self, Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll)
    }

    /// Whether one rank, the root, gives or gets all: the others need not wait for each other, so
    /// that calls back to back overlap.
    pub fn has_root(self) -> bool {
        matches!(self, Collective::Broadcast | Collective::Reduce)
    }

    /// Whether contributions are added.
    pub fn reduces(self) -> bool {
        matches!(self, Collective::AllReduce | Collective::ReduceScatter | Collective::Reduce)
    }

    /// Bytes, at least `bytes`, that so many ranks can split into elements of 16 bytes.
    pub fn round_up(self, bytes: u64, ranks: usize) -> u64 {
        let pieces = if self.in_pieces() { ranks.max(1) as u64 } else { 1 };
        bytes.max(1).next_multiple_of(ELEMENT * pieces)
    }

    /// Bus bandwidth over algorithm bandwidth, as nccl-tests has it: what a rank's link carries of
    /// each byte of the size.
    pub fn bus_factor(self, ranks: usize) -> f64 {
        let n = ranks as f64;
        match self {
            Collective::AllReduce => 2.0 * (n - 1.0) / n,
            Collective::Broadcast | Collective::Reduce => 1.0,
            _ => (n - 1.0) / n,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_split_into_pieces_of_whole_elements() {
        // 8 pieces of 16 bytes: 128; 1,000 bytes become 8 x 128 = 1,024.
        for (collective, name) in Collective::ALL {
            let rounded = collective.round_up(1_000, 8);
            assert_eq!(rounded, if collective.in_pieces() { 1_024 } else { 1_008 }, "{name}");
            assert_eq!(Collective::from_name(name), Some(collective));
            assert_eq!(serde_json::to_value(collective).expect("JSON"), name);
        }
    }
}
