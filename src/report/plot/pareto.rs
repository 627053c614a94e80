//! What the calls alone allow: tokens a second of one user against tokens a second of one GPU.

use super::Kind;
use super::axis::{Axis, BELOW, Frame, apart};
use super::lines::short_name;
use super::picture::{Anchor, Picture, Shape, Words};
use super::style::{HAIR, Ink, LABEL, LINE, MARGIN, WIDTH};
use crate::error::Result;
use crate::report::number::short;
use crate::sweep::Study;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "pareto",
    about: "tokens a second of a user against those of a GPU, as far as the calls alone allow",
    of_calls: true,
    draw,
};

/// A batch with one algorithm.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Place {
    users: u64,
    /// Tokens a second of one user, and of one GPU.
    user: f64,
    gpu: f64,
}

/// An algorithm's batches.
struct Series {
    name: String,
    places: Vec<Place>,
}

fn draw(study: &Study<'_>) -> Result<Picture> {
    let step = &study.question.scenario.steps[0];
    let gpus = study.question.options.gpus.len() as f64;
    let table = study.batches()?;
    let count = table.rows.first().map_or(0, Vec::len);
    let series = (0..count).map(|case| {
        let place = |row: &Vec<crate::prediction::CasePrediction>| {
            let users = row[case].bytes / step.bytes.max(1);
            let user = 1e6 / (f64::from(step.calls) * row[case].time_us.value);
            Place { users, user, gpu: user * users as f64 / gpus }
        };
        let places = table.rows.iter().map(place).collect();
        Series { name: table.rows[0][case].title.clone(), places }
    });
    let series: Vec<Series> = series.collect();
    let title = format!(
        "What {} {}s a token allow: {}",
        step.calls,
        step.collective.title(),
        super::machine_name(study)
    );
    let about = format!(
        "Communication alone, no compute: an upper limit. Each line: {} (at its name) to {} users, \
         one token of {} each. Shaded: not beaten in both.",
        series.first().map_or(1, |one| one.places.first().map_or(1, |place| place.users)),
        series.first().map_or(1, |one| one.places.last().map_or(1, |place| place.users)),
        study.question.scenario.name,
    );
    Ok(picture(&title, &about, &series))
}

/// Places that no other beats in both figures, by tokens of a user.
fn frontier(series: &[Series]) -> Vec<Place> {
    let all: Vec<Place> = series.iter().flat_map(|one| one.places.iter().copied()).collect();
    let beaten = |place: &Place| {
        all.iter().any(|other| {
            other.user >= place.user
                && other.gpu >= place.gpu
                && (other.user > place.user || other.gpu > place.gpu)
        })
    };
    let mut best: Vec<Place> = all.iter().copied().filter(|place| !beaten(place)).collect();
    best.sort_by(|a, b| a.user.total_cmp(&b.user));
    best
}

/// Room for names at the right, pixels.
const NAMES: f64 = 158.0;
/// Height of the frame, pixels.
const HEIGHT: f64 = 290.0;

fn picture(title: &str, about: &str, series: &[Series]) -> Picture {
    let mut picture = Picture::new(title, about);
    let places = || series.iter().flat_map(|one| &one.places);
    let top = picture.top + LABEL + 8.0;
    let frame = Frame {
        x: Axis::log("tokens a second of one user", places().map(|place| place.user)),
        y: Axis::log("tokens a second of one GPU", places().map(|place| place.gpu)),
        left: MARGIN + 40.0,
        right: WIDTH - NAMES,
        top,
        bottom: top + HEIGHT,
    };
    frame.draw(&mut picture);
    let best = frontier(series);
    let line = best.iter().map(|place| frame.place(place.user, place.gpu)).collect();
    picture.series("best");
    picture.add(Shape::Line(line, Ink::Grid, 9.0));
    let mut ends = Vec::new();
    for (index, one) in series.iter().enumerate() {
        let ink = Ink::Series(index);
        picture.series(&one.name);
        let line: Vec<_> = one.places.iter().map(|p| frame.place(p.user, p.gpu)).collect();
        picture.line(line, ink, LINE);
        for place in &one.places {
            let (user, gpu) = (short(place.user), short(place.gpu));
            let users = if place.users == 1 { "user" } else { "users" };
            let tip = format!("{}, {} {users}: {user} a user, {gpu} a GPU", one.name, place.users);
            picture.tip(Some(&one.name), tip);
            picture.add(Shape::Dot(frame.place(place.user, place.gpu), 2.8, ink));
        }
        // One user is the rightmost place of a line.
        ends.push(
            one.places
                .first()
                .map_or((frame.right, frame.bottom), |place| frame.place(place.user, place.gpu)),
        );
    }
    names(&mut picture, series, &frame, &ends);
    let room = frame.bottom + BELOW - picture.top;
    picture.end(room)
}

fn names(picture: &mut Picture, series: &[Series], frame: &Frame, ends: &[(f64, f64)]) {
    let wanted: Vec<f64> = ends.iter().map(|end| end.1).collect();
    let places = apart(&wanted, LABEL + 3.0, frame.top + 6.0, frame.bottom - 4.0);
    for (index, (one, &y)) in series.iter().zip(&places).enumerate() {
        picture.series(&one.name);
        let elbow = frame.right + 8.0;
        let (ink, end) = (Ink::Series(index), ends[index]);
        picture.line(vec![end, (elbow, y), (elbow + 3.0, y)], ink, HAIR);
        let text = short_name(&one.name, WIDTH - MARGIN / 2.0 - elbow - 6.0);
        picture.words(Words::new((elbow + 6.0, y), text, Anchor::Start, ink));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frontier_holds_what_nothing_beats() {
        let place = |user, gpu| Place { users: 1, user, gpu };
        let series = [
            Series { name: "a".into(), places: vec![place(10.0, 1.0), place(5.0, 4.0)] },
            Series { name: "b".into(), places: vec![place(9.0, 0.5), place(4.0, 8.0)] },
        ];
        let best: Vec<f64> = frontier(&series).iter().map(|place| place.user).collect();
        assert_eq!(best, [4.0, 5.0, 10.0]);
    }
}
