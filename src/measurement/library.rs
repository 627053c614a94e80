//! The observations that come with the program: the folders of `measured/`.

/// A folder.
pub struct Machine {
    /// Its name.
    pub name: &'static str,
    /// The built-in topology that describes the machine.
    pub topology: &'static str,
    /// Name within the folder and text of each table.
    pub files: &'static [(&'static str, &'static str)],
}

macro_rules! machine {
    ($name:literal, $topology:literal, $($file:literal),*) => {
        Machine {
            name: $name,
            topology: $topology,
            files: &[$(($file, include_str!(concat!("../../measured/", $name, "/", $file)))),*],
        }
    };
}

/// All folders.
pub const MACHINES: &[Machine] = &[
    machine!("h200-one-link", "h200-host-link", "nccl_steps.csv", "probe1.csv", "probe2.csv"),
    machine!("h200-nvlink-pair", "h200x2-nvlink-pair", "nccl.csv", "probe.csv"),
    machine!(
        "h200-two-host-links",
        "h200x2-nvlink-pair",
        "interference.csv",
        "lines.csv",
        "probe.csv"
    ),
    machine!(
        "wrx90-7955wx-2xpm50100-flat-8gpu",
        "rtxpro6000x8-flat",
        "observations.csv",
        "raw/contention.csv",
        "raw/latency_tiers.csv",
        "raw/serving.csv"
    ),
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
    ),
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
    ),
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
    ),
    machine!("occl-4090x8-epyc-a", "rtx4090x8-rome", "observations.csv"),
    machine!("occl-h800-x8", "h800x8-nvswitch", "observations.csv"),
    machine!("a100sxm80-x8-cw", "a100x8-nvswitch", "observations.csv"),
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
}
