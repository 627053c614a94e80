//! The first screen: the machine, what a step costs by algorithm, and why. At most 26 rows of 110
//! columns for the built-in machines; what does not fit is behind the flags that the last row names.

use std::fmt::Write;

use super::assumptions::may_lack_regimes;
use super::machine::{links_line, paths_line, settings};
use super::number::{percent, short, shorter, signed_percent, with_range};
use super::{in_place, variables};
use crate::prediction::{CasePrediction, Machine, Range};
use crate::sweep::answer::Pick;
use crate::sweep::{Answer, Question};
use crate::units::{Time, format_thousands};
use crate::workload::Step;

/// Columns of the screen.
pub const COLUMNS: usize = 110;
/// Columns of the names of algorithms, and of one step's figures.
const NAME: usize = 31;
const US: usize = 17;
const MS: usize = 7;
const WAITING: usize = 6;

/// Loud assumptions that are told one by one.
const LOUD_MAX: usize = 3;

/// Indentation of what goes on below.
const WRAPPED: usize = 10;

/// Writes the screen.
pub fn first_screen(question: &Question<'_>, answer: &Answer, notes: &[String]) -> String {
    let mut out = String::new();
    heading(&mut out, question.machine);
    let loud = question.machine.topology.assumptions.iter().filter(|one| one.loud);
    for one in loud.clone().take(LOUD_MAX) {
        line(&mut out, &format!("  note: {}", one.what));
    }
    if let Some(more @ 1..) = loud.count().checked_sub(LOUD_MAX) {
        line(&mut out, &format!("  note: {more} more such: --assumptions"));
    }
    for note in notes {
        line(&mut out, &format!("  note: {note}"));
    }
    out.push('\n');
    // Two steps stand side by side; more stand below.
    for first in (0..answer.steps.len()).step_by(2) {
        table(&mut out, question, answer, first);
    }
    best(&mut out, question, answer);
    if let Some(variables) = variables::text(question, answer) {
        line(&mut out, &variables);
    }
    out.push('\n');
    waterfall(&mut out, question, answer);
    out.push_str(&in_place::text(answer));
    regimes(&mut out, answer);
    throughput(&mut out, question, answer);
    passes(&mut out, question, answer);
    wirings(&mut out, question, answer);
    nearby(&mut out, answer);
    out.push_str("more: --explain --assumptions --all --json   sizes: -b 8 -e 1G -f 2   all measurements: simulate check\n");
    out
}

/// Adds a row; one that is too long goes on below, indented.
fn line(out: &mut String, text: &str) {
    let mut rest = text.trim_end();
    let mut indent = String::new();
    loop {
        let room = COLUMNS - indent.len();
        let Some((edge, _)) = rest.char_indices().nth(room) else {
            break;
        };
        let lead = rest.len() - rest.trim_start().len();
        // A word longer than a row is cut; nothing of ours is.
        // A space right at the edge is a place to break, too.
        let past = rest[edge..].chars().next().map_or(edge, |first| edge + first.len_utf8());
        let end = rest[..past].rfind(' ').filter(|&end| end > lead).unwrap_or(edge);
        out.push_str(&indent);
        out.push_str(rest[..end].trim_end());
        out.push('\n');
        rest = rest[end..].trim_start();
        indent = " ".repeat(WRAPPED);
    }
    out.push_str(&indent);
    out.push_str(rest);
    out.push('\n');
}

/// The machine in three rows.
fn heading(out: &mut String, machine: &Machine) {
    let (topology, fabric) = (&machine.topology, &machine.nominal.fabric);
    let title = if topology.title.is_empty() {
        format!("{} GPUs", fabric.gpu_count)
    } else {
        topology.title.clone()
    };
    line(out, &format!("{}: {title}", topology.name));
    line(out, &format!("  links   {} one way", links_line(topology, fabric)));
    let more = match topology.assumptions.len() {
        0 => String::new(),
        count => format!(" [{count} more: --assumptions]"),
    };
    let assumed = format!("assumed: {}{more}", settings(topology));
    let paths = if fabric.peer_to_peer {
        format!("  paths   {}", paths_line(topology, fabric))
    } else {
        "  paths   P2P off: GPUs reach each other by host memory only".to_owned()
    };
    if fabric.gpu_count < 2 {
        line(out, &format!("  {assumed}"));
    } else if paths.chars().count() + 3 + assumed.chars().count() <= COLUMNS {
        line(out, &format!("{paths}   {assumed}"));
    } else {
        line(out, &paths);
        line(out, &format!("          {assumed}"));
    }
}

