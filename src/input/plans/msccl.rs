//! MSCCL's XML: `<algo>` of `<gpu>` of `<tb>` of `<step>`.

use std::ops::RangeInclusive;

use roxmltree::Node;

use super::PlanFormat;
use crate::algorithm::Protocol;
use crate::algorithm::plan::{
    Body, Plan, PlanBlock, PlanGpu, PlanStep, Primitives, Space, StepKind,
};
use crate::error::{Error, Problem, Result, Span};
use crate::input::xml::{document, problem, starts_with};
use crate::schedule::Collective;

/// The format.
pub(super) const FORMAT: PlanFormat = PlanFormat {
    name: "msccl",
    title: "MSCCL's XML",
    sniff: |text| starts_with(text, "algo"),
    read,
};

/// More is no plan for one machine.
const RANKS_MAX: u32 = 64;
/// Blocks of a GPU at most.
const BLOCKS_MAX: usize = 1024;
/// Chunks at most.
const CHUNKS_MAX: u32 = 1 << 16;

const COLLECTIVES: [(&str, Collective); 6] = [
    ("allreduce", Collective::AllReduce),
    ("allgather", Collective::AllGather),
    ("reduce_scatter", Collective::ReduceScatter),
    ("reducescatter", Collective::ReduceScatter),
    ("alltoall", Collective::AllToAll),
    ("broadcast", Collective::Broadcast),
];

const fn primitive(receive: bool, own: bool, keep: bool, send: bool) -> StepKind {
    StepKind::Primitive { receive, own, keep, send }
}

/// Types of steps.
const KINDS: [(&str, StepKind); 10] = [
    ("s", primitive(false, true, false, true)),
    ("r", primitive(true, false, true, false)),
    ("rcs", primitive(true, false, true, true)),
    ("rrs", primitive(true, true, false, true)),
    ("rrc", primitive(true, true, true, false)),
    ("rrcs", primitive(true, true, true, true)),
    ("cpy", primitive(false, true, true, false)),
    ("re", StepKind::Reduce),
    ("ra", StepKind::Reduce),
    ("nop", StepKind::Nothing),
];

fn read(file: &str, text: &str) -> Result<Plan> {
    let document = document(file, text, "write it with msccl-tools")?;
    let mut reader = Reader { problems: Vec::new() };
    let plan = reader.plan(document.root_element());
    match plan {
        Some(plan) if reader.problems.is_empty() => Ok(plan),
        _ => Err(Error::Input { file: file.into(), text: text.into(), problems: reader.problems }),
    }
}

struct Reader {
    problems: Vec<Problem>,
}

fn elements<'a, 'b>(node: Node<'a, 'b>, name: &'static str) -> impl Iterator<Item = Node<'a, 'b>> {
    node.children().filter(move |child| child.has_tag_name(name))
}

impl Reader {
    fn wrong(&mut self, node: Node, message: String, help: &str) {
        self.problems.push(problem(node, message, help));
    }

    /// A whole number; -1 is `None`, and so is a missing attribute that has a default.
    fn number(&mut self, node: Node, name: &str, optional: bool) -> Option<u32> {
        let Some(text) = node.attribute(name) else {
            if !optional {
                self.wrong(node, format!("<{}> needs `{name}`", node.tag_name().name()), "");
            }
            return None;
        };
        match text.trim().parse::<i64>() {
            Ok(-1) => None,
            Ok(number) if (0..=i64::from(u32::MAX)).contains(&number) => Some(number as u32),
            _ => {
                self.wrong(node, format!("`{text}` is no number that {name} can be"), "");
                None
            }
        }
    }

    /// A whole number within limits, where one is there.
    fn within(&mut self, node: Node, name: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let number = self.number(node, name, true)?;
        if range.contains(&number) {
            return Some(number);
        }
        let help = format!("{} to {}", range.start(), range.end());
        self.wrong(node, format!("{name} of {number}"), &help);
        None
    }

