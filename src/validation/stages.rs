//! Constants of a machine from one folder of the probe alone: wide, neutral priors in place of what the
//! program knows of the GPU and its host, then stage by stage the rows that tell each constant.
//! `calibration/probe-stages.json` has constants, priors, stages, and what no row of one GPU tells.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::fit::{Effect, Name, compared, fit_with_priors};
use crate::error::{self, Error, Result};
use crate::fabric::calibration::Constant;
use crate::fabric::{Calibration, DeviceClass};
use crate::measurement::table::Row;
use crate::measurement::{Observation, Run};
use crate::prediction::range::SIGMAS_80;
use crate::statistics::median;
use crate::topology::{Confidence, NodeKind, Topology};

/// The stages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// For people.
    pub comment: String,
    /// Constants that are withdrawn before anything is fitted.
    pub free: Vec<Free>,
    /// Constants that rows state without a simulation.
    pub readings: Vec<Reading>,
    /// Fits, in order.
    pub stages: Vec<Stage>,
    /// Constants of the GPU, its socket, its link and the probe's kernels that stay as they are, by
    /// reason.
    pub kept: BTreeMap<String, Vec<String>>,
}

/// A constant that starts from nothing.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Free {
    /// `gpu/NAME`, `socket/NAME`, `link/pcie/NAME` or `library/probe/NAME`.
    pub constant: String,
    /// Where it starts, in its unit.
    pub start: f64,
    /// Two in three times it is expected within this factor of the start.
    pub factor: f64,
}

/// Rows of `observations.csv`; a column that is left out may hold anything.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Columns {
    /// Column `experiment`.
    pub experiment: String,
    /// Column `flows`.
    #[serde(default)]
    pub flows: Option<String>,
    /// Column `size_bytes`.
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// Column `condition`.
    #[serde(default)]
    pub condition: Option<String>,
}

/// A constant that is the median of rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// As [`Free::constant`].
    pub constant: String,
    /// The rows.
    pub rows: Columns,
    /// Rows whose median is taken off.
    #[serde(default)]
    pub less: Option<Columns>,
    /// From the rows' unit to the constant's.
    #[serde(default = "one")]
    pub times: f64,
}

fn one() -> f64 {
    1.0
}

/// A fit of some constants to some rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// For people.
    pub name: String,
    /// Constants that move.
    pub fits: Vec<String>,
    /// Rows.
    pub rows: Vec<Wanted>,
}

/// Rows of an experiment of `simulate check`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Its name.
    pub experiment: String,
    /// Only rows of at least this share of the largest: where the rate no longer grows.
    #[serde(default)]
    pub plateau: Option<f64>,
    /// Only calls of at most so many bytes.
    #[serde(default)]
    pub most_bytes: Option<u64>,
}

/// How a constant came about.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// Stated by rows.
    Read,
    /// Fitted to rows.
    Fitted,
    /// Rows tell it only together with others: its share is by the priors.
    Shared,
    /// No row tells it: it stays where it started.
    Untold,
}

/// A constant of the program and what the probe says of it.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// `class/device/name`.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// The program's.
    pub table: f64,
    /// From the probe alone.
    pub alone: f64,
    /// Lower end of its 80 % interval; of a reading, the value.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How.
    pub how: How,
    /// Stage that told it last, or the rows it was read from.
    pub stage: String,
}

/// A stage that was fitted.
#[derive(Clone, Debug, Serialize)]
pub struct Fitted {
    /// Its name.
    pub name: String,
    /// Errors of its rows before and after.
    pub effect: Effect,
}

/// What came of the stages.
#[derive(Clone, Debug, Serialize)]
pub struct Alone {
    /// Constants, as the recipe lists them.
    pub constants: Vec<Told>,
    /// Stages that had rows.
    pub stages: Vec<Fitted>,
    /// Stages that had none.
    pub without_rows: Vec<String>,
}

/// The recipe that comes with the program.
///
/// # Errors
/// [`Error::Input`] when the embedded file is malformed, which a test excludes.
pub fn recipe() -> Result<Recipe> {
    let text = include_str!("../../calibration/probe-stages.json");
    error::embedded("calibration/probe-stages.json", text)
}

