//! Predicted against measured times of calls: what was checked, over all sizes and machines.

use std::collections::BTreeSet;

use super::axis::{Axis, BELOW, Frame};
use super::bars::legend;
use super::picture::{Anchor, Picture, Shape, Words};
use super::style::{HAIR, Ink, LABEL, MARGIN, SMALL, WIDTH};
use crate::prediction::regime::Medium;
use crate::validation::check::CheckRow;

/// Height of the frame, pixels.
const HEIGHT: f64 = 420.0;
/// What carries the bytes, with its color.
const MEDIA: [(Medium, usize); 3] = [(Medium::Nvlink, 0), (Medium::Pcie, 1), (Medium::Host, 2)];
/// A miss from here on, as a factor.
const FAR: f64 = 1.25;

/// Draws the calls to which nothing was fitted, those that fall on each other once.
pub fn picture(rows: &[CheckRow]) -> Picture {
    let calls: Vec<&CheckRow> = rows.iter().filter(|row| !row.fit && row.unit == "us").collect();
    let near = calls.iter().filter(|row| {
        let ratio = row.predicted / row.measured;
        (1.0 / FAR..=FAR).contains(&ratio)
    });
    let summary = format!(
        "{} calls to which no constant was fitted, {} of them within a factor of {FAR} (thin lines). \
         Machines with few rows show as well as those with many.",
        calls.len(),
        near.count()
    );
    let mut picture = Picture::new("Predicted against measured times of calls", &summary);
    let parts: Vec<(String, Ink)> =
        MEDIA.iter().map(|(medium, at)| (medium.name().to_owned(), Ink::Series(*at))).collect();
    let below = picture.top;
    let top = legend(&mut picture, &parts, below) + LABEL + 8.0;
    let values = || calls.iter().flat_map(|row| [row.measured, row.predicted]);
    let frame = Frame {
        x: Axis::log("measured, us", values()),
        y: Axis::log("predicted, us", values()),
        left: MARGIN + 44.0,
        right: WIDTH - MARGIN,
        top,
        bottom: top + HEIGHT,
    };
    frame.draw(&mut picture);
    picture.plain();
    for (factor, width) in [(1.0 / FAR, HAIR), (1.0, 1.4), (FAR, HAIR)] {
        let (low, high) = frame.x.range;
        let (from, to) = (low * factor.recip().max(1.0), high / factor.max(1.0));
        let ends = [from, to].map(|x| frame.place(x, x * factor));
        picture.line(ends.to_vec(), Ink::Muted, width);
    }
    for (medium, at) in MEDIA {
        picture.series(medium.name());
        let own = calls.iter().filter(|row| row.regime.medium == medium);
        let places: BTreeSet<(i64, i64)> = own
            .map(|row| frame.place(row.measured, row.predicted))
            .map(|(x, y)| (x.round() as i64, y.round() as i64))
            .collect();
        for (x, y) in places {
            picture.add(Shape::Dot((x as f64, y as f64), 1.6, Ink::Series(at)));
        }
    }
    if calls.is_empty() {
        let at = (frame.left + 10.0, top + LABEL);
        let words = Words::new(at, "no measurement", Anchor::Start, Ink::Muted);
        picture.words(words.sized(SMALL));
    }
    let room = frame.bottom + BELOW - picture.top;
    picture.end(room)
}
