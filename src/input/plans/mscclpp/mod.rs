//! Execution plans of MSCCL++ (JSON): thread blocks that store into the memory of peers.
//!
//! Memory channels are replayed. Port channels (a proxy of the CPU), switch channels (multicast) and
//! pipelined loops are not, and are refused by name.

mod form;

use form::{Block, File, Operation, Range};

use super::PlanFormat;
use crate::algorithm::Protocol;
use crate::algorithm::plan::{
    Body, Move, OneSidedBlock, OneSidedGpu, OneSidedKind, OneSidedStep, Piece, Plan, Space,
};
use crate::error::{Error, Problem, Result, Span};
use crate::input::json_error::read_json;
use crate::input::places::Places;
use crate::schedule::Collective;

/// The format.
pub(super) const FORMAT: PlanFormat =
    PlanFormat { name: "mscclpp", title: "an execution plan of MSCCL++", sniff, read };

/// More is no plan for one machine.
const RANKS_MAX: usize = 64;
/// Thread blocks of a GPU at most.
const BLOCKS_MAX: usize = 1024;
/// Chunks at most.
const CHUNKS_MAX: u32 = 1 << 16;
/// Channels between two ranks; semaphores within a GPU and barriers of it have numbers above.
const CHANNELS_MAX: u32 = 1 << 16;

const COLLECTIVES: [(&str, Collective); 6] = [
    ("allreduce", Collective::AllReduce),
    ("allgather", Collective::AllGather),
    ("reducescatter", Collective::ReduceScatter),
    ("reduce_scatter", Collective::ReduceScatter),
    ("alltoall", Collective::AllToAll),
    ("broadcast", Collective::Broadcast),
];

fn sniff(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && ["\"collective\"", "\"gpus\"", "\"threadblocks\""].iter().all(|key| text.contains(key))
}

fn read(file: &str, text: &str) -> Result<Plan> {
    let failed = |problems| Error::Input { file: file.to_owned(), text: text.to_owned(), problems };
    let whole: File = read_json(text).map_err(|problem| failed(vec![*problem]))?;
    let mut reader = Reader { file: &whole, places: Places::new(text), problems: Vec::new() };
    match reader.plan() {
        Some(plan) if reader.problems.is_empty() => Ok(plan),
        _ => Err(failed(reader.problems)),
    }
}

struct Reader<'a> {
    file: &'a File,
    places: Places<'a>,
    problems: Vec<Problem>,
}

/// A thread block: its GPU and number.
type Place = (usize, usize);

fn space(name: &str) -> Option<Space> {
    [("i", Space::Input), ("o", Space::Output), ("s", Space::Scratch)]
        .into_iter()
        .find(|entry| entry.0 == name)
        .map(|entry| entry.1)
}