    fn entry<T: Copy>(&mut self, node: Node, name: &str, known: &[(&'static str, T)]) -> Option<T> {
        let text = node.attribute(name).unwrap_or("");
        let found = known.iter().find(|entry| entry.0 == text).map(|entry| entry.1);
        if found.is_none() {
            let names: Vec<&str> = known.iter().map(|entry| entry.0).collect();
            self.wrong(node, format!("`{text}` is no {name} that I know"), &names.join(", "));
        }
        found
    }

    fn plan(&mut self, algo: Node) -> Option<Plan> {
        let collective = self.entry(algo, "coll", &COLLECTIVES)?;
        let protocol = Protocol::from_name(algo.attribute("proto").unwrap_or("Simple"));
        if protocol.is_none() {
            self.wrong(algo, "unknown `proto`".to_owned(), "LL, LL128 or Simple");
        }
        let ranks = self.number(algo, "ngpus", false)?;
        let chunks = self.number(algo, "nchunksperloop", false)?;
        if !(2..=RANKS_MAX).contains(&ranks) || !(1..=CHUNKS_MAX).contains(&chunks) {
            let message = format!("{ranks} GPUs and {chunks} chunks a loop");
            self.wrong(algo, message, "2 to 64 GPUs, 1 to 65,536 chunks");
            return None;
        }
        let mut gpus = vec![None; ranks as usize];
        for node in elements(algo, "gpu") {
            let id = self.number(node, "id", false).unwrap_or(u32::MAX);
            match gpus.get_mut(id as usize) {
                Some(slot @ None) => *slot = Some(PlanGpu::default()),
                _ => {
                    self.wrong(node, format!("GPU {id} of GPUs 0 to {} once each", ranks - 1), "");
                    continue;
                }
            }
            gpus[id as usize] = Some(self.gpu(node));
        }
        if let Some(missing) = gpus.iter().position(Option::is_none) {
            self.wrong(algo, format!("GPU {missing} is missing"), "is the file whole?");
            return None;
        }
        let in_place = self.number(algo, "inplace", true) == Some(1)
            && self.number(algo, "outofplace", true) != Some(1);
        Some(Plan {
            name: algo.attribute("name").unwrap_or("plan").to_owned(),
            collective: Some(collective),
            protocol: protocol?,
            chunks,
            in_place,
            threads: self.number(algo, "nthreads", true).filter(|threads| *threads >= 32),
            bytes: None,
            body: Body::Primitives(Primitives {
                channels: self.within(algo, "nchannels", 1..=64).unwrap_or(1),
                gpus: gpus.into_iter().flatten().collect(),
            }),
        })
    }

    fn gpu(&mut self, node: Node) -> PlanGpu {
        // Of input and output the steps tell what they use.
        for name in ["i_chunks", "o_chunks"] {
            self.within(node, name, 0..=CHUNKS_MAX);
        }
        let scratch = self.within(node, "s_chunks", 0..=CHUNKS_MAX).unwrap_or(0);
        let nodes: Vec<Node> = elements(node, "tb").take(BLOCKS_MAX).collect();
        let ids: Vec<Option<u32>> = nodes.iter().map(|tb| self.number(*tb, "id", false)).collect();
        let blocks = nodes.iter().map(|tb| self.block(*tb, &ids)).collect();
        PlanGpu { scratch, blocks }
    }

    fn block(&mut self, node: Node, ids: &[Option<u32>]) -> PlanBlock {
        let mut steps: Vec<PlanStep> = Vec::new();
        for step in elements(node, "step") {
            let number = self.number(step, "s", false);
            if number.is_some_and(|number| number as usize != steps.len()) {
                let message = format!("step {} follows step {}", number.unwrap_or(0), steps.len());
                self.wrong(step, message, "steps are numbered from 0 in their order");
            }
            steps.extend(self.step(step, ids));
        }
        PlanBlock {
            send: self.number(node, "send", false),
            receive: self.number(node, "recv", false),
            channel: self.number(node, "chan", true).unwrap_or(0),
            steps,
        }
    }

    fn step(&mut self, node: Node, ids: &[Option<u32>]) -> Option<PlanStep> {
        const SPACES: [(&str, Space); 3] =
            [("i", Space::Input), ("o", Space::Output), ("s", Space::Scratch)];
        let kind = self.entry(node, "type", &KINDS)?;
        let mut place = |buffer: &str, offset: &str| {
            let known = node.attribute(buffer).is_some() || kind != StepKind::Nothing;
            let space = if known { self.entry(node, buffer, &SPACES) } else { None };
            let offset = self.number(node, offset, kind == StepKind::Nothing).unwrap_or(0);
            (space.unwrap_or(Space::Scratch), offset)
        };
        let (source, target) = (place("srcbuf", "srcoff"), place("dstbuf", "dstoff"));
        let count = self.number(node, "cnt", kind == StepKind::Nothing).unwrap_or(0);
        let other = self
            .number(node, "depid", true)
            .map(|id| ids.iter().position(|known| *known == Some(id)).unwrap_or(usize::MAX));
        let after = other.zip(self.number(node, "deps", true).map(|step| step as usize));
        let start = node.range().start;
        let span = Span { start, end: start + "<step".len() };
        Some(PlanStep { kind, source, target, count, after, span })
    }
}
