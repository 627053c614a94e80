//! The lines of the first screen at length.

use std::fmt::Write;

use super::number::{short, with_range};
use crate::algorithm::barrier::FlagPlace;
use crate::prediction::barrier::BarrierTimes;
use crate::prediction::{CasePrediction, Waterfall};
use crate::sweep::{Answer, Question};
use crate::units::format_thousands;

/// How each figure came about.
pub fn explain(question: &Question<'_>, answer: &Answer) -> String {
    let mut out = String::new();
    if let Some(waterfall) = &answer.waterfall {
        sum(&mut out, waterfall, question.options.gpus.len());
    }
    for pass in question.scenario.passes().filter(|_| question.comparable()) {
        readings(&mut out, answer, pass);
    }
    own_choice(&mut out, question, answer);
    cases(&mut out, answer);
    checks(&mut out, answer);
    out
}

/// What a barrier alone takes by the memory that holds its flags.
pub fn barrier(times: &BarrierTimes) -> String {
    let rows = [
        (FlagPlace::Waiting, Some(times.waiting_us)),
        (FlagPlace::Arrived, Some(times.arrived_us)),
        (FlagPlace::Host, times.host_us),
    ];
    let mut out =
        format!("barrier of {} GPUs alone, {} blocks each, us:\n", times.gpus, times.blocks);
    for (place, us) in rows {
        let name = FlagPlace::ALL.iter().find(|entry| entry.0 == place).map_or("", |entry| entry.1);
        let _ = match us {
            Some(us) => writeln!(out, "  {us:>8.2}  flags in the {name}"),
            None => writeln!(out, "         -  flags in the {name}: this machine has none"),
        };
    }
    out
}

fn sum(out: &mut String, waterfall: &Waterfall, ranks: usize) {
    let bytes = format_thousands(waterfall.bytes);
    let _ = writeln!(out, "one-stage pull of {bytes} B, us:");
    for (index, term) in waterfall.terms.iter().enumerate() {
        let what = if index == 0 {
            format!("{} x {bytes} B {}", ranks - 1, term.name)
        } else {
            term.name.clone()
        };
        let _ = writeln!(out, "  {:>8.2}  {what}", term.us);
    }
    let _ = writeln!(out, "  {:>8.2}  predicted\n", waterfall.total_us());
}

/// What a reported pass time may mean, and what is predicted under each meaning.
fn readings(out: &mut String, answer: &Answer, pass: &crate::workload::Pass) {
    let Some(index) = answer.steps.iter().position(|step| step.step.name == pass.step) else {
        return;
    };
    let calls = f64::from(answer.steps[index].step.calls);
    let each = pass.ms * 1e3 / calls;
    let of = |wanted: &dyn Fn(&CasePrediction) -> bool| {
        answer.rows.iter().map(|row| &row[index]).find(|case| wanted(case))
    };
    let Some(case) = of(&|case| case.algorithm == pass.algorithm) else {
        return;
    };
    let ms = case.time_us.value * calls / 1e3;
    let rest = pass.ms - ms;
    let _ = writeln!(
        out,
        "\"{} ms a {} pass\" ({}), {each:.0} us a call:\n\
         \x20 as the whole pass: all-reduce is {} ms of it, {} ms are compute and gaps\n\
         \x20 as kernel time: {} us are the wires and the kernel, {} us waiting for the last rank",
        pass.ms,
        pass.step,
        pass.condition,
        short(ms),
        short(rest),
        short(case.time_us.value),
        short(each - case.time_us.value),
    );
    match of(&|case| case.title.contains("host memory")) {
        Some(host) => {
            let us = host.time_us.value;
            let _ = writeln!(
                out,
                "  as a slow transport: far pairs through host memory take {} us, {} ms a pass; \
                 {} us stay unexplained\n",
                short(us),
                short(us * calls / 1e3),
                short(each - us),
            );
        }
        None => out.push_str("  as a slow transport: no pair of this machine would use one\n\n"),
    }
}

/// What NCCL takes by itself, and whether the reported steps have room for it.
fn own_choice(out: &mut String, question: &Question<'_>, answer: &Answer) {
    for (pick, step) in answer.picks.iter().zip(&answer.steps) {
        let Some(case) = &pick.prediction else { continue };
        let ms = case.time_us.value * f64::from(step.step.calls) / 1e3;
        let _ = writeln!(
            out,
            "NCCL by itself takes {} for {} ({} {} of {} threads; it expects {} us): {} us a call, \
             {} ms a step",
            case.title,
            step.step.name,
            pick.plan.channels,
            if pick.plan.channels == 1 { "channel" } else { "channels" },
            pick.plan.threads,
            short(f64::from(pick.plan.choice.time_us)),
            short(case.time_us.value),
            short(ms),
        );
        let told = question.scenario.throughputs().filter(|told| {
            question.comparable() && told.algorithm == "ring" && told.step == step.step.name
        });
        for told in told {
            let step_ms = 1e3 / told.tok_per_s;
            let _ = writeln!(
                out,
                "    a step at {} tok/s lasts {step_ms:.2} ms and would have {:.2} ms for all else",
                told.tok_per_s,
                step_ms - ms,
            );
        }
    }
    if !answer.picks.is_empty() {
        out.push('\n');
    }
}

fn cases(out: &mut String, answer: &Answer) {
    for row in &answer.rows {
        for case in row {
            let rounded = if case.bytes_rounded == case.bytes {
                String::new()
            } else {
                format!(", rounded up to {} B", format_thousands(case.bytes_rounded))
            };
            let calls = if case.repeats {
                "repeat exactly".to_owned()
            } else if case.calls_simulated > 2 {
                format!("last two differ by {:.1} %, mean taken", case.spread * 100.0)
            } else {
                "mean after the first".to_owned()
            };
            let extrapolated =
                if case.extrapolated { ", extrapolated from 2 and 4 MiB" } else { "" };
            let _ = writeln!(
                out,
                "{} {} B{rounded}: {} us; {} calls simulated, {calls}{extrapolated}; {} events, {} \
                 packet-hops; {}",
                case.title,
                format_thousands(case.bytes),
                with_range(case.time_us),
                case.calls_simulated,
                format_thousands(case.events),
                format_thousands(case.hops),
                case.bottleneck.label(),
            );
            for regime in &case.regimes {
                let _ = writeln!(out, "    declared regime applies: {regime}");
            }
        }
    }
}

fn checks(out: &mut String, answer: &Answer) {
    for check in &answer.nearby {
        let figure = &check.figure;
        let note =
            if figure.note.is_empty() { String::new() } else { format!(" ({})", figure.note) };
        let _ = writeln!(
            out,
            "measured nearby: {} {} us{note}, predicted {} us\n    source: {}",
            figure.what,
            short(figure.us),
            short(check.predicted_us),
            figure.source
        );
    }
}
