//! GOAL as text (LogGOPSim, ATLAHS): what each rank sends, receives and computes, and what must come
//! before what.
//!
//! A chain of dependencies becomes a thread block. A message is stored into the receiver's memory and
//! announced by a flag; `cpu` and `nic` are no resources here, which thread blocks are.

mod chains;

use std::collections::BTreeMap;

use super::PlanFormat;
use crate::algorithm::Protocol;
use crate::algorithm::plan::{Body, OneSidedBlock, OneSidedGpu, Plan};
use crate::error::{Error, Problem, Result, Span};

/// The format.
pub(super) const FORMAT: PlanFormat =
    PlanFormat { name: "goal", title: "a schedule in GOAL", sniff, read };

/// Bytes of a chunk: the smallest access that a schedule knows.
const CHUNK: u64 = 16;
/// Largest message, bytes.
const MESSAGE_MAX: u64 = crate::algorithm::BYTES_MAX;
/// More is no plan for one machine.
const RANKS_MAX: u64 = 64;
/// Steps at most.
const STEPS_MAX: usize = 1 << 20;
/// Longest time to compute, and most of a file together, ns.
const COMPUTE_MAX: u64 = 1 << 50;

fn sniff(text: &str) -> bool {
    let first = Words::new(text).find(|word| word.text != "\n");
    first.is_some_and(|word| word.text == "num_ranks")
}

/// A word or a sign with its place.
#[derive(Copy, Clone)]
struct Word<'a> {
    text: &'a str,
    start: usize,
}

impl Word<'_> {
    fn span(self) -> Span {
        Span { start: self.start, end: self.start + self.text.len() }
    }
}

/// Words, and `{`, `}`, `:` and line ends as words of their own, without comments.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Words<'a> {
        Words { text, at: 0 }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        loop {
            let rest = &self.text[self.at..];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r']).len();
            self.at += blank;
            let rest = &rest[blank..];
            let comment = match () {
                () if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                () if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                () => 0,
            };
            if comment > 0 {
                self.at += comment;
                continue;
            }
            let first = rest.chars().next()?;
            let signs = |c: char| "{}:\n".contains(c) || c.is_whitespace();
            let length = match "{}:\n".contains(first) {
                true => 1,
                false => rest.find(signs).unwrap_or(rest.len()).max(first.len_utf8()),
            };
            let word = Word { text: &rest[..length], start: self.at };
            self.at += length;
            return Some(word);
        }
    }
}

/// What a statement does.
#[derive(Copy, Clone)]
enum Act {
    Send {
        bytes: u64,
        to: u32,
        tag: u32,
    },
    Receive {
        bytes: u64,
        from: u32,
        tag: u32,
    },
    /// ns.
    Compute(u64),
}

/// A statement of a rank.
struct Statement {
    act: Act,
    span: Span,
    /// Statements that must have ended.
    after: Vec<usize>,
    /// Statements that must have begun.
    beside: Vec<usize>,
}

#[derive(Default)]
struct Rank<'a> {
    statements: Vec<Statement>,
    labels: BTreeMap<&'a str, usize>,
}

struct Reader<'a> {
    problems: Vec<Problem>,
    ranks: Vec<Option<Rank<'a>>>,
    steps: usize,
    /// All computing so far, ns.
    computed: u64,
}

fn read(file: &str, text: &str) -> Result<Plan> {
    let mut reader = Reader { problems: Vec::new(), ranks: Vec::new(), steps: 0, computed: 0 };
    reader.file(text);
    let gpus = if reader.problems.is_empty() { reader.gpus() } else { Vec::new() };
    if !reader.problems.is_empty() {
        let (file, text) = (file.to_owned(), text.to_owned());
        return Err(Error::Input { file, text, problems: reader.problems });
    }
    let largest = reader.ranks.iter().flatten().flat_map(|rank| &rank.statements);
    let largest = largest.map(|statement| chunks(statement.act)).max().unwrap_or(0).max(1);
    let gpus = gpus.into_iter().map(|blocks| OneSidedGpu { scratch: largest, blocks }).collect();
    let name = std::path::Path::new(file).file_stem().and_then(|stem| stem.to_str());
    Ok(Plan {
        name: name.unwrap_or("goal").to_owned(),
        collective: None,
        protocol: Protocol::Simple,
        chunks: largest,
        in_place: false,
        threads: None,
        bytes: Some(u64::from(largest) * CHUNK),
        body: Body::OneSided(gpus),
    })
}

/// Chunks that a message takes.
fn chunks(act: Act) -> u32 {
    match act {
        Act::Send { bytes, .. } | Act::Receive { bytes, .. } => bytes.div_ceil(CHUNK) as u32,
        Act::Compute(_) => 0,
    }
}

impl<'a> Reader<'a> {
    fn wrong(&mut self, span: Span, message: impl Into<String>, help: &str) {
        let mut problem = Problem::new(message, "").help(help);
        problem.span = Some(span);
        self.problems.push(problem);
    }

