//! `simulate topo`: machines.

use std::fmt::Write;

use super::arguments::{ConstantsFrom, Topo};
use super::load;
use super::output::{Failure, Outcome, Output};
use crate::error::Result;
use crate::fabric::{CompileOptions, Fabric};
use crate::input::{embedded, topology_json};
use crate::report::assumptions::of_the_machine;
use crate::report::machine::head;
use crate::report::table::{Table, TableFormat};
use crate::topology::Topology;

/// Shows, lists or checks.
pub(super) fn run(command: &Topo, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let program = load::calibration(&ConstantsFrom::default())?;
    match command {
        Topo::List => output.text(&list()?)?,
        Topo::Show { topo, assume, json, assumptions, constants } => {
            let calibration = load::calibration(constants)?;
            let loaded = load::machine(&load::named(topo, assume), &calibration)?;
            if *json {
                output.text(&topology_json::write(&loaded.topology)?)?;
                return Ok(Outcome::Done);
            }
            let topology = loaded.topology;
            let fabric = Fabric::compile(&topology, &calibration, CompileOptions::default())?;
            let mut text = show(&topology, &fabric);
            if *assumptions {
                text.push('\n');
                text.push_str(&of_the_machine(&topology));
            }
            output.titled(&text, None)?;
        }
        Topo::Convert { topo, assume, out } => {
            let loaded = load::machine(&load::named(topo, assume), &program)?;
            output.plain(&topology_json::write(&loaded.topology)?, out.as_deref())?;
        }
        Topo::Check { topos } => {
            for name in topos {
                let topology = load::topology(name, &program)?;
                Fabric::compile(&topology, &program, CompileOptions::default())?;
                output.text(&format!("{name}: sound\n"))?;
            }
        }
    }
    Ok(Outcome::Done)
}

fn list() -> Result<String> {
    let mut out = String::new();
    for machine in embedded::MACHINES {
        let topology = topology_json::parse(&machine.file_name(), machine.text)?;
        let _ = writeln!(out, "{:<28}{}", machine.name, topology.title);
    }
    Ok(out)
}

fn show(topology: &Topology, fabric: &Fabric) -> String {
    let mut out = head(topology, fabric);
    if fabric.gpu_count > 1 {
        out.push('\n');
        out.push_str(&matrix(topology, fabric.gpu_count));
    }
    for regime in &topology.regimes {
        let _ = writeln!(out, "declared regime: {} ({} GB/s)", regime.name, regime.cap_gb_per_s);
    }
    out
}

/// As `nvidia-smi topo -m`.
fn matrix(topology: &Topology, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|gpu| format!("GPU{gpu}")).collect();
    let mut header = vec![""];
    header.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&header);
    for (a, name) in names.iter().enumerate() {
        let mut row = vec![name.clone()];
        row.extend(
            (0..count).map(|b| {
                if a == b { "X".to_owned() } else { topology.path_type(a, b).to_string() }
            }),
        );
        table.row(row);
    }
    table.write(TableFormat::Text)
}
