//! `simulate sweep`: a grid of cases into a file of JSON lines, in order, so that a run that was stopped
//! goes on where it was and ends with the same bytes.

use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::arguments::ConstantsFrom;
use super::files::{cannot, ordinary, owned, part_of};
use super::load;
use super::output::{Failure, Outcome, Output};
use super::predict::start_threads;
use super::progress::Progress;
use super::row_files::{foreign, next_line, rename};
use super::shards::{VERSION, header, merge, parsed, read_head, status};
use super::{rows, slurm, stop};
use crate::error::{Error, Result};
use crate::input::kinds::SWEEP;
use crate::input::{load_scenario, read_form, read_text, topology_json};
use crate::report::hash::{calibration_hash, fnv1a, hex};
use crate::sweep::grid::{Grid, Loaded, Pool, shard};
use crate::sweep::in_parallel;
use crate::units::format_thousands;

/// A grid of cases.
#[derive(Debug, Subcommand)]
pub(super) enum Sweep {
    /// Read a plan and say how many cases it has.
    Plan {
        /// The plan, JSON.
        plan: String,
    },
    /// Run a plan; a run that was stopped goes on.
    Run(RunOptions),
    /// Say how far files of rows are.
    Status {
        /// Files of rows, finished or not.
        #[arg(required = true)]
        files: Vec<String>,
    },
    /// Join the files of all shards.
    Merge {
        /// The file to write.
        #[arg(long, short, value_name = "FILE")]
        out: String,
        /// The files of the shards, in any order.
        #[arg(required = true)]
        files: Vec<String>,
    },
    /// Write the rows as comma-separated values.
    Csv(rows::CsvOptions),
    /// Builds that no other beats in both price and time, by size.
    Pareto(rows::PriceOptions),
    /// The cheapest build on which a call is fast enough.
    Cheapest(rows::CheapestOptions),
    /// What each edit does, over builds that differ in it alone.
    Effects {
        /// The rows.
        file: String,
    },
}

