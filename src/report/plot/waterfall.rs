//! From the naive estimate, bytes over the rate of a link, to the predicted time.

use super::Kind;
use super::axis::{Axis, BELOW, Frame};
use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Words};
use super::style::{HAIR, Ink, LABEL, MARGIN, WIDTH};
use crate::error::Result;
use crate::prediction::breakdown::Part;
use crate::report::number::short;
use crate::sweep::Study;
use crate::units::format_thousands;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "waterfall",
    about: "from bytes over the link's rate to the predicted time, addend by addend",
    of_calls: true,
    draw,
};

fn draw(study: &Study<'_>) -> Result<Picture> {
    let name = super::machine_name(study);
    if let Some(waterfall) = &study.answer()?.waterfall {
        let peers = study.question.options.gpus.len() - 1;
        let mut terms: Vec<(String, f64)> =
            waterfall.terms.iter().map(|term| (term.name.clone(), term.us)).collect();
        if let Some(first) = terms.first_mut() {
            first.0 = format!("{peers} x {} B {}", format_thousands(waterfall.bytes), first.0);
        }
        let title = format!("Why one-stage takes {} us: {name}", short(waterfall.total_us()));
        let marked = terms.iter().any(|term| term.0.contains('*'));
        let about = if marked {
            "From the naive estimate to the prediction. * declared regime of this machine, cause unknown."
        } else {
            "From the naive estimate to the prediction."
        };
        return Ok(picture(&title, about, &terms));
    }
    // Without that algorithm among the cases, the parts of the fastest.
    let call = study.call(study.fastest()?)?;
    let parts = Part::ALL.iter().map(|&(part, name)| (part, name));
    let terms: Vec<(String, f64)> =
        parts.map(|(part, name)| (name.to_owned(), call.parts[part as usize].as_us())).collect();
    let total: f64 = terms.iter().map(|term| term.1).sum();
    let title = format!("Why {} takes {} us: {name}", call.title, short(total));
    Ok(picture(&title, "Along the chain of operations that ends the call.", &terms))
}

/// Height of a row, pixels.
const ROW: f64 = 24.0;
/// Room for figures at the right, pixels.
const FIGURE: f64 = 52.0;

fn picture(title: &str, about: &str, terms: &[(String, f64)]) -> Picture {
    let mut picture = Picture::new(title, about);
    let mut sums = vec![0.0];
    for term in terms {
        sums.push(sums[sums.len() - 1] + term.1);
    }
    let names = terms.iter().map(|term| width(&term.0, LABEL, false));
    let left = (MARGIN + 8.0 + names.fold(60.0, f64::max)).min(WIDTH * 0.42);
    let top = picture.top;
    let frame = Frame {
        x: Axis::linear("us", sums.iter().copied(), 6),
        y: Axis::linear("", [0.0, 1.0], 1),
        left,
        right: WIDTH - MARGIN - FIGURE,
        top,
        bottom: top + (terms.len() + 1) as f64 * ROW,
    };
    picture.plain();
    frame.draw_x(&mut picture, true);
    let last = sums[sums.len() - 1];
    let total = ("predicted".to_owned(), last);
    for (index, term) in terms.iter().chain([&total]).enumerate() {
        let whole = index == terms.len();
        let (from, to) = if whole { (0.0, last) } else { (sums[index], sums[index + 1]) };
        let ink = match (index, whole) {
            (0, _) => Ink::Series(0),
            (_, true) => Ink::Text,
            _ if term.1 < 0.0 => Ink::Series(2),
            _ => Ink::Series(1),
        };
        let y = top + index as f64 * ROW;
        let (a, b) = (frame.place_x(from.min(to)), frame.place_x(from.max(to)));
        picture.tip(None, format!("{}: {} us", term.0, short(term.1)));
        picture.block((a, y + 4.0), (b.max(a + 0.8), y + ROW - 4.0), ink);
        picture.plain();
        if !whole {
            let x = frame.place_x(to);
            picture.line(vec![(x, y + ROW - 4.0), (x, y + ROW + 4.0)], Ink::Muted, HAIR);
        }
        let middle = y + ROW / 2.0;
        let name = fitted(&term.0, LABEL, left - MARGIN);
        picture.words(Words::new((left - 6.0, middle), name, Anchor::End, Ink::Text));
        let sign = if index > 0 && !whole { "+" } else { "" };
        let figure = if term.1 < 0.0 { short(term.1) } else { format!("{sign}{}", short(term.1)) };
        picture.words(Words::new((b + 6.0, middle), figure, Anchor::Start, Ink::Text));
    }
    let room = frame.bottom + BELOW - picture.top;
    picture.end(room)
}
