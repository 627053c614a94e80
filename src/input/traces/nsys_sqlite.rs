//! `nsys export --type sqlite`: every kernel with start and end; sizes where NCCL's ranges have them.
//!
//! A database is read in places, so it has to be a file, and SQLite itself reads it: only builds with
//! the feature `sqlite` do. The tables are made only when there is something to put into them, and
//! their columns change between versions: columns go by name.

use std::io::BufRead;

#[cfg(not(feature = "sqlite"))]
use super::failure;
use super::{Trace, TraceFormat};
use crate::error::Result;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "nsys-sqlite",
    title: "an nsys export as SQLite",
    sniff: |head| head.starts_with("SQLite format 3\0"),
    tells_calls: true,
    read,
};

#[cfg(not(feature = "sqlite"))]
fn read(file: &str, _: &mut dyn BufRead, _: &mut Trace) -> Result<()> {
    Err(failure(
        file,
        "it is a database of SQLite, and this program was built without SQLite",
        "`nsys stats --report cuda_gpu_trace --format csv` writes what every build reads; \
         `cargo build --release --features sqlite` builds one that reads databases",
    ))
}

#[cfg(feature = "sqlite")]
fn read(file: &str, _: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    database::read(file, trace)
}

#[cfg(feature = "sqlite")]
mod database {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use rusqlite::types::ValueRef;
    use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

    use crate::error::{Error, Result};
    use crate::input::traces::{Call, Trace, failure, names};
    use crate::workload::Collective;

    /// Kernels.
    const KERNELS: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
    /// CUDA graphs that were traced as one.
    const GRAPHS: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
    /// Texts that other tables name by number.
    const TEXTS: &str = "StringIds";
    /// Ranges and marks that programs set.
    const RANGES: &str = "NVTX_EVENTS";
    /// Bits below the number of a process in the number of a thread.
    const THREAD_BITS: u32 = 24;

    type Sql<T> = rusqlite::Result<T>;

    pub(super) fn read(file: &str, trace: &mut Trace) -> Result<()> {
        let wrong = |error: rusqlite::Error| damaged(file, &error);
        if !Path::new(file).is_file() {
            let reason = "a database is read in places: it has to be a file, not a pipe";
            return Err(failure(file, reason, "write it to a file and name that"));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let base = Connection::open_with_flags(file, flags).map_err(wrong)?;
        let tables = tables(&base).map_err(wrong)?;
        if tables.contains(GRAPHS) {
            trace.warn(
                "CUDA graphs were traced as one, and calls in them are lost: \
                 nsys profile --cuda-graph-trace=node keeps them",
            );
        }
        if !tables.contains(KERNELS) || !tables.contains(TEXTS) {
            let help = "was it exported by nsys, and CUDA traced: nsys profile -t cuda,nvtx?";
            return Err(failure(file, format!("it has no table {KERNELS} with its texts"), help));
        }
        let names = collectives(&base, trace).map_err(wrong)?;
        let processes = kernels(&base, &names, trace).map_err(wrong)?;
        let sizes = match tables.contains(RANGES) {
            true => sizes(&base).map_err(wrong)?,
            false => BTreeMap::new(),
        };
        sized(trace, &processes, &sizes);
        Ok(())
    }

    fn damaged(file: &str, error: &rusqlite::Error) -> Error {
        let busy = [ErrorCode::DatabaseBusy, ErrorCode::DatabaseLocked];
        let help = match error.sqlite_error_code().is_some_and(|code| busy.contains(&code)) {
            true => "another program has it open for writing: wait for its end, or copy the file",
            false => "is it whole, and made by `nsys export --type sqlite`?",
        };
        failure(file, format!("SQLite cannot read it: {error}"), help)
    }

    fn tables(base: &Connection) -> Sql<BTreeSet<String>> {
        let mut query = base.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
        query.query_map([], |row| row.get(0))?.collect()
    }

    /// Which of these columns a table has, the first of them.
    fn column(base: &Connection, table: &str, names: &[&str]) -> Sql<Option<String>> {
        let mut query = base.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let found: BTreeSet<String> =
            query.query_map([table], |row| row.get(0))?.collect::<Sql<_>>()?;
        Ok(names.iter().find(|name| found.contains(**name)).map(|name| (*name).to_owned()))
    }

    /// A whole number; nothing where something else stands: SQLite holds no column to a type.
    fn number(row: &Row, at: usize) -> Option<i64> {
        match row.get_ref(at) {
            Ok(ValueRef::Integer(number)) => Some(number),
            _ => None,
        }
    }

    /// A text, what is no UTF-8 in it replaced; nothing where something else stands.
    fn text(row: &Row, at: usize) -> Option<String> {
        match row.get_ref(at) {
            Ok(ValueRef::Text(bytes)) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }

    /// Names of kernels that are collectives, by their numbers.
    fn collectives(
        base: &Connection,
        trace: &mut Trace,
    ) -> Sql<BTreeMap<i64, (Collective, String)>> {
        let mut query = base.prepare(&format!("SELECT id, value FROM {TEXTS}"))?;
        let mut rows = query.query([])?;
        let mut found = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let Some((id, name)) = number(row, 0).zip(text(row, 1)) else {
                trace.leave_out(format!("rows of {TEXTS} without a number and a text"), 1);
                continue;
            };
            if let Some(collective) = names::of_kernel(&name) {
                found.insert(id, (collective, name));
            }
        }
        Ok(found)
    }

    /// Adds the calls; gives back the process of each. A rank is a device, or a device of a process
    /// where several processes call theirs by the same number.
    fn kernels(
        base: &Connection,
        names: &BTreeMap<i64, (Collective, String)>,
        trace: &mut Trace,
    ) -> Sql<Vec<i64>> {
        let name = column(base, KERNELS, &["demangledName", "shortName"])?;
        let process = column(base, KERNELS, &["globalPid"])?;
        let (name, process) =
            (name.unwrap_or_else(|| "NULL".into()), process.unwrap_or_else(|| "0".into()));
        let wanted = format!("SELECT start, end, deviceId, {process}, {name} FROM {KERNELS}");
        let mut query = base.prepare(&wanted)?;
        let mut rows = query.query([])?;
        let (mut places, mut others) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let known = number(row, 4).and_then(|id| names.get(&id));
            let Some((collective, kernel)) = known else {
                others += 1;
                continue;
            };
            let [start, end, device, process] = [0, 1, 2, 3].map(|at| number(row, at));
            let (Some(start), Some(end), Some(device)) = (start, end, device) else {
                trace.leave_out(format!("rows of {KERNELS} without start, end or GPU"), 1);
                continue;
            };
            places.push((process.unwrap_or(0), device));
            trace.calls.push(Call {
                rank: 0,
                collective: *collective,
                bytes: None,
                dtype: names::type_of_kernel(kernel).to_owned(),
                ranks: None,
                start_us: Some(start as f64 / 1e3),
                duration_us: Some(end.saturating_sub(start) as f64 / 1e3),
                by: kernel.clone(),
            });
        }
        if others > 0 {
            trace.leave_out(names::other(""), others);
        }
        let of: BTreeSet<(i64, i64)> = places.iter().copied().collect();
        let devices: BTreeSet<i64> = of.iter().map(|place| place.1).collect();
        let order: Vec<(i64, i64)> = of.into_iter().collect();
        let alike = order.len() > devices.len();
        if alike {
            trace.warn(
                "several processes number their GPUs alike: ranks are in the order of processes",
            );
        }
        let no_numbers = devices.iter().any(|device| *device < 0);
        if no_numbers {
            trace.warn("GPUs have numbers below 0: ranks are in the order of processes and GPUs");
        }
        for (call, place) in trace.calls.iter_mut().zip(&places) {
            let number = u64::try_from(place.1).ok().filter(|_| !alike && !no_numbers);
            call.rank = number.unwrap_or(order.binary_search(place).unwrap_or(0) as u64);
        }
        Ok(places.into_iter().map(|place| place.0).collect())
    }