/// A machine with nothing to reduce.
pub fn lone_gpu(machine: &Machine) -> String {
    let mut out = String::new();
    heading(&mut out, machine);
    out.push_str("\none GPU: there is nothing to reduce\n");
    out
}

/// Two steps from `first` on.
fn table(out: &mut String, question: &Question<'_>, answer: &Answer, first: usize) {
    let range = first..(first + 2).min(answer.steps.len());
    let shown: Vec<&Step> = answer.steps[range.clone()].iter().map(|step| &step.step).collect();
    let all_equal = shown.iter().all(|step| step.calls == shown[0].calls);
    let calls = if all_equal { format!("{} ", shown[0].calls) } else { String::new() };
    let dtype = shown[0].dtype.name();
    let ranks = question.options.gpus.len();
    let what = shown[0].collective.title();
    let width = US + MS + WAITING;
    let mut titles = format!("{:<NAME$}", format!("{calls}{what}s, {dtype}, TP {ranks}"));
    let mut header = " ".repeat(NAME);
    for step in &shown {
        let calls = if all_equal { String::new() } else { format!("{} x ", step.calls) };
        let bytes = format_thousands(step.bytes);
        let _ = write!(titles, "{:<width$}", format!("  {} {calls}{bytes} B", step.name));
        let _ = write!(header, "{:<US$}{:>MS$}{:>WAITING$}", "  us/call (80 %)", "ms/step", "wait");
    }
    line(out, &titles);
    line(out, &format!("{header}  bottleneck"));
    let mut wires = format!("{:<NAME$}", "  wires allow");
    for step in &answer.steps[range.clone()] {
        wires.push_str(&figures(&short(step.bound.time.as_us()), step.bound.time, &step.step, ""));
    }
    let limit = answer.steps[range.clone()].last().map_or("", |step| &step.bound.limit);
    let limit = limit.replace(" -> socket ", "->");
    line(out, &format!("{wires}  {limit}"));
    nccl_row(out, answer, range.clone());
    for row in &answer.rows {
        table_row(out, answer, row, range.clone());
    }
}

/// What NCCL takes by itself, where that is known for all of the steps.
fn nccl_row(out: &mut String, answer: &Answer, range: std::ops::Range<usize>) {
    let Some(picks) = answer.picks.get(range.clone()) else { return };
    let mut words: Vec<String> = picks.iter().map(pick_word).collect();
    words.dedup();
    let mut text = format!("{:<NAME$}", format!("  NCCL takes {}", words.join(" / ")));
    let mut bottleneck = "not modelled".to_owned();
    for (index, pick) in range.zip(picks) {
        let step = &answer.steps[index].step;
        match &pick.prediction {
            Some(case) => {
                let time = Time::from_us(case.time_us.value);
                let us = with_range(case.time_us);
                text.push_str(&figures(&us, time, step, &percent(case.waiting)));
                // Which quadrant of a socket would not fit beside the long name.
                let label = case.bottleneck.label();
                bottleneck = label.split(" (").next().unwrap_or(&label).to_owned();
            }
            None => text.push_str(&" ".repeat(US + MS + WAITING)),
        }
    }
    line(out, &format!("{text}  {bottleneck}"));
}

/// Algorithm, protocol and what carries them, a ring being understood.
fn pick_word(pick: &Pick) -> String {
    let title = match &pick.prediction {
        Some(case) => case.title.clone(),
        None => {
            let choice = &pick.plan.choice;
            format!("{} {}", choice.algorithm.name(), choice.protocol.name())
        }
    };
    title.strip_prefix("Ring ").map(str::to_owned).unwrap_or(title)
}

