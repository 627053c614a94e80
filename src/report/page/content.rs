//! What a report says, whatever its form.

use super::Playback;
use crate::error::Result;
use crate::prediction::CasePrediction;
use crate::report::assumptions::of_the_model;
use crate::report::hash::{calibration_hash, fnv1a, hex};
use crate::report::machine::{links_line, paths_line, settings};
use crate::report::number::{percent, short, signed_percent, with_range};
use crate::report::plot::{self, Kind, Picture};
use crate::report::table::Table;
use crate::sweep::Study;
use crate::sweep::answer::{Answer, StepAnswer};
use crate::units::{format_size, format_thousands};

/// A piece of a report.
pub enum Block {
    /// A heading.
    Heading(&'static str),
    /// A paragraph.
    Text(String),
    /// A table to copy.
    Table(Table),
    /// A picture.
    Picture(&'static str, Box<Picture>),
    /// A call that plays over the drawing of the machine.
    Play(Box<Picture>, Box<Playback>),
    /// Predictions at one size, of those that there are: size, and a row for each case.
    Sizes(Vec<(String, Vec<String>)>),
    /// Something to type.
    Code(String),
}

/// A report.
pub struct Page {
    /// Its title.
    pub title: String,
    /// Its pieces.
    pub blocks: Vec<Block>,
}

/// What only the caller knows.
pub struct Told {
    /// The command that draws this report.
    pub command: String,
    /// What holds for the question, a sentence each.
    pub notes: Vec<String>,
    /// The machine, as JSON, for its hash.
    pub topology: String,
}

/// Pictures of a report, in their order. Errors of all that was measured take a check of minutes.
const PICTURES: [&str; 10] = [
    "time",
    "bus-bandwidth",
    "latency",
    "waterfall",
    "step",
    "distribution",
    "pareto",
    "timeline",
    "contention",
    "peers",
];

impl Page {
    /// The report of a study, all of which may have been found out before ([`Study::prepare`]).
    ///
    /// # Errors
    /// Those of the algorithms and the engine.
    pub fn of(study: &Study<'_>, told: &Told) -> Result<Page> {
        let topology = &study.question.machine.topology;
        let mut page = Page { title: format!("collsim: {}", topology.name), blocks: Vec::new() };
        let calls = !study.question.cases.is_empty();
        page.summary(study, told)?;
        page.machine(study)?;
        if calls {
            page.numbers(study.answer()?, study);
        }
        page.blocks.push(Block::Heading("Pictures"));
        for name in PICTURES {
            let kind = plot::find(name)?;
            if calls || !kind.of_calls {
                page.picture(kind, study)?;
            }
        }
        if calls {
            page.sizes(study)?;
            page.misses(study.answer()?);
        }
        page.assumptions(study);
        page.again(study, told);
        Ok(page)
    }

    fn picture(&mut self, kind: &Kind, study: &Study<'_>) -> Result<()> {
        self.blocks.push(Block::Picture(kind.name, Box::new((kind.draw)(study)?)));
        Ok(())
    }

    fn summary(&mut self, study: &Study<'_>, told: &Told) -> Result<()> {
        let topology = &study.question.machine.topology;
        self.blocks.push(Block::Heading("Summary"));
        let name = &topology.name;
        self.blocks.push(Block::Text(if topology.title.is_empty() {
            format!("{name}.")
        } else {
            format!("{name}: {}.", topology.title)
        }));
        if study.question.cases.is_empty() {
            self.blocks.push(Block::Text("One GPU: there is nothing to reduce.".to_owned()));
            return Ok(());
        }
        let answer = study.answer()?;
        for (index, step) in answer.steps.iter().enumerate() {
            self.blocks.push(Block::Text(sentence(answer, step, index)));
        }
        let struck: Vec<&CasePrediction> = answer
            .rows
            .iter()
            .filter_map(|row| row.last())
            .filter(|c| !c.regimes.is_empty())
            .collect();
        if !struck.is_empty() {
            let titles: Vec<&str> = struck.iter().map(|case| case.title.as_str()).collect();
            self.blocks.push(Block::Text(format!(
                "A behaviour of this machine that no width explains is declared in its file and \
                 applies to: {}. The tables give those times without it, too.",
                titles.join(", ")
            )));
        }
        for note in &told.notes {
            self.blocks.push(Block::Text(format!("Note: {note}.")));
        }
        Ok(())
    }

    fn machine(&mut self, study: &Study<'_>) -> Result<()> {
        let machine = study.question.machine;
        let (topology, fabric) = (&machine.topology, &machine.nominal.fabric);
        self.blocks.push(Block::Heading("The machine"));
        // Two spaces part what stands in one row on a terminal.
        let listed = |line: String| line.replace("  ", "; ");
        let mut words = format!("Links, one way: {}.", listed(links_line(topology, fabric)));
        if fabric.gpu_count > 1 && fabric.peer_to_peer {
            words.push_str(&format!(" Paths: {}.", listed(paths_line(topology, fabric))));
        }
        words.push_str(&format!(" Settings: {}.", settings(topology)));
        self.blocks.push(Block::Text(words));
        let picture = Box::new((plot::find("machine")?.draw)(study)?);
        if study.question.cases.is_empty() {
            self.blocks.push(Block::Picture("machine", picture));
            return Ok(());
        }
        let call = study.call(study.fastest()?)?;
        self.blocks.push(Block::Play(picture, Box::new(Playback::of(call, fabric))));
        Ok(())
    }

    /// What the wires allow, what each algorithm gives, what NCCL takes.
    fn numbers(&mut self, answer: &Answer, study: &Study<'_>) {
        self.blocks.push(Block::Heading("Three numbers"));
        self.blocks.push(Block::Text(
            "What the wires allow whatever the algorithm, what each algorithm gives on them, and \
             what NCCL takes by itself. Times of a call with their 80 % range."
                .to_owned(),
        ));
        for (index, step) in answer.steps.iter().enumerate() {
            let calls = f64::from(step.step.calls);
            let name = format!("{} ({} B)", step.step.name, format_thousands(step.step.bytes));
            let header =
                [name.as_str(), "us a call", "ms a step", "waiting", "without *", "bottleneck"];
            let mut table = Table::new(&header).left(5);
            let bound = step.bound.time.as_us();
            let figure = |us: f64| short(us * calls / 1e3);
            let cells = ["wires allow".to_owned(), short(bound), figure(bound)];
            let rest = [String::new(), String::new(), step.bound.limit.clone()];
            table.row(cells.into_iter().chain(rest).collect());
            let row = |title: String, case: &CasePrediction| {
                vec![
                    title,
                    with_range(case.time_us),
                    figure(case.time_us.value),
                    percent(case.waiting),
                    case.without_regimes_us.map_or(String::new(), with_range),
                    case.bottleneck.label(),
                ]
            };
            if let Some(case) = answer.picks.get(index).and_then(|pick| pick.prediction.as_ref()) {
                table.row(row(format!("NCCL takes {}", case.title), case));
            }
            for case in answer.rows.iter().map(|row| &row[index]) {
                table.row(row(case.title.clone(), case));
            }
            self.blocks.push(Block::Table(table));
        }
        self.wirings(answer, study);
    }

    fn wirings(&mut self, answer: &Answer, study: &Study<'_>) {
        if answer.wirings.is_empty() {
            return;
        }
        let step = study.question.scenario.steps.last().map_or("", |step| step.name.as_str());
        self.blocks.push(Block::Text(format!("The same GPUs wired otherwise, a {step} step:")));
        let mut table = Table::new(&["wiring", "best, ms", "one-stage, ms"]);
        for wiring in &answer.wirings {
            let figures = [wiring.best_ms, wiring.one_stage_ms].map(short);
            table.row([wiring.name.clone()].into_iter().chain(figures).collect());
        }
        self.blocks.push(Block::Table(table));
    }

    fn sizes(&mut self, study: &Study<'_>) -> Result<()> {
        let sized = study.sized()?;
        self.blocks.push(Block::Heading("Sizes"));
        let mut pick = Vec::new();
        let first = sized.rows.first();
        let titles: Vec<&str> =
            first.into_iter().flatten().map(|case| case.title.as_str()).collect();
        let header: Vec<&str> = ["bytes"].into_iter().chain(titles).collect();
        let mut table = Table::new(&header);
        for (row, &bytes) in sized.rows.iter().zip(&sized.sizes) {
            let times = row.iter().map(|case| with_range(case.time_us));
            table.row([format_thousands(bytes)].into_iter().chain(times).collect());
            let mut order: Vec<&CasePrediction> = row.iter().collect();
            order.sort_by(|a, b| a.time_us.value.total_cmp(&b.time_us.value));
            let each = order.iter().map(|case| {
                let (time, limit) = (with_range(case.time_us), case.bottleneck.label());
                format!("{}: {time} us; {limit}", case.title)
            });
            pick.push((format_size(bytes), each.collect()));
        }
        self.blocks.push(Block::Sizes(pick));
        self.blocks.push(Block::Text("Time of a call, us, with its 80 % range:".to_owned()));
        self.blocks.push(Block::Table(table));
        Ok(())
    }

    fn misses(&mut self, answer: &Answer) {
        self.blocks.push(Block::Heading("Measured nearby"));
        if answer.nearby.is_empty() {
            let text = "No published figure that we hold is of such a machine and this question."
                .to_owned();
            self.blocks.push(Block::Text(text));
            return;
        }
        let header = ["what ran", "measured, us", "predicted, us", "error", "source"];
        let mut table = Table::new(&header).left(4);
        for check in &answer.nearby {
            let figure = &check.figure;
            let note =
                if figure.note.is_empty() { String::new() } else { format!(" ({})", figure.note) };
            table.row(vec![
                format!("{}{note}", figure.what),
                short(figure.us),
                short(check.predicted_us),
                signed_percent(check.error()),
                figure.source.clone(),
            ]);
        }
        self.blocks.push(Block::Table(table));
        let all = "Every measurement beside its prediction, misses included: `simulate check`.";
        self.blocks.push(Block::Text(all.to_owned()));
    }

    fn assumptions(&mut self, study: &Study<'_>) {
        self.blocks.push(Block::Heading("Assumptions"));
        let topology = &study.question.machine.topology;
        let mut table = Table::new(&["assumed", "if it is wrong"]).left(1);
        for assumption in topology.assumptions.iter().chain(&of_the_model()) {
            table.row(vec![assumption.what.clone(), assumption.effect.clone()]);
        }
        self.blocks.push(Block::Table(table));
        for regime in &topology.regimes {
            let rate = short(regime.cap_gb_per_s);
            let text =
                format!("Declared regime: {}, {rate} GB/s ({}).", regime.name, regime.source);
            self.blocks.push(Block::Text(text));
        }
    }

    fn again(&mut self, study: &Study<'_>, told: &Told) {
        self.blocks.push(Block::Heading("The same again"));
        self.blocks.push(Block::Code(told.command.clone()));
        self.blocks.push(Block::Text(format!(
            "collsim {}; topology {} {}; calibration {}; scenario {}; network model {}. The same \
             inputs give the same bytes.",
            env!("CARGO_PKG_VERSION"),
            study.question.machine.topology.name,
            hex(fnv1a(&[&told.topology])),
            hex(calibration_hash(&study.question.machine.nominal.calibration)),
            study.question.scenario.name,
            study.question.options.fidelity.name(),
        )));
    }
}

/// What a step costs, in a sentence.
fn sentence(answer: &Answer, step: &StepAnswer, index: usize) -> String {
    let best = &answer.rows[step.best][index];
    let ms = |us: f64| short(us * f64::from(step.step.calls) / 1e3);
    let mut text = format!(
        "A {} step makes {} {}s of {} B. The fastest here is {}: {} us a call, {} ms a step; the \
         wires allow {} us.",
        step.step.name,
        step.step.calls,
        step.step.collective.title(),
        format_thousands(step.step.bytes),
        best.title,
        with_range(best.time_us),
        ms(best.time_us.value),
        short(step.bound.time.as_us()),
    );
    if let Some(case) = answer.picks.get(index).and_then(|pick| pick.prediction.as_ref()) {
        let (title, time) = (&case.title, with_range(case.time_us));
        text.push_str(&format!(" NCCL by itself takes {title}: {time} us."));
    }
    text.push_str(&format!(" What limits the fastest: {}.", best.bottleneck.label()));
    text
}