/// Options of `sweep run`.
#[derive(Debug, Args)]
pub(super) struct RunOptions {
    /// The plan, JSON.
    plan: String,
    /// The constants.
    #[command(flatten)]
    constants: ConstantsFrom,
    /// The file to write, a row of JSON a case; until it is finished, FILE.part.
    #[arg(long, short, value_name = "FILE")]
    out: String,
    /// Only this share of the cases, such as 0/4; left out: that of Slurm's array variables, or all.
    #[arg(long, value_name = "INDEX/COUNT", value_parser = share)]
    shard: Option<(u64, u64)>,
    /// Threads; left out: one a processor.
    #[arg(short = 'j', long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

/// Most shards of a sweep.
pub(super) const SHARES_MAX: u64 = 1 << 20;
/// Largest plan, bytes.
const PLAN_LIMIT: u64 = 4 << 20;
/// Cases between two writes.
const BATCH: u64 = 64;
/// A batch that took less is followed by a larger one.
const QUICK: Duration = Duration::from_millis(250);

fn share(text: &str) -> std::result::Result<(u64, u64), String> {
    let parts = text.split_once('/');
    let parts = parts.and_then(|(a, b)| Some((a.parse::<u64>().ok()?, b.parse::<u64>().ok()?)));
    let sound = parts.filter(|&(index, count)| index < count && count <= SHARES_MAX);
    sound.ok_or_else(|| format!("`{text}` is no shard: write 0/4 to 3/4"))
}

/// Does what was asked.
pub(super) fn run(command: &Sweep, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    match command {
        Sweep::Plan { plan } => {
            let (loaded, _) = loaded(plan, &ConstantsFrom::default())?;
            output.text(&format!("{plan}: {} cases\n", format_thousands(loaded.count()?)))?;
        }
        Sweep::Run(options) => match run_plan(options)? {
            Ended::Done(text) => output.text(&text)?,
            Ended::Stopped(text) => {
                output.note(&text)?;
                return Ok(Outcome::Stopped);
            }
        },
        Sweep::Status { files } => {
            for file in files {
                output.text(&status(file)?)?;
            }
        }
        Sweep::Merge { out, files } => output.text(&merge(out, files)?)?,
        Sweep::Csv(options) => tell(&rows::csv(options)?, output)?,
        Sweep::Pareto(options) => tell(&rows::pareto(options)?, output)?,
        Sweep::Cheapest(options) => tell(&rows::cheapest(options)?, output)?,
        Sweep::Effects { file } => tell(&rows::effects(file)?, output)?,
    }
    Ok(Outcome::Done)
}

/// Prints what rows say, and of them what they lack.
fn tell(told: &rows::Told, output: &mut Output) -> std::result::Result<(), Failure> {
    if let Some(note) = &told.note {
        output.note(note)?;
    }
    Ok(output.text(&told.text)?)
}

/// A plan with all that it names, and a short name for the whole.
fn loaded(file: &str, constants: &ConstantsFrom) -> Result<(Loaded, String)> {
    let text = read_text(file, PLAN_LIMIT, "a plan is a few lines")?;
    let grid =
        read_form((file, &text), SWEEP, VERSION, |grid: &Grid| grid.schema_version, Grid::faults)?;
    let calibration = load::calibration(constants)?;
    let machines = grid.machines.iter().map(|name| load::topology(name, &calibration));
    let machines = machines.collect::<Result<Vec<_>>>()?;
    let scenario = load_scenario(&grid.scenario)?;
    let plan = json!({"grid": grid, "scenario": scenario}).to_string();
    let mut parts =
        vec![plan, hex(calibration_hash(&calibration)), env!("CARGO_PKG_VERSION").to_owned()];
    parts.extend(machines.iter().map(topology_json::write).collect::<Result<Vec<_>>>()?);
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let name = hex(fnv1a(&parts));
    Ok((Loaded::new(grid, machines, scenario, calibration)?, name))
}

/// How a run ended, in words.
enum Ended {
    Done(String),
    Stopped(String),
}

#[expect(clippy::disallowed_methods, reason = "which share is run is no result")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn run_plan(options: &RunOptions) -> Result<Ended> {
    let (loaded, name) = loaded(&options.plan, &options.constants)?;
    let share = match options.shard {
        Some(share) => share,
        None => slurm::share(variable)?.unwrap_or((0, 1)),
    };
    let cases = loaded.count()?;
    let own = shard(cases, share.0, share.1);
    let head = header(&name, cases, share);
    let out = options.out.as_str();
    let part = part_of(out);
    ordinary(out)?;
    if Path::new(out).exists() {
        let (found, rows) = read_head(out)?;
        if found == head && rows == own.end - own.start {
            return Ok(Ended::Done(format!("{out}: finished before, nothing to do\n")));
        }
        let help = "name another file, or remove this one";
        return Err(Error::request(format!("{out} is there and not of this plan"), help));
    }
    let (mut file, done) = open(&part, &head, own.end - own.start)?;
    start_threads(options.threads)?;
    stop::watch()?;
    let end = run_cases(&loaded, own.start + done..own.end, &mut file, &part)?;
    if end < own.end {
        let [there, all] = [end - own.start, own.end - own.start].map(format_thousands);
        let text =
            format!("stopped: {there} of {all} cases are in {part}; the same command goes on");
        return Ok(Ended::Stopped(text));
    }
    file.sync_all().map_err(|error| cannot("write", &part, &error))?;
    rename(&part, out).map_err(|error| cannot("rename", &part, &error))?;
    let went_on = match done {
        0 => String::new(),
        done => format!(", {} of them from a run before", format_thousands(done)),
    };
    let all = format_thousands(own.end - own.start);
    Ok(Ended::Done(format!("{out}: {all} cases{went_on}\n")))
}

