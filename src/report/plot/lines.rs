//! Lines over the size of a call: predictions with their ranges, measurements as dots, and where the
//! fastest changes.

use super::axis::{Axis, BELOW, Frame, apart};
use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Point, Shape, Words};
use super::style::{HAIR, Ink, LABEL, LINE, MARGIN, SMALL, WIDTH};
use crate::prediction::CasePrediction;
use crate::report::number::{short, with_range};
use crate::sweep::study::{CHOICE, Measured, SizeTable};
use crate::units::format_thousands;

/// What is drawn.
pub(super) struct Lines<'a> {
    /// Title of the picture.
    pub(super) title: String,
    /// What stands below it, but for where the fastest changes.
    pub(super) about: String,
    /// Name of the upright axis.
    pub(super) label: &'static str,
    /// From time and bytes to what is drawn.
    pub(super) value: &'a dyn Fn(f64, u64) -> f64,
    /// The upright axis is logarithmic.
    pub(super) log: bool,
    /// Predictions.
    pub(super) table: &'a SizeTable,
    /// Measurements.
    pub(super) measured: &'a [Measured],
    /// What launching a kernel on every GPU in turn takes, us.
    pub(super) launches_us: f64,
}

/// Room for names at the right, pixels.
const NAMES: f64 = 158.0;
/// Height of the frame, pixels.
const HEIGHT: f64 = 300.0;

/// Draws it.
pub(super) fn picture(lines: &Lines<'_>) -> Picture {
    let changes = changes(lines.table);
    let about = format!("{}{}{}", lines.about, told(&changes), launches(lines));
    let mut picture = Picture::new(&lines.title, &about);
    let frame = frame(lines, &picture);
    frame.draw(&mut picture);
    for change in &changes {
        let x = frame.place_x(change.bytes);
        picture.line(vec![(x, frame.top), (x, frame.bottom)], Ink::Muted, HAIR);
    }
    let count = lines.table.rows.first().map_or(0, Vec::len);
    let mut ends = Vec::new();
    for case in 0..count {
        ends.push(draw_case(&mut picture, lines, &frame, case));
    }
    draw_measured(&mut picture, lines, &frame);
    names(&mut picture, lines, &frame, &ends);
    let room = frame.bottom + BELOW - picture.top;
    picture.end(room)
}

fn frame(lines: &Lines<'_>, picture: &Picture) -> Frame {
    let mut values = Vec::new();
    for row in lines.table.rows.iter().flatten() {
        let range = row.time_us;
        values.extend([range.low, range.value, range.high].map(|us| (lines.value)(us, row.bytes)));
    }
    let inside = shown(lines);
    values.extend(inside.iter().map(|one| (lines.value)(one.us, one.bytes)));
    let y = if lines.log {
        Axis::log(lines.label, values)
    } else {
        Axis::linear(lines.label, values, 5)
    };
    let top = picture.top + LABEL + 8.0;
    Frame {
        x: Axis::sizes("size of a call, bytes", &lines.table.sizes),
        y,
        left: MARGIN + 34.0,
        right: WIDTH - NAMES,
        top,
        bottom: top + HEIGHT,
    }
}

/// Measurements within the sizes that are drawn.
fn shown<'a>(lines: &Lines<'a>) -> Vec<&'a Measured> {
    let sizes = &lines.table.sizes;
    let (Some(&first), Some(&last)) = (sizes.iter().min(), sizes.iter().max()) else {
        return Vec::new();
    };
    lines.measured.iter().filter(|one| (first..=last).contains(&one.bytes)).collect()
}

