//! What NCCL would choose: what it believes of the machine, what it takes at each size, what that
//! gives, and what would be better.

use std::fmt::Write;

use super::number::{percent, short, with_range};
use super::table::{Table, TableFormat};
use crate::algorithm::nccl::Algorithm;
use crate::prediction::CasePrediction;
use crate::selection::nccl::cure::Cure;
use crate::selection::nccl::graph::Graph;
use crate::selection::nccl::system::LinkKind;
use crate::selection::nccl::transport::Hop;
use crate::selection::nccl::{Setup, Version};
use crate::sweep::choose::{Candidate, Choosing, Chosen};
use crate::sweep::environments::Environment;

/// A choice that costs less than this is not worth a word.
const LOSS_MIN: f64 = 0.05;

/// The whole page; `all`: with every algorithm and protocol of NCCL at every size.
pub fn page(
    choosing: &Choosing<'_>,
    sizes: &[Chosen],
    environments: &[Environment],
    cure: Option<&Cure>,
    all: bool,
) -> String {
    let mut out = heading(choosing, cure);
    out.push('\n');
    out.push_str(&takes(sizes).write(TableFormat::Text));
    out.push('\n');
    out.push_str(&three_numbers(sizes).write(TableFormat::Text));
    let shown =
        if all { "of any library" } else { "of those on the first screen (--all: of any library)" };
    let _ =
        writeln!(out, "wires allow: no schedule can be faster. best here: the fastest {shown}.");
    if !environments.is_empty() {
        out.push('\n');
        out.push_str(&by_environment(sizes, environments).write(TableFormat::Text));
    }
    if all {
        for size in sizes {
            let _ = write!(out, "\nNCCL at {} B\n", size.bytes);
            out.push_str(&candidates(size).write(TableFormat::Text));
        }
    }
    out.push_str(&advice(choosing, sizes, cure, all));
    out
}

fn heading(choosing: &Choosing<'_>, cure: Option<&Cure>) -> String {
    let setup = choosing.setup;
    let (name, gpus) = (&choosing.machine.topology.name, choosing.options.gpus.len());
    let title = choosing.collective.title();
    let mut out = format!("{name}: NCCL {} on {gpus} GPUs, {title}\n", setup.version);
    let _ = writeln!(out, "  believes  {}", rates(setup));
    if cure.is_some() && !setup.graphs.ring.fallback {
        out.push_str("  cured     its own search fails; channels as the graph file has them\n");
    }
    let _ = writeln!(out, "  rings     {}", graph(&setup.graphs.ring, &setup.graphs.ring));
    if !setup.graphs.tree.channels.is_empty() {
        let _ = writeln!(out, "  trees     {}", graph(&setup.graphs.tree, &setup.graphs.ring));
    }
    if let Some(nvls) = &setup.graphs.nvls {
        let count = nvls.channels.len();
        let _ = writeln!(out, "  NVLS      {count} heads at {} GB/s", nvls.bw_intra);
    }
    let _ = writeln!(out, "  channels  {} of the communicator", setup.channels);
    let hops: Vec<&Hop> = setup.ring_hops.first().into_iter().flatten().collect();
    let mut told: Vec<String> = Vec::new();
    for hop in &hops {
        let name = hop.transport.name(&setup.system);
        let same = |other: &&&Hop| other.transport == hop.transport && other.reason == hop.reason;
        let alike: Vec<String> =
            hops.iter().filter(same).map(|other| format!("{}>{}", other.from, other.to)).collect();
        let line = format!("{} via {name}: {}", alike.join(" "), hop.reason);
        if !told.contains(&line) {
            told.push(line);
        }
    }
    for (index, line) in told.iter().enumerate() {
        let _ = writeln!(out, "  {}{line}", if index == 0 { "hops      " } else { "          " });
    }
    if setup.version > Version::NEWEST {
        let newest = Version::NEWEST;
        let _ = writeln!(out, "  note      newer than any known here: taken as NCCL {newest}");
    }
    let assumed = setup.inventory.assumed.iter().chain(&setup.graphs.not_modelled);
    for line in assumed {
        let _ = writeln!(out, "  assumed   {line}");
    }
    for (name, reason) in &setup.settings.without_effect {
        let _ = writeln!(out, "  note      {name} changes nothing here: {reason}");
    }
    out
}

