//! The observations that come with the program: the folders of `measured/`.

/// A folder.
pub struct Machine {
    /// Its name.
    pub name: &'static str,
    /// The built-in topology that describes the machine.
    pub topology: &'static str,
    /// Name within the folder and text of each table.
    pub files: &'static [(&'static str, &'static str)],
    /// The topology, where it is in `measured/` and not built in.
    pub own_topology: Option<&'static str>,
    /// Version of NCCL that is assumed where a row does not tell it; nothing: a row that tells neither
    /// version nor channels runs a ring by the protocol that its size suggests.
    pub nccl: Option<&'static str>,
}

impl Machine {
    /// With a topology of its own.
    const fn on(self, topology: &'static str) -> Machine {
        Machine { own_topology: Some(topology), ..self }
    }

    /// With a version of NCCL where none is told.
    const fn assuming(self, version: &'static str) -> Machine {
        Machine { nccl: Some(version), ..self }
    }
}

/// The topology of this name among those of `measured/`.
pub fn own_topology(name: &str) -> Option<&'static str> {
    MACHINES.iter().filter(|machine| machine.topology == name).find_map(|m| m.own_topology)
}

macro_rules! machine {
    ($name:literal, $topology:literal, $($file:literal),*) => {
        Machine {
            name: $name,
            topology: $topology,
            files: &[$(($file, include_str!(concat!("../../measured/", $name, "/", $file)))),*],
            own_topology: None,
            nccl: None,
        }
    };
}

macro_rules! own_topology {
    ($name:literal) => {
        include_str!(concat!("../../measured/", $name, "/topology.json"))
    };
}