/// Which devices the recipe's words stand for: the first GPU and the first socket, since machines have
/// sockets of one model.
///
/// # Errors
/// [`Error::Request`] for a machine without a GPU or a socket.
pub fn devices(topology: &Topology) -> Result<(String, String)> {
    let gpu = topology.gpus().first().copied();
    let socket = topology.sockets().first().copied();
    match (gpu.map(|id| topology.kind(id)), socket.map(|id| topology.kind(id))) {
        (Some(NodeKind::Gpu(gpu)), Some(NodeKind::Socket(socket))) => {
            Ok((gpu.model.clone(), socket.model.clone()))
        }
        _ => Err(Error::request(
            format!("{} has no GPU or no socket", topology.name),
            "the probe's rows tell the constants of one GPU, its link and its host",
        )),
    }
}

/// The constant that a word of the recipe names.
fn named(word: &str, (gpu, socket): &(String, String)) -> Result<Name> {
    let parts: Vec<&str> = word.split('/').collect();
    let (class, device, name) = match parts[..] {
        ["gpu", name] => (DeviceClass::Gpu, gpu.as_str(), name),
        ["socket", name] => (DeviceClass::Socket, socket.as_str(), name),
        ["link", device, name] => (DeviceClass::Link, device, name),
        ["library", device, name] => (DeviceClass::Library, device, name),
        _ => return Err(Error::request(format!("`{word}` names no constant"), "")),
    };
    Ok((class, device.to_owned(), name.to_owned()))
}

impl Columns {
    /// Median of the rows; nothing where there are none.
    fn median(&self, rows: &[Row]) -> Result<Option<f64>> {
        let mut values = Vec::new();
        for row in rows {
            let is = |column: &str, wanted: &Option<String>| match wanted {
                Some(wanted) => Ok(row.column(column)? == wanted),
                None => Ok::<bool, Error>(true),
            };
            let size = self.size_bytes.map(|size| size.to_string());
            if row.column("experiment")? == self.experiment
                && is("flows", &self.flows)?
                && is("size_bytes", &size)?
                && is("condition", &self.condition)?
                && !row.column("note")?.contains("not idle")
            {
                values.push(row.number(row.column("value")?)?);
            }
        }
        Ok((!values.is_empty()).then(|| median(values)))
    }
}

impl Reading {
    /// The constant's value; nothing where rows lack or the difference is none.
    fn value(&self, rows: &[Row]) -> Result<Option<f64>> {
        let less = match &self.less {
            Some(less) => less.median(rows)?,
            None => Some(0.0),
        };
        let value = self.rows.median(rows)?.zip(less).map(|(value, less)| value - less);
        Ok(value.map(|value| value * self.times).filter(|value| *value > 0.0))
    }
}

impl Wanted {
    /// The rows of these that are wanted.
    fn of(&self, all: &[Observation]) -> Vec<Observation> {
        let bytes = |row: &Observation| match &row.run {
            Run::Collective(call) => call.bytes,
            _ => 0,
        };
        let rows = || all.iter().filter(|row| row.experiment == self.experiment);
        let most = rows().map(|row| row.measured).fold(0.0, f64::max);
        let least = self.plateau.map_or(0.0, |share| share * most);
        rows()
            .filter(|row| row.measured >= least)
            .filter(|row| self.most_bytes.is_none_or(|most| bytes(row) <= most))
            .cloned()
            .collect()
    }
}

/// A constant that the rows do not tell by itself was moved all the same: more than rounding, of its
/// logarithm.
const MOVED: f64 = 0.02;

/// A free constant between two stages.
struct Known<'a> {
    /// As the recipe has it.
    word: &'a str,
    name: Name,
    /// Standard deviation of its logarithm as it is now.
    spread: f64,
    told: Told,
}

/// State between two stages.
struct Work<'a> {
    known: Vec<Known<'a>>,
    calibration: Calibration,
}

