//! `simulate report`: one page to hand in.

use clap::Args;

use super::arguments::Predict;
use super::ignored;
use super::output::{Failure, Outcome, Output};
use super::plot::Subject;
use super::predict::start_threads;
use super::progress::Progress;
use crate::input::topology_json;
use crate::report::page::{Page, Told, html, markdown};

/// Options of `report`.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    predict: Predict,
}

/// Writes the report: HTML to a file that ends so, else Markdown.
pub(super) fn run(options: &Options, output: &mut Output) -> Result<Outcome, Failure> {
    let predict = &options.predict;
    ignored::of_picture(predict, None)?;
    start_threads(predict.threads)?;
    let subject = Subject::of(predict)?;
    let progress = Progress::counting();
    let tick = || progress.step();
    let study = subject.study(&tick);
    let prepared = if study.question.cases.is_empty() { Ok(()) } else { study.prepare() };
    let topology = &study.question.machine.topology;
    let told = Told {
        command: command(),
        notes: subject.notes.clone(),
        topology: topology_json::write(topology)?,
    };
    let page = prepared.and_then(|()| Page::of(&study, &told));
    progress.finish();
    let page = page?;
    let out = predict.out.as_deref();
    let as_html = out.is_some_and(|file| file.ends_with(".html") || file.ends_with(".htm"));
    let text = if as_html { html(&page) } else { markdown(&page, &topology.name) };
    output.plain(&text, out)?;
    Ok(Outcome::Done)
}

/// The command line as it was given, for a shell.
fn command() -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "-_./,:=@+".contains(letter);
    let quoted = |word: String| {
        if !word.is_empty() && word.chars().all(plain) {
            return word;
        }
        format!("'{}'", word.replace('\'', "'\\''"))
    };
    let words = std::env::args().skip(1).map(quoted);
    ["simulate".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