    /// Sizes that NCCL's ranges tell, by process and collective, in order of time.
    type Sizes = BTreeMap<(i64, Collective), Vec<Option<u64>>>;

    fn sizes(base: &Connection) -> Sql<Sizes> {
        let Some(json) = column(base, RANGES, &["jsonText"])? else { return Ok(Sizes::new()) };
        let wanted = format!(
            "SELECT COALESCE(n.text, s.value), n.{json}, n.globalTid FROM {RANGES} n \
             LEFT JOIN {TEXTS} s ON s.id = n.textId ORDER BY n.start"
        );
        let mut query = base.prepare(&wanted)?;
        let mut rows = query.query([])?;
        let mut sizes = Sizes::new();
        while let Some(row) = rows.next()? {
            let name = text(row, 0);
            let name = name.as_deref().and_then(|name| name.strip_prefix("nccl"));
            let Some(collective) = name.and_then(names::collective) else { continue };
            let told = text(row, 1);
            let thread = number(row, 2).unwrap_or(0);
            let process = thread >> THREAD_BITS << THREAD_BITS;
            let size = told.and_then(|text| size(&serde_json::from_str(&text).ok()?));
            sizes.entry((process, collective)).or_default().push(size);
        }
        Ok(sizes)
    }

    /// The size within a range's payload, such as `"Message size [bytes]": 14336`.
    fn size(payload: &serde_json::Value) -> Option<u64> {
        let fields = payload.as_object()?;
        fields.iter().find_map(|(name, value)| {
            let name = name.to_lowercase();
            let own = (name.contains("size") && name.contains("byte")).then(|| value.as_u64());
            own.flatten().or_else(|| size(value))
        })
    }

    /// Gives calls the sizes of the ranges that launched them, where a process has as many of one as of
    /// the other: calls in CUDA graphs are launched without a range.
    fn sized(trace: &mut Trace, processes: &[i64], sizes: &Sizes) {
        let mut order: Vec<usize> = (0..trace.calls.len()).collect();
        let start = |at: &usize| trace.calls[*at].start_us.unwrap_or(0.0);
        order.sort_by(|a, b| start(a).total_cmp(&start(b)));
        let mut by_key: BTreeMap<(i64, Collective), Vec<usize>> = BTreeMap::new();
        for at in order {
            by_key.entry((processes[at], trace.calls[at].collective)).or_default().push(at);
        }
        let mut unsized_calls = 0;
        for (key, calls) in by_key {
            let told = sizes.get(&key).filter(|told| told.len() == calls.len());
            for (index, at) in calls.into_iter().enumerate() {
                let bytes = told.and_then(|told| told[index]);
                // NCCL counts what one rank passes of the calls in which each has a piece.
                let whole = !trace.calls[at].collective.in_pieces();
                trace.calls[at].bytes = bytes.filter(|_| whole);
                unsized_calls += u64::from(trace.calls[at].bytes.is_none());
            }
        }
        if unsized_calls > 0 {
            trace.fact(
                "sizes are those of NCCL's ranges, where as many ranges as kernels were traced",
            );
        }
        trace.fact("times hold the waiting for the slowest rank");
    }
}
