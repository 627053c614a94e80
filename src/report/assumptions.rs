//! Everything that an answer takes for granted.

use std::fmt::Write;

use crate::fabric::Calibration;
use crate::input::embedded::{MACHINES, names};
use crate::input::load_topology;
use crate::topology::{Assumption, Topology};

/// What the model itself assumes, whatever the machine.
pub fn of_the_model() -> Vec<Assumption> {
    let entry = |what: &str, effect: &str| Assumption {
        what: what.to_owned(),
        effect: effect.to_owned(),
        loud: false,
    };
    vec![
        entry(
            "calls follow one another in a CUDA graph and all ranks arrive together",
            "ranks that arrive late add their delay to every call",
        ),
        entry(
            "rank r is GPU r and the ring runs in that order",
            "an order that crosses sockets more often is slower",
        ),
        entry(
            "nothing else uses the wires, and clocks do not change",
            "host copies, other jobs and power limits add to the time",
        ),
        entry(
            "a few calls stand for all of a step once they repeat",
            "--every-call simulates each",
        ),
        entry(
            "ranges hold 80 %: each group of constants moved by its uncertainty, in the max-min \
             model, and what no constant explains, learned by regime from many machines",
            "a machine unlike the calibrated ones may lie outside",
        ),
    ]
}

/// Those of a machine, as text.
pub fn of_the_machine(topology: &Topology) -> String {
    let mut out = format!("assumptions of {}\n", topology.name);
    list(&mut out, &topology.assumptions);
    out
}

/// All assumptions of an answer, as text.
pub fn text(topology: &Topology) -> String {
    let mut out = of_the_machine(topology);
    out.push_str("assumptions of the model\n");
    list(&mut out, &of_the_model());
    for machine in declaring(topology) {
        let names: Vec<&str> = machine.regimes.iter().map(|regime| regime.name.as_str()).collect();
        let _ = writeln!(
            out,
            "no declared regime, where {} of the same GPUs has: {}\n    effect: kernels that write or read \
             many to many may be several times slower: declare it in the file (docs/topology-files.md)",
            machine.name,
            names.join(", ")
        );
    }
    for regime in &topology.regimes {
        let _ = writeln!(
            out,
            "declared regime: {} ({}): {} GB/s\n    source: {}",
            regime.name, regime.traffic, regime.cap_gb_per_s, regime.source
        );
    }
    if !topology.sources.is_empty() {
        out.push_str("sources\n");
    }
    for source in &topology.sources {
        let _ = writeln!(out, "  {source}");
    }
    out
}

fn list(out: &mut String, assumptions: &[Assumption]) {
    for assumption in assumptions {
        let _ = writeln!(out, "  {}\n    if not: {}", assumption.what, assumption.effect);
    }
}

/// The calibration of one device, or of all.
pub fn constants(calibration: &Calibration, device: Option<&str>) -> super::table::Table {
    let mut table = super::table::Table::new(&[
        "class",
        "device",
        "constant",
        "value",
        "unit",
        "confidence",
        "source",
    ])
    .left(1)
    .left(2)
    .left(4)
    .left(5)
    .left(6);
    for (class, name, key, constant) in calibration.iter() {
        if device.is_none_or(|wanted| wanted == name) {
            table.row(vec![
                class.word().to_owned(),
                name.to_owned(),
                key.to_owned(),
                constant.value.to_string(),
                constant.unit.clone(),
                format!("{:?}", constant.confidence).to_lowercase(),
                constant.source.clone(),
            ]);
        }
    }
    table
}

/// A user's machine that declares no regime: a built-in one declares what was measured of it.
pub(super) fn may_lack_regimes(topology: &Topology) -> bool {
    topology.regimes.is_empty() && !names().contains(&topology.name.as_str())
}

/// Built-in machines of the same GPUs that declare regimes, where a user's machine declares none.
fn declaring(topology: &Topology) -> Vec<Topology> {
    if !may_lack_regimes(topology) {
        return Vec::new();
    }
    let like = |other: &Topology| {
        let same = other.gpu_models() == topology.gpu_models();
        same && other.gpus().len() == topology.gpus().len() && !other.regimes.is_empty()
    };
    let machines = MACHINES.iter().filter_map(|machine| load_topology(machine.name).ok());
    machines.filter(like).collect()
}
