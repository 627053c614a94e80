//! A measured step and its replay on one timeline, rank by rank.

use super::axis::{Axis, Frame};
use super::bars::legend;
use super::letters::width;
use super::picture::{Anchor, Picture, Words};
use super::style::{Ink, MARGIN, SMALL, WIDTH};
use crate::report::number::percent;
use crate::validation::replay::{Replayed, StaySpan};

/// Height of a bar, and what is left below the bars of a rank, pixels.
const BAR: f64 = 15.0;
const GAP: f64 = 10.0;
/// Waiting for the last rank, and the rest of a stay.
const WAITING: Ink = Ink::Series(1);
const MOVING: Ink = Ink::Series(0);

/// The calls from `first` on, at most `most` of them: two bars a rank, measured above simulated, each call
/// a stretch of waiting and one of moving. Both begin at the first arrival of the first call drawn.
pub fn picture(step: &Replayed, first: usize, most: usize) -> Picture {
    let calls = &step.calls[first.min(step.calls.len())..];
    let calls = &calls[..most.min(calls.len())];
    let summary = format!(
        "Calls {first} to {} of {}. Median call {:.2} us, simulated {:.2}; step {:.3} ms, {:.3}; waiting {}, {}.",
        first + calls.len().saturating_sub(1),
        step.calls.len(),
        step.call_measured,
        step.call_predicted,
        step.step_measured / 1e3,
        step.step_predicted / 1e3,
        percent(step.waiting_measured),
        percent(step.waiting_predicted),
    );
    let mut picture = Picture::new(&format!("{}: measured and replayed", step.name), &summary);
    let parts = [("waiting for the last rank".to_owned(), WAITING), ("moving".to_owned(), MOVING)];
    let top = picture.top + 4.0;
    let top = legend(&mut picture, &parts, top) + 8.0;
    let ranks = calls.first().map_or(0, |call| call.measured_stays.len());
    let rows: Vec<(usize, bool)> =
        (0..ranks).flat_map(|rank| [(rank, true), (rank, false)]).collect();
    let stays = |rank: usize, measured: bool| {
        calls.iter().map(move |call| {
            if measured { call.measured_stays[rank] } else { call.predicted_stays[rank] }
        })
    };
    let zero = |measured: bool| {
        (0..ranks)
            .flat_map(|rank| stays(rank, measured))
            .map(|s| s.ready)
            .fold(f64::INFINITY, f64::min)
    };
    let zeros = [zero(false), zero(true)];
    let ends = rows.iter().flat_map(|&(rank, measured)| {
        stays(rank, measured).map(move |stay| stay.end - zeros[usize::from(measured)])
    });
    let label = |rank: usize, measured: bool| {
        format!("rank {rank} {}", if measured { "measured" } else { "simulated" })
    };
    let left = MARGIN + 8.0 + width(&label(ranks, false), SMALL, false);
    let height = rows.len() as f64 * BAR + ranks as f64 * GAP;
    let frame = Frame {
        x: Axis::linear("us", ends, 6),
        y: Axis::linear("", [0.0, 1.0], 1),
        left,
        right: WIDTH - MARGIN,
        top,
        bottom: top + height.max(20.0),
    };
    picture.plain();
    frame.draw_x(&mut picture, true);
    for (index, &(rank, measured)) in rows.iter().enumerate() {
        let y = top + GAP / 2.0 + index as f64 * BAR + rank as f64 * GAP;
        picture.plain();
        let at = (left - 6.0, y + BAR / 2.0);
        let name = Words::new(at, label(rank, measured), Anchor::End, Ink::Text).sized(SMALL);
        picture.words(name);
        for stay in stays(rank, measured) {
            bar(&mut picture, &frame, stay, zeros[usize::from(measured)], y);
        }
    }
    let room = frame.bottom - picture.top + 40.0;
    picture.end(room)
}

fn bar(picture: &mut Picture, frame: &Frame, stay: StaySpan, zero: f64, y: f64) {
    let [ready, together, end] =
        [stay.ready, stay.together, stay.end].map(|time| frame.place_x(time - zero));
    let text = format!(
        "waits {:.2} us, moves {:.2} us",
        stay.together - stay.ready,
        stay.end - stay.together
    );
    picture.tip(None, text);
    picture.block((ready, y + 1.0), (together, y + BAR - 1.0), WAITING);
    picture.block((together, y + 1.0), (end, y + BAR - 1.0), MOVING);
}
