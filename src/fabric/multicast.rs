//! NVSwitch domains that copy a store to many GPUs and sum a load over them (NVLink SHARP), and the
//! ports by which a group of GPUs reaches one.

use super::{EndpointId, Fabric, LinkClass, LinkId};
use crate::error::{Error, Result};
use crate::fabric::{Calibration, DeviceClass};
use crate::units::{Bandwidth, Time};

/// What is known of a domain's multicast and reduction. Each field is a constant of
/// `calibration/nvswitches.json`, where unit and source stand.
#[derive(Clone, Debug)]
pub struct MulticastSwitch {
    /// The forwarding node.
    pub node: u32,
    /// Bytes that a packet to a group is longer than one to a GPU.
    pub overhead: u32,
    /// From the last member's data at the switch to the sum leaving it.
    pub reduce_latency: Time,
    /// Femtoseconds that one port's share of the reduction units takes for a byte.
    pub reduce_fs_per_byte: u64,
    /// Bytes of sums that one port may have under way.
    pub reduce_buffer: u32,
}

impl MulticastSwitch {
    /// Reads the constants of a domain; `None` for generations without multicast.
    ///
    /// # Errors
    /// When the model or one of its constants is unknown.
    pub(super) fn of(
        calibration: &Calibration,
        model: &str,
        node: u32,
    ) -> Result<Option<MulticastSwitch>> {
        let value = |name: &str| calibration.value(DeviceClass::NvSwitch, model, name);
        if value("multicast")? == 0.0 {
            return Ok(None);
        }
        Ok(Some(MulticastSwitch {
            node,
            overhead: value("multicast_overhead")? as u32,
            reduce_latency: Time::from_ns(value("reduce_latency")?),
            reduce_fs_per_byte: Bandwidth::from_gb_per_s(value("reduce_rate")?)
                .femtoseconds_per_byte(),
            reduce_buffer: value("reduce_buffer")? as u32,
        }))
    }
}

/// A GPU's way to and from its switch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct MulticastPort {
    /// The GPU.
    pub gpu: EndpointId,
    /// To the switch.
    pub up: LinkId,
    /// From the switch.
    pub down: LinkId,
    /// Where `up` stands in [`Fabric::path_links`], a link away from the end of a path.
    pub up_at: u32,
    /// Where `down` stands in [`Fabric::path_links`], as the last of a path.
    pub down_at: u32,
}

/// A group of GPUs behind one multicast address.
#[derive(Clone, Debug)]
pub struct MulticastGroup<'a> {
    /// Their switch.
    pub switch: &'a MulticastSwitch,
    /// Their ports, in the order of the members.
    pub ports: Vec<MulticastPort>,
}

impl Fabric {
    /// The switch and ports of a multicast group of these GPUs.
    ///
    /// # Errors
    /// Where they are not all joined by one NVSwitch domain that has multicast, with the reason.
    pub fn multicast(&self, gpus: &[EndpointId]) -> Result<MulticastGroup<'_>> {
        let refuse = |what: String, help: &str| Err(Error::request(what, help));
        let mut distinct = gpus.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() < 2 || distinct.len() < gpus.len() {
            return refuse(
                "a multicast group needs two GPUs or more, each once".into(),
                "give each rank a GPU of its own",
            );
        }
        let other = |gpu: EndpointId| if gpu == gpus[0] { gpus[1] } else { gpus[0] };
        let Some(node) = self.switch_between(gpus[0], gpus[1]) else {
            return refuse(
                format!("GPUs {} and {} are not joined by an NVSwitch", gpus[0], gpus[1]),
                "multicast and in-switch reduction are done by NVSwitches: use another algorithm",
            );
        };
        let Some(switch) = self.multicast_switches.iter().find(|switch| switch.node == node) else {
            return refuse(
                "this NVSwitch has no multicast".into(),
                "NVLink SHARP came with NVSwitch 3 (Hopper): use another algorithm",
            );
        };
        let mut ports = Vec::with_capacity(gpus.len());
        for &gpu in gpus {
            let there = self.path_at(gpu, other(gpu));
            let back = self.path_at(other(gpu), gpu);
            let (Some(up_at), Some(back)) = (there, back) else { continue };
            if self.switch_between(gpu, other(gpu)) != Some(node) {
                return refuse(
                    format!("GPU {gpu} is not joined to GPU {} by that NVSwitch", other(gpu)),
                    "a multicast group lies in one NVSwitch domain",
                );
            }
            let down_at = back + 1;
            let (up, down) = (self.path_links[up_at as usize], self.path_links[down_at as usize]);
            ports.push(MulticastPort { gpu, up, down, up_at, down_at });
        }
        Ok(MulticastGroup { switch, ports })
    }

    /// The node between two GPUs whose path is two NVLinks.
    fn switch_between(&self, a: EndpointId, b: EndpointId) -> Option<u32> {
        let nvlink = |link: LinkId| self.links[link as usize].class == LinkClass::Nvlink;
        match self.path(a, b)? {
            &[up, down] if nvlink(up) && nvlink(down) => Some(self.links[up as usize].to),
            _ => None,
        }
    }
}
