//! Horizontal bars in parts.

use super::axis::{Axis, BELOW, Frame};
use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Words};
use super::style::{Ink, LABEL, MARGIN, SMALL, WIDTH};
use crate::report::number::{short, shorter};

/// One bar.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bar {
    /// Its name.
    pub(super) name: String,
    /// Figure of each part; the parts have the same order in all bars.
    pub(super) parts: Vec<f64>,
    /// Lower and upper end of the sum, where they are known.
    pub(super) range: Option<(f64, f64)>,
}

/// What is drawn.
pub(super) struct Bars<'a> {
    /// Title of the picture.
    pub(super) title: String,
    /// What stands below it.
    pub(super) summary: String,
    /// Each bar is drawn as long as the others: shares of its own sum.
    pub(super) shares: bool,
    /// What the figures are.
    pub(super) label: &'a str,
    /// Names and inks of the parts; a single part has no legend.
    pub(super) parts: Vec<(String, Ink)>,
    /// From top to bottom.
    pub(super) bars: Vec<Bar>,
}

/// Height of a bar and of what is left between two, pixels.
const BAR: f64 = 17.0;
const GAP: f64 = 10.0;
/// Half of the height of a range's ends, pixels.
const WHISKER: f64 = 2.2;
/// Room for the sum at the right, pixels.
const SUM: f64 = 50.0;
/// Most of the width that names take.
const NAMES: f64 = 0.36;

/// Draws it.
pub(super) fn picture(bars: &Bars<'_>) -> Picture {
    let mut picture = Picture::new(&bars.title, &bars.summary);
    let mut top = picture.top + 4.0;
    if bars.parts.len() > 1 {
        top = legend(&mut picture, &bars.parts, top) + 8.0;
    }
    let names = bars.bars.iter().map(|bar| width(&bar.name, LABEL, false));
    let left = (MARGIN + 8.0 + names.fold(40.0, f64::max)).min(WIDTH * NAMES);
    let sums = bars.bars.iter().map(|bar| {
        let sum: f64 = bar.parts.iter().sum();
        if bars.shares { 100.0 } else { bar.range.map_or(sum, |range| range.1.max(sum)) }
    });
    let height = bars.bars.len() as f64 * (BAR + GAP);
    let frame = Frame {
        x: Axis::linear(bars.label, sums, 5),
        y: Axis::linear("", [0.0, 1.0], 1),
        left,
        right: WIDTH - MARGIN - SUM,
        top,
        bottom: top + height.max(20.0),
    };
    picture.plain();
    frame.draw_x(&mut picture, true);
    for (index, bar) in bars.bars.iter().enumerate() {
        let y = top + GAP / 2.0 + index as f64 * (BAR + GAP);
        draw_bar(&mut picture, bars, &frame, bar, y);
    }
    let room = frame.bottom + BELOW - picture.top;
    picture.end(room)
}

/// Names of parts with their colors; says where they end.
pub(super) fn legend(picture: &mut Picture, parts: &[(String, Ink)], top: f64) -> f64 {
    let (mut x, mut y) = (MARGIN, top + 5.0);
    for (name, ink) in parts {
        let name = fitted(name, SMALL, WIDTH - 2.0 * MARGIN - 16.0);
        let wide = 16.0 + width(&name, SMALL, false);
        if x > MARGIN && x + wide > WIDTH - MARGIN {
            (x, y) = (MARGIN, y + 16.0);
        }
        picture.series(&name);
        picture.block((x, y - 5.0), (x + 11.0, y + 5.0), *ink);
        picture.words(Words::new((x + 15.0, y), name, Anchor::Start, Ink::Muted).sized(SMALL));
        x += wide + 14.0;
    }
    y + 8.0
}

fn draw_bar(picture: &mut Picture, bars: &Bars<'_>, frame: &Frame, bar: &Bar, y: f64) {
    picture.plain();
    let middle = y + BAR / 2.0;
    let name = fitted(&bar.name, LABEL, frame.left - MARGIN);
    picture.words(Words::new((frame.left - 6.0, middle), name, Anchor::End, Ink::Text));
    let whole: f64 = bar.parts.iter().sum();
    let scale = if bars.shares && whole > 0.0 { 100.0 / whole } else { 1.0 };
    let mut sum = 0.0;
    for (figure, (part, ink)) in bar.parts.iter().zip(&bars.parts) {
        let (from, to) = (frame.place_x(sum), frame.place_x(sum + figure.max(0.0) * scale));
        sum += figure * scale;
        if to - from < 0.05 {
            continue;
        }
        picture.tip(Some(part), format!("{}: {part} {}", bar.name, short(*figure)));
        picture.block((from, y), (to, y + BAR), *ink);
        let text = shorter(*figure);
        if bar.parts.len() > 1 && width(&text, SMALL, false) + 6.0 <= to - from {
            let at = ((from + to) / 2.0, middle);
            picture.words(Words::new(at, text, Anchor::Middle, Ink::Paper).sized(SMALL));
        }
    }
    picture.plain();
    let mut end = frame.place_x(sum);
    if let Some((low, high)) = bar.range {
        let (low, high) = (frame.place_x(low), frame.place_x(high));
        // Below the bar: across it the figures of short parts could not be read.
        let at = y + BAR + WHISKER;
        picture.line(vec![(low, at), (high, at)], Ink::Text, 1.2);
        for x in [low, high] {
            picture.line(vec![(x, at - WHISKER), (x, at + WHISKER)], Ink::Text, 1.2);
        }
        end = end.max(high);
    }
    let words = Words::new((end + 6.0, middle), short(whole), Anchor::Start, Ink::Text);
    picture.words(words);
}