impl<'a> Work<'a> {
    /// All free constants withdrawn.
    fn new(recipe: &'a Recipe, topology: &Topology, table: &Calibration) -> Result<Work<'a>> {
        let devices = devices(topology)?;
        let mut work = Work { known: Vec::new(), calibration: table.clone() };
        for free in &recipe.free {
            let (class, device, name) = named(&free.constant, &devices)?;
            let constant = table.constant(class, &device, &name)?;
            work.calibration.set(class, &device, &name, free.start)?;
            let told = Told {
                name: format!("{}/{device}/{name}", class.word()),
                unit: constant.unit.clone(),
                table: constant.value,
                alone: free.start,
                low: free.start / free.factor.powf(SIGMAS_80),
                high: free.start * free.factor.powf(SIGMAS_80),
                how: How::Untold,
                stage: String::new(),
            };
            let (word, spread) = (&*free.constant, free.factor.ln());
            work.known.push(Known { word, name: (class, device, name), spread, told });
        }
        Ok(work)
    }

    fn place(&self, word: &str) -> Result<usize> {
        let place = self.known.iter().position(|known| known.word == word);
        place.ok_or_else(|| Error::request(format!("`{word}` is not among the free constants"), ""))
    }

    fn read(&mut self, reading: &Reading, rows: &[Row]) -> Result<()> {
        let Some(value) = reading.value(rows)? else { return Ok(()) };
        let at = self.place(&reading.constant)?;
        let Known { name: (class, device, name), told, .. } = &mut self.known[at];
        // Of two rows that hardly differ the difference is noise: then they tell nothing.
        let known = self.calibration.constant(*class, device, name)?.clone();
        if !(Constant { value: told.table, ..known }).may_be(value) {
            return Ok(());
        }
        self.calibration.set(*class, device, name, value)?;
        (told.alone, told.low, told.high, told.how) = (value, value, value, How::Read);
        told.stage.clone_from(&reading.rows.experiment);
        Ok(())
    }

    /// Fits one stage; nothing where it has no rows.
    fn fit(&mut self, stage: &Stage, all: &[Observation]) -> Result<Option<Effect>> {
        let rows: Vec<Observation> = stage.rows.iter().flat_map(|wanted| wanted.of(all)).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let places: Vec<usize> =
            stage.fits.iter().map(|word| self.place(word)).collect::<Result<_>>()?;
        let names: Vec<Name> = places.iter().map(|at| self.known[*at].name.clone()).collect();
        let priors = places.iter().map(|at| self.known[*at].spread).collect();
        let before = self.calibration.clone();
        let fit = fit_with_priors(&rows, &[], &names, priors, &before)?;
        for (at, fitted) in places.into_iter().zip(&fit.constants) {
            let Known { name: (class, device, name), spread, told, .. } = &mut self.known[at];
            let value = fitted.likeliest;
            self.calibration.set(*class, device, name, value)?;
            let moved = (value / told.alone).ln().abs() > MOVED;
            if !fitted.identifiable && !moved {
                continue;
            }
            let factor = (fitted.high / fitted.low).sqrt();
            *spread = factor.ln() / SIGMAS_80;
            (told.alone, told.low, told.high) = (value, value / factor, value * factor);
            told.how = if fitted.identifiable { How::Fitted } else { How::Shared };
            told.stage.clone_from(&stage.name);
        }
        Ok(Some(compared(&rows, &before, &self.calibration)?))
    }
}

/// Goes through the stages: `rows` as they stand in the folder, `observations` those that a run
/// predicts, `table` the constants whose place the free ones take; `done` hears the name of each stage
/// before it is fitted.
///
/// # Errors
/// Malformed rows, a machine without a GPU or a socket, constants that the recipe names in vain.
pub fn alone(
    recipe: &Recipe,
    topology: &Topology,
    rows: &[Row],
    observations: &[Observation],
    table: &Calibration,
    done: &dyn Fn(&str),
) -> Result<Alone> {
    let mut work = Work::new(recipe, topology, table)?;
    for reading in &recipe.readings {
        work.read(reading, rows)?;
    }
    let (mut stages, mut without_rows) = (Vec::new(), Vec::new());
    for stage in &recipe.stages {
        done(&stage.name);
        match work.fit(stage, observations)? {
            Some(effect) => stages.push(Fitted { name: stage.name.clone(), effect }),
            None => without_rows.push(stage.name.clone()),
        }
    }
    let constants = work.known.into_iter().map(|known| known.told).collect();
    Ok(Alone { constants, stages, without_rows })
}

/// How far a constant told by the probe is to be trusted.
pub fn confidence(how: How) -> Confidence {
    match how {
        How::Read => Confidence::Measured,
        How::Fitted => Confidence::Inferred,
        How::Shared | How::Untold => Confidence::Estimated,
    }
}
