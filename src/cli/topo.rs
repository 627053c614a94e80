//! `simulate topo`: machines.

use std::fmt::Write;
use std::path::Path;

use super::arguments::{ConstantsFrom, Topo};
use super::load;
use super::output::{Failure, Outcome, Output};
use crate::error::{Error, Result};
use crate::fabric::{CompileOptions, Fabric};
use crate::input::{embedded, topology_json};
use crate::report::assumptions::of_the_machine;
use crate::report::dot::dot;
use crate::report::machine::head;
use crate::report::plot::machine::unloaded;
use crate::report::table::{Table, TableFormat};
use crate::topology::Topology;

/// Shows, lists or checks.
pub(super) fn run(command: &Topo, output: &mut Output) -> std::result::Result<Outcome, Failure> {
    let program = load::calibration(&ConstantsFrom::default())?;
    match command {
        Topo::List => output.text(&list()?)?,
        Topo::Show { topo, assume, json, assumptions, constants, out } => {
            let form = out.as_deref().map(form).transpose()?;
            let calibration = load::calibration(constants)?;
            let loaded = load::machine(&load::named(topo, assume), &calibration)?;
            if *json {
                output.text(&topology_json::write(&loaded.topology)?)?;
                return Ok(Outcome::Done);
            }
            let topology = loaded.topology;
            let fabric = Fabric::compile(&topology, &calibration, CompileOptions::default())?;
            let form = form.unwrap_or(Form::Text);
            let mut text = written(form, &topology, &fabric)?;
            if form != Form::Text {
                output.plain(&text, out.as_deref())?;
                return Ok(Outcome::Done);
            }
            if *assumptions {
                text.push('\n');
                text.push_str(&of_the_machine(&topology));
            }
            output.titled(&text, out.as_deref())?;
        }
        Topo::Convert { topo, assume, out } => {
            let ending = out.as_deref().filter(|file| Path::new(file).extension().is_some());
            let form = ending.map_or(Ok(Form::Json), form)?;
            let topology = load::machine(&load::named(topo, assume), &program)?.topology;
            let text = match form {
                Form::Json => topology_json::write(&topology)?,
                _ => {
                    let options = CompileOptions::default();
                    written(form, &topology, &Fabric::compile(&topology, &program, options)?)?
                }
            };
            output.plain(&text, out.as_deref())?;
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

/// How a machine is written.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Dot,
    Svg,
}

/// Endings of files, with how a machine is written into them.
const FORMS: [(&str, Form); 5] = [
    ("txt", Form::Text),
    ("json", Form::Json),
    ("dot", Form::Dot),
    ("gv", Form::Dot),
    ("svg", Form::Svg),
];

/// The form that a file's name asks for.
fn form(file: &str) -> Result<Form> {
    let ending = Path::new(file).extension().and_then(|ending| ending.to_str()).unwrap_or("");
    let found = FORMS.iter().find(|entry| entry.0.eq_ignore_ascii_case(ending));
    found.map(|entry| entry.1).ok_or_else(|| {
        let known: Vec<String> = FORMS.iter().map(|entry| format!(".{}", entry.0)).collect();
        let message = format!("{file}: the form of a machine is told by the file's ending");
        Error::request(message, format!("known: {}", known.join(", ")))
    })
}

/// A machine in one of the forms.
fn written(form: Form, topology: &Topology, fabric: &Fabric) -> Result<String> {
    Ok(match form {
        Form::Text => show(topology, fabric),
        Form::Json => topology_json::write(topology)?,
        Form::Dot => dot(topology),
        Form::Svg => unloaded(topology, fabric).svg(),
    })
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
