//! Logs of NCCL (`NCCL_DEBUG=INFO`, `NCCL_DEBUG_SUBSYS=INIT,COLL,GRAPH,TUNING`): calls, transports,
//! choices.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::{Call, Trace, TraceFormat, each_line, names};
use crate::error::Result;
use crate::measurement::logs::nccl_lines;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "nccl-log",
    title: "a log of NCCL",
    sniff: nccl_lines::in_text,
    tells_calls: true,
    read,
};

/// What the log says of communicators and transports.
#[derive(Default)]
struct Log {
    /// Ranks of each communicator, and the rank of each process in it.
    communicators: BTreeMap<String, (u32, u64)>,
    transports: BTreeMap<String, u32>,
}

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    let mut log = Log::default();
    each_line(file, stream, |_, text| {
        if let Some(version) = nccl_lines::version(text) {
            trace.fact(format!("NCCL {version}"));
        }
        match nccl_lines::said(text) {
            Some((prefix, said)) => line(&mut log, trace, prefix, said),
            None => {
                if let Some(warning) = nccl_lines::warning(text) {
                    trace.warn(format!("NCCL warned: {warning}"));
                }
            }
        }
    })?;
    for (transport, hops) in &log.transports {
        trace.fact(format!("{hops} hops via {transport}"));
    }
    let ranks = log.communicators.values().map(|entry| entry.0).max();
    trace.ranks = trace.ranks.or(ranks);
    let incomplete = trace.calls.iter().filter(|call| call.bytes.is_none()).count();
    if incomplete > 0 {
        trace.warn(format!(
            "{incomplete} calls are cut off or of an unknown type: their size is lost"
        ));
    }
    if !trace.calls.is_empty() {
        trace.warn("calls in CUDA graphs are logged once, when they are captured");
    }
    Ok(())
}

/// The number behind a word.
fn after(words: &[&str], name: &str) -> Option<u64> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1)?.parse().ok()
}

fn line(log: &mut Log, trace: &mut Trace, prefix: &str, said: &str) {
    let words: Vec<&str> = said.split_whitespace().collect();
    if let Some((name, value)) = nccl_lines::setting(said) {
        trace.fact(format!("{name}={value}"));
    } else if let Some((_, transport)) = said.split_once(" via ").filter(|_| said.contains(" -> "))
    {
        // The rest of the line names the device.
        let transport = transport.split_whitespace().next().unwrap_or("").to_owned();
        *log.transports.entry(transport).or_insert(0) += 1;
    } else if said.contains("Init COMPLETE") {
        let ranks = after(&words, "nranks").or_else(|| after(&words, "nRanks"));
        if let (Some(at), Some(rank), Some(ranks)) = (
            words.iter().position(|word| *word == "comm" || *word == "ncclCommInitRank"),
            after(&words, "rank"),
            ranks,
        ) {
            let name =
                words[at + 1..].iter().find(|word| word.starts_with("0x")).copied().unwrap_or("");
            log.communicators.insert(format!("{}{name}", process(prefix)), (ranks as u32, rank));
        }
        if after(&words, "nNodes").is_some_and(|nodes| nodes > 1) {
            trace.warn("several machines took part: their network is not modelled");
        }
    } else if [" Bytes -> Algo ", "coll channels"].iter().any(|sign| said.contains(sign))
        || said.starts_with("Pattern ")
    {
        trace.fact(said.to_owned());
    } else if said.contains("opCount") && said.contains(" count ") {
        call(log, trace, prefix, &words);
    }
}

/// Host and process of a line.
fn process(prefix: &str) -> &str {
    let word = prefix.split_whitespace().next_back().filter(|word| !word.starts_with('['));
    let word = word.or_else(|| prefix.split_whitespace().rev().nth(1)).unwrap_or("");
    word.rsplit_once(':').map_or(word, |(process, _)| process)
}

/// `AllReduce: opCount 2b sendbuff 0x.. recvbuff 0x.. count 7168 datatype 9 op 0 root 0 comm 0x..`.
fn call(log: &Log, trace: &mut Trace, prefix: &str, words: &[&str]) {
    let name = words.first().map_or("", |word| word.trim_end_matches(':'));
    let Some(collective) = names::collective(name) else {
        trace.leave_out(name, 1);
        return;
    };
    let process = process(prefix);
    let communicator =
        words.iter().position(|word| *word == "comm").and_then(|at| words.get(at + 1));
    let known = communicator.and_then(|name| log.communicators.get(&format!("{process}{name}")));
    let inline = words
        .iter()
        .find_map(|word| word.strip_prefix("[nranks=")?.trim_end_matches(']').parse().ok());
    let ranks: Option<u32> = inline.or(known.map(|entry| entry.0));
    let dtype = after(words, "datatype").map(names::nccl_type).unwrap_or_default();
    let bytes = after(words, "count").zip(names::element(&dtype)).and_then(|(count, element)| {
        // NCCL counts what one rank passes of the calls in which each has a piece.
        let pieces = if collective.in_pieces() { u64::from(ranks?) } else { 1 };
        count.checked_mul(element.0)?.checked_mul(pieces)
    });
    trace.calls.push(Call {
        rank: known.map_or_else(|| process_number(process), |entry| entry.1),
        collective,
        bytes,
        dtype,
        ranks,
        start_us: None,
        duration_us: None,
        by: String::new(),
    });
}

/// A number for a process of which no rank is known.
fn process_number(process: &str) -> u64 {
    process.rsplit(':').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