/// The rates that NCCL believes in, by kind of link.
fn rates(setup: &Setup) -> String {
    let kinds = [(LinkKind::Nvl, "NVLink"), (LinkKind::Pci, "PCIe"), (LinkKind::Sys, "CPU to CPU")];
    let of = |kind: LinkKind| {
        let mut rates: Vec<f32> = setup
            .system
            .links
            .iter()
            .filter(|link| link.kind == kind)
            .map(|link| link.gb_per_s)
            .collect();
        rates.sort_by(f32::total_cmp);
        rates.dedup();
        let told = rates.iter().map(|&rate| short(f64::from(rate)));
        told.collect::<Vec<String>>().join(" and ")
    };
    let told = kinds.map(|(kind, name)| (name, of(kind)));
    let told = told.iter().filter(|(_, rates)| !rates.is_empty());
    told.map(|(name, rates)| format!("{name} {rates} GB/s")).collect::<Vec<String>>().join(", ")
}

fn graph(graph: &Graph, ring: &Graph) -> String {
    let (count, rate) = (graph.channels.len(), graph.bw_intra);
    let kind = graph.type_intra.name();
    let plural = if count == 1 { "channel" } else { "channels" };
    if graph.fallback {
        return format!(
            "search fails: falls back to the order of ranks, {count} {plural} at {rate} GB/s ({kind})"
        );
    }
    let orders = if graph.channels.iter().all(|order| *order == graph.channels[0]) {
        let order: Vec<String> = graph.channels[0].iter().map(u32::to_string).collect();
        if graph == ring || graph.channels[0] != ring.channels[0] {
            format!(", order {}", order.join(" "))
        } else {
            String::new()
        }
    } else {
        ", orders differ by channel".to_owned()
    };
    format!("{count} {plural} at {rate} GB/s, {kind}{orders}")
}

/// What NCCL takes, and the best that it could.
fn takes(sizes: &[Chosen]) -> Table {
    let header = [
        "size",
        "NCCL takes",
        "ch",
        "thr",
        "it says, us",
        "gives, us (80 %)",
        "best setting",
        "us",
        "sure",
    ];
    let mut table = Table::new(&header).left(1).left(6);
    for size in sizes {
        let taken = &size.candidates[size.taken];
        let best = size.best_of_nccl.map(|at| &size.candidates[at]);
        let better = best.and_then(|best| best.simulated.as_ref());
        let same = size.best_of_nccl == Some(size.taken);
        table.row(vec![
            size.bytes.to_string(),
            name(taken),
            size.plan.channels.to_string(),
            size.plan.threads.to_string(),
            short(f64::from(size.plan.choice.time_us)),
            gives(taken),
            best.filter(|_| !same).map_or_else(String::new, name),
            better.filter(|_| !same).map_or_else(String::new, |best| short(best.time_us.value)),
            better
                .filter(|_| !same)
                .and_then(|best| size.chance_of(best))
                .map_or_else(String::new, percent),
        ]);
    }
    table
}

/// What the wires allow, what the best algorithm gives, what NCCL's choice gives.
fn three_numbers(sizes: &[Chosen]) -> Table {
    let header =
        ["size", "wires allow, us", "best here", "us (80 %)", "NCCL's choice, us", "times best"];
    let mut table = Table::new(&header).left(2);
    for size in sizes {
        let (best, taken) = (size.best(), size.taken_prediction());
        let us = |case: &CasePrediction| case.time_us.value;
        table.row(vec![
            size.bytes.to_string(),
            short(size.bound.time.as_us()),
            best.map_or_else(String::new, |best| marked(best, &best.title)),
            best.map_or_else(String::new, |best| with_range(best.time_us)),
            taken.map_or_else(|| "not modelled".to_owned(), |taken| short(us(taken))),
            best.zip(taken)
                .map_or_else(String::new, |(best, taken)| format!("{:.1}", us(taken) / us(best))),
        ]);
    }
    table
}

