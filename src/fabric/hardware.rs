//! What parts can do, by the calibration: models that are known, lanes of switches, generations of
//! ports, NVLinks of GPUs. A machine that asks for more cannot be built.

use super::calibration::{Calibration, DeviceClass};
use crate::error::Problem;
use crate::topology::{LinkKind, NodeId, NodeKind, Topology, checks};

/// All that the parts of a machine cannot do.
pub fn faults(topology: &Topology, calibration: &Calibration) -> Vec<Problem> {
    let mut problems = checks::models(topology, &|word: &str| {
        let class = DeviceClass::ALL.iter().find(|entry| entry.1 == word);
        let names: Vec<&str> = match class {
            Some(entry) if entry.0 != DeviceClass::Nic => calibration.names(entry.0),
            // Any network adapter will do as long as it carries no traffic.
            _ => topology.nodes.iter().filter_map(|n| n.kind.model()).map(|m| m.1).collect(),
        };
        names.into_iter().map(str::to_owned).collect()
    });
    problems.extend(checks::lanes(topology, |model| {
        let lanes = calibration.value(DeviceClass::Switch, model, "lanes");
        lanes.ok().map(|lanes| lanes as u32)
    }));
    problems.extend(generations(topology, calibration));
    problems.extend(nvlinks(topology, calibration));
    problems
}

/// Newest PCIe generation of a node's ports; `None` where nothing is known.
fn generation(topology: &Topology, calibration: &Calibration, id: NodeId) -> Option<(u8, String)> {
    let (class, model) = match topology.kind(id) {
        NodeKind::Gpu(gpu) => (DeviceClass::Gpu, &gpu.model),
        NodeKind::PcieSwitch(switch) => (DeviceClass::Switch, &switch.model),
        NodeKind::Nic(nic) => (DeviceClass::Nic, &nic.model),
        NodeKind::HostBridge(_) => match topology.kind(topology.socket_of(id)?) {
            NodeKind::Socket(socket) => (DeviceClass::Socket, &socket.model),
            _ => return None,
        },
        _ => return None,
    };
    let generation = calibration.value(class, model, "pcie_generation").ok()?;
    Some((generation as u8, model.clone()))
}

/// Links that run faster than the port at one of their ends.
fn generations(topology: &Topology, calibration: &Calibration) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, link) in topology.links.iter().enumerate() {
        let LinkKind::Pcie(pcie) = link.kind else {
            continue;
        };
        let slower = [link.a, link.b].into_iter().find_map(|id| {
            let (most, model) = generation(topology, calibration, id)?;
            (pcie.generation > most).then_some((id, most, model))
        });
        if let Some((id, most, model)) = slower {
            let message = format!(
                "Gen{} on `{}`: a port of {model} runs Gen{most} at most",
                pcie.generation,
                topology.id(id)
            );
            let path = format!("links[{index}].kind.pcie.generation");
            problems.push(Problem::new(message, path).help("links train to the slower end"));
        }
    }
    problems
}

/// GPUs with more NVLinks than they have.
fn nvlinks(topology: &Topology, calibration: &Calibration) -> Vec<Problem> {
    let mut problems = Vec::new();
    for id in topology.gpus() {
        let NodeKind::Gpu(gpu) = topology.kind(id) else {
            continue;
        };
        let Ok(most) = calibration.value(DeviceClass::Gpu, &gpu.model, "nvlinks") else {
            continue;
        };
        let of_gpu = topology.links.iter().enumerate().filter_map(|(index, link)| {
            let LinkKind::Nvlink(nvlink) = link.kind else { return None };
            (link.a == id || link.b == id).then_some((index, u32::from(nvlink.links)))
        });
        let of_gpu: Vec<(usize, u32)> = of_gpu.collect();
        let used: u32 = of_gpu.iter().map(|entry| entry.1).sum();
        if let Some(&(last, _)) = of_gpu.last()
            && used > most as u32
        {
            let has = if most == 0.0 { "no NVLink".to_owned() } else { format!("{most} NVLinks") };
            let message =
                format!("`{}` has {has} ({}), its links use {used}", topology.id(id), gpu.model);
            let help = if most == 0.0 {
                let names = calibration.names(DeviceClass::Gpu).into_iter();
                let some = |name: &&str| {
                    calibration.value(DeviceClass::Gpu, name, "nvlinks").is_ok_and(|n| n > 0.0)
                };
                format!("GPUs with NVLink: {}", names.filter(some).collect::<Vec<_>>().join(", "))
            } else {
                format!("{most} for all NVLinks of the GPU together")
            };
            let path = format!("links[{last}].kind.nvlink.links");
            problems.push(Problem::new(message, path).help(help));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_is_known() {
        let calibration = Calibration::embedded().expect("embedded");
        let own = |class: DeviceClass, name: &str, constant: &str| {
            let device = calibration.device(class, name).expect("listed");
            assert!(device.constants.contains_key(constant), "{name}: {constant}");
        };
        for class in [DeviceClass::Gpu, DeviceClass::Switch, DeviceClass::Socket, DeviceClass::Nic]
        {
            for name in calibration.names(class) {
                own(class, name, "pcie_generation");
            }
        }
        calibration
            .names(DeviceClass::Gpu)
            .iter()
            .for_each(|gpu| own(DeviceClass::Gpu, gpu, "nvlinks"));
    }
}
