//! What engines look at before they choose: GPUs, the links between them, peer access.

use crate::error::Result;
use crate::fabric::Calibration;
use crate::selection::gpu::Capability;
use crate::topology::{NodeKind, PathType, Topology};

/// What the rules ask of a machine and the GPUs in use.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Name of the GPUs for people.
    pub gpu: String,
    /// Their compute capability.
    pub capability: Capability,
    /// GPUs in use, one a rank.
    pub ranks: u32,
    /// Pairs in all.
    pub pairs: u32,
    /// Pairs without NVLink.
    pub pairs_without_nvlink: u32,
    /// The first of them, and what joins it.
    pub first_without_nvlink: Option<(u32, u32, PathType)>,
    /// The GPU with NVLink to the fewest others, and to how many.
    pub fewest_nvlinks: (u32, u32),
    /// An NVSwitch joins GPUs.
    pub nvswitch: bool,
    /// GPUs may address each other.
    pub peer_access: bool,
}

impl Facts {
    /// Of these GPUs of a machine; the first GPU's model stands for all.
    ///
    /// # Errors
    /// When the calibration does not know the model.
    pub fn of(topology: &Topology, calibration: &Calibration, gpus: &[u32]) -> Result<Facts> {
        let model = topology.gpu_models().first().copied().unwrap_or_default();
        let device = calibration.device(crate::fabric::DeviceClass::Gpu, model)?;
        let mut pairs = Vec::new();
        for (index, &a) in gpus.iter().enumerate() {
            for &b in &gpus[index + 1..] {
                pairs.push((a, b, topology.path_type(a as usize, b as usize)));
            }
        }
        let apart: Vec<_> =
            pairs.iter().filter(|pair| !matches!(pair.2, PathType::Nv(_))).copied().collect();
        let nvlinks = |gpu: u32| {
            let meets = |pair: &&(u32, u32, PathType)| pair.0 == gpu || pair.1 == gpu;
            let joined = pairs.iter().filter(|pair| matches!(pair.2, PathType::Nv(_)));
            joined.filter(meets).count() as u32
        };
        let fewest = gpus.iter().map(|&gpu| (gpu, nvlinks(gpu))).min_by_key(|one| one.1);
        let is_switch = |kind: &NodeKind| matches!(kind, NodeKind::NvSwitch(_));
        Ok(Facts {
            gpu: device.title.clone(),
            capability: Capability::of(calibration, model)?,
            ranks: gpus.len() as u32,
            pairs: pairs.len() as u32,
            pairs_without_nvlink: apart.len() as u32,
            first_without_nvlink: apart.first().copied(),
            fewest_nvlinks: fewest.unwrap_or_default(),
            nvswitch: topology.nodes.iter().any(|node| is_switch(&node.kind)),
            peer_access: topology.settings.peer_to_peer,
        })
    }

    /// The NVSwitch multicasts and reduces: those of Hopper boards and later do.
    pub fn multicast(&self) -> bool {
        let hopper = Capability { major: 9, minor: 0 };
        self.nvswitch && self.capability >= hopper && self.pairs_without_nvlink == 0
    }
}