/// The file to go on with, after its last whole row, and the rows it has.
fn open(part: &str, head: &str, most: u64) -> Result<(File, u64)> {
    let told = |error: io::Error| cannot("write", part, &error);
    let mut file = owned(part)?;
    let mut reader = BufReader::new(&mut file);
    let mut line = Vec::new();
    next_line(&mut reader, &mut line).map_err(told)?;
    // A kill may leave a part of the header; whatever else is there is not ours to cut away.
    let (begun, head) = (line.last() == Some(&b'\n'), head.as_bytes());
    if if begun { line != head } else { !head.starts_with(&line) } {
        return Err(match parsed(part, &String::from_utf8_lossy(&line)) {
            Ok(_) => Error::request(
                format!("{part} is of another plan, or of another version"),
                "remove it, or name another --out",
            ),
            Err(_) => foreign(part),
        });
    }
    let (mut end, mut rows) = (if begun { line.len() as u64 } else { 0 }, 0);
    // A row that was damaged is run again, with those after it.
    while begun && next_line(&mut reader, &mut line).map_err(told)? > 0 {
        if line.last() != Some(&b'\n') || serde_json::from_slice::<Value>(&line).is_err() {
            break;
        }
        (end, rows) = (end + line.len() as u64, rows + 1);
    }
    if rows > most {
        return Err(Error::request(format!("{part} has more rows than cases"), "remove it"));
    }
    let set = |file: &mut File| {
        file.set_len(end)?;
        file.seek(SeekFrom::Start(end))?;
        if end == 0 { file.write_all(head) } else { Ok(()) }
    };
    set(&mut file).map_err(told)?;
    Ok((file, rows))
}

/// Runs cases and appends their rows in order; gives back the first that was not run, which is the end
/// unless it was stopped.
fn run_cases(loaded: &Loaded, cases: Range<u64>, file: &mut File, part: &str) -> Result<u64> {
    let progress = Progress::new((cases.end - cases.start) as usize);
    let (mut at, mut pool) = (cases.start, Pool::new());
    // Slow cases are written one a thread, so that a kill costs no more.
    let mut batch = rayon::current_num_threads() as u64;
    while at < cases.end && !stop::asked() {
        let some = at..(at + batch).min(cases.end);
        let started = progress.elapsed();
        pool = loaded.pool(some.clone(), pool)?;
        let numbers: Vec<u64> = some.collect();
        let rows = in_parallel(&numbers, |&case| {
            let row = (!stop::asked()).then(|| loaded.row(case, &pool) + "\n");
            progress.step();
            Ok(row)
        })?;
        // Rows behind one that was not run are run again: a file has no holes.
        let rows: Vec<String> = rows.into_iter().map_while(|row| row).collect();
        let bytes = rows.concat();
        let write = || file.write_all(bytes.as_bytes()).and_then(|()| file.sync_data());
        let written = stop::whole(write);
        written.map_err(|error| cannot("write", part, &error))?;
        at += rows.len() as u64;
        if progress.elapsed() - started < QUICK {
            batch = (batch * 2).min(BATCH);
        }
    }
    progress.finish();
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_full_disk_is_told() {
        let plan = std::env::temp_dir().join(format!("collsim-full-{}", std::process::id()));
        let text = r#"{"schema_version": 1, "machines": ["h200x2-nvlink-pair"], "sizes": [1024],
            "scenario": "kimi-k25-tp8", "algorithms": ["ring:LL"], "network_model": "alpha_beta"}"#;
        fs::write(&plan, text).expect("writable");
        let (of, from) = (plan.to_string_lossy(), ConstantsFrom::default());
        let (loaded, _) = loaded(&of, &from).expect("a plan");
        fs::remove_file(&plan).expect("ours");
        let mut full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
        let error = run_cases(&loaded, 0..1, &mut full, "rows.part").expect_err("it is full");
        assert!(error.to_string().starts_with("cannot write rows.part: No space"), "{error}");
    }
}
