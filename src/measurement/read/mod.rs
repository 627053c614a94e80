//! One reader a file format; all of them fill a [`Sink`].

mod beside;
mod collective;
mod contention;
mod host_links;
mod hosts;
mod nvlink_pair;
mod one_link;
mod probe;
mod ranks;
mod serving;
mod standard;
mod tiers;
mod told;

pub(in crate::measurement) use ranks::kernel as kernel_of_probe;

use super::library::Machine;
use super::table::Row;
use super::{Observation, Run, Skipped};
use crate::error::{Error, Result};
use crate::selection::nccl::Version;
use crate::statistics::{median, quantile};

/// What the reason of a row begins with that makes no sense.
pub const SET_ASIDE: &str = "set aside: ";

/// What one machine did.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// Rows with a run.
    pub observations: Vec<Observation>,
    /// The others.
    pub skipped: Vec<Skipped>,
}

/// Reads a folder of the library.
///
/// # Errors
/// [`Error::Input`] naming file and line of a malformed row.
pub fn read_machine(machine: &Machine) -> Result<Record> {
    let mut sink = Sink::new(machine.name, machine.topology);
    sink.assumed_nccl = machine.nccl.map(str::to_owned);
    sink.host = hosts::host(machine.name)?;
    for (file, text) in machine.files {
        sink.read(file, text)?;
    }
    Ok(sink.finish())
}

/// Reads a user's own tables, by their names in the format of `measured/README.md`, taken on
/// `topology`.
///
/// # Errors
/// [`Error::Input`](crate::error::Error::Input) for a malformed row.
pub fn read_tables(name: &str, topology: &str, files: &[(&str, &str)]) -> Result<Record> {
    let mut sink = Sink::new(name, topology);
    sink.sets_aside = true;
    sink.assumed_nccl = Some(Version::NEWEST.to_string());
    sink.host = hosts::host(name)?;
    for (file, text) in files {
        sink.read(file, text)?;
    }
    Ok(sink.finish())
}

/// What a reader knows of a row beside its run.
#[derive(Clone, Debug, Default)]
pub(in crate::measurement) struct About {
    /// Short text for the id.
    pub text: String,
    /// Summarised together.
    pub experiment: String,
    /// Fit or check data.
    pub fit: bool,
    /// A declared regime was read from it.
    pub regime: bool,
    /// As the source tells it.
    pub condition: String,
    /// Assumed.
    pub note: String,
    /// Spread of the values behind the row, where it tells them.
    pub noise: Option<f64>,
}

impl About {
    pub(in crate::measurement) fn new(
        experiment: impl Into<String>,
        text: impl Into<String>,
    ) -> About {
        About { experiment: experiment.into(), text: text.into(), ..About::default() }
    }

    pub(super) fn fit(mut self, fit: bool) -> About {
        self.fit = fit;
        self
    }

    pub(super) fn note(mut self, note: impl Into<String>) -> About {
        self.note = note.into();
        self
    }
}

/// Collects a machine's rows.
pub(in crate::measurement) struct Sink {
    pub(super) machine: String,
    pub(super) topology: String,
    /// Rows that make no sense are listed, in place of an error.
    pub(super) sets_aside: bool,
    /// Version of NCCL where a row tells none.
    pub(super) assumed_nccl: Option<String>,
    /// What launches take where one process launches in turn, if that is known.
    pub(super) host: Option<hosts::Host>,
    record: Record,
    /// Values of each observation: one of several rows in ten may be several times the others.
    values: Vec<Vec<f64>>,
}

impl Sink {
    pub(in crate::measurement) fn new(machine: &str, topology: &str) -> Sink {
        Sink {
            machine: machine.into(),
            topology: topology.into(),
            sets_aside: false,
            assumed_nccl: None,
            host: None,
            record: Record::default(),
            values: Vec::new(),
        }
    }

    fn read(&mut self, file: &str, text: &str) -> Result<()> {
        match (self.machine.as_str(), file) {
            ("h200-one-link", "probe1.csv") => one_link::probe1(self, file, text),
            ("h200-one-link", "probe2.csv") => one_link::probe2(self, file, text),
            ("h200-nvlink-pair", "probe.csv") => nvlink_pair::probe(self, file, text),
            ("h200-nvlink-pair", "nccl.csv") => nvlink_pair::nccl(self, file, text),
            ("h200-two-host-links", "interference.csv") => beside::interference(self, file, text),
            ("h200-two-host-links", "probe.csv") => host_links::probe(self, file, text),
            (_, "observations.csv") => standard::read(self, file, text),
            (_, "raw/latency_tiers.csv") => tiers::read(self, file, text),
            (_, "raw/contention.csv") => contention::read(self, file, text),
            _ => self.skip_file(file, text),
        }
    }

