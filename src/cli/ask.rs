//! `simulate ask`: classic questions, answered.

use clap::Args;
use serde_json::json;

use super::arguments::{ConstantsFrom, Form};
use super::load;
use super::output::{Failure, Outcome, Output};
use super::predict::{start_threads, table_format};
use crate::error::{Error, Result};
use crate::input::kinds::QUESTION;
use crate::input::questions::QUESTIONS;
use crate::input::{load_scenario, read_form, read_text};
use crate::report::ask::{measured as measured_page, page};
use crate::report::table::{Table, TableFormat};
use crate::suggestion::known;
use crate::sweep::ask::Ask;
use crate::sweep::measured::MeasuredChanges;

/// Options of `ask`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// The name of a built-in question, or a file of one; left out: what there is.
    question: Option<String>,
    /// Instead: every change whose effect was measured, beside its prediction.
    #[arg(long, conflicts_with = "question")]
    measured: bool,
    /// The constants.
    #[command(flatten)]
    constants: ConstantsFrom,
    /// Form of the tables [default: text].
    #[arg(long, value_name = "FORM", conflicts_with = "json")]
    format: Option<Form>,
    /// Everything as JSON.
    #[arg(long)]
    json: bool,
}

/// Largest question, bytes.
const LIMIT: u64 = 1 << 20;
const VERSION: u32 = 1;

/// Answers a question, or lists them.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    if options.measured {
        return measured(options, output);
    }
    let Some(name) = &options.question else {
        let mut table = Table::new(&["name", "question"]).left(1);
        for (name, text) in QUESTIONS {
            table.row(vec![(*name).to_owned(), read(name, text)?.question]);
        }
        output.plain(&table.write(TableFormat::Text), None)?;
        return Ok(Outcome::Done);
    };
    let ask = loaded(name)?;
    let calibration = load::calibration(&options.constants)?;
    let scenario = load_scenario(&ask.scenario)?;
    start_threads(None)?;
    let machine = |name: &str| load::topology(name, &calibration);
    let answered = ask.answer(&scenario, machine, &calibration)?;
    let text = match options.json {
        true => format!("{:#}\n", json!({"ask": ask, "answer": answered})),
        false => {
            let format = options.format.map_or(TableFormat::Text, table_format);
            format!("{}\n\n{}", ask.question, page(&ask, &answered, format))
        }
    };
    output.titled(&text, None)?;
    Ok(Outcome::Done)
}

/// Measured changes beside their predictions.
fn measured(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let calibration = load::calibration(&options.constants)?;
    start_threads(None)?;
    let changes = MeasuredChanges::embedded()?;
    let all = changes.predicted(load::built_in, load_scenario, &calibration)?;
    let text = match options.json {
        true => format!("{:#}\n", json!(all)),
        false => measured_page(&all, options.format.map_or(TableFormat::Text, table_format)),
    };
    output.titled(&text, None)?;
    Ok(Outcome::Done)
}

fn loaded(name: &str) -> Result<Ask> {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    if let Some((_, text)) = QUESTIONS.iter().find(|entry| entry.0 == stem)
        && !std::path::Path::new(name).is_file()
    {
        return read(stem, text);
    }
    if !std::path::Path::new(name).is_file() {
        let names = QUESTIONS.iter().map(|entry| entry.0);
        let help = known(stem, "built-in questions", names);
        return Err(Error::request(format!("there is no question `{name}`"), help));
    }
    read(name, &read_text(name, LIMIT, "a question is a few lines")?)
}

fn read(name: &str, text: &str) -> Result<Ask> {
    read_form((name, text), QUESTION, VERSION, |ask: &Ask| ask.schema_version, Ask::faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_question_is_one() {
        for (name, text) in QUESTIONS {
            let ask = read(name, text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(ask.name, *name);
            load_scenario(&ask.scenario).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}
