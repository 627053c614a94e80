//! NCCL's view of known machines and the channels that its search finds on them.

use collsim::fabric::Calibration;
use collsim::input::load_topology;
use collsim::selection::nccl::Version;
use collsim::selection::nccl::beliefs::Beliefs;
use collsim::selection::nccl::environment::Settings;
use collsim::selection::nccl::graph::{Graph, PathType};
use collsim::selection::nccl::inventory::{
    CLASS_GPU, CLASS_NVSWITCH, Cpu, Function, Gpu, Inventory, NvLinks, Pci,
};
use collsim::selection::nccl::path::{Paths, PeerOptions};
use collsim::selection::nccl::search::{Graphs, search_all};
use collsim::selection::nccl::survey::{Detection, survey};
use collsim::selection::nccl::system::System;

struct View {
    system: System,
    paths: Paths,
    beliefs: Beliefs,
}

impl View {
    fn graphs(&self) -> Graphs {
        search_all(&self.system, &self.paths, &self.beliefs, 1)
    }
}

fn beliefs(version: &str) -> Beliefs {
    Beliefs::of(Version::parse(version).expect("a version")).expect("embedded")
}

fn view(machine: &str, version: &str) -> View {
    let beliefs = beliefs(version);
    let inventory = inventory_of(machine, &beliefs, &Detection::default());
    let system = System::new(&inventory, &beliefs).expect("a system");
    let paths = Paths::new(&system, &PeerOptions::default(), beliefs.same_device());
    View { system, paths, beliefs }
}

/// Channels, rates and path type, as NCCL logs a graph.
fn told(graph: &Graph) -> String {
    let fallback = if graph.fallback { " simple order" } else { "" };
    format!(
        "{} x {}/{} {}{fallback}",
        graph.channels.len(),
        graph.bw_intra,
        graph.bw_inter,
        graph.type_intra.name()
    )
}

/// Machine, version, ring, tree, NVLS.
const FOUND: &[(&str, &str, &str, &str, &str)] = &[
    // Two AMD sockets and sm_120: no link between the sockets has the lowest speed tried, 18 or 19.
    ("rtxpro6000x8", "2.30.7", "1 x 0.1/0.1 SYS simple order", "1 x 0.1/0.1 SYS simple order", ""),
    ("rtxpro6000x8", "2.27.3", "1 x 0.1/0.1 SYS simple order", "1 x 0.1/0.1 SYS simple order", ""),
    ("rtxpro6000x8", "2.26.2", "1 x 0.1/0.1 SYS simple order", "1 x 0.1/0.1 SYS simple order", ""),
    (
        "rtxpro6000x8-direct",
        "2.30.7",
        "1 x 0.1/0.1 SYS simple order",
        "1 x 0.1/0.1 SYS simple order",
        "",
    ),
    // Speeds of sm_90 go lower: 15 is the first below 16.
    ("rtxpro6000x8", "2.24.3", "1 x 15/15 SYS", "1 x 15/15 SYS", ""),
    // Sockets have no limit yet: 2 x 24 fill a Gen5 link of 48.
    ("rtxpro6000x8", "2.18.3", "2 x 24/24 SYS", "2 x 24/24 SYS", ""),
    ("rtxpro6000x8-flat", "2.30.7", "2 x 24/24 PHB", "2 x 24/24 PHB", ""),
    ("rtxpro6000x8-hierarchy", "2.30.7", "2 x 24/24 PHB", "2 x 24/24 PHB", ""),
    ("rtxpro6000x16-flat", "2.30.7", "2 x 24/24 PHB", "2 x 24/24 PHB", ""),
    ("rtx4090x8-rome", "2.27.3", "1 x 15/15 SYS", "1 x 15/15 SYS", ""),
    // One Gen4 link holds one channel of 20 with Intel's 6/5: 24 GB/s. Split: 2 x 10, then 2 x 12
    // would be 28.8 with 6/5 and is not, but AMD's 2 x 12 is 24.
    ("rtx6000ada-x2-pcie", "2.27.3", "2 x 12/12 PHB", "2 x 20/20 PHB", ""),
    // A100: 12 links x 20 = 240 = 6 x 40, split.
    ("a100x8-nvswitch", "2.27.3", "12 x 20/20 NVL", "12 x 20/20 NVL", ""),
    // H100: 18 x 20.6 = 370.8 holds 6 x 60, split. NVLS: 9 shares of 40 in 370.8, a head's counts
    // twice.
    ("h100x8-nvswitch", "2.27.3", "12 x 30/30 NVL", "12 x 30/30 NVL", "8 x 40/60 NVL"),
    ("h200x8-nvswitch", "2.30.7", "12 x 30/30 NVL", "12 x 30/30 NVL", "8 x 40/60 NVL"),
    // B200: 18 x 40.1 = 721.8 holds 8 x 90, split; 45 is tried for trees since 2.29.
    ("b200x8-nvswitch", "2.30.7", "16 x 45/45 NVL", "16 x 45/45 NVL", "8 x 80/90 NVL"),
    ("b200x8-nvswitch", "2.27.3", "16 x 45/45 NVL", "16 x 40/40 NVL", "8 x 80/90 NVL"),
    // V100: 6 links, 6 rings; all channels are doubled later, 12.
    ("v100x8-cube-mesh", "2.27.3", "6 x 20/20 NVL", "6 x 20/20 NVL", ""),
    ("a100x2-pcie-nvbridge", "2.27.3", "12 x 20/20 NVL", "12 x 40/40 NVL", ""),
];