    /// Files without a run, row by row.
    fn skip_file(&mut self, file: &str, text: &str) -> Result<()> {
        let reason = match file {
            "lines.csv" => "a probe of one constant: loads of one line by several blocks",
            "nccl_steps.csv" => "steps of emulated kernels, not calls",
            "beside.csv" => "a run of one constant: how many reads a copy engine keeps in flight",
            "raw/serving.csv" => "serving throughput needs the compute time of a model",
            "raw/p2p_connectivity.csv" => "says what may address what, no time",
            "raw/nccl_tuner_model.csv" | "raw/tuner_choice.csv" => {
                "what NCCL's tuner believes, no time"
            }
            "raw/nccl_allreduce.csv" => "the mean over a sweep of sizes, GPUs not stated",
            _ => "no experiment for this table",
        };
        for row in super::table::without_header(file, text)? {
            self.skip(&row, reason);
        }
        Ok(())
    }

    /// Lists a row that nothing is predicted for.
    pub(super) fn skip(&mut self, row: &Row, reason: impl Into<String>) {
        self.skip_at(row.place(), reason);
    }

    /// As [`Sink::skip`], by its place.
    pub(in crate::measurement) fn skip_at(&mut self, place: String, reason: impl Into<String>) {
        let (machine, reason) = (self.machine.clone(), reason.into());
        self.record.skipped.push(Skipped { machine, id: place, reason });
    }

    /// Lists a row that makes no sense, if the file may have such rows.
    ///
    /// # Errors
    /// The given one, if it may not.
    fn set_aside(&mut self, row: &Row, error: Error) -> Result<()> {
        match error {
            Error::Input { problems, .. } if self.sets_aside => {
                let fault = problems.first().map_or("", |problem| problem.message.as_str());
                self.skip(row, format!("{SET_ASIDE}{fault}"));
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Adds a row; of rows that repeat one run the median counts.
    pub(super) fn add(
        &mut self,
        row: &Row,
        about: About,
        run: Run,
        figure: usize,
        value: (f64, &'static str),
    ) {
        self.add_at(&row.place(), about, run, figure, value);
    }

    /// As [`Sink::add`], by its place.
    pub(in crate::measurement) fn add_at(
        &mut self,
        place: &str,
        about: About,
        run: Run,
        figure: usize,
        (measured, unit): (f64, &'static str),
    ) {
        if measured <= 0.0 {
            return self.skip_at(place.to_owned(), "nothing was moved");
        }
        let same = self.record.observations.iter().position(|other| {
            other.figure == figure
                && other.run == run
                && other.experiment == about.experiment
                && other.condition == about.condition
        });
        if let Some(index) = same {
            self.values[index].push(measured);
            return;
        }
        self.values.push(vec![measured]);
        self.record.observations.push(Observation {
            machine: self.machine.clone(),
            topology: self.topology.clone(),
            id: format!("{place} {}", about.text),
            experiment: about.experiment,
            run,
            figure,
            unit,
            measured,
            noise: about.noise,
            rows: 1,
            fit: about.fit,
            regime: about.regime,
            condition: about.condition,
            note: about.note,
        });
    }

    pub(in crate::measurement) fn finish(mut self) -> Record {
        for (observation, values) in self.record.observations.iter_mut().zip(self.values) {
            observation.rows = values.len() as u32;
            observation.measured = median(values.iter().copied());
            if values.len() > 1 {
                let (low, high) = (quantile(values.iter().copied(), 0.0), quantile(values, 1.0));
                observation.noise = Some((high - low) / 2.0 / observation.measured);
            }
        }
        self.record
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::library::MACHINES;

    #[test]
    fn every_row_is_an_observation_or_has_a_reason() {
        for machine in MACHINES {
            let record = read_machine(machine).unwrap_or_else(|error| panic!("{error}"));
            assert!(!record.observations.is_empty() || !record.skipped.is_empty());
            assert!(record.observations.iter().all(|o| o.measured > 0.0 && o.rows > 0));
            assert!(record.skipped.iter().all(|skipped| !skipped.reason.is_empty()));
        }
    }

    #[test]
    fn the_median_of_repeated_rows_counts() {
        let machine = MACHINES.iter().find(|m| m.name == "h200-one-link").expect("listed");
        let record = read_machine(machine).expect("reads");
        let chase = record.observations.iter().find(|o| o.experiment == "chase host");
        let chase = chase.expect("there");
        assert_eq!(chase.rows, 3);
        // Of 1144.9, 1161.4 and 1170.4.
        assert!((chase.measured - 1161.4).abs() < 1e-9);
    }

    #[test]
    fn a_malformed_row_is_named() {
        let mut sink = Sink::new("h200-one-link", "h200-host-link");
        let error = sink.read("probe1.csv", "chase,host,0,slow,ns\n").expect_err("no number");
        assert_eq!(error.to_string(), "probe1.csv: line 1: `slow` is no number");
    }
}