/// All folders.
pub const MACHINES: &[Machine] = &[
    machine!("h200-one-link", "h200-host-link", "nccl_steps.csv", "probe1.csv", "probe2.csv"),
    machine!("h200-nvlink-pair", "h200x2-nvlink-pair", "nccl.csv", "probe.csv"),
    machine!("h200x2-nccl", "h200x2-nvlink-pair", "observations.csv"),
    machine!(
        "h200-two-host-links",
        "h200x2-nvlink-pair",
        "beside.csv",
        "interference.csv",
        "lines.csv",
        "probe.csv"
    ),
    machine!("h200-probe", "h200-host-link", "observations.csv"),
    machine!("h200x2-probe", "h200x2-nvlink-pair", "observations.csv"),
    machine!("h200-probe-2", "h200-host-link", "observations.csv"),
    machine!("h200-probe-3", "h200-host-link", "observations.csv"),
    machine!("h200x2-probe-2", "h200x2-nvlink-pair", "observations.csv"),
    machine!(
        "wrx90-7955wx-2xpm50100-flat-8gpu",
        "rtxpro6000x8-flat",
        "observations.csv",
        "raw/contention.csv",
        "raw/latency_tiers.csv",
        "raw/serving.csv"
    )
    .assuming("2.27.7"),
    machine!(
        "wrx90-7955wx-3xpm50100-hierarchy-8gpu",
        "rtxpro6000x8-hierarchy",
        "observations.csv",
        "raw/contention.csv",
        "raw/latency_tiers.csv"
    ),
    machine!(
        "wrx90-7955wx-4xpm50100-flat-16gpu",
        "rtxpro6000x16-flat",
        "observations.csv",
        "raw/contention.csv",
        "raw/latency_tiers.csv",
        "raw/serving.csv"
    )
    .assuming("2.27.7"),
    machine!(
        "dual-turin-9575f-direct-8gpu",
        "rtxpro6000x8-direct",
        "observations.csv",
        "raw/contention.csv",
        "raw/latency_tiers.csv",
        "raw/serving.csv"
    ),
    machine!(
        "asus-esc8000a-e13p-2xpex890xx-8gpu",
        "rtxpro6000x8",
        "observations.csv",
        "raw/contention.csv",
        "raw/latency_tiers.csv",
        "raw/serving.csv"
    )
    .assuming("2.27.7"),
    machine!("sglang-kimi-k25-rtxpro6000x8", "rtxpro6000x8", "observations.csv"),
    machine!(
        "turin-4xpm50100-star-16gpu-second",
        "rtxpro6000x16-turin-flat",
        "observations.csv",
        "raw/latency_tiers.csv",
        "raw/nccl_allreduce.csv"
    ),
    machine!(
        "turin-9575f-genoad24-4xpm50100-flat-16gpu",
        "rtxpro6000x16-turin-flat",
        "observations.csv",
        "raw/contention.csv",
        "raw/serving.csv"
    ),
    machine!(
        "4090x8-epyc7542-2s",
        "rtx4090x8-rome",
        "observations.csv",
        "raw/p2p_connectivity.csv"
    )
    .assuming("2.21.5"),
    machine!("occl-4090x8-epyc-a", "rtx4090x8-rome", "observations.csv").assuming("2.12.12"),
    machine!("occl-h800-x8", "h800x8-nvswitch", "observations.csv").assuming("2.12.12"),
    machine!("a100sxm80-x8-cw", "a100x8-nvswitch", "observations.csv").assuming("2.12.12"),
    machine!("aic-a100sxm-x8", "a100x8-nvswitch", "observations.csv"),
    machine!("aic-h100sxm-x8", "h100x8-nvswitch", "observations.csv"),
    machine!("aic-b200-x8", "b200x8-nvswitch", "observations.csv"),
    machine!("aic-rtxpro6000-x2x4", "rtxpro6000x8-direct", "observations.csv"),
    machine!("h100sxm-cluster01", "h100x8-nvswitch", "observations.csv"),
    machine!("h200sxm-x8-mleng", "h200x8-nvswitch", "observations.csv", "raw/tuner_choice.csv"),
    machine!(
        "a100pcie80-x2-nvbridge",
        "a100x2-pcie-nvbridge",
        "observations.csv",
        "raw/nccl_tuner_model.csv"
    ),
    machine!("b200-x8-symm", "b200x8-nvswitch", "observations.csv"),
    machine!("a100pcie-x4-xeon-gen3", "a100-pcie-x4", "observations.csv").assuming("2.21.5"),
    machine!("a100sxm-x8-mleng", "a100x8-nvswitch", "observations.csv").assuming("2.21.5"),
    machine!("a100sxm80-x8-hgx-amd", "a100x8-nvswitch", "observations.csv"),
    machine!("aws-p5-1node-batch", "h100x8-nvswitch", "observations.csv").assuming("2.21.5"),
    machine!("h100sxm-x8-mleng", "h100x8-nvswitch", "observations.csv"),
    machine!("rtx6000ada-x2-phb", "rtx6000ada-x2-pcie", "observations.csv"),
    machine!("vidur-a100-dgx", "a100x8-nvswitch", "observations.csv").assuming("2.18.5"),
    machine!("vidur-h100-dgx", "h100x8-nvswitch", "observations.csv").assuming("2.18.5"),
    machine!("aws-p6b200-mleng", "b200x8-nvswitch", "observations.csv"),
    machine!("4090x6-tinybox", "rtx4090x6-tinybox", "observations.csv")
        .on(own_topology!("4090x6-tinybox"))
        .assuming("2.21.5"),
    machine!("4090x6-wrx80-trpro", "rtx4090x6-wrx80", "observations.csv")
        .on(own_topology!("4090x6-wrx80-trpro")),
    machine!("4090x3-tuxedo", "rtx4090x3-tuxedo", "observations.csv")
        .on(own_topology!("4090x3-tuxedo")),
    machine!("occl-4090x2", "rtx4090x2-two-sockets", "observations.csv")
        .on(own_topology!("occl-4090x2"))
        .assuming("2.12.12"),
    machine!("a800sxm-x8", "a800x8-nvswitch", "observations.csv").on(own_topology!("a800sxm-x8")),
    machine!("aic-gb200-x4", "gb200x4-nvswitch", "observations.csv")
        .on(own_topology!("aic-gb200-x4")),
    machine!("gb200-x4-mleng", "gb200x4-nvswitch", "observations.csv")
        .on(own_topology!("aic-gb200-x4")),
    machine!("gh200-x4-nvbandwidth", "gh200x4-mesh", "observations.csv")
        .on(own_topology!("gh200-x4-nvbandwidth")),
    machine!("h100pcie-x2-nvbridge", "h100x2-pcie-nvbridge", "observations.csv")
        .on(own_topology!("h100pcie-x2-nvbridge")),
    machine!("a40x8-nvbridge-epyc7302-nps4", "a40x8-nvbridge", "observations.csv")
        .on(own_topology!("a40x8-nvbridge-epyc7302-nps4")),
    machine!("tartan-dgx1-p100", "p100x8-cube-mesh", "observations.csv")
        .on(own_topology!("tartan-dgx1-p100")),
    machine!("trx40-gen4-direct-2gpu", "rtxpro6000x2-trx40", "observations.csv")
        .on(own_topology!("trx40-gen4-direct-2gpu")),
    machine!("epyc4564p-b650d4u-1xpm50100-2gpu", "rtxpro6000x2-pm50100", "observations.csv")
        .on(own_topology!("epyc4564p-b650d4u-1xpm50100-2gpu")),
    machine!(
        "dual-turin-direct-4xpro6000-2x5090",
        "rtxpro6000x4-5090x2-direct",
        "observations.csv"
    )
    .on(own_topology!("dual-turin-direct-4xpro6000-2x5090")),
    machine!("azure-nc96ads-a100pcie-x4", "a100x4-pcie-nvbridge-milan", "observations.csv")
        .on(own_topology!("azure-nc96ads-a100pcie-x4"))
        .assuming("2.21.5"),
    machine!("vidur-a100-pairwise-nvlink", "a100x4-pcie-nvbridge", "observations.csv")
        .on(own_topology!("vidur-a100-pairwise-nvlink"))
        .assuming("2.18.5"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/measured");
        let mut folders: Vec<String> = std::fs::read_dir(folder)
            .expect("measured")
            .map(|entry| entry.expect("entry"))
            .filter(|entry| entry.path().is_dir())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        folders.sort();
        let mut listed: Vec<&str> = MACHINES.iter().map(|machine| machine.name).collect();
        listed.sort_unstable();
        assert_eq!(folders, listed);
    }

    #[test]
    fn a_topology_of_its_own_bears_the_name_that_is_listed() {
        for machine in MACHINES {
            let Some(text) = machine.own_topology else { continue };
            let name = format!("\"name\": \"{}\"", machine.topology);
            assert!(text.contains(&name), "{}", machine.name);
        }
    }
}
