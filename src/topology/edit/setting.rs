//! `p2p`, `acs`, `iommu`, `mps`, `mrrs`, `nps`: switches of the whole machine.

use super::{Edit, Kind};
use crate::error::Result;
use crate::topology::Topology;
use crate::topology::checks::settings::{numa_fault, size_fault};

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
        let nodes = edit.number(1, 4)?;
        if let Some(fault) = numa_fault(nodes) {
            return Err(edit.refused(fault, ""));
        }
        topology.settings.numa_per_socket = Some(nodes as u8);
        Ok(format!("{nodes} NUMA nodes a socket"))
    },
};

fn switch(edit: &Edit, what: &str, setting: &mut bool) -> Result<String> {
    edit.of_nothing()?;
    *setting = edit.switch()?;
    Ok(format!("{what}: {}", edit.to))
}

fn size(edit: &Edit, what: &str, setting: &mut Option<u16>) -> Result<String> {
    edit.of_nothing()?;
    let bytes = edit.number(128, 4096)?;
    if let Some(fault) = size_fault(bytes) {
        return Err(edit.refused(fault, ""));
    }
    *setting = Some(bytes as u16);
    Ok(format!("{what} {bytes} B"))
}