#[test]
fn channels_are_those_that_nccl_finds() {
    for &(machine, version, ring, tree, nvls) in FOUND {
        let graphs = view(machine, version).graphs();
        let found = graphs.nvls.as_ref().map(told).unwrap_or_default();
        let all = [told(&graphs.ring), told(&graphs.tree), found];
        assert_eq!(all, [ring, tree, nvls], "{machine} {version}");
    }
}

/// Every NVLink of a cube mesh carries one ring channel in each direction.
#[test]
fn rings_of_a_cube_mesh_use_every_nvlink_once_a_direction() {
    let graphs = view("v100x8-cube-mesh", "2.27.3").graphs();
    let topology = load_topology("v100x8-cube-mesh").expect("a machine");
    for a in 0..8_u32 {
        for b in (0..8_u32).filter(|&b| b != a) {
            let hops = graphs.ring.channels.iter().map(|ring| {
                let next = |at: usize| ring[(at + 1) % ring.len()];
                (0..ring.len()).filter(|&at| ring[at] == a && next(at) == b).count()
            });
            let links = match topology.path_type(a as usize, b as usize) {
                collsim::topology::PathType::Nv(links) => usize::from(links),
                _ => 0,
            };
            assert_eq!(hops.sum::<usize>(), links, "{a} to {b}");
        }
    }
}

#[test]
fn every_channel_visits_every_rank_once() {
    for machine in collsim::input::embedded::names() {
        let view = view(machine, "2.30.7");
        let graphs = view.graphs();
        for channel in graphs.ring.channels.iter().chain(&graphs.tree.channels) {
            let mut ranks = channel.clone();
            ranks.sort_unstable();
            let all: Vec<u32> = (0..view.system.gpus.len() as u32).collect();
            assert_eq!(ranks, all, "{machine}");
        }
    }
}

#[test]
fn several_machines_are_said_to_be_beyond_the_search() {
    let view = view("a100x8-nvswitch", "2.27.3");
    assert!(view.graphs().not_modelled.is_empty());
    let graphs = search_all(&view.system, &view.paths, &view.beliefs, 2);
    assert!(graphs.not_modelled[0].starts_with("channels that leave and enter a machine"));
}

/// Path types from the first GPU to the others.
fn types(view: &View) -> String {
    let gpus = &view.system.gpus;
    let kind = |&gpu: &usize| view.paths.between(gpus[0], gpu).kind.name();
    gpus[1..].iter().map(kind).collect::<Vec<_>>().join(" ")
}

#[test]
fn path_types_are_nccls() {
    // NODE of nvidia-smi is PHB here.
    assert_eq!(types(&view("rtxpro6000x8", "2.30.7")), "PIX PHB PHB SYS SYS SYS SYS");
    assert_eq!(types(&view("rtxpro6000x8-hierarchy", "2.30.7")), "PIX PXB PXB PHB PHB PHB PHB");
    assert_eq!(types(&view("v100x8-cube-mesh", "2.27.3")), "NVL NVL NVL NVL NVB NVB NVB");
    assert_eq!(types(&view("a100x8-nvswitch", "2.27.3")), "NVL NVL NVL NVL NVL NVL NVL");
}

fn inventory_of(machine: &str, beliefs: &Beliefs, detection: &Detection) -> Inventory {
    let topology = load_topology(machine).expect("a machine");
    let calibration = Calibration::embedded().expect("embedded");
    survey(&topology, &calibration, beliefs, detection).expect("an inventory")
}

#[test]
fn numa_nodes_and_joined_switches_change_the_paths() {
    let beliefs = beliefs("2.30.7");
    let with = |machine: &str, detection: &Detection| {
        let inventory = inventory_of(machine, &beliefs, detection);
        let system = System::new(&inventory, &beliefs).expect("a system");
        let paths = Paths::new(&system, &PeerOptions::default(), beliefs.same_device());
        View { system, paths, beliefs: beliefs.clone() }
    };
    let quarters = Detection { numa_per_socket: 4, ..Detection::default() };
    // Each GPU in a quadrant of its own: four NUMA nodes a socket.
    assert_eq!(types(&with("rtxpro6000x8-direct", &quarters)), "SYS SYS SYS SYS SYS SYS SYS");
    let joined = Detection { joined_switches: true, ..Detection::default() };
    assert_eq!(types(&with("rtxpro6000x8", &joined)), "PIX PXB PXB SYS SYS SYS SYS");
    // Ranks on a few GPUs.
    let some = Detection { gpus: vec![5, 2], ..Detection::default() };
    let two = with("rtxpro6000x8", &some);
    let ranks: Vec<u32> = two.system.gpus.iter().map(|&gpu| two.system.rank(gpu)).collect();
    assert_eq!(ranks, [1, 0]);
}

