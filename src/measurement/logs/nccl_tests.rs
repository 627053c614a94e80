//! The text of nccl-tests, of every version since 1.0: rows are found by their shape wherever
//! launchers put prefixes, and whatever NCCL prints between them.

use super::sizes::{Half, SizeRow, Test};
use super::{LogFormat, Reading, nccl_json, nccl_lines};
use crate::error::Result;
use crate::lines::{Line, lines};

/// The format.
pub(super) const FORMAT: LogFormat = LogFormat { title: "nccl-tests", sniff, read };

fn sniff(text: &str) -> bool {
    let signs = ["algbw", "nThread", "_perf", "nccl-tests version"];
    !text.contains("\"busbw\"")
        && !nccl_json::sniff(text)
        && signs.iter().any(|sign| text.contains(sign))
        || lines(text).any(|line| start(&words(&line)).is_some())
}

/// Element types as the programs print them.
const TYPES: [&str; 24] = [
    "int8", "uint8", "char", "int32", "uint32", "int", "uint", "int64", "uint64", "half", "fp16",
    "float16", "float", "fp32", "float32", "double", "fp64", "float64", "bfloat16", "bf16",
    "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2",
];

/// Words that may stand before a row: ranks, hosts, times.
const PREFIX_WORDS: usize = 5;

fn words(line: &Line) -> Vec<String> {
    line.text.replace('|', " ").split_whitespace().map(str::to_owned).collect()
}

/// Where size, count and type stand in a row.
fn start(words: &[String]) -> Option<usize> {
    let whole = |at: usize| words.get(at).is_some_and(|word| word.parse::<u64>().is_ok());
    (0..PREFIX_WORDS).find(|&at| {
        let typed = words.get(at + 2).is_some_and(|word| TYPES.contains(&word.as_str()));
        // The first number may be glued to a prefix such as `[1,0]<stdout>:`.
        typed && whole(at + 1) && words.get(at).is_some_and(|word| size(word).is_some())
    })
}

/// A size, after a prefix that ends in `:` or `>`.
fn size(word: &str) -> Option<u64> {
    word.rsplit([':', '>']).next()?.parse().ok()
}

/// What the columns are, as the header says.
#[derive(Copy, Clone, Default)]
struct Columns {
    /// No header was seen: told by the words of a row.
    known: bool,
    redop: bool,
    root: bool,
    /// Words of a half: time, two rates, wrong; and four more with `-I`.
    per_iteration: bool,
    /// Version 1.0 printed milliseconds.
    milliseconds: bool,
}

fn read(text: &str, reading: &mut Reading) -> Result<()> {
    let (mut test, mut columns) = (Test::default(), Columns::default());
    for line in lines(text) {
        let words = words(&line);
        match start(&words) {
            Some(at) => match row(&line, &words[at..], columns) {
                Some(row) => test.rows.push(row),
                None => {
                    let place = reading.place(line.number);
                    reading.warn(format!("{place}: the row is cut off: left out"));
                }
            },
            None => {
                if begins(&words, &test) {
                    let after = next(&test);
                    std::mem::replace(&mut test, after).finish(reading);
                }
                header(&words, &mut columns);
                facts(&line, &words, &mut test, reading);
            }
        }
    }
    test.finish(reading);
    Ok(())
}

/// Whether a line starts another run: logs are often joined.
fn begins(words: &[String], test: &Test) -> bool {
    let starts = words.iter().any(|word| word == "nThread")
        || words
            .windows(3)
            .any(|three| three[..2] == ["Collective", "test"] && three[2] == "starting:");
    starts && !test.rows.is_empty()
}

/// What the next run of a joined log keeps: the library and its environment.
fn next(test: &Test) -> Test {
    let (version, settings) = (test.version.clone(), test.settings.clone());
    Test { version, settings, ..Test::default() }
}

fn header(words: &[String], columns: &mut Columns) {
    let has = |name: &str| words.iter().any(|word| word == name);
    if has("algbw") && (has("size") || has("bytes")) {
        *columns = Columns {
            known: true,
            redop: has("redop") || has("op"),
            root: has("root"),
            per_iteration: has("i_min"),
            milliseconds: has("bytes") && has("res"),
        };
    }
}

/// The number after a word.
fn after(words: &[String], name: &str) -> Option<u32> {
    let at = words.iter().position(|word| word == name)?;
    words.get(at + 1)?.trim_end_matches(',').parse().ok()
}