    fn file(&mut self, text: &'a str) {
        let mut lines: Vec<Vec<Word<'a>>> = vec![Vec::new()];
        for word in Words::new(text) {
            match (word.text, lines.last_mut()) {
                ("\n", _) => lines.push(Vec::new()),
                (_, Some(line)) => line.push(word),
                (_, None) => {}
            }
        }
        let mut lines = lines.into_iter().filter(|line| !line.is_empty());
        let first = lines.next().unwrap_or_default();
        let count = first.get(1).and_then(|word| word.text.parse::<u64>().ok());
        let Some(count) = count.filter(|n| (2..=RANKS_MAX).contains(n) && first.len() == 2) else {
            let span = first.first().map_or(Span { start: 0, end: 0 }, |word| word.span());
            return self.wrong(span, "expected `num_ranks N`", "2 to 64 ranks, one GPU each");
        };
        self.ranks = (0..count).map(|_| None).collect();
        let mut current: Option<(u32, Rank<'a>)> = None;
        for line in lines {
            let words: Vec<&str> = line.iter().map(|word| word.text).collect();
            let span = Span { start: line[0].start, end: line[line.len() - 1].span().end };
            match (&words[..], &mut current) {
                (["rank", number, "{"], None) => {
                    current = self.index(number, &line[1]).map(|rank| (rank, Rank::default()));
                }
                (["}"], Some(_)) => self.close(current.take(), span),
                (_, Some((rank, found))) => self.statement(&line, *rank, found),
                _ => self.wrong(span, "expected `rank N {`", "statements stand between braces"),
            }
            if self.problems.len() > 20 {
                return;
            }
        }
        if let Some((rank, _)) = current {
            let span = Span { start: text.len(), end: text.len() };
            self.wrong(span, format!("rank {rank} has no end"), "is the file whole?");
        }
    }

    fn close(&mut self, rank: Option<(u32, Rank<'a>)>, span: Span) {
        let Some((number, rank)) = rank else { return };
        match self.ranks.get_mut(number as usize) {
            Some(slot @ None) => *slot = Some(rank),
            _ => self.wrong(span, format!("rank {number} stands here twice"), ""),
        }
    }

    fn index(&mut self, text: &str, word: &Word) -> Option<u32> {
        let count = self.ranks.len();
        let number = text.parse::<u32>().ok().filter(|number| (*number as usize) < count);
        if number.is_none() {
            let help = match text {
                "-1" => "a message from anybody depends on who is first: name the rank",
                _ => "",
            };
            self.wrong(word.span(), format!("rank {text} of ranks 0 to {}", count - 1), help);
        }
        number
    }

    /// `[label:] send|recv|calc ...`, or `a requires b`.
    fn statement(&mut self, line: &[Word<'a>], rank: u32, found: &mut Rank<'a>) {
        let (label, rest) = match line {
            [label, colon, rest @ ..] if colon.text == ":" => (Some(label), rest),
            _ => (None, line),
        };
        let words: Vec<&str> = rest.iter().map(|word| word.text).collect();
        let act = match &words[..] {
            [a, "requires", b] => return self.order((a, b), rest, found, true),
            [a, "irequires", b] => return self.order((a, b), rest, found, false),
            ["calc", _, ..] => self.computing(&rest[1]).map(Act::Compute),
            ["send", _, "to", _, ..] | ["recv", _, "from", _, ..] => self.message(rest, rank),
            _ => {
                let help =
                    "send <bytes>b to <rank>, recv <bytes>b from <rank>, calc <ns>, a requires b";
                let span = line[0].span();
                return self.wrong(span, format!("`{}` is no statement", words.join(" ")), help);
            }
        };
        // Where it is wrong, its label stands nevertheless.
        let act = act.unwrap_or(Act::Compute(0));
        if let Some(label) = label
            && found.labels.insert(label.text, found.statements.len()).is_some()
        {
            self.wrong(label.span(), format!("the label `{}` is used twice", label.text), "");
        }
        self.steps += 1;
        if self.steps == STEPS_MAX {
            self.wrong(line[0].span(), "more than 1,048,576 statements", "cut it");
        }
        let (after, beside) = (Vec::new(), Vec::new());
        found.statements.push(Statement { act, span: line[0].span(), after, beside });
    }

    fn number(&mut self, word: &Word, most: u64) -> Option<u64> {
        let number = word.text.trim_end_matches('b').parse().ok().filter(|number| *number <= most);
        if number.is_none() {
            let message = format!("`{}` is no number from 0 to {most}", word.text);
            self.wrong(word.span(), message, "");
        }
        number
    }

    /// A time to compute. All of the file may have to pass one after another, so that their sum is
    /// bounded: the engine counts picoseconds in 64 bits.
    fn computing(&mut self, word: &Word) -> Option<u64> {
        let ns = self.number(word, COMPUTE_MAX)?;
        let within = self.computed <= COMPUTE_MAX;
        self.computed = self.computed.saturating_add(ns);
        if within && self.computed > COMPUTE_MAX {
            let message = format!("the file computes {} ns up to here", self.computed);
            let help = format!("all `calc` of a file together: up to {COMPUTE_MAX} ns, 13 days");
            self.wrong(word.span(), message, &help);
        }
        Some(ns)
    }

    fn message(&mut self, rest: &[Word<'a>], own: u32) -> Option<Act> {
        let bytes = self.number(&rest[1], MESSAGE_MAX)?;
        let peer = self.index(rest[3].text, &rest[3])?;
        if peer == own {
            self.wrong(rest[3].span(), "a message to itself", "");
            return None;
        }
        let tag = match rest.get(4..6) {
            Some([word, tag]) if word.text == "tag" && tag.text == "-1" => {
                let help = "a message of any tag depends on which is first: name the tag";
                self.wrong(tag.span(), "any tag", help);
                return None;
            }
            Some([word, tag]) if word.text == "tag" => {
                self.number(tag, u64::from(u32::MAX))? as u32
            }
            _ => 0,
        };
        Some(match rest[0].text {
            "send" => Act::Send { bytes, to: peer, tag },
            _ => Act::Receive { bytes, from: peer, tag },
        })
    }

    fn order(
        &mut self,
        (a, b): (&str, &str),
        line: &[Word<'a>],
        found: &mut Rank<'a>,
        ended: bool,
    ) {
        let known = |label: &str| found.labels.get(label).copied();
        let (Some(later), Some(earlier)) = (known(a), known(b)) else {
            let name = if known(a).is_none() { a } else { b };
            let message = format!("no statement of this rank has the label `{name}`");
            return self.wrong(line[0].span(), message, "labels stand before they are used");
        };
        let statement = &mut found.statements[later];
        let list = if ended { &mut statement.after } else { &mut statement.beside };
        list.push(earlier);
    }

    /// Chains of each rank's statements.
    fn gpus(&mut self) -> Vec<Vec<OneSidedBlock>> {
        self.join();
        let ranks = std::mem::take(&mut self.ranks);
        let gpus = (0..).zip(&ranks).map(|(number, rank)| match rank {
            Some(rank) => chains::chains(number, &rank.statements).unwrap_or_else(|fault| {
                self.wrong(fault.0, fault.1, "");
                Vec::new()
            }),
            None => Vec::new(),
        });
        let gpus = gpus.collect();
        self.ranks = ranks;
        gpus
    }

    /// Gives each message a tag of its own: the sends of a tag and the receives of it belong together
    /// in the order of the file.
    fn join(&mut self) {
        // Sends and receives by sender, receiver and tag, each by rank and statement.
        type Sides = [Vec<(usize, usize)>; 2];
        let mut messages: BTreeMap<(u32, u32, u32), Sides> = BTreeMap::new();
        for (rank, found) in self.ranks.iter().enumerate() {
            for (at, statement) in found.iter().flat_map(|rank| &rank.statements).enumerate() {
                let (way, side) = match statement.act {
                    Act::Send { to, tag, .. } => ((rank as u32, to, tag), 0),
                    Act::Receive { from, tag, .. } => ((from, rank as u32, tag), 1),
                    Act::Compute(_) => continue,
                };
                messages.entry(way).or_default()[side].push((rank, at));
            }
        }
        let mut own = 0;
        for ((from, to, tag), [sends, receives]) in messages {
            for (send, receive) in sends.iter().zip(&receives) {
                let [sent, received] = [*send, *receive].map(|place| self.tagged(place, own));
                own += 1;
                if sent.0 != received.0 {
                    let what = format!("{} B are sent where {} B are received", sent.0, received.0);
                    self.wrong(sent.1, what, "");
                }
            }
            let same = sends.len().min(receives.len());
            if let Some(&extra) = sends.get(same).or_else(|| receives.get(same)) {
                let (a, b) = (sends.len(), receives.len());
                let what =
                    format!("rank {from} to {to}, tag {tag}: {a} messages are sent, {b} received");
                let (_, span) = self.tagged(extra, own);
                self.wrong(span, what, "");
            }
        }
    }

    /// Sets the tag of a message; its bytes and place.
    fn tagged(&mut self, (rank, at): (usize, usize), own: u32) -> (u64, Span) {
        let Some(found) = &mut self.ranks[rank] else { return (0, Span { start: 0, end: 0 }) };
        let statement = &mut found.statements[at];
        let bytes = match &mut statement.act {
            Act::Send { bytes, tag, .. } | Act::Receive { bytes, tag, .. } => {
                *tag = own;
                *bytes
            }
            Act::Compute(_) => 0,
        };
        (bytes, statement.span.clone())
    }
}