impl Reader<'_> {
    fn wrong<T>(&mut self, path: &str, message: impl Into<String>, help: &str) -> Option<T> {
        let mut problem = Problem::new(message, path).help(help);
        problem.span = self.places.value(path);
        self.problems.push(problem);
        None
    }

    fn plan(&mut self) -> Option<Plan> {
        let file = self.file;
        let known = COLLECTIVES.iter().find(|entry| entry.0 == file.collective);
        let Some(&(_, collective)) = known else {
            let names = COLLECTIVES.map(|entry| entry.0).join(", ");
            let message = format!("`{}` is no collective that I know", file.collective);
            return self.wrong("collective", message, &names);
        };
        let chunks = file.gpus.first().map_or(0, |gpu| match collective {
            Collective::AllGather => gpu.output_chunks,
            _ => gpu.input_chunks,
        });
        if !(2..=RANKS_MAX).contains(&file.gpus.len()) || !(1..=CHUNKS_MAX).contains(&chunks) {
            let message = format!("{} GPUs and {chunks} chunks", file.gpus.len());
            return self.wrong("gpus", message, "2 to 64 GPUs, 1 to 65,536 chunks");
        }
        let mut gpus = Vec::new();
        for (number, gpu) in file.gpus.iter().enumerate() {
            if gpu.id as usize != number || gpu.scratch_chunks > CHUNKS_MAX {
                let message = format!("GPU {} at place {number}", gpu.id);
                let help =
                    "GPUs stand in the order of their ids, with at most 65,536 chunks of scratch";
                return self.wrong(&format!("gpus[{number}]"), message, help);
            }
            let blocks = (0..gpu.threadblocks.len().min(BLOCKS_MAX))
                .map(|block| self.block((number, block)))
                .collect();
            gpus.push(OneSidedGpu { scratch: gpu.scratch_chunks, blocks });
        }
        let packets = Protocol::from_name(&file.protocol) == Some(Protocol::Ll);
        Some(Plan {
            name: if file.name.is_empty() { "plan".to_owned() } else { file.name.clone() },
            collective: Some(collective),
            protocol: if packets { Protocol::Ll } else { Protocol::Simple },
            chunks,
            in_place: file.inplace,
            threads: file.num_threads_per_block.filter(|threads| *threads >= 32),
            bytes: None,
            body: Body::OneSided(gpus),
        })
    }

    fn block(&mut self, place: Place) -> OneSidedBlock {
        let mut block = OneSidedBlock::default();
        let ops = &self.file.gpus[place.0].threadblocks[place.1].ops;
        for (number, op) in ops.iter().enumerate() {
            let path = format!("gpus[{}].threadblocks[{}].ops[{number}]", place.0, place.1);
            let span = self.places.value(&path).unwrap_or(Span { start: 0, end: 0 });
            let kinds = self.kinds(place, op, &path).unwrap_or_default();
            let step = |kind| OneSidedStep { kind, span: span.clone() };
            block.steps.extend(kinds.into_iter().map(step));
        }
        block
    }

    fn kinds(&mut self, place: Place, op: &Operation, path: &str) -> Option<Vec<OneSidedKind>> {
        if let Some(kind) = op.channel_type.as_deref().filter(|kind| *kind != "memory") {
            let help = "only memory channels are replayed";
            return self.wrong(path, format!("{}: a {kind} channel", op.name), help);
        }
        Some(match op.name.as_str() {
            // Threads of a block meet around each of our moves anyway, and a flush is of port channels.
            "nop" | "flush" => Vec::new(),
            "signal" | "rlxsignal" => {
                let fenced = op.name == "signal";
                let signal = |(to, channel)| OneSidedKind::Signal { to, channel, fenced };
                self.peers(place, op, path)?.into_iter().map(signal).collect()
            }
            "wait" | "rlxwait" => {
                let wait = |(from, channel)| OneSidedKind::Wait { from, channel };
                self.peers(place, op, path)?.into_iter().map(wait).collect()
            }
            "barrier" => self.barrier(place, op, path)?,
            "sem_acquire" | "sem_release" => self.semaphore(place, op, path)?,
            "pws" => {
                let mut kinds = self.moves(place, op, path)?;
                let peers = self.peers(place, op, path)?;
                let signal = |(to, channel)| OneSidedKind::Signal { to, channel, fenced: true };
                kinds.extend(peers.into_iter().map(signal));
                kinds
            }
            _ => self.moves(place, op, path)?,
        })
    }

    /// Ranks of an operation's channels, with the number of the channel between the two.
    fn peers(&mut self, place: Place, op: &Operation, path: &str) -> Option<Vec<(u32, u32)>> {
        let gpu = &self.file.gpus[place.0];
        let block = &gpu.threadblocks[place.1];
        let all = gpu.channels.iter().find(|list| list.channel_type == "memory");
        let own = block.channels.iter().find(|list| list.channel_type == "memory");
        let peer = |id: &u32| {
            let at = *own?.channel_ids.get(*id as usize)? as usize;
            let connected = &all?.connected_to;
            let to = *connected.get(at)?;
            // The first channel of one rank to another belongs to the first of that one back.
            let before = connected[..at].iter().filter(|other| **other == to).count();
            Some((to, before as u32))
        };
        let peers: Option<Vec<(u32, u32)>> = op.channel_ids.iter().map(peer).collect();
        match peers {
            Some(peers) => Some(peers),
            None => self.wrong(path, "a channel that this thread block has not", ""),
        }
    }

    fn piece(&mut self, place: Place, range: &Range, packets: bool, path: &str) -> Option<Piece> {
        let gpu = &self.file.gpus[place.0];
        let (rank, name) = match range.buffer_id {
            None => (place.0 as u32, range.space.as_deref()),
            Some(id) => {
                let refs = &gpu.threadblocks[place.1].remote_buffer_refs;
                let own = refs.iter().find(|list| list.access_channel_type == "memory");
                let at = own.and_then(|list| list.remote_buffer_ids.get(id as usize));
                let buffer = at.and_then(|at| gpu.remote_buffers.get(*at as usize));
                match buffer {
                    Some(buffer) => (buffer.rank, Some(buffer.space.as_str())),
                    None => return self.wrong(path, "a buffer that this thread block has not", ""),
                }
            }
        };
        let Some(space) = name.and_then(space) else {
            return self.wrong(path, "a buffer of no type that I know", "i, o or s");
        };
        let packets = packets && space == Space::Scratch;
        Some(Piece { rank, space, chunk: range.index, packets })
    }

    /// Moves of an operation: which of its sources and targets are added, and which are packets.
    fn moves(&mut self, place: Place, op: &Operation, path: &str) -> Option<Vec<OneSidedKind>> {
        let found = MOVES.iter().find(|entry| entry.0 == op.name);
        let Some(&(_, each, [first_from, from, first_to, to])) = found else {
            let names: Vec<&str> = MOVES.iter().map(|entry| entry.0).collect();
            let message = format!("`{}` is no operation that is replayed", op.name);
            return self.wrong(path, message, &names.join(", "));
        };
        let mut all = |ranges: &[Range], first: bool, rest: bool| -> Option<Vec<Piece>> {
            let piece =
                |(at, range)| self.piece(place, range, if at == 0 { first } else { rest }, path);
            ranges.iter().enumerate().map(piece).collect()
        };
        let (sources, targets) =
            (all(&op.src_buff, first_from, from)?, all(&op.dst_buff, first_to, to)?);
        let count = op.src_buff.first().map_or(0, |range| range.size);
        if op.src_buff.iter().chain(&op.dst_buff).any(|range| range.size != count) {
            return self.wrong(path, "its buffers have different sizes", "");
        }
        let share = op.tbg_info.as_ref().map_or((0, 1), |group| (group.tb_id, group.tbg_size));
        let moved = |from, to| OneSidedKind::Move(Move { from, to, count, share });
        if !each {
            return Some(vec![moved(sources, targets)]);
        }
        if sources.len() != targets.len() {
            let message = format!("{} sources and {} targets", sources.len(), targets.len());
            return self.wrong(path, message, "as many of either");
        }
        let pairs = sources.into_iter().zip(targets);
        Some(pairs.map(|(from, to)| moved(vec![from], vec![to])).collect())
    }

    /// Thread blocks of a GPU meet: each tells each other one.
    fn barrier(&mut self, place: Place, op: &Operation, path: &str) -> Option<Vec<OneSidedKind>> {
        let blocks = &self.file.gpus[place.0].threadblocks;
        let here = |block: &Block| block.ops.iter().any(|other| other.barrier_id == op.barrier_id);
        let meet: Vec<usize> = (0..blocks.len()).filter(|at| here(&blocks[*at])).collect();
        let (Some(id), Some(count)) = (op.barrier_id, op.num_threadblocks) else {
            return self.wrong(path, "a barrier needs `barrier_id` and `num_threadblocks`", "");
        };
        if meet.len() != count as usize || id >= BARRIERS_MAX || blocks.len() > BLOCKS_MAX {
            let message = format!("{} of {count} thread blocks come to barrier {id}", meet.len());
            return self.wrong(path, message, "");
        }
        let (to, own) = (place.0 as u32, place.1);
        let channel = |from: usize, to: usize| {
            CHANNELS_MAX * 2
                + (id * BLOCKS_MAX as u32 + from as u32) * BLOCKS_MAX as u32
                + to as u32
        };
        let others = || meet.iter().copied().filter(|other| *other != own);
        let signal =
            |other| OneSidedKind::Signal { to, channel: channel(own, other), fenced: false };
        let wait = |other| OneSidedKind::Wait { from: to, channel: channel(other, own) };
        Some(others().map(signal).chain(others().map(wait)).collect())
    }

    fn semaphore(&mut self, place: Place, op: &Operation, path: &str) -> Option<Vec<OneSidedKind>> {
        let semaphores = &self.file.gpus[place.0].semaphores;
        let known = |id: &u32| semaphores.get(*id as usize).is_some_and(|s| s.init_value == 0);
        if !op.semaphore_ids.iter().all(known) {
            return self.wrong(path, "a semaphore that is not there or does not begin at 0", "");
        }
        let rank = place.0 as u32;
        let kind = |id: &u32| match op.name.as_str() {
            "sem_acquire" => OneSidedKind::Wait { from: rank, channel: CHANNELS_MAX + id },
            _ => OneSidedKind::Signal { to: rank, channel: CHANNELS_MAX + id, fenced: false },
        };
        Some(op.semaphore_ids.iter().map(kind).collect())
    }
}

/// Barriers of a GPU at most.
const BARRIERS_MAX: u32 = 1 << 10;

/// Operations that move data; whether each source goes to the target of its place (else all are added
/// and stored to all); which are packets where they lie in scratch: the first source, the others, the
/// first target, the others.
const MOVES: [(&str, bool, [bool; 4]); 16] = [
    ("put", true, [false; 4]),
    ("get", true, [false; 4]),
    ("copy", true, [false; 4]),
    ("re", false, [false; 4]),
    ("res", false, [false; 4]),
    ("rre", false, [false; 4]),
    ("rres", false, [false; 4]),
    ("pws", true, [false; 4]),
    ("ppkt", true, [false, false, true, true]),
    ("rppkt", true, [true; 4]),
    ("cpkt", true, [false, false, true, true]),
    ("upkt", true, [true, true, false, false]),
    ("repkt", false, [false, true, false, false]),
    ("respkt", false, [false, true, false, true]),
    ("recpkt", false, [false, true, false, true]),
    ("recspkt", false, [false, true, false, true]),
];