/// Direct or not, and why, from the first GPU to the last.
fn verdict(machine: &str, options: &PeerOptions) -> (bool, String) {
    let beliefs = beliefs("2.27.3");
    let inventory = inventory_of(machine, &beliefs, &Detection::default());
    let system = System::new(&inventory, &beliefs).expect("a system");
    let paths = Paths::new(&system, options, beliefs.same_device());
    let peer = paths.peer(0, system.gpus.len() - 1);
    (peer.direct, peer.reason.clone())
}

#[test]
fn gpus_address_each_other_as_far_as_the_level_allows() {
    let default = PeerOptions::default();
    let told = |machine: &str, options: &PeerOptions| verdict(machine, options);
    let beyond = (false, "SYS is beyond PXB, the default limit".to_owned());
    assert_eq!(told("rtxpro6000x8-direct", &default), beyond);
    let beyond = (false, "PHB is beyond PXB, the default limit".to_owned());
    assert_eq!(told("rtxpro6000x8-flat", &default), beyond);
    // Two GPUs on AMD may always.
    let pair = (true, "PHB is within SYS, the limit for two GPUs on AMD".to_owned());
    assert_eq!(told("rtx6000ada-x2-pcie", &default), pair);
    let level = |kind| PeerOptions { level: Some(kind), ..PeerOptions::default() };
    let raised = (true, "SYS is within the limit that NCCL_P2P_LEVEL sets (SYS)".to_owned());
    assert_eq!(told("rtxpro6000x8-direct", &level(PathType::Sys)), raised);
    let off = (false, "NVL is not taken as P2P is switched off".to_owned());
    assert_eq!(told("a100x8-nvswitch", &level(PathType::Loc)), off);
    let refused = PeerOptions { driver_refuses: true, ..level(PathType::Sys) };
    assert!(!told("rtx4090x8-rome", &refused).0);
    assert!(told("rtx4090x8-rome", &refused).1.contains("the driver does not let"));
    let apart = PeerOptions { apart: true, ..PeerOptions::default() };
    assert_eq!(told("a100x8-nvswitch", &apart), (false, "the ranks share no /dev/shm".to_owned()));
}

#[test]
fn levels_are_read_in_both_spellings() {
    let parse = |text| Settings::parse(&format!("NCCL_P2P_LEVEL={text}"));
    let read = |text| parse(text).expect("a level").peers.level.expect("told");
    assert_eq!([read("SYS"), read("5"), read("9")], [PathType::Sys; 3]);
    assert_eq!([read("0"), read("3"), read("NVL")], [PathType::Loc, PathType::Phb, PathType::Nvl]);
    for wrong in ["", "NET", "far", "-1", "nvl"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

/// An NVSwitch domain of Blackwell GPUs, four below each of its CPUs.
fn rack(gpus: u32) -> Inventory {
    let gpu = |dev: u32| Pci {
        bus_id: format!("{dev:04x}:01:00.0"),
        class: CLASS_GPU,
        ids: 0,
        gt_per_s: Some(32.0),
        width: 16,
        function: Function::Gpu(Gpu {
            dev,
            compute_capability: Some(100),
            rank: Some(dev),
            gdr: true,
            nvlinks: vec![NvLinks {
                target: "ffff:ff:ff.0".into(),
                count: 18,
                target_class: CLASS_NVSWITCH,
            }],
            c2c: None,
        }),
    };
    let names = beliefs("2.30.7").socket("epyc-turin").expect("known").clone();
    let cpu = |numa: u32| Cpu {
        host_hash: None,
        numa: i64::from(numa),
        affinity: String::new(),
        names: names.clone(),
        devices: (numa * 4..(numa * 4 + 4).min(gpus)).map(gpu).collect(),
        networks: Vec::new(),
    };
    Inventory { name: None, cpus: (0..gpus.div_ceil(4)).map(cpu).collect(), assumed: Vec::new() }
}

/// The search is bounded by its budget of steps, so 72 GPUs take no longer than a moment.
#[test]
fn large_nvswitch_domains_are_searched() {
    let beliefs = beliefs("2.30.7");
    for gpus in [16, 64, 72] {
        let system = System::new(&rack(gpus), &beliefs).expect("a system");
        let paths = Paths::new(&system, &PeerOptions::default(), beliefs.same_device());
        let graphs = search_all(&system, &paths, &beliefs, 1);
        // 18 x 40.1 = 721.8 holds 8 x 90, split.
        assert_eq!(told(&graphs.ring), "16 x 45/45 NVL", "{gpus}");
        // NVLS: 32 heads at most, one share each and two for the head: 33 x 20 = 660 is within
        // 721.8, 33 x 24 is not; 16 GPUs: 17 x 40 = 680.
        let nvls = graphs.nvls.map(|graph| (graph.channels.len(), graph.bw_intra));
        assert_eq!(nvls, Some(if gpus == 16 { (16, 40.0) } else { (32, 20.0) }), "{gpus}");
    }
}
