//! What is fuzzed: the readers of every table, and those that stand alone.

use collsim::error::Error;
use collsim::input::formats::{FORMATS, Format};
use collsim::input::found::Devices;
use collsim::input::found::build::{Stated, build};
use collsim::input::found::merge::merge;
use collsim::input::plans::{PLANS, PlanFormat, parse_plan};
use collsim::input::traces::{Import, TRACES, TraceFormat, import, read_from};
use collsim::input::{
    calibration_json, kinds, nccl_xml, read_form, render, scenario_json, topology_json,
};
use collsim::measurement::logs::read_log;
use collsim::measurement::{table, trace};
use collsim::selection::nccl;
use collsim::sweep::ask::Ask;
use collsim::sweep::grid::Grid;
use collsim::topology::checks;
use collsim::topology::edit::Edit;

/// A reader.
pub struct Target {
    /// For `FUZZ_TARGET`.
    pub name: String,
    /// Reads an input.
    pub run: Box<dyn Fn(&[u8]) + Send + Sync>,
}

/// Readers of texts that stand alone.
const ALONE: &[(&str, fn(&str))] = &[
    ("topology", |text| shown(topology_json::parse("x", text))),
    ("scenario", |text| shown(scenario_json::parse("x", text))),
    ("calibration", |text| shown(calibration_json::parse("x", text))),
    ("sweep-plan", |text| {
        let grid = read_form(
            ("x", text),
            kinds::SWEEP,
            1,
            |grid: &Grid| grid.schema_version,
            Grid::faults,
        );
        shown(grid.and_then(|grid| grid.count(2)));
    }),
    ("question", |text| {
        shown(read_form(
            ("x", text),
            kinds::QUESTION,
            1,
            |ask: &Ask| ask.schema_version,
            Ask::faults,
        ));
    }),
    ("kind", |text| {
        let _ = kinds::of_another("x", text, "", "no text of this kind")
            .map(|error| render(&error, false));
    }),
    ("edit", |text| shown(Edit::parse(text))),
    ("log", |text| shown(read_log("x", text, "machine"))),
    ("table", |text| {
        shown(table::with_header("x", text));
        shown(table::without_header("x", text));
    }),
    ("probe-traces", |text| shown(trace::parse_traces("x", text, "2.28.9"))),
    ("nccl-system", |text| {
        if let Ok(machine) = nccl_xml::read_system("x", text) {
            let _ = nccl_xml::write_system(&machine);
        }
    }),
    ("nccl-graph", |text| {
        let machine = nccl_xml::read_system("x", PAIR).expect("two GPUs");
        shown(nccl_xml::read_graphs("x", text, &machine));
    }),
    ("nccl-settings", |text| shown(nccl::environment::Settings::parse(text))),
    ("nccl-tuner", |text| shown(nccl::plugin::read("x", text))),
    ("nccl-version", |text| shown(nccl::Version::parse(text))),
    ("size", |text| {
        let _ = collsim::units::parse_size(text);
    }),
];

/// What graphs are read for.
const PAIR: &str = include_str!("../seeds/pair.xml");

/// All of them.
pub fn all() -> Vec<Target> {
    let alone = ALONE.iter().map(|&(name, run)| text_target(name.to_owned(), run));
    let machines = FORMATS.iter().map(|format| {
        text_target(format!("machine-{}", format.name), |text| machine(format, text))
    });
    let plans = PLANS.iter().map(|format| {
        text_target(format!("schedule-{}", format.name), |text| schedule(format, text))
    });
    let traces = TRACES.iter().map(|format| Target {
        name: format!("trace-{}", format.name),
        run: Box::new(|data| calls(format, data)),
    });
    alone.chain(machines).chain(plans).chain(traces).collect()
}

/// Readers of text never see what is no text.
fn text_target(name: String, run: impl Fn(&str) + Send + Sync + 'static) -> Target {
    let run = move |data: &[u8]| {
        if let Ok(text) = std::str::from_utf8(data) {
            run(text);
        }
    };
    Target { name, run: Box::new(run) }
}

/// Messages must be drawn, too.
fn shown<T>(result: Result<T, Error>) {
    if let Err(error) = result {
        let _ = render(&error, false);
    }
}

fn machine(format: &Format, text: &str) {
    let _ = (format.sniff)(text);
    let found = match (format.read)("x", text) {
        Ok(found) => found,
        Err(error) => return shown::<()>(Err(error)),
    };
    let devices = Devices::embedded().expect("a table");
    let Ok(merged) = merge(vec![found]) else { return };
    if let Ok(topology) = build(merged, &devices, &Stated::default(), "x") {
        let _ = checks::check(&topology);
    }
}

fn schedule(format: &PlanFormat, text: &str) {
    let _ = (format.sniff)(text);
    shown(parse_plan("x", text, Some(format)));
}

fn calls(format: &TraceFormat, data: &[u8]) {
    let trace = match read_from("x", data, Some(format), &|_| ()) {
        Ok(trace) => trace,
        Err(error) => return shown::<()>(Err(error)),
    };
    let stated = Import { bytes: Some(64), ranks: Some(2), ..Import::default() };
    shown(import(vec![trace], &stated).map(|_| ()));
}
