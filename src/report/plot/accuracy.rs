//! How far predictions are from measurements, of everything that was checked: by machine, then by regime.

use super::axis::{Axis, BELOW, Frame};
use super::errors::axis;
use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Shape, Words};
use super::style::{HAIR, Ink, LABEL, MARGIN, SMALL, WIDTH};
use crate::report::number::signed_percent;
use crate::statistics::median;
use crate::validation::check::CheckRow;
use crate::validation::summary::coverage;

/// Rows of a machine or a regime.
struct Spread {
    name: String,
    /// Predicted over measured, ascending.
    ratios: Vec<f64>,
}

/// Height of a row, pixels.
const ROW: f64 = 14.0;
/// Between the two parts, pixels.
const GAP: f64 = 30.0;
/// Share of the rows that a bar leaves out at either end.
const TAIL: f64 = 0.1;

/// Draws the rows to which nothing was fitted.
pub fn picture(rows: &[CheckRow]) -> Picture {
    let checked: Vec<&CheckRow> = rows.iter().filter(|row| !row.fit).collect();
    let machines = spreads(&checked, |row| row.machine.clone());
    let regimes = spreads(&checked, |row| row.regime.names()[1].clone());
    let inside = coverage(checked.iter().copied()) * 100.0;
    let summary = format!(
        "{} measurements to which no constant was fitted, {inside:.0} % of them inside their 80 % range. \
         Bars: 80 % of the measurements, strokes: their medians, dots: the farthest misses.",
        checked.len()
    );
    let mut picture = Picture::new("Predicted over measured", &summary);
    let names = machines.iter().chain(&regimes).map(|one| width(&label(one), SMALL, false));
    let left = (MARGIN + 10.0 + names.fold(40.0, f64::max)).min(WIDTH * 0.5);
    let x = axis(checked.iter().map(|row| row.predicted / row.measured));
    let mut top = picture.top + LABEL;
    for (heading, all) in [("by machine", &machines), ("by regime", &regimes)] {
        let frame = Frame {
            x: x.clone(),
            y: Axis::linear("", [0.0, 1.0], 1),
            left,
            right: WIDTH - MARGIN,
            top,
            bottom: top + all.len().max(1) as f64 * ROW + 4.0,
        };
        part(&mut picture, &frame, heading, all);
        top = frame.bottom + BELOW + GAP;
    }
    let room = top - GAP - picture.top;
    picture.end(room)
}

/// Ratios by a name of the row, in the order of names.
fn spreads(rows: &[&CheckRow], name: impl Fn(&CheckRow) -> String) -> Vec<Spread> {
    let mut found: Vec<Spread> = Vec::new();
    for row in rows {
        let name = name(row);
        let at = found.iter().position(|one| one.name == name).unwrap_or_else(|| {
            found.push(Spread { name, ratios: Vec::new() });
            found.len() - 1
        });
        found[at].ratios.push(row.predicted / row.measured);
    }
    for one in &mut found {
        one.ratios.sort_by(f64::total_cmp);
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn label(one: &Spread) -> String {
    format!("{} ({})", one.name, one.ratios.len())
}

fn part(picture: &mut Picture, frame: &Frame, heading: &str, all: &[Spread]) {
    picture.plain();
    let at = (MARGIN, frame.top - LABEL);
    picture.words(Words::new(at, heading, Anchor::Start, Ink::Text));
    let (from, to) = (frame.place_x(0.8), frame.place_x(1.25));
    picture.block((from, frame.top), (to, frame.bottom), Ink::Panel);
    frame.draw_x(picture, true);
    let one = frame.place_x(1.0);
    picture.line(vec![(one, frame.top), (one, frame.bottom)], Ink::Muted, 1.4);
    if all.is_empty() {
        let at = (frame.left + 10.0, frame.top + LABEL);
        picture.words(Words::new(at, "no measurement", Anchor::Start, Ink::Muted));
    }
    for (index, one) in all.iter().enumerate() {
        draw(picture, frame, one, frame.top + 2.0 + (index as f64 + 0.5) * ROW);
    }
}

fn draw(picture: &mut Picture, frame: &Frame, one: &Spread, y: f64) {
    let count = one.ratios.len();
    let out = (TAIL * count as f64).round() as usize;
    // Fewer than five rows have no tails.
    let out = out.min((count - 1) / 2);
    let kept = &one.ratios[out..count - out];
    let middle = median(one.ratios.iter().copied());
    picture.tip(None, format!("{}: median {}", label(one), signed_percent(middle - 1.0)));
    let name = fitted(&label(one), SMALL, frame.left - MARGIN - 6.0);
    picture.words(Words::new((frame.left - 6.0, y), name, Anchor::End, Ink::Text).sized(SMALL));
    picture.line(vec![(frame.left, y), (frame.right, y)], Ink::Grid, HAIR);
    let (low, high) = (frame.place_x(kept[0]), frame.place_x(kept[kept.len() - 1]));
    picture.block((low - 0.6, y - 3.5), (high + 0.6, y + 3.5), Ink::Series(0));
    for ratio in [one.ratios[0], one.ratios[count - 1]] {
        picture.add(Shape::Dot((frame.place_x(ratio), y), 2.0, Ink::Series(1)));
    }
    let x = frame.place_x(middle);
    picture.line(vec![(x, y - 5.5), (x, y + 5.5)], Ink::Text, 2.0);
}
