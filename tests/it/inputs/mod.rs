//! Files that people already have: read as they are, odd ones with remarks, broken ones refused
//! with the place.

mod broken;
mod fuzz;
mod here;
mod lists;
mod matrix;
mod merged;
mod real;
mod tree;

pub(crate) use here::Root;

use collsim::error::Error;
use collsim::fabric::{Calibration, CompileOptions, Fabric};
use collsim::input::formats::recognise;
use collsim::input::found::build::{Stated, build};
use collsim::input::found::merge::merge;
use collsim::input::found::{Devices, Found};
use collsim::input::render;
use collsim::input::topology_json::{parse, write};
use collsim::topology::link::Pcie;
use collsim::topology::{LinkKind, NodeKind, Topology, checks};

/// What a text says, read as the format that it looks like.
#[track_caller]
pub(crate) fn found(text: &str) -> Found {
    let format = recognise(text).unwrap_or_else(|| panic!("not recognised:\n{text}"));
    (format.read)("sample", text).unwrap_or_else(|error| panic!("{}", render(&error, false)))
}

/// The name of the format that a text looks like.
pub(crate) fn format(text: &str) -> &'static str {
    recognise(text).map_or("none", |format| format.name)
}

/// The machine of several texts, which must be sound, compile, and survive writing and reading.
#[track_caller]
pub(crate) fn machine(texts: &[&str]) -> Topology {
    stated(texts, &Stated::default())
}

/// As [`machine`], with what a person states.
#[track_caller]
pub(crate) fn stated(texts: &[&str], stated: &Stated) -> Topology {
    let all: Vec<Found> = texts.iter().map(|text| found(text)).collect();
    let devices = Devices::embedded().expect("a table");
    let merged = merge(all).unwrap_or_else(|error| panic!("{error}"));
    let topology =
        build(merged, &devices, stated, "sample").unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(checks::check(&topology), []);
    let calibration = Calibration::embedded().expect("embedded");
    Fabric::compile(&topology, &calibration, CompileOptions::default()).expect("a fabric");
    let again = parse("written", &write(&topology).expect("JSON")).expect("reads back");
    assert_eq!(again, topology);
    assert_eq!(rows(&again), rows(&topology));
    assert!(topology.assumptions.iter().all(|a| !a.what.is_empty() && !a.effect.is_empty()));
    topology
}

/// The picture of an error that a text must give.
#[track_caller]
pub(crate) fn refused(text: &str, parts: &[&str]) {
    let format = recognise(text).unwrap_or_else(|| panic!("not recognised:\n{text}"));
    let error = (format.read)("sample", text).expect_err("a fault");
    assert!(matches!(error, Error::Input { .. }), "{error:?}");
    let told = render(&error, false);
    for part in parts {
        assert!(told.contains(part), "no `{part}` in\n{told}");
    }
}

/// The rows of nvidia-smi's matrix, without names.
pub(crate) fn rows(topology: &Topology) -> Vec<String> {
    let count = topology.gpus().len();
    let cell = |a: usize, b: usize| match a == b {
        true => "X".to_owned(),
        false => topology.path_type(a, b).to_string(),
    };
    (0..count).map(|a| (0..count).map(|b| cell(a, b)).collect::<Vec<_>>().join(" ")).collect()
}

/// Numbers of GPUs, switches, NICs, host bridges, sockets.
pub(crate) fn counts(topology: &Topology) -> [usize; 5] {
    let of = |wanted: fn(&NodeKind) -> bool| topology.ids_where(wanted).len();
    [
        of(|kind| matches!(kind, NodeKind::Gpu(_))),
        of(|kind| matches!(kind, NodeKind::PcieSwitch(_))),
        of(|kind| matches!(kind, NodeKind::Nic(_))),
        of(|kind| matches!(kind, NodeKind::HostBridge(_))),
        of(|kind| matches!(kind, NodeKind::Socket(_))),
    ]
}

/// Generation and width of the link up of a node.
#[track_caller]
pub(crate) fn link_up(topology: &Topology, node: &str) -> (u8, u8) {
    let id = topology.find(node).unwrap_or_else(|| panic!("no {node}"));
    let up = topology.links.iter().find_map(|link| match link.kind {
        LinkKind::Pcie(Pcie { generation, width }) if link.a == id => Some((generation, width)),
        _ => None,
    });
    up.unwrap_or_else(|| panic!("{node} has no link up"))
}

/// NVLinks as `a-b xN`.
pub(crate) fn nvlinks(topology: &Topology) -> Vec<String> {
    let each = topology.links.iter().filter_map(|link| match link.kind {
        LinkKind::Nvlink(bond) => {
            Some(format!("{}-{} x{}", topology.id(link.a), topology.id(link.b), bond.links))
        }
        _ => None,
    });
    each.collect()
}

/// An assumption must hold this.
#[track_caller]
pub(crate) fn assumes(topology: &Topology, part: &str) {
    let told: Vec<&str> = topology.assumptions.iter().map(|a| a.what.as_str()).collect();
    assert!(told.iter().any(|what| what.contains(part)), "no `{part}` in {told:#?}");
}

/// No assumption may hold this.
#[track_caller]
pub(crate) fn does_not_assume(topology: &Topology, part: &str) {
    let told: Vec<&str> = topology.assumptions.iter().map(|a| a.what.as_str()).collect();
    assert!(!told.iter().any(|what| what.contains(part)), "`{part}` in {told:#?}");
}
