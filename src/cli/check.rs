//! `simulate check`: predictions against what was measured.

use super::arguments::Check;
use super::output::{Failure, Outcome, Output};
use crate::error::Error;

/// Runs the check.
pub(super) fn run(_options: &Check, _output: &mut Output) -> Result<Outcome, Failure> {
    Err(Error::request(
        "this version has no check against measured files",
        "the first screen compares with figures measured nearby",
    )
    .into())
}
