//! Schedules that other tools wrote -> plans. A new kind is a file here, its `mod` line, and its
//! entry in [`PLANS`].

mod goal;
mod msccl;
mod mscclpp;

use super::kinds::of_another;
use super::read_text;
use crate::algorithm::plan::Plan;
use crate::error::{Error, Problem, Result};
use crate::suggestion::known;

/// A kind of schedule.
pub struct PlanFormat {
    /// Name for `--format`.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Whether a text is one.
    pub sniff: fn(&str) -> bool,
    read: fn(&str, &str) -> Result<Plan>,
}

/// All of them.
pub const PLANS: &[PlanFormat] = &[msccl::FORMAT, mscclpp::FORMAT, goal::FORMAT];

/// Largest schedule read, bytes.
const LIMIT: u64 = 64 << 20;

/// Loads a plan: a file or `-`, of the kind of this name or of the one that its content tells.
///
/// # Errors
/// [`Error::Read`] when there is no such text, [`Error::Input`] with all that is wrong in it,
/// [`Error::Request`] when there is no such kind.
pub fn load_plan(file: &str, format: Option<&str>) -> Result<Plan> {
    let format = format.map(named).transpose()?;
    parse_plan(file, &read_text(file, LIMIT, "schedules are under 10 MiB")?, format)
}

fn named(name: &str) -> Result<&'static PlanFormat> {
    PLANS.iter().find(|format| format.name == name).ok_or_else(|| {
        let help = known(name, "known", PLANS.iter().map(|format| format.name));
        Error::request(format!("there is no format `{name}`"), help)
    })
}

/// The kind of a text.
pub fn recognise(text: &str) -> Option<&'static PlanFormat> {
    PLANS.iter().find(|format| (format.sniff)(text))
}

/// Reads a plan; `file` names the text in errors, `format` is told by the content where it is not
/// given.
///
/// # Errors
/// [`Error::Input`] with all that is wrong in it.
pub fn parse_plan(file: &str, text: &str, format: Option<&PlanFormat>) -> Result<Plan> {
    let failed = |problems| Error::Input { file: file.to_owned(), text: text.to_owned(), problems };
    let Some(format) = format.or_else(|| recognise(text)) else {
        if let Some(other) = of_another(file, text, "", "which is no schedule") {
            return Err(other);
        }
        let known: Vec<&str> = PLANS.iter().map(|format| format.title).collect();
        let help = format!("known: {}", known.join(", "));
        let problem = Problem::new("this is no schedule that I know", "").help(help);
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
