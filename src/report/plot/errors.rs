//! How far predictions are from measurements: a row for each experiment, a dot for each measurement.

use super::Kind;
use super::axis::{Axis, BELOW, Frame, Scale};
use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Shape, Words};
use super::style::{HAIR, Ink, LABEL, MARGIN, SMALL, WIDTH};
use crate::error::Result;
use crate::statistics::median;
use crate::sweep::Study;
use crate::validation::check::CheckRow;

/// The kind.
pub const KIND: Kind = Kind {
    name: "errors",
    about: "predicted over measured, for everything that was measured on the machine",
    of_calls: false,
    draw,
};

/// Measurements that belong together.
#[derive(Clone, Debug, Default)]
pub struct ErrorRow {
    /// Its name.
    pub name: String,
    /// Predicted over measured, of those that check and of those that constants were fitted to.
    pub checked: Vec<f64>,
    /// The latter.
    pub fitted: Vec<f64>,
}

fn draw(study: &Study<'_>) -> Result<Picture> {
    let rows = study.check()?;
    let title = format!("Predicted over measured: {}", super::machine_name(study));
    Ok(picture(&title, &by_experiment(rows)))
}

fn by_experiment(rows: &[CheckRow]) -> Vec<ErrorRow> {
    let mut found: Vec<ErrorRow> = Vec::new();
    for row in rows {
        let at = found.iter().position(|one| one.name == row.experiment).unwrap_or_else(|| {
            found.push(ErrorRow { name: row.experiment.clone(), ..ErrorRow::default() });
            found.len() - 1
        });
        let ratio = row.predicted / row.measured;
        if row.fit { found[at].fitted.push(ratio) } else { found[at].checked.push(ratio) }
    }
    found
}

/// Height of a row, pixels.
const ROW: f64 = 19.0;
/// Ratios that are written.
const TICKS: [(f64, &str); 9] = [
    (0.1, "0.1"),
    (0.25, "0.25"),
    (0.5, "0.5"),
    (0.8, "0.8"),
    (1.0, "1"),
    (1.25, "1.25"),
    (2.0, "2"),
    (4.0, "4"),
    (10.0, "10"),
];

fn picture(title: &str, rows: &[ErrorRow]) -> Picture {
    let all: usize = rows.iter().map(|row| row.checked.len() + row.fitted.len()).sum();
    let near = |ratio: &&f64| (0.8..=1.25).contains(*ratio);
    let checked: usize = rows.iter().map(|row| row.checked.len()).sum();
    let within: usize = rows.iter().map(|row| row.checked.iter().filter(near).count()).sum();
    let summary = if all == 0 {
        "Nothing was measured on this machine.".to_owned()
    } else {
        format!(
            "Large dots: checks, {within} of {checked} between 0.8 and 1.25. Small dots: constants were \
             fitted to them. Strokes: medians of the checks."
        )
    };
    let mut picture = Picture::new(title, &summary);
    let label = |row: &ErrorRow| format!("{} ({})", row.name, row.checked.len() + row.fitted.len());
    let names = rows.iter().map(|row| width(&label(row), SMALL, false));
    let left = (MARGIN + 10.0 + names.fold(40.0, f64::max)).min(WIDTH * 0.5);
    let top = picture.top + 2.0;
    let frame = Frame {
        x: axis(rows.iter().flat_map(|row| row.checked.iter().chain(&row.fitted)).copied()),
        y: Axis::linear("", [0.0, 1.0], 1),
        left,
        right: WIDTH - MARGIN,
        top,
        bottom: top + rows.len().max(1) as f64 * ROW + 4.0,
    };
    picture.plain();
    let (from, to) = (frame.place_x(0.8), frame.place_x(1.25));
    picture.block((from, frame.top), (to, frame.bottom), Ink::Panel);
    frame.draw_x(&mut picture, true);
    let one = frame.place_x(1.0);
    picture.line(vec![(one, frame.top), (one, frame.bottom)], Ink::Muted, 1.4);
    for (index, row) in rows.iter().enumerate() {
        let y = top + 2.0 + (index as f64 + 0.5) * ROW;
        picture.plain();
        let name = fitted(&label(row), SMALL, left - 10.0);
        picture.words(Words::new((left - 6.0, y), name, Anchor::End, Ink::Text).sized(SMALL));
        picture.line(vec![(left, y), (frame.right, y)], Ink::Grid, HAIR);
        dots(&mut picture, &frame, &row.fitted, (y, 2.0), Ink::Series(6));
        dots(&mut picture, &frame, &row.checked, (y, 2.4), Ink::Series(0));
        if !row.checked.is_empty() {
            let x = frame.place_x(median(row.checked.iter().copied()));
            picture.line(vec![(x, y - 6.0), (x, y + 6.0)], Ink::Text, 2.0);
        }
    }
    if rows.is_empty() {
        let at = (left + 10.0, top + LABEL);
        picture.words(Words::new(at, "no measurement", Anchor::Start, Ink::Muted));
    }
    let room = frame.bottom + BELOW - picture.top;
    picture.end(room)
}

/// Dots, those that fall on each other once.
fn dots(picture: &mut Picture, frame: &Frame, ratios: &[f64], (y, radius): (f64, f64), ink: Ink) {
    let mut places: Vec<i64> =
        ratios.iter().map(|&ratio| (frame.place_x(ratio) * 2.0).round() as i64).collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        picture.add(Shape::Dot((place as f64 / 2.0, y), radius, ink));
    }
}

/// Over all ratios, and at least a fifth to either side; the same to both.
pub(super) fn axis(ratios: impl Iterator<Item = f64>) -> Axis {
    let far = ratios.map(|ratio| ratio.max(1.0 / ratio)).fold(1.5, f64::max).min(20.0) * 1.08;
    let inside = TICKS.iter().filter(|tick| (1.0 / far..=far).contains(&tick.0));
    Axis {
        scale: Scale::Log,
        range: (1.0 / far, far),
        ticks: inside.map(|&(value, text)| (value, text.to_owned())).collect(),
        label: "predicted / measured".to_owned(),
    }
}