/// What variables alone would do, which a user can try at once.
fn by_environment(sizes: &[Chosen], environments: &[Environment]) -> Table {
    let sizes: Vec<String> = sizes.iter().map(|size| format!("{} B", size.bytes)).collect();
    let mut header = vec!["us with these variables, no file needed"];
    header.extend(sizes.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for environment in environments {
        let own = environment.variables.is_empty();
        let mut row = vec![if own { "as it is" } else { &environment.variables }.to_owned()];
        row.extend(environment.sizes.iter().map(|case| match case {
            Some(case) => marked(case, &short(case.time_us.value)),
            None => "not modelled".to_owned(),
        }));
        table.row(row);
    }
    table
}

fn candidates(size: &Chosen) -> Table {
    let header = ["", "NCCL says, us", "gives, us (80 %)", "ch", "thr", "not taken because"];
    let mut table = Table::new(&header).left(5);
    for (index, candidate) in size.candidates.iter().enumerate() {
        let row = &candidate.price.row;
        let absent = candidate.price.time_us.is_none() && row.algorithm != Algorithm::Nvls;
        if absent {
            continue;
        }
        let reason = match &row.off {
            Some(reason) => reason.clone(),
            None if index == size.taken => "taken".to_owned(),
            None => "slower by NCCL's model".to_owned(),
        };
        table.row(vec![
            name(candidate),
            candidate.price.time_us.map_or_else(String::new, |us| short(f64::from(us))),
            gives(candidate),
            candidate.channels.to_string(),
            candidate.threads.to_string(),
            reason,
        ]);
    }
    table
}

fn name(candidate: &Candidate) -> String {
    match &candidate.simulated {
        Some(prediction) => marked(prediction, &prediction.title),
        None => {
            let row = &candidate.price.row;
            format!("{} {}", row.algorithm.name(), row.protocol.name())
        }
    }
}

/// With the mark of declared regimes.
fn marked(prediction: &CasePrediction, title: &str) -> String {
    let mark = if prediction.regimes.is_empty() { "" } else { " *" };
    format!("{title}{mark}")
}

fn gives(candidate: &Candidate) -> String {
    match (&candidate.simulated, &candidate.not_simulated) {
        (Some(prediction), _) => with_range(prediction.time_us),
        (None, Some(reason)) => reason.clone(),
        (None, None) => String::new(),
    }
}

/// What a user can do about it.
fn advice(choosing: &Choosing<'_>, sizes: &[Chosen], cure: Option<&Cure>, all: bool) -> String {
    let mut out = String::new();
    // Only where a mark stands in a table.
    let marked = |size: &Chosen| {
        let own = size.best_of_nccl.is_some_and(|at| struck(&size.candidates[at]));
        let listed = all && size.candidates.iter().any(struck);
        own || listed || [size.taken_prediction(), size.best()].into_iter().flatten().any(regime)
    };
    if sizes.iter().any(marked) {
        out.push_str("  * declared regime of this machine's file\n");
    }
    if let Some(cure) = cure.filter(|_| choosing.setup.graphs.ring.fallback) {
        let speed = cure.slowest_trial;
        let _ = writeln!(
            out,
            "search: NCCL believes {} GB/s between the CPUs and tries no ring below {speed} GB/s: none is found. It\n  \
             then takes 0.1 GB/s as true, and prices LL out. --write-graph FILE writes rings for\n  \
             NCCL_GRAPH_FILE=FILE; --cured shows what NCCL takes with them.",
            cure.believed
        );
    }
    let losses: Vec<f64> = sizes
        .iter()
        .filter_map(|size| {
            let best = size.best_of_nccl.and_then(|at| size.candidates[at].simulated.as_ref())?;
            let taken = size.taken_prediction()?;
            Some(taken.time_us.value / best.time_us.value - 1.0)
        })
        .collect();
    let worst = losses.iter().copied().fold(0.0, f64::max);
    if losses.is_empty() {
        out.push_str("NCCL's choices are not simulated here: no loss can be told.\n");
    } else if worst > LOSS_MIN {
        let _ = writeln!(
            out,
            "NCCL loses up to {} by its choice: --write-tuner FILE writes the best settings for its tuner plugin.",
            percent(worst)
        );
    } else {
        let some = if losses.len() < sizes.len() { ", where they are simulated" } else { "" };
        let _ = writeln!(
            out,
            "NCCL's choices are within {} of its best settings{some}.",
            percent(LOSS_MIN),
        );
    }
    out
}

fn struck(candidate: &Candidate) -> bool {
    candidate.simulated.as_ref().is_some_and(regime)
}

fn regime(prediction: &CasePrediction) -> bool {
    !prediction.regimes.is_empty()
}
