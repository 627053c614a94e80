//! `simulate here`: the machine that the program runs on, and what is wrong with it.

use std::path::Path;
use std::process::Command;

use clap::Args;

use super::arguments::{ConstantsFrom, name};
use super::load;
use super::output::{Failure, Outcome, Output};
use crate::fabric::{Calibration, CompileOptions, Fabric, hardware};
use crate::input::found::faults::{Fault, survey};
use crate::input::found::merge::merge;
use crate::input::found::{Devices, Found};
use crate::input::here::read_here;
use crate::input::{formats, machine_texts, sound, topology_json};
use crate::report::faults::{Priced, faults_page};
use crate::sweep::faults::{savings, times_us};
use crate::topology::Topology;

/// Options of `here`.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// A copy of another machine's `/sys` and `/proc` below this folder.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: String,
    /// More files of the machine, such as the output of `nvidia-smi topo -m`.
    #[arg(long, value_name = "FILE")]
    topo: Vec<String>,
    /// What nothing says: gpu=MODEL, switch=MODEL, cpu=MODEL, sockets=N, pcie=5x16.
    #[arg(long, value_name = "NAME=VALUE")]
    assume: Vec<String>,
    /// The constants that faults are priced with.
    #[command(flatten)]
    constants: ConstantsFrom,
    /// Write the machine as a topology file.
    #[arg(long, short, value_name = "FILE")]
    out: Option<String>,
    /// Name of the machine.
    #[arg(long, value_name = "NAME", default_value = "here", value_parser = name)]
    name: String,
}

/// What nvidia-smi is asked, where it is there.
const QUERIES: [&[&str]; 4] =
    [&["topo", "-m"], &["topo", "-p2p", "r"], &["-q", "-x"], &["nvlink", "-R"]];

/// Looks, prices and prints.
pub(super) fn run(options: &Options, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let calibration = load::calibration(&options.constants)?;
    let stated = load::stated(&options.assume, &calibration)?;
    let mut all = vec![read_here(Path::new(&options.root))?];
    all.extend(machine_texts(&options.topo)?);
    if options.root == "/" {
        all.extend(asked());
    }
    let (topology, faults) = survey(merge(all)?, &Devices::embedded()?, &stated, &options.name)?;
    if options.out.is_some() {
        sound(&topology, &options.name, &|topology| hardware::faults(topology, &calibration))?;
    }
    let fabric = Fabric::compile(&topology, &calibration, CompileOptions::default())?;
    let priced = priced(&topology, faults, &calibration);
    let now = times_us(&topology, &calibration).ok();
    output.titled(&faults_page(&topology, &fabric, &priced, now), None)?;
    if let Some(file) = &options.out {
        output.plain(&topology_json::write(&topology)?, Some(file))?;
    }
    Ok(Outcome::Done)
}

/// Faults with what they cost, the dearest first.
fn priced(topology: &Topology, faults: Vec<Fault>, calibration: &Calibration) -> Vec<Priced> {
    let mended: Vec<_> = faults.iter().map(|fault| fault.mended.as_ref()).collect();
    let costs = savings(topology, &mended, calibration);
    let mut priced: Vec<Priced> = faults
        .into_iter()
        .zip(costs)
        .map(|(fault, saved)| Priced { what: fault.what, cure: fault.cure, saved })
        .collect();
    let most = |one: &Priced| one.saved.map_or(f64::NEG_INFINITY, |saved| saved[1]);
    priced.sort_by(|a, b| most(b).total_cmp(&most(a)));
    priced
}

/// What nvidia-smi says; nothing where it is not there or says what we cannot read.
fn asked() -> Vec<Found> {
    let ask = |arguments: &&[&str]| {
        let answer = Command::new("nvidia-smi").args(*arguments).output().ok()?;
        let text = String::from_utf8(answer.stdout).ok().filter(|_| answer.status.success())?;
        let format = formats::recognise(&text)?;
        (format.read)(&format!("nvidia-smi {}", arguments.join(" ")), &text).ok()
    };
    QUERIES.iter().filter_map(ask).collect()
}
