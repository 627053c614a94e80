//! Plans of stores into the memory of peers: a thread block moves chunks between its own memory and
//! that of others, and semaphores say when they are there.

use std::collections::BTreeMap;

use super::{Faults, Plan, Space};
use crate::error::Span;

/// One GPU of a plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneSidedGpu {
    /// Chunks of scratch memory.
    pub scratch: u32,
    /// Its thread blocks.
    pub blocks: Vec<OneSidedBlock>,
}

/// A thread block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneSidedBlock {
    /// In order.
    pub steps: Vec<OneSidedStep>,
}

/// A step of a thread block.
#[derive(Clone, Debug, PartialEq)]
pub struct OneSidedStep {
    /// What it does.
    pub kind: OneSidedKind,
    /// Where it stands in the file.
    pub span: Span,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum OneSidedKind {
    /// Moves data.
    Move(Move),
    /// Raises a semaphore of a rank, which may be its own: the next [`OneSidedKind::Wait`] there for
    /// this rank and channel ends.
    Signal {
        /// Whose.
        to: u32,
        /// Of the two ranks.
        channel: u32,
        /// What was stored before is visible behind it.
        fenced: bool,
    },
    /// Waits for a signal.
    Wait {
        /// Who signals.
        from: u32,
        /// Of the two ranks.
        channel: u32,
    },
    /// Computes, ns.
    Compute(u64),
}

/// Chunks of several places are added, and the sum is stored to several places.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Move {
    /// Added.
    pub from: Vec<Piece>,
    /// Stored to.
    pub to: Vec<Piece>,
    /// Chunks.
    pub count: u32,
    /// This block's share of the bytes, and how many blocks share them.
    pub share: (u32, u32),
}

/// A place of some chunks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// In whose memory.
    pub rank: u32,
    /// Where there.
    pub space: Space,
    /// The first chunk.
    pub chunk: u32,
    /// As packets, whose lines carry flags of their own; in scratch memory only.
    pub packets: bool,
}

/// A rank that signals, one that waits, a channel.
pub(super) type SemaphoreId = (u32, u32, u32);

/// All that is wrong with a plan, each with its place.
pub(super) fn faults(plan: &Plan, gpus: &[OneSidedGpu]) -> Faults {
    let mut faults = Faults::new();
    let mut semaphores: BTreeMap<SemaphoreId, [Vec<&Span>; 2]> = BTreeMap::new();
    let mut packets = Packets::default();
    for (rank, step) in steps(gpus) {
        let other = match &step.kind {
            OneSidedKind::Move(moved) => {
                let fault = move_fault(plan, gpus, moved);
                packets.moved(rank, moved, fault.is_none(), &step.span);
                faults.extend(fault.map(|fault| (fault, step.span.clone())));
                continue;
            }
            OneSidedKind::Signal { to, channel, .. } => {
                semaphores.entry((rank, *to, *channel)).or_default()[0].push(&step.span);
                *to
            }
            OneSidedKind::Wait { from, channel } => {
                semaphores.entry((*from, rank, *channel)).or_default()[1].push(&step.span);
                *from
            }
            OneSidedKind::Compute(_) => continue,
        };
        if other as usize >= gpus.len() {
            let fault = format!("rank {other} of ranks 0 to {}", gpus.len() - 1);
            faults.push((fault, step.span.clone()));
        }
    }
    if faults.is_empty() {
        faults.extend(unmatched(&semaphores));
        faults.extend(packets.faults());
    }
    faults
}

/// All steps with their ranks.
pub(super) fn steps(gpus: &[OneSidedGpu]) -> impl Iterator<Item = (u32, &OneSidedStep)> {
    let blocks = (0..).zip(gpus).flat_map(|(rank, gpu)| gpu.blocks.iter().map(move |b| (rank, b)));
    blocks.flat_map(|(rank, block)| block.steps.iter().map(move |step| (rank, step)))
}

fn move_fault(plan: &Plan, gpus: &[OneSidedGpu], moved: &Move) -> Option<String> {
    let Move { from, to, count, share } = moved;
    if *count == 0 || from.is_empty() || to.is_empty() {
        return Some("it moves nothing, or from nowhere, or to nowhere".to_owned());
    }
    if share.0 >= share.1 {
        return Some(format!("share {} of {}", share.0, share.1));
    }
    from.iter().chain(to).find_map(|piece| {
        let Some(gpu) = gpus.get(piece.rank as usize) else {
            return Some(format!("rank {} of ranks 0 to {}", piece.rank, gpus.len() - 1));
        };
        if piece.packets && piece.space != Space::Scratch {
            return Some("packets lie in scratch memory only".to_owned());
        }
        plan.outside(gpu.scratch, piece.space, piece.chunk, *count)
    })
}

fn unmatched(semaphores: &BTreeMap<SemaphoreId, [Vec<&Span>; 2]>) -> Faults {
    let mut faults = Faults::new();
    for ((from, to, channel), [signals, waits]) in semaphores {
        let (a, b) = (signals.len(), waits.len());
        if a != b {
            let extra = if a > b { signals[b] } else { waits[a] };
            let what = format!(
                "rank {from} signals rank {to} on channel {channel} {a} times, which waits {b} times"
            );
            faults.push((what, extra.clone()));
        }
    }
    faults
}

/// By whom, which share of how many blocks, and where that stands.
type Stored<'a> = (u32, (u32, u32), &'a Span);

/// Who stores packets into which chunks of scratch, and who reads them.
#[derive(Default)]
struct Packets<'a> {
    /// By rank and chunk: who stores, by which share of how many blocks.
    stores: BTreeMap<(u32, u32), Vec<Stored<'a>>>,
    loads: Vec<((u32, u32), &'a Span)>,
}

impl<'a> Packets<'a> {
    fn moved(&mut self, rank: u32, moved: &Move, sound: bool, span: &'a Span) {
        if !sound {
            return;
        }
        let chunks = |piece: &Piece| {
            (piece.chunk..piece.chunk + moved.count).zip(std::iter::repeat(piece.rank))
        };
        for (chunk, to) in moved.to.iter().filter(|piece| piece.packets).flat_map(chunks) {
            self.stores.entry((to, chunk)).or_default().push((rank, moved.share, span));
        }
        for (chunk, of) in moved.from.iter().filter(|piece| piece.packets).flat_map(chunks) {
            self.loads.push(((of, chunk), span));
        }
    }

    /// A flag tells one call from the next, not one store from another: a chunk is stored once.
    fn faults(&self) -> Faults {
        let mut faults = Faults::new();
        for ((rank, chunk), stores) in &self.stores {
            let again = (1..stores.len()).find(|&at| {
                let (by, share, _) = stores[at];
                stores[..at]
                    .iter()
                    .any(|other| other.0 != by || other.1.1 != share.1 || other.1.0 == share.0)
            });
            faults.extend(again.map(|at| {
                let what =
                    format!("packets of chunk {chunk} in rank {rank}'s scratch are stored twice");
                (what, stores[at].2.clone())
            }));
        }
        for (place, span) in &self.loads {
            if !self.stores.contains_key(place) {
                let what = format!(
                    "nobody stores packets of chunk {} in rank {}'s scratch",
                    place.1, place.0
                );
                faults.push((what, (*span).clone()));
            }
        }
        faults
    }
}
