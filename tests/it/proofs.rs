//! Is every schedule right at every size at which it changes its shape, and would the proof notice
//! if one were not?

use collsim::algorithm::{Algorithm, BarrierKind, Flags, Implementation, Protocol, Request};
use collsim::algorithm::{Settled, Transport, build, nccl};
use collsim::schedule::proof::prove;
use collsim::schedule::{Action, Collective, Op, Role, Schedule};
use rayon::prelude::*;
use std::collections::BTreeSet;

use crate::rig::{Rig, choices};
use crate::schedules::sixteen;

/// Changes of shape that are looked for between a size and its double.
const CHANGES_MAX: usize = 2;

/// What makes schedules of two sizes differ by more than the length of their last pieces: blocks and
/// their threads; messages, of which every channel, chunk and slice has its own; and how often a
/// block goes round, up to a factor of two.
#[derive(PartialEq, Eq)]
struct Shape {
    threads: Vec<u32>,
    messages: usize,
    rounds: u32,
}

impl Shape {
    fn of(schedule: &Schedule) -> Shape {
        let blocks = || schedule.ranks.iter().flat_map(|rank| &rank.blocks);
        let longest = blocks().map(|block| block.ops.len()).max().unwrap_or(0);
        Shape {
            threads: blocks().map(|block| block.threads).collect(),
            messages: schedule.messages.len(),
            rounds: longest.ilog2(),
        }
    }
}

/// An algorithm as one library runs it on one machine.
struct Subject<'a> {
    rig: &'a Rig,
    algorithm: &'a Algorithm,
    protocol: Protocol,
    implementation: Implementation,
    ranks: u32,
    /// Blocks and threads, where they are told.
    told: (Option<u32>, Option<u32>),
}

impl Subject<'_> {
    /// Sizes grow by whole elements of every rank's piece.
    fn unit(&self) -> u64 {
        self.algorithm.collective.round_up(1, self.ranks as usize)
    }

    /// The schedule of this many units.
    fn schedule(&self, units: u64) -> Schedule {
        let gpus = self.rig.fabric.gpu_count as u32;
        let request = Request {
            fabric: &self.rig.fabric,
            // Ranks beyond the GPUs share them.
            gpus: (0..self.ranks).map(|rank| rank % gpus).collect(),
            bytes: units * self.unit(),
            protocol: self.protocol,
            kernel: self.rig.kernel(self.implementation),
            transport: Transport::Peer,
            flags: Flags::Peer,
            blocks: self.told.0,
            settled: self.told.1.and_then(|threads| self.split(threads)),
            orders: Vec::new(),
            islands: Vec::new(),
        };
        build(self.algorithm, &request).expect("builds")
    }

    /// NCCL's split with so many threads in every block, however small the call is.
    fn split(&self, threads: u32) -> Option<Settled> {
        let collective = nccl::Collective::of(self.algorithm.collective)?;
        let algorithm = match self.algorithm.name {
            "chain" => nccl::Algorithm::Tree,
            _ => nccl::Algorithm::Ring,
        };
        let channels = self.told.0.unwrap_or(1);
        let own = nccl::Split::new(collective, algorithm, self.protocol, 0, self.ranks, channels);
        Some(Settled::Split(nccl::Split { threads_max: threads, threshold: 0, ..own }))
    }

    fn shape(&self, units: u64) -> Shape {
        Shape::of(&self.schedule(units))
    }

    /// Sizes up to `most` units at which the shape is another than one unit before: the first few
    /// between each size and its double.
    fn changes(&self, most: u64) -> Vec<u64> {
        let (mut found, mut low) = (Vec::new(), 1);
        let mut before = self.shape(low);
        while low < most {
            let high = (low * 2).min(most);
            let after = self.shape(high);
            for _ in 0..CHANGES_MAX {
                if before == after {
                    break;
                }
                let (mut same, mut other, mut first) = (low, high, None);
                while other - same > 1 {
                    let middle = (same + other) / 2;
                    let shape = self.shape(middle);
                    if shape == before {
                        same = middle;
                    } else {
                        (other, first) = (middle, Some(shape));
                    }
                }
                found.push(other);
                let Some(next) = first else { break };
                (low, before) = (other, next);
            }
            (low, before) = (high, after);
        }
        found
    }

    /// Proves one unit, and one before, at and after each change up to `most` bytes; how many sizes.
    fn prove_around_changes(&self, most: u64) -> usize {
        let most = most.div_ceil(self.unit()).max(1);
        let around = |at: u64| at.saturating_sub(1)..=at + 1;
        let mut sizes: Vec<u64> = self.changes(most).into_iter().flat_map(around).collect();
        sizes.extend([1, most, most + 1]);
        sizes.retain(|&units| units > 0);
        sizes.sort_unstable();
        sizes.dedup();
        self.prove(&sizes)
    }

    /// Proves these numbers of units; how many.
    fn prove(&self, sizes: &[u64]) -> usize {
        for &units in sizes {
            let schedule = self.schedule(units);
            prove(&schedule).unwrap_or_else(|flaw| panic!("{}: {flaw}", self.name(&schedule)));
        }
        sizes.len()
    }

    fn name(&self, schedule: &Schedule) -> String {
        format!(
            "{} of {:?}, {:?}, {} ranks, {} B, {:?} blocks and threads",
            schedule.name,
            self.implementation,
            self.algorithm.collective,
            self.ranks,
            schedule.bytes,
            self.told
        )
    }
}

