//! Rows of sizes and times of a collective: what nccl-tests measures, in text or JSON.

use super::{Reading, about};
use crate::measurement::{Launches, NcclCall, Run, large};
use crate::schedule::Collective;
use crate::units::SIZE_MAX;

/// A mean of so few calls holds the start of the first.
const FEW_CALLS: u32 = 5;
/// The version whose choices are taken where a log tells none.
const VERSION: &str = "2.30";

/// What one run of a test says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Test {
    /// Program, such as `all_reduce_perf`; empty when the log does not say.
    pub(super) program: String,
    /// Version of NCCL.
    pub(super) version: Option<String>,
    /// `NAME=VALUE` of NCCL's variables.
    pub(super) settings: Vec<String>,
    /// GPU of each rank.
    pub(super) gpus: Vec<u32>,
    /// Process of each rank.
    pub(super) processes: Vec<u64>,
    /// Hosts.
    pub(super) hosts: Vec<String>,
    /// Threads of a process, where they are said.
    pub(super) threads: Option<u32>,
    /// Ranks, where no list of devices says them.
    pub(super) ranks: Option<u32>,
    /// Timed calls of a row.
    pub(super) iterations: Option<u32>,
    /// Calls are launched as a graph.
    pub(super) graph: bool,
    /// Times are of the CPU.
    pub(super) cpu_time: bool,
    /// Rows so far.
    pub(super) rows: Vec<SizeRow>,
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct SizeRow {
    pub(super) line: usize,
    pub(super) bytes: u64,
    /// Type of the elements.
    pub(super) dtype: String,
    /// Reduction, `none` for none; empty when not said.
    pub(super) redop: String,
    /// Root, where one is said.
    pub(super) root: Option<i64>,
    /// Out of place, then in place.
    pub(super) halves: Vec<Half>,
}

/// Times of a row in one place.
#[derive(Copy, Clone, Debug)]
pub(super) struct Half {
    pub(super) time_us: f64,
    pub(super) algorithm_gb_per_s: f64,
    pub(super) bus_gb_per_s: f64,
    /// Wrong results, where they were counted.
    pub(super) wrong: Option<f64>,
}

impl Test {
    /// Ranks as the list of devices says, or the configuration.
    fn rank_count(&self) -> usize {
        if self.gpus.is_empty() { self.ranks.unwrap_or(0) as usize } else { self.gpus.len() }
    }

    /// What the calls compute: by the program's name, else by the ratio of its two rates.
    fn collective(&self, reading: &mut Reading) -> Option<Collective> {
        let programs = [
            ("all_reduce", Collective::AllReduce),
            ("all_gather", Collective::AllGather),
            ("reduce_scatter", Collective::ReduceScatter),
            ("alltoall", Collective::AllToAll),
            ("broadcast", Collective::Broadcast),
            ("reduce", Collective::Reduce),
        ];
        let file = reading.file().to_lowercase().replace('-', "_");
        for name in [self.program.as_str(), file.as_str()] {
            if let Some(entry) = programs.iter().find(|entry| name.contains(entry.0)) {
                return Some(entry.1);
            }
        }
        if !self.program.is_empty() {
            return None;
        }
        let found = self.by_rates();
        if let Some(collective) = found {
            reading.warn(format!(
                "the log does not say what was run: taken as {}",
                collective.title()
            ));
        }
        found
    }

    fn by_rates(&self) -> Option<Collective> {
        let rates = self.rows.iter().flat_map(|row| row.halves.iter().map(move |half| (row, half)));
        let (row, half) =
            rates.max_by(|a, b| a.1.algorithm_gb_per_s.total_cmp(&b.1.algorithm_gb_per_s))?;
        let (n, ratio) = (self.rank_count() as f64, half.bus_gb_per_s / half.algorithm_gb_per_s);
        let near = |wanted: f64| (ratio - wanted).abs() < 0.02;
        let reduces = !matches!(row.redop.as_str(), "none" | "");
        if near(2.0 * (n - 1.0) / n) && row.root.is_none_or(|root| root < 0) && reduces {
            Some(Collective::AllReduce)
        } else if near((n - 1.0) / n) && n > 1.0 {
            Some(if reduces { Collective::ReduceScatter } else { Collective::AllGather })
        } else if near(1.0) {
            Some(if reduces { Collective::Reduce } else { Collective::Broadcast })
        } else {
            None
        }
    }

    /// Turns all rows into figures.
    pub(super) fn finish(self, reading: &mut Reading) {
        if self.rows.is_empty() {
            return;
        }
        let ranks = self.rank_count();
        let collective = self.collective(reading);
        let reason = if self.hosts.len() > 1 {
            Some("several machines are not modelled")
        } else if ranks == 0 {
            Some("the log does not say how many GPUs took part")
        } else if ranks == 1 {
            Some("one rank moves nothing")
        } else if self.cpu_time {
            Some("times of the CPU (-C 1) are not those of the call")
        } else if collective.is_none() {
            Some("no schedule for this test")
        } else {
            None
        };
        let version = self.version.clone().unwrap_or_else(|| VERSION.to_owned());
        if self.version.is_none() {
            reading.warn(format!(
                "the log does not say NCCL's version: choices are those of {VERSION}"
            ));
        }
        let in_turn = {
            let mut processes = self.processes.clone();
            processes.dedup();
            let shared = !processes.is_empty() && processes.len() < ranks;
            shared && self.threads.unwrap_or(1) <= 1 && !self.graph
        };
        let gpus: Vec<u32> = match self.gpus.is_empty() {
            true => (0..ranks as u32).collect(),
            false => self.gpus.clone(),
        };
        for row in &self.rows {
            let reason = reason.or((row.bytes > SIZE_MAX).then_some("sizes are up to 1024G"));
            if let Some(reason) = reason {
                reading.skip(row.line, reason);
                continue;
            }
            let call = NcclCall {
                collective: collective.unwrap_or_default(),
                version: version.clone(),
                settings: self.settings.join(" "),
                peer_to_peer: true,
                numa_per_socket: 1,
                gpus: gpus.clone(),
                bytes: row.bytes,
                launches: if in_turn { Launches::InTurn(None) } else { Launches::AtOnce },
                in_graph: self.graph,
                first_of: self.iterations.filter(|count| *count <= FEW_CALLS),
            };
            add(reading, row, call);
        }
    }
}

fn add(reading: &mut Reading, row: &SizeRow, call: NcclCall) {
    let place = reading.place(row.line);
    let large = large(row.bytes);
    let name = format!("NCCL {} {} GPUs{large}", call.collective.title(), call.gpus.len());
    for half in &row.halves {
        // A float's error is a small number; a count of wrong elements is one or more.
        if half.wrong.is_some_and(|wrong| wrong >= 1.0) {
            reading.warn(format!("{place}: the results were wrong: left out"));
            continue;
        }
        let rate = row.bytes as f64 / half.time_us / 1e3;
        let said = half.algorithm_gb_per_s;
        if said > 0.5 && (rate / said - 1.0).abs() > 0.1 {
            let what = format!(
                "{place}: {} B in {} us are {rate:.2} GB/s, not {said}",
                row.bytes, half.time_us
            );
            reading.warn(what);
        }
        let text = format!("{} GPUs {} B {}", call.gpus.len(), row.bytes, row.dtype);
        let about = about(name.clone(), text);
        reading.add(row.line, about, Run::Nccl(call.clone()), (half.time_us, "us"));
    }
}
