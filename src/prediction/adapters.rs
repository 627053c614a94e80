//! Traffic of network adapters beside the calls: with host memory, or with GPUs themselves.

use super::beside::{By, Stream};
use crate::error::{Error, Result};
use crate::fabric::{EndpointId, Fabric};
use crate::workload::Beside;

/// One of each adapter that has a part in it, for these GPUs: with them, or with host memory.
pub(super) fn streams(
    fabric: &Fabric,
    beside: &Beside,
    gpus: &[EndpointId],
    by: By,
    to_gpus: bool,
) -> Result<Vec<Stream>> {
    let name = beside.traffic.name();
    let refused = |message: String, help: &str| Err(Error::request(message, help));
    if fabric.nics.is_empty() {
        return refused(
            format!("traffic `{name}` beside the calls: the machine has no network adapter"),
            "add one by an edit such as nic:nic0=connectx-7@root0",
        );
    }
    if to_gpus && !fabric.peer_to_peer {
        return refused(
            format!("traffic `{name}` beside the calls: GPUs take nothing from other devices"),
            "P2P is off; nic_in and nic_out go by host memory",
        );
    }
    let nics = fabric.gpu_count as u32..fabric.first_memory() as u32;
    let nearest = |gpu: EndpointId| {
        let far = nics.clone().filter_map(|nic| Some((fabric.path_latency(nic, gpu)?, nic)));
        far.min().map(|(_, nic)| nic)
    };
    let mut streams: Vec<Stream> = Vec::new();
    for nic in nics.clone() {
        let near: Vec<EndpointId> =
            gpus.iter().copied().filter(|&gpu| nearest(gpu) == Some(nic)).collect();
        let all = beside.gpus.is_empty() && !to_gpus;
        if near.is_empty() && !all {
            continue;
        }
        let adapter = &fabric.nics[nic as usize - fabric.gpu_count];
        if adapter.engine.is_none() {
            return refused(
                format!("nothing is known of adapter `{}` ({})", adapter.name, adapter.model),
                "`simulate constants` lists those whose rate is known",
            );
        }
        let memories = match (to_gpus, fabric.home_memory[nic as usize]) {
            (true, _) => near,
            (false, Some(memory)) => vec![memory],
            (false, None) => {
                return refused(
                    format!("adapter `{}` has no host memory", adapter.name),
                    "the topology needs a socket with memory for this traffic",
                );
            }
        };
        streams.push(Stream { device: nic, memories, by });
    }
    Ok(streams)
}
