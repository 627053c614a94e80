//! Schedules that other tools wrote -> plans. A new kind is a file here, its `mod` line, and its
//! entry in [`PLANS`].

mod msccl;

use super::read_text;
use crate::algorithm::plan::Plan;
use crate::error::{Error, Problem, Result};

/// A kind of schedule.
pub struct PlanFormat {
    /// What people call it.
    pub title: &'static str,
    /// Whether a text is one.
    pub sniff: fn(&str) -> bool,
    read: fn(&str, &str) -> Result<Plan>,
}

/// All of them.
pub const PLANS: &[PlanFormat] = &[msccl::FORMAT];

/// Largest schedule read, bytes.
const LIMIT: u64 = 64 << 20;

/// Loads a plan: a file or `-`.
///
/// # Errors
/// [`Error::Read`] when there is no such text, [`Error::Input`] with all that is wrong in it.
pub fn load_plan(file: &str) -> Result<Plan> {
    parse_plan(file, &read_text(file, LIMIT, "schedules of MSCCL are under 10 MiB")?)
}

/// Reads a plan; `file` names the text in errors.
///
/// # Errors
/// [`Error::Input`] with all that is wrong in it.
pub fn parse_plan(file: &str, text: &str) -> Result<Plan> {
    let failed = |problems| Error::Input { file: file.to_owned(), text: text.to_owned(), problems };
    let Some(format) = PLANS.iter().find(|format| (format.sniff)(text)) else {
        let known: Vec<&str> = PLANS.iter().map(|format| format.title).collect();
        let problem = Problem::new("this is no schedule that I know", "")
            .help(format!("known: {}", known.join(", ")));
        return Err(failed(vec![problem]));
    };
    let plan = (format.read)(file, text)?;
    let problems: Vec<Problem> = plan
        .faults()
        .into_iter()
        .map(|(fault, span)| {
            let mut problem = Problem::new(fault, "");
            problem.span = Some(span);
            problem
        })
        .collect();
    if problems.is_empty() { Ok(plan) } else { Err(failed(problems)) }
}
