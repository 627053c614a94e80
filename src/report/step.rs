//! A step of a model as people read it: its calls, what they cost by implementation, tokens a second
//! under the assumptions that stand below them; and as JSON.

use std::fmt::Write;

use serde::Serialize;

use super::number::{percent, short, with_range};
use super::table::{Table, TableFormat};
use crate::sweep::step::{Compute, StepRow, Tokens};
use crate::units::format_thousands;
use crate::workload::model::{Group, Layout, Model, Pass};

/// Everything that was found.
#[derive(Clone, Debug, Serialize)]
pub struct StepAnswer {
    /// The machine, with its edits.
    pub machine: String,
    /// The model.
    pub model: Model,
    /// How it is laid out.
    pub layout: Layout,
    /// Groups of ranks like these, each with users of its own.
    pub replicas: u32,
    /// Calls of each pass.
    pub calls: Vec<(Pass, Vec<Group>)>,
    /// By implementation.
    pub rows: Vec<StepRow>,
    /// Compute of a pass, where it is known.
    pub compute: Option<Compute>,
    /// Where it comes from, in words.
    pub compute_from: String,
    /// Tokens a second, by row; empty without compute.
    pub tokens: Vec<Tokens>,
    /// Chunk of a prefill, its calls by what NCCL takes in ms, and the tokens a second they allow.
    pub prefill: Option<(u64, f64, f64)>,
    /// Bus bandwidth that was named, GB/s, and the tokens a second of a prefill that it allows.
    pub bounds: Vec<(f64, f64)>,
    /// Users, and for each row the tokens a second of all of them.
    pub batches: Vec<(u64, Vec<f64>)>,
    /// What is taken for granted.
    pub assumptions: Vec<String>,
}

/// The page.
pub fn page(answer: &StepAnswer) -> String {
    let mut out = String::new();
    head(&mut out, answer);
    out.push_str(&passes(answer).write(TableFormat::Text));
    if let Some(compute) = &answer.compute {
        let _ =
            writeln!(out, "\ncompute {} ms a pass: {}", short(compute.ms()), answer.compute_from);
        out.push_str(&tokens(answer).write(TableFormat::Text));
    } else {
        out.push_str(
            "\nno tokens a second: what else a step takes is not known; say it by --compute-ms, or by \
             --measured-tok-s\n",
        );
    }
    if !answer.batches.is_empty() {
        out.push('\n');
        out.push_str(&batches(answer).write(TableFormat::Text));
    }
    prefill(&mut out, answer);
    out.push_str("\ntaken for granted:\n");
    for assumption in &answer.assumptions {
        let _ = writeln!(out, "  - {assumption}");
    }
    out
}

fn head(out: &mut String, answer: &StepAnswer) {
    let StepAnswer { machine, model, layout, .. } = answer;
    let drafts = match (&model.drafts, layout.drafts) {
        (_, 0) => "no drafts".to_owned(),
        (Some(drafts), count) => format!("{count} drafts ({})", drafts.kind),
        (None, count) => format!("{count} drafts"),
    };
    let replicas = match answer.replicas {
        1 => String::new(),
        count => format!(" x {count} replicas"),
    };
    let stages =
        if layout.pipeline > 1 { format!(", PP {}", layout.pipeline) } else { String::new() };
    let users = layout.batch * u64::from(answer.replicas);
    let _ = writeln!(
        out,
        "{} on {machine}: TP {}{replicas}{stages}, batch {users}, {drafts}, {} on the wire",
        model.title,
        layout.tensor,
        layout.dtype.name()
    );
    for (pass, groups) in &answer.calls {
        let each: Vec<String> = groups
            .iter()
            .map(|group| {
                let (step, bytes) = (&group.step, format_thousands(group.step.bytes));
                format!("{} {} of {bytes} B ({})", step.calls, step.collective.title(), group.what)
            })
            .collect();
        let _ = writeln!(out, "  {:<8}{}", name(*pass), each.join(", "));
    }
    out.push('\n');
}

fn name(pass: Pass) -> &'static str {
    match pass {
        Pass::Decode => "decode",
        Pass::Verify => "verify",
        Pass::Draft => "draft",
        Pass::Prefill(_) => "prefill",
    }
}

/// Communication by pass.
fn passes(answer: &StepAnswer) -> Table {
    let first = answer.rows.first();
    let names = first.map_or(Vec::new(), |row| {
        row.passes.iter().map(|time| format!("{} ms (80 %)", name(time.pass))).collect()
    });
    let mut header = vec!["communication of a pass"];
    header.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for row in &answer.rows {
        let mut cells = vec![row.title.clone()];
        cells.extend(row.passes.iter().map(|time| with_range(time.ms)));
        table.row(cells);
    }
    table
}

fn tokens(answer: &StepAnswer) -> Table {
    let lengths: Vec<f64> = answer
        .tokens
        .first()
        .and_then(|tokens| tokens.drafted.as_ref())
        .map_or(Vec::new(), |drafted| drafted.at.iter().map(|at| at.0).collect());
    let drafted = answer.tokens.iter().any(|tokens| tokens.drafted.is_some());
    let mut header = ["", "step ms", "comm.", "tok/s (80 %)"].map(str::to_owned).to_vec();
    if drafted {
        header.push("cycle ms".to_owned());
        header.push("drafts pay above".to_owned());
        header.extend(lengths.iter().map(|length| format!("tok/s at {length} accepted")));
    }
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut table = Table::new(&header);
    for (row, tokens) in answer.rows.iter().zip(&answer.tokens) {
        let mut cells = vec![
            row.title.clone(),
            short(tokens.decode_ms),
            percent(tokens.share),
            with_range(tokens.decode_tok_per_s),
        ];
        if let Some(drafted) = &tokens.drafted {
            cells.push(short(drafted.cycle_ms));
            cells.push(format!("{:.2}", drafted.break_even));
            cells.extend(drafted.at.iter().map(|at| with_range(at.1)));
        }
        table.row(cells);
    }
    table
}

fn batches(answer: &StepAnswer) -> Table {
    let names: Vec<String> =
        answer.batches.iter().map(|(users, _)| format!("{users} users")).collect();
    let mut header = vec!["tok/s of all, decode, at most"];
    header.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for (index, row) in answer.rows.iter().enumerate() {
        let mut cells = vec![row.title.clone()];
        cells.extend(answer.batches.iter().map(|(_, rates)| short(rates[index])));
        table.row(cells);
    }
    table
}

fn prefill(out: &mut String, answer: &StepAnswer) {
    if let Some((chunk, ms, rate)) = answer.prefill {
        let (chunk, rate) = (format_thousands(chunk), format_thousands(rate.round() as u64));
        let _ = writeln!(
            out,
            "\nprefill: {} ms of calls a chunk of {chunk} tokens by what NCCL takes: at most {rate} tok/s",
            short(ms)
        );
    }
    for (bus, rate) in &answer.bounds {
        let rate = format_thousands(rate.round() as u64);
        let _ = writeln!(out, "prefill at {bus} GB/s of bus bandwidth: at most {rate} tok/s");
    }
}