fn table_row(
    out: &mut String,
    answer: &Answer,
    row: &[CasePrediction],
    range: std::ops::Range<usize>,
) {
    let mut text = format!("{:<NAME$}", format!("  {}", row[0].title));
    let mut bottleneck = String::new();
    for index in range {
        let (case, step) = (&row[index], &answer.steps[index].step);
        let time = Time::from_us(case.time_us.value);
        let us = with_range(case.time_us);
        text.push_str(&figures(&us, time, step, &percent(case.waiting)));
        bottleneck = case.bottleneck.label();
    }
    line(out, &format!("{text}  {bottleneck}"));
}

/// One step's columns.
fn figures(us: &str, time: Time, step: &Step, waiting: &str) -> String {
    let ms = short(time.as_ms() * f64::from(step.calls));
    format!("  {us:<width$}{ms:>MS$}{waiting:>WAITING$}", width = US - 2)
}

fn best(out: &mut String, question: &Question<'_>, answer: &Answer) {
    let told: Vec<String> = answer
        .steps
        .iter()
        .map(|step| {
            let title = title_word(&question.cases[step.best].title);
            format!("{}: {title}, {} sure", step.step.name, sure(step.sure))
        })
        .collect();
    // Kernels that only --all shows are not compared.
    let all = question.cases.iter().any(|case| case.extra);
    let of = if all { "best here" } else { "best of these" };
    line(out, &format!("  {of}   {}", told.join("   ")));
}

/// A chance; never quite sure.
fn sure(chance: f64) -> String {
    if chance > 0.99 { "> 99 %".to_owned() } else { percent(chance) }
}

fn waterfall(out: &mut String, question: &Question<'_>, answer: &Answer) {
    let Some(waterfall) = &answer.waterfall else {
        return;
    };
    let peers = question.options.gpus.len() - 1;
    let bytes = format_thousands(waterfall.bytes);
    let mut sum = String::new();
    for (index, term) in waterfall.terms.iter().enumerate() {
        let sign = match (index, term.us < 0.0) {
            (0, _) => "",
            (_, true) => " - ",
            (_, false) => " + ",
        };
        let _ = write!(sum, "{sign}{} {}", term.name, shorter(term.us.abs()));
    }
    let total = short(waterfall.total_us());
    line(out, &format!("why one-stage takes {total} us: {peers} x {bytes} B {sum}"));
}

fn regimes(out: &mut String, answer: &Answer) {
    let struck: Vec<String> = answer
        .rows
        .iter()
        .filter_map(|row| {
            let last = row.last()?;
            let bare = last.without_regimes_us?;
            Some(format!("{} {}", title_word(&last.title), short(bare.value)))
        })
        .collect();
    if struck.is_empty() {
        return;
    }
    let step = answer.steps.last().map_or("", |step| step.step.name.as_str());
    line(
        out,
        &format!(
            "  * declared regime, cause unknown; {step} without it, us: {}",
            struck.join(", ")
        ),
    );
}

/// A title without what stands in brackets.
pub(super) fn title_word(title: &str) -> &str {
    title.split(" (").next().unwrap_or(title)
}

fn throughput(out: &mut String, question: &Question<'_>, answer: &Answer) {
    let mut with_pull = question.scenario.throughputs().filter(|t| t.algorithm == "one_shot_pull");
    let reported = with_pull.next().map(|told| format!(", {} reported", told.tok_per_s));
    let joined = |each: &dyn Fn(&crate::prediction::Exchange) -> String| {
        answer.exchanges.iter().map(each).collect::<Vec<_>>().join(" / ")
    };
    let Some(first) = answer.exchanges.first() else {
        return;
    };
    let tok = joined(&|exchange| exchange.reported_tok_per_s.to_string());
    let ms = joined(&|exchange| format!("{:.2}", exchange.step_ms));
    let all_reduce = first.all_reduce_ms;
    line(
        out,
        &format!("step at {tok} tok/s with ring LL: {ms} ms, {all_reduce:.2} of it all-reduce"),
    );
    let with = joined(&|exchange| rate(exchange.tok_per_s));
    let bare = joined(&|exchange| exchange.without_regimes.map_or(String::new(), rate));
    let bare = if bare.contains('(') { format!("; without * {bare}") } else { String::new() };
    let reported = reported.unwrap_or_default();
    line(out, &format!("  one-stage instead: {with} tok/s{reported}{bare}"));
}

