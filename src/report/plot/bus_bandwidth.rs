//! Bus bandwidth against the size of a call.

use super::Kind;
use super::lines::{Lines, picture};
use super::picture::Picture;
use crate::error::Result;
use crate::report::number::short;
use crate::sweep::Study;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "bus-bandwidth",
    about: "bus bandwidth against size, as nccl-tests counts it",
    of_calls: true,
    draw,
};

fn draw(study: &Study<'_>) -> Result<Picture> {
    let collective = study.question.scenario.steps[0].collective;
    let factor = collective.bus_factor(study.question.options.gpus.len());
    Ok(picture(&Lines {
        title: format!("Bus bandwidth of {}", super::subject(study)),
        about: format!(
            "Bytes over time, times {}, as nccl-tests counts it. Lines: predicted, with \
             their 80 % range.",
            short(factor)
        ),
        label: "GB/s (1e9 bytes a second)",
        value: &|us, bytes| bytes as f64 * factor / us / 1e3,
        log: false,
        table: study.sized()?,
        measured: study.measured()?,
        launches_us: study.launches_us(),
    }))
}
