//! What is gained for what it costs: candidates by cost and time, and those that nothing beats in both.
//! The cost may be a price, memory, or whatever else a caller counts.

use super::axis::{Axis, BELOW, Frame};
use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Shape, Words};
use super::style::{Ink, LABEL, MARGIN, SMALL, WIDTH};
use crate::report::number::short;

/// One of several ways.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What it is.
    pub name: String,
    /// What it costs, in the unit of the picture.
    pub cost: f64,
    /// What it takes, in the unit of the picture.
    pub time: f64,
    /// Lower and upper end of the time, where they are known.
    pub range: Option<(f64, f64)>,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Frontier<'a> {
    /// Title of the picture.
    pub title: String,
    /// What stands below it.
    pub about: String,
    /// What the cost is, with its unit.
    pub cost: &'a str,
    /// What the time is, with its unit.
    pub time: &'a str,
    /// A time that is to be met, if one is.
    pub most: Option<f64>,
    /// In any order.
    pub candidates: Vec<Candidate>,
}

/// Candidates that no other beats in both, by their cost.
pub fn unbeaten(candidates: &[Candidate]) -> Vec<usize> {
    let beats = |a: &Candidate, b: &Candidate| {
        a.cost <= b.cost && a.time <= b.time && (a.cost < b.cost || a.time < b.time)
    };
    let mut best: Vec<usize> = (0..candidates.len())
        .filter(|&at| !candidates.iter().any(|other| beats(other, &candidates[at])))
        .collect();
    best.sort_by(|&a, &b| candidates[a].cost.total_cmp(&candidates[b].cost));
    best
}

/// Height of the frame, pixels.
const HEIGHT: f64 = 260.0;
/// From a dot to its number, pixels.
const AWAY: f64 = 9.0;
/// Height of a row of the list below, pixels.
const ROW: f64 = 15.0;

/// Draws it: numbered dots, and what the numbers are in a list below.
pub fn picture(frontier: &Frontier<'_>) -> Picture {
    let mut picture = Picture::new(&frontier.title, &frontier.about);
    let all = &frontier.candidates;
    let ends =
        all.iter().flat_map(|one| one.range.map_or([one.time; 2], |(low, high)| [low, high]));
    let top = picture.top + LABEL + 8.0;
    let frame = Frame {
        x: Axis::linear(frontier.cost, all.iter().map(|one| one.cost), 6),
        y: Axis::linear(frontier.time, ends.chain(frontier.most), 5),
        left: MARGIN + 40.0,
        right: WIDTH - MARGIN - 10.0,
        top,
        bottom: top + HEIGHT,
    };
    frame.draw(&mut picture);
    if let Some(most) = frontier.most {
        let y = frame.place_y(most);
        picture.line(vec![(frame.left, y), (frame.right, y)], Ink::Series(2), 1.4);
        let at = (frame.right, y - LABEL * 0.6);
        let text = format!("to be met: {}", short(most));
        picture.words(Words::new(at, text, Anchor::End, Ink::Series(2)).sized(SMALL));
    }
    let best = unbeaten(all);
    let line = best.iter().map(|&at| frame.place(all[at].cost, all[at].time)).collect();
    picture.series("unbeaten");
    picture.add(Shape::Line(line, Ink::Grid, 7.0));
    let mut taken: Vec<[f64; 4]> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let ink = if best.contains(&index) { Ink::Series(0) } else { Ink::Muted };
        let at = frame.place(one.cost, one.time);
        picture.tip(None, format!("{}: {} for {}", one.name, short(one.time), short(one.cost)));
        if let Some((low, high)) = one.range {
            let ends = [low, high].map(|time| (at.0, frame.place_y(time)));
            picture.line(ends.to_vec(), ink, 1.2);
        }
        picture.add(Shape::Dot(at, 3.4, ink));
        // Numbers that would lie on others are left to the list.
        let words = Words::new((at.0 + AWAY, at.1), (index + 1).to_string(), Anchor::Middle, ink);
        let words = words.sized(SMALL);
        let [left, top, right, bottom] = words.area();
        let free = |[l, t, r, b]: &[f64; 4]| left >= *r || *l >= right || top >= *b || *t >= bottom;
        if taken.iter().all(free) && right < WIDTH {
            taken.push(words.area());
            picture.words(words);
        }
    }
    let end = list(&mut picture, frontier, &best, frame.bottom + BELOW + 12.0);
    let room = end - picture.top;
    picture.end(room)
}

/// What the numbers are; says where it ends.
fn list(picture: &mut Picture, frontier: &Frontier<'_>, best: &[usize], mut y: f64) -> f64 {
    let numbers = width("00", SMALL, false);
    for (index, one) in frontier.candidates.iter().enumerate() {
        picture.plain();
        let ink = if best.contains(&index) { Ink::Series(0) } else { Ink::Muted };
        let figures = format!("{} for {}", short(one.time), short(one.cost));
        let end = WIDTH - MARGIN;
        let left = MARGIN + numbers + 8.0;
        let room = end - left - width(&figures, SMALL, false) - 10.0;
        let number = (index + 1).to_string();
        let at = (MARGIN + numbers, y);
        picture.words(Words::new(at, number, Anchor::End, ink).sized(SMALL));
        let name = fitted(&one.name, SMALL, room);
        picture.words(Words::new((left, y), name, Anchor::Start, Ink::Text).sized(SMALL));
        picture.words(Words::new((end, y), figures, Anchor::End, ink).sized(SMALL));
        y += ROW;
    }
    y
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beaten_in_both_is_not_on_the_frontier() {
        let one = |cost, time| Candidate { name: String::new(), cost, time, range: None };
        let all = [one(0.0, 9.0), one(2.0, 4.0), one(3.0, 5.0), one(5.0, 1.0), one(5.0, 2.0)];
        assert_eq!(unbeaten(&all), [0, 1, 3]);
        assert_eq!(unbeaten(&[one(1.0, 1.0), one(1.0, 1.0)]), [0, 1], "equals stay both");
        assert_eq!(unbeaten(&[]), [0; 0]);
    }
}
