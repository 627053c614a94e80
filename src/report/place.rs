//! Where to put ranks and uplinks, as text.

use std::fmt::Write;

use super::compare::change;
use super::number::{short, signed_percent, with_range};
use super::table::{Table, TableFormat};
use crate::prediction::Machine;
use crate::sweep::grouping::Groups;
use crate::sweep::placement::{Placed, Placement, Winner};
use crate::sweep::wiring::{Wired, Wirings};
use crate::topology::Topology;
use crate::units::{format_gpus, format_size, format_thousands};

/// Ring order, islands, groups, and the fastest implementation by size.
pub fn page(
    machine: &Machine,
    bytes: u64,
    placement: &Placement,
    (islands, groups): (Option<&Groups>, Option<&Groups>),
    table: &[Winner],
) -> String {
    let order = |placed: &Placed| {
        format!("{:>8} us  --gpus {}", short(placed.us), format_gpus(&placed.gpus))
    };
    let how = match placement.exact {
        true => "every choice and order of GPUs was tried",
        false => "exchanges of two ranks from the own order on; there may be better",
    };
    let (ranks, size) = (placement.own.gpus.len(), format_thousands(bytes));
    let name = &machine.topology.name;
    let mut out =
        format!("{name}: ring of {ranks} ranks, {size} B ({} orders; {how})\n", placement.tried);
    let named = [("own", &placement.own), ("best", &placement.best), ("worst", &placement.worst)];
    for (word, placed) in named {
        let _ = writeln!(out, "  {word:<6}{}", order(placed));
    }
    if let Some(islands) = islands {
        let _ = write!(out, "\nislands of ranks, the fastest schedule by islands, {size} B");
        grouped(&mut out, islands, |groups| {
            let islands: Vec<String> = groups.iter().map(|ranks| format_gpus(ranks)).collect();
            format!("islands={}", islands.join("/"))
        });
    }
    if let Some(groups) = groups {
        let count = groups.own.groups.len();
        let _ = write!(
            out,
            "\n{count} groups of {ranks} ranks, the slowest of them, each alone, {size} B"
        );
        grouped(&mut out, groups, |groups| {
            let gpus: Vec<String> =
                groups.iter().map(|gpus| format!("--gpus {}", format_gpus(gpus))).collect();
            gpus.join(" | ")
        });
    }
    out.push_str("\nfastest by size, in the best order\n");
    let mut rows = Table::new(&["size", "us", "fastest", "second", "slower by"]).left(2).left(3);
    for winner in table {
        let second = winner.second.as_ref();
        let slower = second.map(|second| signed_percent(second.1 / winner.best.1 - 1.0));
        rows.row(vec![
            format_size(winner.bytes),
            short(winner.best.1),
            winner.best.0.clone(),
            second.map_or(String::new(), |second| second.0.clone()),
            slower.unwrap_or_default(),
        ]);
    }
    out.push_str(&rows.write(TableFormat::Text));
    out
}

/// Own, best and worst groups.
fn grouped(out: &mut String, found: &Groups, written: impl Fn(&[Vec<u32>]) -> String) {
    let how = match found.exact {
        true => "every one was tried",
        false => "exchanges of two between groups, from the own ones on; there may be better",
    };
    let _ = writeln!(out, " ({} groupings; {how})", found.tried);
    for (word, one) in [("own", &found.own), ("best", &found.best), ("worst", &found.worst)] {
        let _ = writeln!(
            out,
            "  {word:<6}{:>8} us  {}  {}",
            short(one.us),
            written(&one.groups),
            one.by
        );
    }
}

/// Where uplinks may go, best first, each with the edits that make it.
pub fn wirings(topology: &Topology, ranks: usize, bytes: u64, found: &Wirings) -> String {
    let how = match found.exact {
        true => "every one was tried",
        false => "one uplink after another, from today and from flat on; there may be better",
    };
    let mut out = format!(
        "{}: uplinks of its switches, {ranks} ranks, {} B by the fastest implementation\n\
         {} wirings that differ by more than names ({how}; by flows, the best by packets)\n",
        topology.name,
        format_thousands(bytes),
        found.tried
    );
    let header = ["", "us/call (80 %)", "against today (80 %)", "by", "wiring", "alike"];
    let mut table = Table::new(&header).left(1).left(2).left(3).left(4);
    let row = |number: usize, wired: &Wired| {
        let today = number == 0;
        let alike = if wired.alike == 0 { String::new() } else { format!("+{}", wired.alike) };
        vec![
            if today { String::new() } else { number.to_string() },
            with_range(wired.time_us),
            if today { "as it is".to_owned() } else { change(wired.change) },
            wired.by.clone(),
            wired.family.word().to_owned(),
            alike,
        ]
    };
    let all: Vec<&Wired> = std::iter::once(&found.now).chain(&found.best).collect();
    all.iter().enumerate().for_each(|(number, wired)| table.row(row(number, wired)));
    out.push_str(&table.write(TableFormat::Text));
    for (number, wired) in all.iter().enumerate().skip(1) {
        let _ = writeln!(out, "{number}  --what-if \"{}\"", wired.edits.join("; "));
    }
    if let Some(reason) = &found.reason {
        let _ = writeln!(out, "{} more cannot be built, such as: {reason}", found.refused);
    }
    if !topology.regimes.is_empty() {
        out.push_str(
            "Declared regimes are taken to hold after an edit; --no-regimes leaves them out.\n",
        );
    }
    out.push_str(
        "alike: so many others make no difference to these calls. Root ports that the file does not \
         have (root:..) are taken to be free.\n",
    );
    out
}
