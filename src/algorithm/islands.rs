//! Islands: groups of ranks that are nearer to each other than to the rest, such as the GPUs of one
//! socket or behind one switch.

use super::Request;
use super::lines::Range;
use crate::fabric::Fabric;
use crate::schedule::build::slice;
use crate::topology::PathType;

/// The ranks cut at the farthest kind of path between any two: those joined by something nearer are
/// one island. Ranks in order within an island, islands by their first rank. One island when nothing
/// is nearer than the rest.
pub fn islands(fabric: &Fabric, gpus: &[u32]) -> Vec<Vec<u32>> {
    let n = gpus.len() as u32;
    let near = |a: u32, b: u32| {
        let path = fabric.path_type(gpus[a as usize], gpus[b as usize]);
        // All NVLinks are one kind, whatever their number.
        if let PathType::Nv(_) = path { PathType::Nv(0) } else { path }
    };
    let pairs = (0..n).flat_map(|a| (0..a).map(move |b| (a, b)));
    let farthest = pairs.map(|(a, b)| near(a, b)).max();
    let mut found: Vec<Vec<u32>> = Vec::new();
    for rank in 0..n {
        let joined = |island: &Vec<u32>| island.iter().any(|&b| Some(near(rank, b)) < farthest);
        let (mut own, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(joined);
        own.push(vec![rank]);
        found = rest;
        found.push(own.concat());
    }
    if found.iter().all(|island| island.len() == 1) {
        return vec![(0..n).collect()];
    }
    found.sort();
    found
}

/// Islands with the piece of the data that each member owns: its share of its island's cut. Pieces
/// end wherever a share of some island ends.
pub(super) struct Shares {
    /// The islands.
    pub(super) islands: Vec<Vec<u32>>,
    /// The pieces.
    pub(super) pieces: Vec<Range>,
    /// `[island][piece]`: who owns it there.
    owners: Vec<Vec<u32>>,
}

impl Shares {
    /// Cuts the call's data.
    pub(super) fn of(request: &Request<'_>) -> Shares {
        let (islands, bytes) = (request.islands(), request.bytes);
        let share = |island: &Vec<u32>, member: u32| slice(bytes, island.len() as u32, member);
        let mut cuts: Vec<u32> = islands
            .iter()
            .flat_map(|island| (0..island.len() as u32).map(move |m| share(island, m).0))
            .collect();
        cuts.push(bytes as u32);
        cuts.sort_unstable();
        cuts.dedup();
        let pieces: Vec<Range> = cuts.windows(2).map(|cut| (cut[0], cut[1] - cut[0])).collect();
        let owner = |island: &Vec<u32>, piece: &Range| {
            let holds =
                |&(_, (start, length)): &(u32, Range)| piece.0 >= start && piece.0 < start + length;
            let mut shares = island.iter().zip(0..).map(|(&rank, m)| (rank, share(island, m)));
            shares.find(|at| holds(at)).map_or(island[0], |at| at.0)
        };
        let owners = islands
            .iter()
            .map(|island| pieces.iter().map(|piece| owner(island, piece)).collect())
            .collect();
        Shares { islands, pieces, owners }
    }

    /// The owners of a piece, one an island.
    pub(super) fn owners(&self, piece: usize) -> impl Iterator<Item = u32> {
        self.owners.iter().map(move |owners| owners[piece])
    }

    /// Pieces with their number that `rank` of island `island` owns.
    pub(super) fn owned(&self, island: usize, rank: u32) -> impl Iterator<Item = (usize, Range)> {
        let pieces = self.pieces.iter().copied().enumerate();
        pieces.filter(move |&(piece, _)| self.owners[island][piece] == rank)
    }

    /// Ranks that exchange a piece with each other, across islands: for islands of one size, one of
    /// each; otherwise all ranks.
    pub(super) fn counterparts(&self) -> Vec<Vec<u32>> {
        let first = self.islands[0].len();
        if self.islands.iter().any(|island| island.len() != first) {
            return vec![self.islands.concat()];
        }
        (0..first)
            .map(|member| self.islands.iter().map(|island| island[member]).collect())
            .collect()
    }
}