fn rate(range: Range) -> String {
    format!("{:.1} ({:.0}-{:.0})", range.value, range.low, range.high)
}

fn passes(out: &mut String, question: &Question<'_>, answer: &Answer) {
    if !question.comparable() {
        return;
    }
    for pass in question.scenario.passes() {
        let Some(index) = answer.steps.iter().position(|step| step.step.name == pass.step) else {
            continue;
        };
        let calls = f64::from(answer.steps[index].step.calls);
        let case =
            answer.rows.iter().map(|row| &row[index]).find(|c| c.algorithm == pass.algorithm);
        if let Some(case) = case {
            let ms = case.time_us.value * calls / 1e3;
            let us = pass.ms * 1e3 / calls;
            line(
                out,
                &format!(
                    "\"about {} ms a {} pass\" is {us:.0} us a call; all-reduce by {} is {} ms, {} of it [--explain]",
                    pass.ms,
                    pass.step,
                    title_word(&case.title),
                    short(ms),
                    percent(ms / pass.ms),
                ),
            );
        }
    }
}

fn wirings(out: &mut String, question: &Question<'_>, answer: &Answer) {
    if answer.wirings.is_empty() {
        return;
    }
    let each: Vec<String> = answer
        .wirings
        .iter()
        .map(|wiring| {
            format!("{} {}/{}", wiring.name, short(wiring.best_ms), short(wiring.one_stage_ms))
        })
        .collect();
    let step = question.scenario.steps.last().map_or("", |step| step.name.as_str());
    line(out, &format!("same GPUs, other wiring ({step} ms, best/one-stage): {}", each.join("  ")));
    if let Some(text) = regime_elsewhere(question, answer) {
        line(out, &text);
    }
}

/// What a regime would change that a built-in machine of the same GPUs declares, where this one is a
/// user's and its file says nothing of any: both answers.
fn regime_elsewhere(question: &Question<'_>, answer: &Answer) -> Option<String> {
    if !may_lack_regimes(&question.machine.topology) {
        return None;
    }
    let declares = |(_, machine): &&(String, Machine)| !machine.topology.regimes.is_empty();
    let (name, machine) = question.wirings.iter().find(declares)?;
    let with = answer.wirings.iter().find(|wiring| wiring.name == *name)?;
    let last = answer.steps.last()?;
    let pull = question.cases.iter().position(|case| case.algorithm.name == "one_shot_pull")?;
    let ms = |row: usize| {
        let us = answer.rows[row].last().map_or(0.0, |call| call.time_us.value);
        short(us * f64::from(last.step.calls) / 1e3)
    };
    Some(format!(
        "  no regime is declared for this machine; {} declares {}: with them best/one-stage {}/{}, here \
         {}/{}: time one-stage once before you trust either",
        machine.topology.name,
        machine.topology.regimes.len(),
        short(with.best_ms),
        short(with.one_stage_ms),
        ms(last.best),
        ms(pull),
    ))
}

fn nearby(out: &mut String, answer: &Answer) {
    if answer.nearby.is_empty() {
        return;
    }
    let each = answer.nearby.iter().map(|check| {
        let (measured, predicted) = (short(check.figure.us), short(check.predicted_us));
        let error = signed_percent(check.error());
        format!("{} {measured}/{predicted} ({error})", check.figure.what)
    });
    let each: Vec<String> = each.collect();
    line(out, &format!("measured nearby/predicted, us: {}", each.join("; ")));
}
