//! What faults of a machine cost: NCCL's own all-reduce on it and on the machine without each.

use rayon::prelude::*;

use crate::engine::Fidelity;
use crate::error::{Error, Result};
use crate::fabric::Calibration;
use crate::prediction::nccl::taken;
use crate::prediction::{CaseOptions, Machine};
use crate::selection::nccl::environment::Settings;
use crate::selection::nccl::survey::Detection;
use crate::selection::nccl::{Setup, Version};
use crate::topology::Topology;
use crate::workload::Collective;

/// Calls that faults are priced by, bytes: a verify step's and a prefill's.
pub const SIZES: [u64; 2] = [43_008, 32 << 20];
/// The version of NCCL whose choices are priced.
const VERSION: &str = "2.30";

/// Time of NCCL's all-reduce over all GPUs at each of [`SIZES`], us.
///
/// # Errors
/// A machine that cannot be compiled or has one GPU, or a choice that no schedule stands for.
pub fn times_us(topology: &Topology, calibration: &Calibration) -> Result<[f64; 2]> {
    let gpus: Vec<u32> = (0..topology.gpus().len() as u32).collect();
    if gpus.len() < 2 {
        return Err(Error::request("one GPU has nothing to reduce", ""));
    }
    let machine = Machine::new(topology.clone(), calibration, true, false)?;
    let mut settings = Settings::default();
    settings.peers.driver_refuses = !topology.settings.peer_to_peer;
    let version = Version::parse(VERSION)?;
    let setup = Setup::of(topology, calibration, &Detection::of(&gpus), version, settings)?;
    let options = CaseOptions::of(gpus, Fidelity::MaxMin);
    let mut times = [0.0; 2];
    for (time, bytes) in times.iter_mut().zip(SIZES) {
        let taken = taken(&setup, Collective::AllReduce, bytes, &options)?;
        let (case, options) = taken.case.map_err(|reason| Error::request(reason, ""))?;
        *time = case.nominal_us(&machine, bytes, &options)?;
    }
    Ok(times)
}

/// What each of several machines would save at each of [`SIZES`], us; `None` where either machine
/// cannot be timed.
pub fn savings(
    topology: &Topology,
    mended: &[Option<&Topology>],
    calibration: &Calibration,
) -> Vec<Option<[f64; 2]>> {
    let now = times_us(topology, calibration);
    let each = mended.par_iter().map(|mended| {
        let now = now.as_ref().ok()?;
        let then = times_us((*mended)?, calibration).ok()?;
        Some([now[0] - then[0], now[1] - then[1]])
    });
    each.collect()
}
