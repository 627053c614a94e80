//! One call: what each rank does, and how busy the links are, over time.

use super::Kind;
use super::axis::{Axis, BELOW, Frame};
use super::bars::legend;
use super::contention::rows;
use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Words};
use super::style::{Ink, MARGIN, SMALL, WIDTH};
use crate::error::Result;
use crate::schedule::Op;
use crate::sweep::Study;
use crate::sweep::study::RecordedCall;
use crate::units::format_thousands;

/// The kind.
pub const KIND: Kind = Kind {
    name: "timeline",
    about: "ranks and links over the time of one call, by the fastest algorithm",
    of_calls: true,
    draw,
};

/// Most ranks and links that have a row.
const RANKS_MAX: usize = 16;
const LINKS_MAX: usize = 10;
/// Height of a rank's and of a link's row, pixels.
const RANK: f64 = 15.0;
const LINK: f64 = 12.0;
/// Boxes that are narrower are drawn with their neighbors of the same kind, pixels.
const NARROW: f64 = 0.6;

/// Kinds of operations, as they are colored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The kernel's start, and fixed costs of the library.
    Launch,
    /// Stores.
    Store,
    /// Loads and waiting for them.
    Load,
    /// Waiting for data or flags of others.
    Wait,
    /// Warps that wait for each other, fences.
    Sync,
    /// A copy engine's copy.
    Copy,
}

