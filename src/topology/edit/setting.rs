//! `p2p`, `acs`, `iommu`, `mps`, `mrrs`, `nps`: switches of the whole machine.

use super::{Edit, Kind};
use crate::error::Result;
use crate::topology::Topology;

pub(super) const PEER_TO_PEER: Kind<Topology> = Kind {
    name: "p2p",
    form: "p2p=on | off",
    what: "GPUs may address each other; off: everything goes through host memory",
    apply: |topology, edit| {
        switch(edit, "GPUs address each other", &mut topology.settings.peer_to_peer)
    },
};

pub(super) const ACS: Kind<Topology> = Kind {
    name: "acs",
    form: "acs=on | off",
    what: "ACS sends peer traffic up to the root complex even inside a switch",
    apply: |topology, edit| switch(edit, "ACS redirect", &mut topology.settings.acs_redirect),
};

pub(super) const IOMMU: Kind<Topology> = Kind {
    name: "iommu",
    form: "iommu=on | off",
    what: "the IOMMU translates what passes root ports",
    apply: |topology, edit| switch(edit, "IOMMU", &mut topology.settings.iommu),
};

pub(super) const PAYLOAD: Kind<Topology> = Kind {
    name: "mps",
    form: "mps=128 .. 4096",
    what: "largest payload of a PCIe packet (Max_Payload_Size), bytes",
    apply: |topology, edit| size(edit, "largest payload", &mut topology.settings.max_payload),
};

pub(super) const READ_REQUEST: Kind<Topology> = Kind {
    name: "mrrs",
    form: "mrrs=128 .. 4096",
    what: "largest PCIe read request (Max_Read_Request_Size), bytes",
    apply: |topology, edit| {
        size(edit, "largest read request", &mut topology.settings.max_read_request)
    },
};

pub(super) const NUMA: Kind<Topology> = Kind {
    name: "nps",
    form: "nps=1 | 2 | 4",
    what: "NUMA nodes of a socket (NPS, SNC): what NCCL believes of paths inside a socket",
    apply: |topology, edit| {
        edit.of_nothing()?;
        let nodes = match edit.number(1, 4)? {
            3 => return Err(edit.refused("a socket has 1, 2 or 4 NUMA nodes", "")),
            nodes => nodes as u8,
        };
        topology.settings.numa_per_socket = Some(nodes);
        Ok(format!("{nodes} NUMA nodes a socket"))
    },
};

fn switch(edit: &Edit, what: &str, setting: &mut bool) -> Result<String> {
    edit.of_nothing()?;
    *setting = edit.switch()?;
    Ok(format!("{what}: {}", edit.to))
}

/// PCIe knows the powers of two from 128 to 4096 (base specification 5.0, section 7.5.3.4).
fn size(edit: &Edit, what: &str, setting: &mut Option<u16>) -> Result<String> {
    edit.of_nothing()?;
    let bytes = edit.number(128, 4096)?;
    if !bytes.is_power_of_two() {
        return Err(edit.refused("PCIe knows 128, 256, 512, 1024, 2048 and 4096", ""));
    }
    *setting = Some(bytes as u16);
    Ok(format!("{what} {bytes} B"))
}
