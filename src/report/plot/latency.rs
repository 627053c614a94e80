//! What the time of a call is made of, by algorithm.

use super::Kind;
use super::bars::{Bar, Bars, picture};
use super::picture::Picture;
use super::style::Ink;
use crate::error::Result;
use crate::prediction::breakdown::Part;
use crate::sweep::Study;
use crate::units::format_thousands;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "latency",
    about: "parts of a call's time: launch, barrier, wire, queueing, endpoint, poll",
    of_calls: true,
    draw,
};

/// The color of a part.
pub(super) fn ink(part: Part) -> Ink {
    match part {
        Part::Launch => Ink::Series(7),
        Part::Barrier => Ink::Series(3),
        Part::Wire => Ink::Series(0),
        Part::Queueing => Ink::Series(1),
        Part::Endpoint => Ink::Series(2),
        Part::Poll => Ink::Series(4),
    }
}

fn draw(study: &Study<'_>) -> Result<Picture> {
    let mut bars = Vec::new();
    for case in 0..study.question.cases.len() {
        let call = study.call(case)?;
        let parts = call.parts.iter().map(|part| part.as_us()).collect();
        bars.push(Bar { name: call.title.clone(), parts, range: None });
    }
    Ok(picture(&Bars {
        title: format!(
            "What a call of {} B is made of: {}",
            format_thousands(study.bytes),
            super::machine_name(study)
        ),
        summary:
            "Along the chain of operations that ends the call. Barrier: flags with their way; \
                  wire: data on idle links; queueing: what sharing and declared regimes add."
                .to_owned(),
        shares: true,
        label: "% of the call; figures: us",
        parts: Part::ALL.iter().map(|&(part, name)| (name.to_owned(), ink(part))).collect(),
        bars,
    }))
}