impl Doing {
    /// All, with a word and a color.
    pub const ALL: [(Doing, &'static str, Ink); 6] = [
        (Doing::Launch, "kernel", Ink::Series(7)),
        (Doing::Store, "store", Ink::Series(0)),
        (Doing::Load, "load", Ink::Series(2)),
        (Doing::Wait, "wait for others", Ink::Series(4)),
        (Doing::Sync, "fence, block barrier", Ink::Series(3)),
        (Doing::Copy, "copy", Ink::Series(5)),
    ];

    /// Of an operation.
    pub fn of(op: &Op) -> Doing {
        match op {
            Op::KernelStart(_) | Op::Delay(_) | Op::HostTurn(_) => Doing::Launch,
            Op::Write { .. }
            | Op::Send { .. }
            | Op::Flag(_)
            | Op::Post { .. }
            | Op::SignalPeers { .. }
            | Op::AtomicPeers { .. }
            | Op::Move { .. }
            | Op::WriteAll { .. }
            | Op::SendAll { .. }
            | Op::FlagAll { .. } => Doing::Store,
            Op::Load { .. } | Op::LoadReduce { .. } | Op::WaitLoads => Doing::Load,
            Op::Poll { .. }
            | Op::PollEach { .. }
            | Op::PollFlag { .. }
            | Op::PollCredit(_)
            | Op::PollStep(_)
            | Op::PollPeers { .. } => Doing::Wait,
            Op::Fence | Op::WaitPosts | Op::BlockBarrier => Doing::Sync,
            Op::Copy { .. } => Doing::Copy,
        }
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        Doing::ALL.iter().find(|entry| entry.0 == self).map_or("", |entry| entry.1)
    }

    fn ink(self) -> Ink {
        Doing::ALL.iter().find(|entry| entry.0 == self).map_or(Ink::Muted, |entry| entry.2)
    }
}

fn draw(study: &Study<'_>) -> Result<Picture> {
    let call = study.call(study.fastest()?)?;
    let fabric = &study.question.machine.nominal.fabric;
    let labels: Vec<&str> = fabric.links.iter().map(|link| link.label.as_str()).collect();
    Ok(picture(&super::machine_name(study), call, &labels))
}

fn picture(name: &str, call: &RecordedCall, labels: &[&str]) -> Picture {
    let title = format!("{} of {} B: {name}", call.title, format_thousands(call.bytes));
    let ranks = call.schedule.ranks.len();
    let mut summary =
        "First block of each rank as its first warp sees it, then the links that work \
                       most; depth of color: share of time that a link sends."
            .to_owned();
    if ranks > RANKS_MAX {
        summary.push_str(&format!(" The first {RANKS_MAX} of {ranks} ranks."));
    }
    let mut picture = Picture::new(&title, &summary);
    let boxes: Vec<Vec<Box>> = (0..ranks.min(RANKS_MAX)).map(|rank| boxes(call, rank)).collect();
    let seen = |doing: Doing| boxes.iter().flatten().any(|one| one.doing == doing);
    let kinds: Vec<(String, Ink)> = Doing::ALL
        .iter()
        .filter(|entry| seen(entry.0))
        .map(|entry| (entry.1.to_owned(), entry.2))
        .collect();
    let start = picture.top;
    let top = legend(&mut picture, &kinds, start) + 8.0;
    let links = rows(call, labels, LINKS_MAX);
    let names = links.iter().map(|row| width(&row.label, SMALL, false));
    let left = (MARGIN + 10.0 + names.fold(48.0, f64::max)).min(WIDTH * 0.38);
    let us = (call.end - call.start).as_us();
    let mut x = Axis::linear("us from the start of the call", [0.0, us], 6);
    x.range = (0.0, us);
    x.ticks.retain(|tick| tick.0 <= us);
    let y = Axis::linear("", [0.0, 1.0], 1);
    let height = boxes.len() as f64 * RANK + 10.0 + links.len() as f64 * LINK;
    let frame = Frame { x, y, left, right: WIDTH - MARGIN, top, bottom: top + height };
    frame.draw_x(&mut picture, true);
    for (rank, boxes) in boxes.iter().enumerate() {
        let gpu = call.schedule.ranks[rank].gpu;
        draw_rank(&mut picture, &frame, &format!("GPU {gpu}"), boxes, top + rank as f64 * RANK);
    }
    let below = top + boxes.len() as f64 * RANK + 10.0;
    for (index, row) in links.iter().enumerate() {
        let y = below + index as f64 * LINK;
        draw_link(&mut picture, &frame, &row.label, &row.busy, y);
    }
    let room = frame.bottom + BELOW - picture.top;
    picture.end(room)
}

/// What a rank does for a while, us from the start of the call.
struct Box {
    from: f64,
    to: f64,
    doing: Doing,
}

/// What the first block of a rank does within the call.
fn boxes(call: &RecordedCall, rank: usize) -> Vec<Box> {
    let track = call.timeline.blocks.iter().find(|track| track.rank as usize == rank);
    let Some(track) = track else { return Vec::new() };
    let ops = &call.schedule.ranks[rank].blocks[track.block as usize].ops;
    let us = (call.end - call.start).as_us();
    let narrow = NARROW * us / WIDTH;
    let mut found: Vec<Box> = Vec::new();
    for operation in track.operations.iter().filter(|one| one.end > call.start) {
        let doing = Doing::of(&ops[operation.position as usize]);
        let from = operation.start.saturating_sub(call.start).as_us();
        let to = operation.end.saturating_sub(call.start).as_us().min(us);
        match found.last_mut() {
            Some(last) if last.doing == doing && from - last.to < narrow => last.to = to,
            // What is too narrow to be seen goes to what stands before it.
            Some(last) if to - from < narrow && from - last.to < narrow => last.to = to,
            _ => found.push(Box { from, to, doing }),
        }
    }
    found
}

fn draw_rank(picture: &mut Picture, frame: &Frame, name: &str, boxes: &[Box], y: f64) {
    picture.plain();
    let at = (frame.left - 6.0, y + RANK / 2.0);
    picture.words(Words::new(at, name, Anchor::End, Ink::Text).sized(SMALL));
    for (_, word, ink) in Doing::ALL {
        let mine = boxes.iter().filter(|one| one.doing.ink() == ink);
        picture.series(word);
        for one in mine {
            let (from, to) = (frame.place_x(one.from), frame.place_x(one.to));
            picture.block((from, y + 1.5), (to.max(from + 0.3), y + RANK - 1.5), ink);
        }
    }
}

fn draw_link(picture: &mut Picture, frame: &Frame, name: &str, busy: &[f64], y: f64) {
    picture.plain();
    let text = fitted(name, SMALL, frame.left - 10.0);
    let at = (frame.left - 6.0, y + LINK / 2.0);
    picture.words(Words::new(at, text, Anchor::End, Ink::Muted).sized(SMALL));
    let column = (frame.right - frame.left) / busy.len().max(1) as f64;
    let mut at = 0;
    while at < busy.len() {
        let ink = Ink::heat(busy[at]);
        let more = busy[at..].iter().take_while(|share| Ink::heat(**share) == ink).count();
        let (from, to) = (at as f64 * column, (at + more) as f64 * column);
        picture.block((frame.left + from, y + 1.0), (frame.left + to, y + LINK - 1.0), ink);
        at += more;
    }
}