/// Draws a line with its range, and says where it ends.
fn draw_case(picture: &mut Picture, lines: &Lines<'_>, frame: &Frame, case: usize) -> f64 {
    let ink = Ink::Series(case);
    let cells: Vec<&CasePrediction> = lines.table.rows.iter().map(|row| &row[case]).collect();
    let place = |cell: &CasePrediction, us: f64| {
        frame.place(cell.bytes as f64, (lines.value)(us, cell.bytes))
    };
    let Some((first, last)) = cells.first().zip(cells.last()) else {
        return frame.bottom;
    };
    let series = &first.title;
    picture.series(series);
    if cells.len() > 1 {
        let mut band: Vec<_> = cells.iter().map(|cell| place(cell, cell.time_us.low)).collect();
        band.extend(cells.iter().rev().map(|cell| place(cell, cell.time_us.high)));
        picture.add(Shape::Area(band, ink, 0.13));
        let line = cells.iter().map(|cell| place(cell, cell.time_us.value)).collect();
        picture.line(line, ink, LINE);
    } else {
        let ends = [first.time_us.low, first.time_us.high].map(|us| place(first, us));
        picture.line(ends.to_vec(), ink, LINE);
    }
    for cell in &cells {
        let value = (lines.value)(cell.time_us.value, cell.bytes);
        let bytes = format_thousands(cell.bytes);
        let us = with_range(cell.time_us);
        let more = if lines.log { String::new() } else { format!(", {}", short(value)) };
        picture.tip(Some(series), format!("{}: {bytes} B, {us} us{more}", cell.title));
        picture.add(Shape::Dot(place(cell, cell.time_us.value), 2.6, ink));
    }
    place(last, last.time_us.value).1
}

/// The case that a measurement is of.
fn case_of(lines: &Lines<'_>, one: &Measured) -> Option<usize> {
    let row = lines.table.rows.first()?;
    let Some((algorithm, protocol)) = one.ran else {
        return row.iter().position(|case| case.title == CHOICE);
    };
    // A protocol may change with the size within one case.
    let exact = row.iter().position(|c| c.algorithm == algorithm && c.protocol == protocol);
    exact.or_else(|| row.iter().position(|case| case.algorithm == algorithm))
}

fn draw_measured(picture: &mut Picture, lines: &Lines<'_>, frame: &Frame) {
    for one in shown(lines) {
        let case = case_of(lines, one);
        let (ink, series) = match case {
            Some(case) => (Ink::Series(case), lines.table.rows[0][case].title.clone()),
            None => (Ink::Text, "measured".to_owned()),
        };
        let what = match one.ran {
            Some((algorithm, protocol)) => format!("{algorithm} {protocol}"),
            None => "NCCL by itself".to_owned(),
        };
        let (bytes, us) = (format_thousands(one.bytes), short(one.us));
        let how = if one.in_turn { ", GPUs launched in turn" } else { "" };
        let tip = format!("measured {what}{how}: {bytes} B, {us} us ({})", one.id);
        picture.tip(Some(&series), tip);
        let at = frame.place(one.bytes as f64, (lines.value)(one.us, one.bytes));
        mark(picture, at, ink, one.in_turn);
    }
}

/// The mark of a measurement: empty where launching may be what was measured.
fn mark(picture: &mut Picture, at: Point, ink: Ink, in_turn: bool) {
    picture.add(Shape::Dot(at, 4.6, Ink::Paper));
    if !in_turn {
        picture.add(Shape::Dot(at, 3.4, ink));
    }
    picture.add(Shape::Ring(at, 4.6, ink));
}

/// A name of an algorithm: without what stands in brackets where that is too long.
pub(super) fn short_name(title: &str, room: f64) -> String {
    let bare = title.split(" (").next().unwrap_or(title);
    let text = if width(title, LABEL, false) <= room { title } else { bare };
    fitted(text, LABEL, room)
}