/// What a line that is no row says of the run.
fn facts(line: &Line, words: &[String], test: &mut Test, reading: &mut Reading) {
    let text = line.text.as_ref();
    if let Some(at) = words.iter().position(|word| word == "starting:") {
        test.program = words.get(at + 1).cloned().unwrap_or_default();
    }
    let program = words.iter().find(|word| word.ends_with("_perf"));
    if let Some(program) = program.filter(|_| test.program.is_empty()) {
        program.rsplit('/').next().unwrap_or(program).clone_into(&mut test.program);
    }
    for word in words {
        if let Some(code) = word.strip_prefix("nccl-library=") {
            test.version = Some(code.to_owned()).filter(|code| code.parse::<u32>().is_ok());
        }
    }
    if let Some(number) = nccl_lines::version(text) {
        test.version = Some(number.to_owned());
    }
    if let Some((name, value)) = nccl_lines::setting(text) {
        let setting = format!("{name}={value}");
        let matters = !name.starts_with("NCCL_DEBUG") && !value.contains(' ');
        if matters && !test.settings.contains(&setting) {
            reading.fact(setting.clone());
            // A later run of a joined log has its own environment.
            test.settings.retain(|other| other.split('=').next() != Some(name));
            test.settings.push(setting);
        }
    }
    if words.iter().any(|word| word == "nThread") {
        test.threads = after(words, "nThread");
        // `warmup iters: 1 iters: 20 agg iters: 1`: the bare one counts the timed calls.
        let bare = |at: &usize| {
            let before = at.checked_sub(1).map_or("", |at| words[at].as_str());
            words[*at] == "iters:" && !matches!(before, "warmup" | "agg")
        };
        let timed = (0..words.len()).find(bare).and_then(|at| words.get(at + 1)?.parse().ok());
        test.iterations = timed;
        test.graph = after(words, "graph:").is_some_and(|graph| graph > 0);
        let gpus = after(words, "nGpus").unwrap_or(1);
        test.ranks = test.threads.map(|threads| threads.saturating_mul(gpus));
        reading.fact(format!("graph {}", u8::from(test.graph)));
    }
    device(words, test);
}

/// `#  Rank  0 Group  0 Pid  1234 on host device  0 [0000:1b:00] NVIDIA H200`.
fn device(words: &[String], test: &mut Test) {
    let at = |name: &str| words.iter().position(|word| word == name);
    let (Some(rank), Some(on), Some(device)) = (at("Rank"), at("on"), at("device")) else { return };
    let number = |at: usize| words.get(at + 1).and_then(|word| word.parse::<u64>().ok());
    let (Some(rank), Some(gpu), Some(host)) = (number(rank), number(device), words.get(on + 1))
    else {
        return;
    };
    // Ranks come in order; those of processes that interleave do too, or the log is joined.
    if rank as usize == test.gpus.len() {
        test.gpus.push(gpu as u32);
        test.processes.push(at("Pid").and_then(number).unwrap_or(rank));
        if !test.hosts.contains(host) {
            test.hosts.push(host.clone());
        }
    }
}

/// A row whose words begin with the size.
fn row(line: &Line, words: &[String], columns: Columns) -> Option<SizeRow> {
    let mut rest = words[3..].iter().peekable();
    let number = |word: &&String| word.parse::<f64>().is_ok();
    let redop = rest.next_if(|word| !number(word) && *word != "N/A");
    if columns.redop && redop.is_none() {
        return None;
    }
    // Without a header a root is an integer where a time would have a point.
    let whole = |word: &&String| word.parse::<i64>().is_ok();
    let has_root = if columns.known {
        columns.root
    } else {
        rest.peek().is_some_and(whole) && !rest.len().is_multiple_of(4)
    };
    let root = if has_root { Some(rest.next()?.parse::<i64>().ok()?) } else { None };
    let rest: Vec<&String> = rest.collect();
    let width = if columns.per_iteration { 8 } else { 4 };
    let scale = if columns.milliseconds { 1e3 } else { 1.0 };
    let halves: Vec<Half> =
        rest.chunks_exact(width).filter_map(|half| self::half(half, scale)).collect();
    if halves.is_empty() {
        return None;
    }
    Some(SizeRow {
        line: line.number,
        bytes: size(&words[0])?,
        dtype: words[2].clone(),
        redop: redop.cloned().unwrap_or_default(),
        root,
        halves,
    })
}

fn half(words: &[&String], scale: f64) -> Option<Half> {
    let number = |at: usize| words[at].parse::<f64>().ok().filter(|value| value.is_finite());
    Some(Half {
        time_us: number(0).filter(|time| *time > 0.0)? * scale,
        algorithm_gb_per_s: number(1)?,
        bus_gb_per_s: number(2)?,
        wrong: number(3),
    })
}
