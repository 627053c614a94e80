//! Which constant and which link matter most to a call: each is moved alone, and the call run again.

use serde::Serialize;

use super::in_parallel;
use super::plan::{Plan, Terms};
use crate::error::{Error, Result};
use crate::fabric::calibration::relative_uncertainty;
use crate::fabric::{Calibration, DeviceClass};
use crate::topology::{LinkKind, NodeKind, Topology};
use crate::workload::Step;

/// What was moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Moved {
    /// A constant, by one standard deviation to the slower side: its share of the value.
    Constant {
        /// Class and device of which it is.
        device: String,
        /// Its name.
        name: String,
        /// By how much, relative.
        by: f64,
    },
    /// A link, to half of its lanes or links.
    Link {
        /// The two nodes.
        between: String,
        /// Before and after, such as `Gen5 x16 => Gen5 x8`.
        to: String,
    },
}

/// What a move does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// What was moved.
    pub moved: Moved,
    /// Time of the call after over before, less one.
    pub change: f64,
}

/// A call and what matters to it.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    /// The step.
    pub step: Step,
    /// The implementation: the fastest.
    pub title: String,
    /// A call, us.
    pub us: f64,
    /// Every move, the one that changes most first.
    pub effects: Vec<Effect>,
}

/// Moves every constant that the machine is made of and every link, one at a time.
///
/// # Errors
/// Those of the machine, the algorithms and the engine.
pub fn sensitivity(
    plan: &Plan,
    step: &Step,
    calibration: &Calibration,
    terms: Terms,
) -> Result<Sensitivity> {
    let found = plan.clone().prepared(calibration, terms)?.fastest(step.bytes)?;
    let none_left = || Error::request("no algorithm is left", "drop --algo or --proto");
    let (case, us) = found.ok_or_else(none_left)?;
    let mut moves: Vec<(Moved, Plan, Option<Calibration>)> = Vec::new();
    for (moved, slower) in constants(&plan.topology, calibration)? {
        moves.push((moved, plan.clone(), Some(slower)));
    }
    for (moved, topology) in links(&plan.topology) {
        moves.push((moved, Plan { topology, ..plan.clone() }, None));
    }
    let mut effects = in_parallel(&moves, |(moved, plan, slower)| {
        let prepared = plan.clone().prepared(slower.as_ref().unwrap_or(calibration), terms)?;
        let after = case.nominal_us(&prepared.machine, step.bytes, &prepared.options)?;
        Ok(Effect { moved: moved.clone(), change: after / us - 1.0 })
    })?;
    // Equal changes stay in the order of the moves.
    effects.sort_by(|a, b| b.change.abs().total_cmp(&a.change.abs()));
    Ok(Sensitivity { step: step.clone(), title: case.title.clone(), us, effects })
}

/// Every constant of the machine's devices, of links and of libraries, moved alone.
fn constants(topology: &Topology, calibration: &Calibration) -> Result<Vec<(Moved, Calibration)>> {
    let mut devices: Vec<(DeviceClass, String)> = Vec::new();
    let mut add = |class: DeviceClass, name: &str| -> Result<()> {
        let mut at = Some(name.to_owned());
        while let Some(name) = at {
            if devices.contains(&(class, name.clone())) {
                break;
            }
            devices.push((class, name.clone()));
            at = calibration.device(class, &name)?.like.clone();
        }
        Ok(())
    };
    for node in &topology.nodes {
        match &node.kind {
            NodeKind::Gpu(gpu) => add(DeviceClass::Gpu, &gpu.model)?,
            NodeKind::PcieSwitch(switch) => add(DeviceClass::Switch, &switch.model)?,
            NodeKind::Socket(socket) => add(DeviceClass::Socket, &socket.model)?,
            NodeKind::NvSwitch(switch) => add(DeviceClass::NvSwitch, &switch.model)?,
            NodeKind::HostBridge(_) | NodeKind::HostMemory(_) | NodeKind::Nic(_) => {}
        }
    }
    for class in [DeviceClass::Link, DeviceClass::Library] {
        calibration.names(class).into_iter().try_for_each(|name| add(class, name))?;
    }
    let mut moves = Vec::new();
    for (class, device, name, constant) in calibration.iter() {
        let timed = matches!(constant.unit.as_str(), "ns" | "GB/s");
        if !timed || !devices.contains(&(class, device.to_owned())) {
            continue;
        }
        let by = relative_uncertainty(constant.confidence).exp();
        let factor = if constant.unit == "GB/s" { 1.0 / by } else { by };
        let mut slower = calibration.clone();
        slower.set(class, device, name, constant.value * factor)?;
        let device = format!("{} {device}", class.word());
        moves.push((Moved::Constant { device, name: name.to_owned(), by: factor - 1.0 }, slower));
    }
    Ok(moves)
}

/// Every link at half of its width, alone; what has one lane or link stays.
fn links(topology: &Topology) -> Vec<(Moved, Topology)> {
    let mut moves = Vec::new();
    for (at, link) in topology.links.iter().enumerate() {
        let mut narrow = link.kind;
        let whole = match &mut narrow {
            LinkKind::Pcie(pcie) => &mut pcie.width,
            LinkKind::Nvlink(bond) => &mut bond.links,
            LinkKind::Xgmi(bond) => &mut bond.links,
            LinkKind::Upi(bond) => &mut bond.links,
            LinkKind::Network(_) => continue,
        };
        if *whole < 2 {
            continue;
        }
        *whole /= 2;
        let name = |id: crate::topology::NodeId| topology.nodes[id.index()].id.clone();
        let between = format!("{} - {}", name(link.a), name(link.b));
        let to = format!("{} => {}", link.kind.label(), narrow.label());
        let mut other = topology.clone();
        other.links[at].kind = narrow;
        moves.push((Moved::Link { between, to }, other));
    }
    moves
}
