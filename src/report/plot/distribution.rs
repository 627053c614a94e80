//! How a step's time is distributed: how likely each time is, given how well constants are known.

use super::Kind;
use super::axis::{Axis, BELOW, Frame};
use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Shape, Words};
use super::style::{HAIR, Ink, LABEL, MARGIN, SMALL, WIDTH};
use crate::error::Result;
use crate::prediction::Range;
use crate::report::number::with_range;
use crate::sweep::Study;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "distribution",
    about: "how likely each time of a step is, by algorithm, from how well constants are known",
    of_calls: true,
    draw,
};

fn draw(study: &Study<'_>) -> Result<Picture> {
    let answer = study.answer()?;
    let step = &answer.steps[0].step;
    let ms = |us: f64| us * f64::from(step.calls) / 1e3;
    let rows = answer.rows.iter().map(|row| {
        let range = row[0].time_us;
        let range = Range { value: ms(range.value), low: ms(range.low), high: ms(range.high) };
        (row[0].title.clone(), range)
    });
    let rows: Vec<(String, Range)> = rows.collect();
    let title = format!(
        "{} {}s of a {} step: {}",
        step.calls,
        step.collective.title(),
        step.name,
        super::machine_name(study)
    );
    Ok(picture(&title, &rows))
}

/// Height of a row, pixels, and the part of it that the highest curve takes.
const ROW: f64 = 46.0;
const CURVE: f64 = 34.0;
/// Points of a curve.
const POINTS: usize = 60;
/// A curve is drawn so many standard deviations to either side.
const WIDE: f64 = 3.0;

fn picture(title: &str, rows: &[(String, Range)]) -> Picture {
    let about = "Log-normal, from how well constants are known and how far such predictions were off elsewhere; \
                 not the jitter of calls. Bar: 80 %, dot: predicted.";
    let mut picture = Picture::new(title, about);
    let far = |range: &Range| (range.sigma() * WIDE).exp();
    let ends =
        rows.iter().flat_map(|(_, range)| [range.value / far(range), range.value * far(range)]);
    let names = rows.iter().map(|row| width(&row.0, LABEL, false));
    let left = (MARGIN + 8.0 + names.fold(40.0, f64::max)).min(WIDTH * 0.36);
    let top = picture.top + 6.0;
    let frame = Frame {
        x: Axis::log("ms a step", ends),
        y: Axis::linear("", [0.0, 1.0], 1),
        left,
        right: WIDTH - MARGIN,
        top,
        bottom: top + rows.len().max(1) as f64 * ROW,
    };
    picture.plain();
    frame.draw_x(&mut picture, true);
    for (index, (name, range)) in rows.iter().enumerate() {
        let base = top + (index + 1) as f64 * ROW - 6.0;
        draw_row(&mut picture, &frame, (name, range), base, Ink::Series(index));
    }
    let room = frame.bottom + BELOW - picture.top;
    picture.end(room)
}

fn draw_row(
    picture: &mut Picture,
    frame: &Frame,
    (name, range): (&str, &Range),
    base: f64,
    ink: Ink,
) {
    picture.tip(Some(name), format!("{name}: {} ms a step", with_range(*range)));
    let sigma = range.sigma();
    if sigma > 0.0 {
        let mut curve = Vec::new();
        for point in 0..=POINTS {
            let deviation = WIDE * (2.0 * point as f64 / POINTS as f64 - 1.0);
            let x = frame.place_x(range.value * (sigma * deviation).exp());
            curve.push((x, base - CURVE * (-deviation * deviation / 2.0).exp()));
        }
        let (first, last) = (curve[0].0, curve[POINTS].0);
        let mut area = vec![(first, base)];
        area.extend(curve.iter().copied());
        area.push((last, base));
        picture.add(Shape::Area(area, ink, 0.25));
        picture.line(curve, ink, 1.2);
    }
    picture.line(vec![(frame.left, base), (frame.right, base)], Ink::Grid, HAIR);
    let (low, high) = (frame.place_x(range.low), frame.place_x(range.high));
    picture.line(vec![(low, base), (high, base)], ink, 4.0);
    picture.add(Shape::Dot((frame.place_x(range.value), base), 3.6, ink));
    let middle = base - CURVE / 2.0;
    let room = frame.left - MARGIN;
    let title = fitted(name, LABEL, room);
    picture.words(Words::new((frame.left - 8.0, middle), title, Anchor::End, Ink::Text));
    let figure = with_range(*range);
    let at = (frame.left - 8.0, middle + LABEL + 3.0);
    picture.words(Words::new(at, figure, Anchor::End, Ink::Muted).sized(SMALL));
}