/// The name of each line at its end.
fn names(picture: &mut Picture, lines: &Lines<'_>, frame: &Frame, ends: &[f64]) {
    let legend = legend(lines);
    let room = KEY * legend.len() as f64;
    let places = apart(ends, LABEL + 3.0, frame.top + 6.0 + room, frame.bottom - 2.0);
    for (case, (&end, &place)) in ends.iter().zip(&places).enumerate() {
        let title = &lines.table.rows[0][case].title;
        picture.series(title);
        let elbow = frame.right + 8.0;
        picture.line(
            vec![(frame.right, end), (elbow, place), (elbow + 3.0, place)],
            Ink::Series(case),
            HAIR,
        );
        let text = short_name(title, WIDTH - MARGIN / 2.0 - elbow - 6.0);
        let at = (elbow + 6.0, place);
        picture.words(Words::new(at, text, Anchor::Start, Ink::Series(case)));
    }
    picture.plain();
    for (row, (text, in_turn)) in legend.into_iter().enumerate() {
        let at = (frame.right + 14.0, frame.top - 4.0 + KEY * row as f64);
        mark(picture, at, Ink::Text, in_turn);
        let words = Words::new((at.0 + 9.0, at.1), text, Anchor::Start, Ink::Muted);
        picture.words(words.sized(SMALL));
    }
}

/// From one row of the legend of marks to the next, pixels.
const KEY: f64 = 15.0;

/// What marks mean, of those that are drawn.
fn legend(lines: &Lines<'_>) -> Vec<(&'static str, bool)> {
    let shown = shown(lines);
    let foreign = shown.iter().any(|one| case_of(lines, one).is_none());
    let measured = if foreign { "measured (no line: other)" } else { "measured" };
    let mut rows = Vec::new();
    if shown.iter().any(|one| !one.in_turn) {
        rows.push((measured, false));
    }
    if shown.iter().any(|one| one.in_turn) {
        rows.push(("GPUs launched in turn", true));
    }
    rows
}

/// What is measured of calls that one process launches in turn, if such are drawn.
fn launches(lines: &Lines<'_>) -> String {
    match shown(lines).iter().any(|one| one.in_turn) {
        true => format!(
            " Empty marks: one process launched on one GPU after another, outside a graph. That alone \
             takes {} us by our constants; lines are without it.",
            short(lines.launches_us)
        ),
        false => String::new(),
    }
}

/// Where the fastest changes.
struct Change {
    /// Bytes, between two sizes.
    bytes: f64,
    /// Fastest before and after.
    titles: [String; 2],
}

/// Changes of the fastest case, where the lines between two sizes cross.
fn changes(table: &SizeTable) -> Vec<Change> {
    let fastest = |row: &[CasePrediction]| {
        let time = |case: &usize| row[*case].time_us.value;
        (0..row.len()).min_by(|a, b| time(a).total_cmp(&time(b)))
    };
    let mut found = Vec::new();
    for pair in table.rows.windows(2) {
        let (Some(before), Some(after)) = (fastest(&pair[0]), fastest(&pair[1])) else {
            continue;
        };
        if before == after {
            continue;
        }
        // Both lines are straight between the sizes, as they are drawn.
        let lead =
            |row: &[CasePrediction]| (row[after].time_us.value / row[before].time_us.value).ln();
        let (first, second) = (lead(&pair[0]), lead(&pair[1]));
        let share = if first - second > 0.0 { first / (first - second) } else { 0.5 };
        let (low, high) = (pair[0][0].bytes as f64, pair[1][0].bytes as f64);
        found.push(Change {
            bytes: low * (high / low).powf(share),
            titles: [&pair[0][before], &pair[1][after]].map(short_title),
        });
    }
    found
}

fn short_title(case: &CasePrediction) -> String {
    case.title.split(" (").next().unwrap_or(&case.title).to_owned()
}

fn told(changes: &[Change]) -> String {
    let each = changes.iter().map(|change| {
        let kib = change.bytes / 1024.0;
        let size = if kib < 1.0 {
            format!("{:.0} B", change.bytes)
        } else if kib < 1024.0 {
            format!("{kib:.0} KiB")
        } else {
            format!("{:.1} MiB", kib / 1024.0)
        };
        format!("{} until {size}, then {}", change.titles[0], change.titles[1])
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() { String::new() } else { format!(" Fastest: {}.", each.join("; ")) }
}
