//! Time against the size of a call.

use super::Kind;
use super::lines::{Lines, picture};
use super::picture::Picture;
use crate::error::Result;
use crate::sweep::Study;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "time",
    about: "time against size, with what was measured and where the fastest changes",
    of_calls: true,
    draw,
};

fn draw(study: &Study<'_>) -> Result<Picture> {
    Ok(picture(&Lines {
        title: format!("Time of {}", super::subject(study)),
        about: "Lines: predicted, with their 80 % range.".to_owned(),
        label: "us a call",
        value: &|us, _| us,
        log: true,
        table: study.sized()?,
        measured: study.measured()?,
        launches_us: study.launches_us(),
    }))
}
