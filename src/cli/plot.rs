//! `simulate plot`: one picture, or the gallery of the repository.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use clap::{Args, Parser};

use super::arguments::{Arguments, Predict};
use super::output::{Failure, Outcome, Output};
use super::predict::{Around, Asked, start_threads, workload};
use super::progress::Progress;
use super::select;
use super::{ignored, load};
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::input::Loaded;
use crate::prediction::{Choice, Machine};
use crate::report::plot::{self, KINDS, Kind, Picture, gallery};
use crate::sweep::Study;
use crate::sweep::sizes::Sizes;

/// Options of `plot`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// Kind of picture; `list` says which there are, `gallery` draws those of the repository into
    /// the folder --out.
    kind: String,
    #[command(flatten)]
    predict: Predict,
}

/// Sizes of the pictures over sizes, where none are told.
const SIZES: Sizes = Sizes { begin: 1 << 10, end: 1 << 20, factor: 4.0 };

/// Draws.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let predict = &options.predict;
    match options.kind.as_str() {
        "list" => {
            alone(predict, "list")?;
            output.text(&list())?;
        }
        "gallery" => {
            alone(predict, "gallery")?;
            start_threads(predict.threads)?;
            let folder = predict.out.as_deref().unwrap_or("plots");
            draw_gallery(folder, output)?;
        }
        name => {
            let kind = plot::find(name)?;
            ignored::of_picture(predict, Some(name))?;
            start_threads(predict.threads)?;
            let subject = Subject::of(predict)?;
            let progress = Progress::counting();
            let picture = subject.draw(&[kind], &|| progress.step());
            progress.finish();
            let picture = picture?.remove(0);
            output.plain(&picture.svg(), predict.out.as_deref())?;
        }
    }
    Ok(Outcome::Done)
}

fn list() -> String {
    let mut out = String::new();
    for kind in KINDS {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{:<16}{}", kind.name, kind.about);
    }
    out
}

/// The list and the gallery are of the program itself: nothing else than where to write and with how
/// many threads is asked of them.
fn alone(predict: &Predict, name: &str) -> Result<()> {
    let plain = Arguments::parse_from(["simulate"]).predict;
    let asked = Predict { out: predict.out.clone(), threads: predict.threads, ..plain };
    if *predict == asked {
        return Ok(());
    }
    Err(Error::request(
        format!("plot {name} is of the program's own machines and constants"),
        "it takes --out and -j only; one picture of your machine: `simulate plot time --topo MACHINE`",
    ))
}

/// What is drawn: a machine with a workload.
pub(super) struct Subject<'a> {
    pub(super) asked: Asked<'a>,
    pub(super) around: Around,
    pub(super) notes: Vec<String>,
    sizes: Vec<u64>,
    bytes: u64,
}

impl<'a> Subject<'a> {
    /// The machine that the options name.
    pub(super) fn of(predict: &'a Predict) -> Result<Subject<'a>> {
        let calibration = load::calibration(&predict.machine.constants)?;
        let loaded = load::machine(&predict.machine, &calibration)?;
        Subject::on(predict, loaded, calibration)
    }

    fn on(
        predict: &'a Predict,
        Loaded { topology, ring }: Loaded,
        calibration: Calibration,
    ) -> Result<Subject<'a>> {
        let mut notes = Vec::new();
        let told = select::wanted_sizes(predict, false)?;
        let workload = workload(predict, &mut notes)?;
        let machine = Machine::new(topology, &calibration, !predict.no_regimes, true)?;
        let choice = Choice { graph: ring.unwrap_or_default(), ..select::choice(predict)? };
        let ranks = workload.0.tensor_parallel;
        let gpus = choice.ranks(&machine.topology, ranks, &mut notes)?;
        let last = workload.0.steps.last().map_or(0, |step| step.bytes);
        // Whoever names one size wants to look at that call.
        let bytes = if let [only] = told[..] { only } else { last };
        let sizes = if told.is_empty() { SIZES.all()? } else { told };
        let asked = Asked::of(predict, machine, workload, &choice, gpus, calibration, &mut notes)?;
        let around = Around::of(&asked)?;
        Ok(Subject { asked, around, notes, sizes, bytes })
    }

    /// What pictures are drawn from; `progress` is told after each simulation.
    pub(super) fn study<'b>(&'b self, progress: &'b (dyn Fn() + Sync)) -> Study<'b> {
        Study::new(self.asked.question(&self.around), self.sizes.clone(), self.bytes, progress)
    }

    fn draw(mut self, kinds: &[&Kind], progress: &(dyn Fn() + Sync)) -> Result<Vec<Picture>> {
        // No picture shows them.
        self.around.wirings.clear();
        let study = self.study(progress);
        kinds.iter().map(|kind| draw(kind, &study)).collect()
    }
}

/// Draws a kind; of one GPU only those that need no call.
pub(super) fn draw(kind: &Kind, study: &Study<'_>) -> Result<Picture> {
    if study.question.cases.is_empty() && kind.of_calls {
        return Err(Error::request(
            format!(
                "{} has one GPU: there is nothing to reduce",
                study.question.machine.topology.name
            ),
            "the pictures machine, peers and errors can be drawn of it",
        ));
    }
    (kind.draw)(study)
}

/// Draws the gallery into a folder.
fn draw_gallery(folder: &str, output: &mut Output) -> std::result::Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        Error::request(
            format!("cannot make the folder {folder}: {error}"),
            "name another with --out, or check its permissions",
        )
    })?;
    let write = |output: &mut Output, file: &str, text: &str| {
        let path = Path::new(folder).join(file);
        output.plain(text, Some(&path.to_string_lossy()))
    };
    let progress = Progress::new(gallery::ENTRIES.len());
    let mut titles = Vec::new();
    for entries in gallery::ENTRIES.chunk_by(|a, b| a.machine == b.machine) {
        for (entry, picture) in entries.iter().zip(of_machine(entries)?) {
            write(output, &entry.file_name(), &picture.svg())?;
            titles.push((entry.file_name(), picture.title));
            progress.step();
        }
    }
    write(output, "README.md", &gallery::page(&titles))?;
    progress.finish();
    Ok(())
}

/// The pictures of one machine of the gallery.
fn of_machine(entries: &[gallery::Entry]) -> Result<Vec<Picture>> {
    // All else as it is when nothing is told.
    let predict = Arguments::parse_from(["simulate", "--topo", entries[0].machine]).predict;
    let loaded = Loaded { topology: load::built_in(entries[0].machine)?, ring: None };
    let calibration = load::calibration(&predict.machine.constants)?;
    let subject = Subject::on(&predict, loaded, calibration)?;
    let kinds = entries.iter().map(|entry| plot::find(entry.kind)).collect::<Result<Vec<_>>>()?;
    subject.draw(&kinds, &|| {})
}
