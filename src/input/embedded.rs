//! The machines that come with the program, found by name from any directory.

/// A topology file within the program.
pub struct Embedded {
    /// The name, its file's stem.
    pub name: &'static str,
    /// The JSON text.
    pub text: &'static str,
}

impl Embedded {
    /// What errors call it.
    pub fn file_name(&self) -> String {
        format!("{}.json", self.name)
    }
}

/// The files of these names in a folder of the tree.
macro_rules! embedded {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$($crate::input::embedded::Embedded {
            name: $name,
            text: include_str!(concat!("../../", $folder, "/", $name, ".json")),
        }),*]
    };
}
pub(super) use embedded;

/// All of them, in the order in which they are listed.
pub const MACHINES: &[Embedded] = embedded![
    "topologies":
    "rtxpro6000x8",
    "rtxpro6000x8-flat",
    "rtxpro6000x8-hierarchy",
    "rtxpro6000x8-direct",
    "rtxpro6000x16-flat",
    "rtxpro6000x16-turin-flat",
    "rtx4090x8-rome",
    "rtx6000ada-x2-pcie",
    "a100-pcie-x4",
    "a100x2-pcie-nvbridge",
    "v100x8-cube-mesh",
    "a100x8-nvswitch",
    "h100x8-nvswitch",
    "h800x8-nvswitch",
    "h200x8-nvswitch",
    "b200x8-nvswitch",
    "h200x2-nvlink-pair",
    "h200-host-link",
];

/// The machine of this name, with or without `.json`.
pub fn find(name: &str) -> Option<&'static Embedded> {
    let stem = name.strip_suffix(".json").unwrap_or(name);
    MACHINES.iter().find(|machine| machine.name == stem)
}

/// All names, in the order in which they are listed.
pub fn names() -> Vec<&'static str> {
    MACHINES.iter().map(|machine| machine.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::topology_json::{parse, write};
    use crate::topology::route::Router;
    use crate::topology::{NodeKind, PathType, Topology};

    fn all() -> impl Iterator<Item = (&'static Embedded, Topology)> {
        MACHINES.iter().map(|machine| {
            let parsed = parse(&machine.file_name(), machine.text);
            (machine, parsed.unwrap_or_else(|error| panic!("{error}")))
        })
    }

    #[test]
    fn every_machine_says_what_it_is() {
        for (machine, topology) in all() {
            let name = machine.name;
            assert_eq!(topology.name, name);
            assert!(!topology.title.is_empty() && topology.title.len() <= 125, "{name}: title");
            assert!(!topology.sources.is_empty(), "{name}: no source");
            assert!(!topology.assumptions.is_empty(), "{name}: no assumption");
            let told = |a: &crate::topology::Assumption| !a.what.is_empty() && !a.effect.is_empty();
            assert!(topology.assumptions.iter().all(told), "{name}: empty assumption");
        }
    }

    #[test]
    fn every_machine_survives_writing_and_reading() {
        for (machine, topology) in all() {
            let text = write(&topology).expect("JSON");
            let again = parse("written", &text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(again, topology, "{}", machine.name);
        }
    }

    #[test]
    fn every_pair_and_every_memory_has_a_route() {
        for (machine, topology) in all() {
            let router = Router::new(&topology);
            let mut ends = topology.gpus();
            ends.extend(topology.ids_where(|kind| matches!(kind, NodeKind::HostMemory(_))));
            for &a in &ends {
                for &b in ends.iter().filter(|&&b| b != a) {
                    let told = || format!("{}: {a:?} {b:?}", machine.name);
                    let hops = router.route(a, b).unwrap_or_else(|| panic!("{}", told()));
                    assert_eq!((hops[0].from, hops[hops.len() - 1].to), (a, b), "{}", told());
                    assert!(hops.windows(2).all(|pair| pair[0].to == pair[1].from), "{}", told());
                }
            }
        }
    }

    /// The upper triangle of `nvidia-smi topo -m`, row by row.
    fn matrix(name: &str) -> Vec<String> {
        let machine = find(name).expect("embedded");
        let topology = parse(name, machine.text).expect("valid");
        let count = topology.gpus().len();
        (0..count)
            .map(|a| {
                let row: Vec<String> =
                    (a + 1..count).map(|b| topology.path_type(a, b).to_string()).collect();
                row.join(" ")
            })
            .collect()
    }

    #[test]
    fn path_types_are_those_of_nvidia_smi() {
        let virtual_switches = matrix("rtxpro6000x8");
        assert_eq!(virtual_switches[0], "PIX NODE NODE SYS SYS SYS SYS");
        assert_eq!(virtual_switches[2], "PIX SYS SYS SYS SYS");
        assert_eq!(virtual_switches[4], "PIX NODE NODE");
        let flat = matrix("rtxpro6000x8-flat");
        assert_eq!(flat[0], "PIX PIX PIX NODE NODE NODE NODE");
        assert_eq!(flat[4], "PIX PIX PIX");
        let hierarchy = matrix("rtxpro6000x8-hierarchy");
        assert_eq!(hierarchy[0], "PIX PXB PXB NODE NODE NODE NODE");
        assert_eq!(hierarchy[5], "PXB PXB");
        let direct = matrix("rtxpro6000x8-direct");
        assert_eq!(direct[0], "NODE NODE NODE SYS SYS SYS SYS");
        assert_eq!(matrix("rtx6000ada-x2-pcie")[0], "PHB");
        assert_eq!(matrix("v100x8-cube-mesh")[0], "NV1 NV1 NV2 NV2 SYS SYS SYS");
        assert_eq!(matrix("a100x8-nvswitch")[0], ["NV12"; 7].join(" "));
        assert_eq!(matrix("b200x8-nvswitch")[6], PathType::Nv(18).to_string());
    }

    #[test]
    fn routes_stay_inside_a_chip_where_they_can() {
        let machine = find("rtxpro6000x8").expect("embedded");
        let topology = parse("rtxpro6000x8", machine.text).expect("valid");
        let router = Router::new(&topology);
        let names = |a: &str, b: &str| {
            let (a, b) = (topology.find(a).expect("a"), topology.find(b).expect("b"));
            let hops = router.route(a, b).expect("route");
            let names: Vec<&str> = hops.iter().map(|hop| topology.id(hop.to)).collect();
            names.join(" ")
        };
        assert_eq!(names("gpu0", "gpu1"), "vs0 gpu1");
        assert_eq!(names("gpu0", "gpu2"), "vs0 vs1 gpu2");
        assert_eq!(names("gpu0", "gpu7"), "vs0 root0 cpu0 cpu1 root3 vs3 gpu7");
    }
}
