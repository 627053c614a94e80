//! How calls and steps vary when they are repeated, as lines of `--explain`.

use std::fmt::Write;

use super::number::short;
use crate::error::Result;
use crate::sweep::spread::{Spread, spreads};
use crate::sweep::{Answer, Question};

/// A line for each case and step.
///
/// # Errors
/// When the embedded table of spreads is damaged, which a test excludes.
pub fn text(question: &Question<'_>, answer: &Answer, seed: u64) -> Result<String> {
    let mut out = String::new();
    let _ = writeln!(out, "repeated calls and steps: half, 95 and 99 of 100 are faster");
    let _ = writeln!(out, "  {:<34}{:<10}{:>22}{:>26}", "", "", "call, us", "step, ms");
    for Spread { title, step, call_us, step_ms } in spreads(question, answer, seed)? {
        let _ = write!(out, "  {title:<34}{step:<10}");
        for (times, width) in [(call_us, 22), (step_ms, 26)] {
            let told = [times.p50, times.p95, times.p99].map(|time| format!("{:>7}", short(time)));
            let _ = write!(out, "{:>width$}", told.concat());
        }
        out.push('\n');
    }
    Ok(out)
}