/// Proves all subjects around their changes; how many sizes in all.
fn prove_all(subjects: &[(Subject<'_>, u64)]) -> usize {
    subjects.par_iter().map(|(subject, most)| subject.prove_around_changes(*most)).sum()
}

/// Every algorithm and protocol with those who run them, NCCL's rings and chains left out, each with
/// a machine that can.
struct Benches {
    pcie: Rig,
    nvlink: Rig,
    switched: Rig,
}

impl Benches {
    fn new() -> Benches {
        let named = Rig::named;
        let (pcie, nvlink) = (named("rtxpro6000x16-flat"), named("h200x8-nvswitch"));
        Benches { pcie, nvlink, switched: sixteen() }
    }

    fn all(&self) -> Vec<(&Rig, &'static Algorithm, Protocol, Implementation)> {
        let in_switch = self.switched.choices().into_iter().filter(|one| one.0.is_in_switch());
        let mut all = Vec::new();
        for (algorithm, protocol) in choices().into_iter().chain(in_switch) {
            for &implementation in algorithm.implementations {
                let rig = match (algorithm.is_in_switch(), implementation.barrier()) {
                    (true, _) => &self.switched,
                    (false, BarrierKind::Flags) => &self.pcie,
                    (false, _) => &self.nvlink,
                };
                all.push((rig, algorithm, protocol, implementation));
            }
        }
        all
    }
}

/// The kernels of all libraries but NCCL's, as their own rules launch them.
#[test]
fn every_kernel_is_proved_where_it_changes() {
    let benches = Benches::new();
    let mut subjects = Vec::new();
    for (rig, algorithm, protocol, implementation) in benches.all() {
        if implementation == Implementation::Nccl && !algorithm.is_in_switch() {
            continue;
        }
        for ranks in 2..=rig.fabric.gpu_count as u32 {
            let told = (None, None);
            let subject = Subject { rig, algorithm, protocol, implementation, ranks, told };
            // What every rank stores at every other is many operations, and for small calls only.
            let each: u64 = if algorithm.name == "one_shot_push" { 2 << 20 } else { 4 << 20 };
            subjects.push((subject, each / u64::from(ranks.max(8))));
        }
    }
    let sizes = prove_all(&subjects);
    assert!(sizes > 12 * subjects.len(), "{sizes} sizes of {} kernels", subjects.len());
}

/// NCCL's algorithms with their protocols.
fn of_nccl() -> Vec<(&'static Algorithm, Protocol)> {
    let own = |choice: &(&'static Algorithm, Protocol)| {
        choice.0.implementations.contains(&Implementation::Nccl)
    };
    choices().into_iter().filter(own).collect()
}

/// Data bytes of the largest chunk of a protocol: a step of a buffer, for Simple two slices of two.
fn chunk(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::Ll => 32_768,
        Protocol::Ll128 => 576_000,
        Protocol::Simple => 2 << 20,
    }
}

/// One more than the steps of a connection's buffer, so that it has gone round.
const SLOTS: u64 = 9;
/// A block so wide that a slice is one trip: trips are no matter of the chunks.
const WIDE: u32 = 1 << 16;

/// One channel of NCCL's, as wide as that, until chunks are as large as they get and slots of a
/// connection are used again.
fn one_channel<'a>(
    rig: &'a Rig,
    (algorithm, protocol): (&'static Algorithm, Protocol),
    ranks: u32,
) -> (Subject<'a>, u64) {
    let (implementation, told) = (Implementation::Nccl, (Some(1), Some(WIDE)));
    let chunks = chunk(protocol) + 16;
    let most = match algorithm.collective {
        // NCCL halves the chunks of a chain down to about this.
        _ if algorithm.name == "chain" => SLOTS * (37 << 10),
        Collective::Broadcast | Collective::Reduce => SLOTS * chunks.min(512 << 10),
        _ => u64::from(ranks) * chunks,
    };
    (Subject { rig, algorithm, protocol, implementation, ranks, told }, most)
}

#[test]
fn nccls_kernels_are_proved_where_they_change() {
    let rig = Rig::named("rtxpro6000x16-flat");
    let mut subjects = Vec::new();
    for choice in of_nccl() {
        for ranks in 2..=16 {
            let one = one_channel(&rig, choice, ranks);
            // As NCCL itself gives small calls channels and threads.
            let own = Subject { told: (None, None), ..one.0 };
            subjects.extend([one, (own, 64 << 10)]);
        }
    }
    let sizes = prove_all(&subjects);
    assert!(sizes > 12 * subjects.len(), "{sizes} sizes of {} kernels", subjects.len());
}

/// Around the size at which every rank has one full chunk, or all slots of a connection one.
#[test]
fn rings_and_trees_of_many_ranks_are_proved_at_their_chunks() {
    let rig = Rig::named("rtxpro6000x16-flat");
    let rings = |choice: &(&Algorithm, Protocol)| choice.0.collective != Collective::AllToAll;
    let of = |choice| (17..=64).map(move |ranks| (choice, ranks));
    let cases: Vec<_> = of_nccl().into_iter().filter(rings).flat_map(of).collect();
    let sizes: usize = cases
        .into_par_iter()
        .map(|(choice, ranks)| {
            let (subject, most) = one_channel(&rig, choice, ranks);
            let full = (most - 16 * u64::from(ranks)) / subject.unit();
            subject.prove(&[1, full, full + 1])
        })
        .sum();
    assert_eq!(sizes, 6 * 3 * 48 * 3);
}

/// An operation that brings data somewhere.
fn brings_data(op: &Op) -> bool {
    match op {
        Op::Load { action, .. } => *action != Action::Discard,
        Op::Write { .. }
        | Op::Send { .. }
        | Op::Poll { .. }
        | Op::PollEach { .. }
        | Op::LoadReduce { .. }
        | Op::WriteAll { .. }
        | Op::SendAll { .. }
        | Op::Move { .. } => true,
        _ => false,
    }
}

/// The same with its data one element on.
fn moved_on(op: &mut Op) {
    match op {
        Op::Load { data, .. }
        | Op::Write { data, .. }
        | Op::Send { data, .. }
        | Op::Poll { data, .. }
        | Op::PollEach { data, .. }
        | Op::SendAll { data, .. } => *data += 16,
        Op::LoadReduce { offset, .. } | Op::WriteAll { offset, .. } => *offset += 16,
        Op::Move { from_offset, .. } => *from_offset += 16,
        _ => {}
    }
}

/// Buffers that somebody reads.
fn read_buffers(schedule: &Schedule) -> BTreeSet<u32> {
    let blocks = schedule.ranks.iter().flat_map(|rank| &rank.blocks);
    let of = |op: &Op| match *op {
        Op::Load { buffer, action, .. } if action != Action::Discard => buffer..buffer + 1,
        Op::Move { from, .. } => from..from + 1,
        Op::LoadReduce { group, base, .. } => {
            base..base + schedule.groups[group as usize].len() as u32
        }
        _ => 0..0,
    };
    blocks.flat_map(|block| &block.ops).flat_map(of).collect()
}

/// Whether the result is right without it: a load of what the block itself has put away and still
/// holds, or a store where nobody looks in this call.
fn is_spare(schedule: &Schedule, read: &BTreeSet<u32>, rank: usize, op: &Op) -> bool {
    match op {
        Op::Load { buffer, .. } => {
            let buffer = &schedule.buffers[*buffer as usize];
            buffer.role == Role::Scratch && buffer.rank as usize == rank
        }
        Op::Write { buffer, .. } => {
            schedule.buffers[*buffer as usize].role == Role::Scratch && !read.contains(buffer)
        }
        _ => false,
    }
}

/// Faults of one kind that are tried in a schedule.
const FAULTS: usize = 24;

/// Every operation that brings data is needed, where it is and with the data that it has: without
/// it, and with its data one element on, the proof fails. It fails too where nobody waits.
#[test]
fn the_proof_sees_a_fault() {
    let benches = Benches::new();
    let missed = |(rig, algorithm, protocol, implementation): (&Rig, _, _, _)| {
        let mut missed = Vec::new();
        let (ranks, told) = (4, (None, None));
        let subject = Subject { rig, algorithm, protocol, implementation, ranks, told };
        let sound = subject.schedule(4160_u64.div_ceil(subject.unit()));
        prove(&sound).expect("sound");
        let read = read_buffers(&sound);
        let mut places = Vec::new();
        for (rank, program) in sound.ranks.iter().enumerate() {
            for (block, of) in program.blocks.iter().enumerate() {
                let needed = |op: &Op| brings_data(op) && !is_spare(&sound, &read, rank, op);
                let ops = of.ops.iter().enumerate().filter(|(_, op)| needed(op));
                places.extend(ops.map(|(at, _)| (rank, block, at)));
            }
        }
        for &(rank, block, at) in places.iter().step_by(places.len().div_ceil(FAULTS)) {
            let mut faulty = [sound.clone(), sound.clone()];
            let op = faulty[0].ranks[rank].blocks[block].ops.remove(at);
            moved_on(&mut faulty[1].ranks[rank].blocks[block].ops[at]);
            for (faulty, what) in faulty.iter().zip(["is missing", "takes the next element"]) {
                if prove(faulty).is_ok() {
                    missed.push(format!("{}: {op:?} of rank {rank} {what}", subject.name(&sound)));
                }
            }
        }
        // What lies in memory for others is announced by flags alone; lines and marked data are not.
        let staged = sound.buffers.iter().any(|buffer| buffer.role == Role::Scratch);
        if staged && sound.messages.iter().all(|message| message.data <= 8) {
            let mut hasty = sound.clone();
            for block in hasty.ranks.iter_mut().flat_map(|rank| &mut rank.blocks) {
                block.ops.retain(|op| {
                    !matches!(op, Op::PollFlag { .. } | Op::PollPeers { .. } | Op::PollStep(_))
                });
            }
            if prove(&hasty).is_ok() {
                missed.push(format!("{}: nobody waits", subject.name(&sound)));
            }
        }
        missed
    };
    let missed: Vec<String> = benches.all().into_par_iter().flat_map_iter(missed).collect();
    assert!(missed.is_empty(), "not seen:\n{}", missed.join("\n"));
}
