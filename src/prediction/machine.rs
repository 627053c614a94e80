//! A machine ready for prediction: compiled with and without its declared regimes, and once for
//! each group of constants moved by one standard deviation.

use super::regime::Residuals;
use crate::error::Result;
use crate::fabric::{Calibration, CompileOptions, Fabric, UncertaintyGroup};
use crate::topology::Topology;

/// A machine compiled with one set of constants.
pub struct Variant {
    /// Its constants.
    pub calibration: Calibration,
    /// Compiled.
    pub fabric: Fabric,
}

impl Variant {
    fn new(topology: &Topology, calibration: Calibration, regimes: bool) -> Result<Variant> {
        let fabric = Fabric::compile(topology, &calibration, CompileOptions { regimes })?;
        Ok(Variant { calibration, fabric })
    }
}

/// A machine ready for prediction.
pub struct Machine {
    /// As described.
    pub topology: Topology,
    /// With what holds for it: declared regimes unless they were switched off.
    pub nominal: Variant,
    /// Without declared regimes, where there are any and they are on.
    pub without_regimes: Option<Variant>,
    /// Each group of constants moved by one standard deviation.
    pub moved: Vec<Variant>,
    /// What no constant explains.
    pub residuals: Residuals,
    /// Model of the GPUs.
    pub gpu_model: String,
}

impl Machine {
    /// Compiles a machine; `ranges` asks for the moved constants too.
    ///
    /// # Errors
    /// As [`Fabric::compile`].
    pub fn new(
        topology: Topology,
        calibration: &Calibration,
        regimes: bool,
        ranges: bool,
    ) -> Result<Machine> {
        let nominal = Variant::new(&topology, calibration.clone(), regimes)?;
        let declared = regimes && !topology.regimes.is_empty();
        let without_regimes =
            declared.then(|| Variant::new(&topology, calibration.clone(), false)).transpose()?;
        let groups: &[UncertaintyGroup] = if ranges { &UncertaintyGroup::ALL } else { &[] };
        let moved = groups
            .iter()
            .map(|&group| {
                let calibration = calibration.perturbed(group, 1.0);
                Variant::new(&topology, calibration, regimes)
            })
            .collect::<Result<Vec<_>>>()?;
        let gpu_model = topology.gpu_models().first().copied().unwrap_or_default().to_owned();
        let residuals = Residuals::embedded()?;
        Ok(Machine { topology, nominal, without_regimes, moved, residuals, gpu_model })
    }

    /// Whether some two of the GPUs are joined by NVLink.
    pub fn has_nvlink(&self, gpus: &[u32]) -> bool {
        self.pairs(gpus).any(|joined| joined)
    }

    /// Whether every two of the GPUs are joined by NVLink.
    pub fn all_nvlink(&self, gpus: &[u32]) -> bool {
        self.pairs(gpus).all(|joined| joined)
    }

    /// Whether NVLink joins them, for each pair.
    fn pairs(&self, gpus: &[u32]) -> impl Iterator<Item = bool> {
        use crate::fabric::LinkClass;
        let fabric = &self.nominal.fabric;
        let pairs = gpus.iter().flat_map(|&a| gpus.iter().map(move |&b| (a, b)));
        pairs.filter(|(a, b)| a != b).map(|(a, b)| {
            fabric.path(a, b).is_some_and(|path| {
                path.iter().all(|&link| fabric.links[link as usize].class == LinkClass::Nvlink)
            })
        })
    }
}
