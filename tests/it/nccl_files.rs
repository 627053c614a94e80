//! NCCL's own files: what it dumped of machines is found again by the search, and what is written
//! reads back.

use std::fs;
use std::path::{Path, PathBuf};

use collsim::fabric::Calibration;
use collsim::input::load_topology;
use collsim::input::nccl_xml::{read_graphs, read_system, write_graphs, write_system};
use collsim::selection::nccl::Version;
use collsim::selection::nccl::beliefs::Beliefs;
use collsim::selection::nccl::cure::cure;
use collsim::selection::nccl::graph::{Graph, GraphFile, PathType, Pattern};
use collsim::selection::nccl::inventory::{
    CLASS_GPU, CLASS_NIC, CLASS_NVSWITCH, Function, Inventory, Net, NvLinks, Pci,
};
use collsim::selection::nccl::path::{Paths, PeerOptions};
use collsim::selection::nccl::search::{Graphs, Wanted, search, search_all};
use collsim::selection::nccl::survey::{Detection, survey};
use collsim::selection::nccl::system::System;
use collsim::selection::nccl::transport::{TransportOptions, between, hops};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/nccl")
}

fn text(file: &str) -> String {
    fs::read_to_string(folder().join(file)).expect("a file")
}

fn machine(name: &str) -> Inventory {
    let file = format!("{name}/topo.xml");
    read_system(&file, &text(&file)).unwrap_or_else(|error| panic!("{error}"))
}

fn graphs_of(file: &str, machine: &Inventory) -> GraphFile {
    read_graphs(file, &text(file), machine).unwrap_or_else(|error| panic!("{error}"))
}

fn beliefs(version: &str) -> Beliefs {
    Beliefs::of(Version::parse(version).expect("a version")).expect("embedded")
}

fn surveyed(name: &str, version: &str) -> Inventory {
    let topology = load_topology(name).expect("a machine");
    let calibration = Calibration::embedded().expect("embedded");
    survey(&topology, &calibration, &beliefs(version), &Detection::default()).expect("an inventory")
}

struct View {
    system: System,
    paths: Paths,
    beliefs: Beliefs,
}

fn view(machine: &Inventory, version: &str, options: &PeerOptions) -> View {
    let beliefs = beliefs(version);
    let system = System::new(machine, &beliefs).expect("a system");
    let paths = Paths::new(&system, options, beliefs.same_device());
    View { system, paths, beliefs }
}

fn find(machine: &Inventory, version: &str, options: &PeerOptions) -> Graphs {
    let view = view(machine, version, options);
    search_all(&view.system, &view.paths, &view.beliefs, 1)
}

fn told(graph: &Graph) -> String {
    let fallback = if graph.fallback { " simple order" } else { "" };
    let (channels, kind) = (graph.channels.len(), graph.type_intra.name());
    format!("{channels} x {} {kind}{fallback}", graph.bw_intra)
}

fn off() -> PeerOptions {
    PeerOptions { level: Some(PathType::Loc), ..PeerOptions::default() }
}

/// Machine, graph file, version, P2P: rings and trees as NCCL dumped them, to the last channel.
#[test]
fn dumped_graphs_are_found_again() {
    let cases = [
        ("a6000x4", "a6000x4/graph.xml", "2.23.4", PeerOptions::default()),
        ("h200x2", "h200x2/graph.xml", "2.28.9", PeerOptions::default()),
        ("h200x2", "h200x2/graph_p2p_off.xml", "2.28.9", off()),
    ];
    for (name, file, version, options) in cases {
        let machine = machine(name);
        let dumped = graphs_of(file, &machine);
        let found = find(&machine, version, &options);
        assert_eq!(Some(&found.ring), dumped.ring.as_ref(), "{file}");
        assert_eq!(Some(&found.tree), dumped.tree.as_ref(), "{file}");
    }
}

/// A file older than the rule that channels are alike across AMD sockets, or made in spite of it: on
/// CPUs that NCCL knows nothing of, its rings are found; on AMD only half their rate.
#[test]
fn azures_rings_are_found_but_for_the_rule_of_amd() {
    let stated = |vendor: &str| {
        let text = text("azure-nc96ads/topo.xml").replace("AuthenticAMD", vendor);
        let mut machine = read_system("edited", &text).expect("a system");
        let id = |dev| machine.bus_id_of(dev).expect("a GPU").to_owned();
        let ids = [id(0), id(1), id(2), id(3)];
        machine.state_nvlinks(|dev| {
            // Bridges 0-1 and 2-3.
            let target = ids[(dev ^ 1) as usize].clone();
            vec![NvLinks { target, count: 12, target_class: CLASS_GPU }]
        });
        machine
    };
    let machine = stated("unknown");
    let file = graphs_of("azure-nc96ads/graph.xml", &machine);
    let view = view(&machine, "2.18.3", &PeerOptions::default());
    let graphs = search_all(&view.system, &view.paths, &view.beliefs, 1);
    assert_eq!(Some(&graphs.ring), file.ring.as_ref());
    // Its trees have twice the channels of its rings, where later versions take as many; the last
    // two stand the other way round.
    let wanted = Wanted { pattern: Pattern::BalancedTree, least: 1, most: 4 };
    let mut trees = search(&view.system, &view.paths, &view.beliefs, wanted);
    trees.channels.swap(2, 3);
    assert_eq!(Some(&trees), file.tree.as_ref());
    let amd = find(&stated("AuthenticAMD"), "2.27.3", &PeerOptions::default());
    assert_eq!(told(&amd.ring), "2 x 6 SYS");
}

#[test]
fn other_machines_have_the_channels_that_their_links_hold() {
    // 8 links x 20.6 = 164.8 hold 4 x 40, split.
    let found = find(&machine("h800x8"), "2.27.3", &PeerOptions::default());
    assert_eq!(told(&found.ring), "8 x 20 NVL");
    // Files with PCI devices only: NCCL adds GPUs and NVLinks.
    let mut bare = machine("aws-p4de");
    bare.state_compute_capability(80);
    bare.state_nvlinks(|_| {
        vec![NvLinks { target: "ffff".into(), count: 12, target_class: CLASS_NVSWITCH }]
    });
    assert_eq!(bare.assumed.len(), 2);
    let found = find(&bare, "2.27.3", &PeerOptions::default());
    assert_eq!(told(&found.ring), "12 x 20 NVL");
}

#[test]
fn gpus_without_ranks_are_numbered_by_bus_id() {
    let machine = machine("azure-nd96");
    let ranks: Vec<Option<u32>> = machine.gpus().iter().map(|(_, gpu)| gpu.rank).collect();
    // Below the first NUMA node are the buses 0003 and 0004.
    assert_eq!(ranks, [2, 3, 0, 1, 6, 7, 4, 5].map(Some));
    let beliefs = beliefs("2.27.3");
    let error = System::new(&machine, &beliefs).expect_err("no compute capability");
    assert_eq!(error.to_string(), "GPU 0003:00:00.0 has no compute capability");
}

#[test]
fn two_levels_of_switches_are_kept_where_they_are_two() {
    let view = view(&machine("l20x16"), "2.27.3", &PeerOptions::default());
    let gpus = &view.system.gpus;
    let kinds: Vec<&str> =
        [1, 2, 4, 8].iter().map(|&to| view.paths.between(gpus[0], gpus[to]).kind.name()).collect();
    assert_eq!(kinds, ["PIX", "PXB", "PHB", "SYS"]);
    // Gen4 below Gen5 switches: 24 GB/s; Sapphire Rapids: 22 between the sockets.
    assert_eq!(view.paths.between(gpus[0], gpus[1]).gb_per_s, 24.0);
    assert_eq!(view.paths.between(gpus[0], gpus[8]).gb_per_s, 22.0);
}

/// Two levels that are one chip: the lower vanishes, the path stays within one switch.
#[test]
fn two_levels_of_one_chip_are_flattened() {
    let written = write_system(&machine("l20x16"));
    // The first upper switch as the chip's own upper level.
    let level = "busid=\"0000:0f:02.0\" class=\"0x060400\" vendor=\"0x1000\" device=\"0xc030\" \
                 subsystem_vendor=\"0x1000\" subsystem_device=\"0x100b\"";
    assert!(written.contains(level));
    let text = written.replace(level, &level.replace("0x100b", "0x000b"));
    let view =
        view(&read_system("l20", &text).expect("a system"), "2.27.3", &PeerOptions::default());
    let gpus = &view.system.gpus;
    assert_eq!(view.paths.between(gpus[0], gpus[2]).kind, PathType::Pix);
    assert_eq!(view.paths.between(gpus[4], gpus[6]).kind, PathType::Pxb);
}

#[test]
fn systems_survive_writing_and_reading() {
    for name in ["a6000x4", "azure-nc96ads", "h800x8", "l20x16", "h200x2"] {
        let machine = machine(name);
        let again = read_system("written", &write_system(&machine)).expect("a system");
        assert_eq!(again, machine, "{name}");
    }
    for name in collsim::input::embedded::names() {
        let machine = surveyed(name, "2.30.7");
        let mut again = read_system("written", &write_system(&machine)).expect("a system");
        again.assumed.clone_from(&machine.assumed);
        assert_eq!(again, machine, "{name}");
    }
}

#[test]
fn graphs_survive_writing_and_reading() {
    for name in collsim::input::embedded::names() {
        let machine = surveyed(name, "2.30.7");
        let mut found = find(&machine, "2.30.7", &PeerOptions::default());
        let again = read_graphs("written", &write_graphs(&found, &machine), &machine);
        let again = again.unwrap_or_else(|error| panic!("{name}: {error}"));
        // A file says what was taken, not why.
        found.ring.fallback = false;
        found.tree.fallback = false;
        // Written in single precision: 0.1.
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        let ring = again.ring.expect("a ring");
        assert_eq!(ring.channels, found.ring.channels, "{name}");
        assert!(near(ring.bw_intra, found.ring.bw_intra), "{name}");
        assert_eq!(again.tree.expect("a tree").type_intra, found.tree.type_intra, "{name}");
        assert_eq!(again.nvls, found.nvls, "{name}");
    }
}

/// NCCL's own dump, byte by byte.
#[test]
fn graph_files_are_written_as_nccl_writes_them() {
    for (name, file, options) in [
        ("a6000x4", "a6000x4/graph.xml", PeerOptions::default()),
        ("h200x2", "h200x2/graph_p2p_off.xml", off()),
    ] {
        let machine = machine(name);
        let mut found = find(&machine, "2.28.9", &options);
        // Multicast was off.
        found.nvls = None;
        assert_eq!(write_graphs(&found, &machine).trim_end(), text(file).trim_end(), "{file}");
    }
}

#[test]
fn a_failed_search_is_cured_by_either_file() {
    let machine = surveyed("rtxpro6000x8", "2.30.7");
    let default = PeerOptions::default();
    let found = |rate| cure(&machine, &beliefs("2.30.7"), &default, rate).expect("a system");
    // A rate of 40 between the sockets: 1 x 40, split.
    let cured = found(Some(40.0)).expect("a cure");
    assert_eq!((cured.believed, cured.slowest_trial), (16.0, 18.0));
    assert_eq!(told(&cured.graphs.ring), "2 x 20 SYS");
    // All below one CPU: 2 x 24 fill a Gen5 link.
    assert_eq!(told(&cured.with_one_cpu.ring), "2 x 24 PHB");
    // What is written cures: the file read again, then searched.
    let file = read_system("cure", &write_system(&cured.one_cpu)).expect("a system");
    assert_eq!(told(&find(&file, "2.30.7", &default).ring), "2 x 24 PHB");
    let file = read_graphs("cure", &write_graphs(&cured.graphs, &machine), &machine);
    assert_eq!(file.expect("graphs").ring, Some(cured.graphs.ring));
    // A link that really has only 16 is not helped; without a rate it counts as no limit.
    assert!(found(Some(16.0)).is_none());
    assert_eq!(found(None).map(|cured| told(&cured.graphs.ring)), Some("2 x 24 SYS".to_owned()));
    // Nothing to cure.
    let flat = surveyed("rtxpro6000x8-flat", "2.30.7");
    assert!(cure(&flat, &beliefs("2.30.7"), &default, None).expect("a system").is_none());
}

/// A system file may also state CPUs that NCCL believes better of.
#[test]
fn a_failed_search_is_cured_by_other_cpus() {
    let written = write_system(&surveyed("rtxpro6000x8", "2.30.7"));
    let amd = "vendor=\"AuthenticAMD\" familyid=\"191\" modelid=\"2\"";
    assert_eq!(written.matches(amd).count(), 2);
    let text = written.replace(amd, "vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"207\"");
    let stated = read_system("edited", &text).expect("a system");
    // 40 between Emerald Rapids; through their root complex 6/5: 1 x 40 is 48. Split.
    assert_eq!(told(&find(&stated, "2.30.7", &PeerOptions::default()).ring), "2 x 20 SYS");
}

/// The lines of NCCL's log for the hops of the first ring.
fn log(name: &str, version: &str, options: &TransportOptions) -> Vec<String> {
    let view = view(&surveyed(name, version), version, &PeerOptions::default());
    let graphs = search_all(&view.system, &view.paths, &view.beliefs, 1);
    let channels = hops(&view.system, &view.paths, &view.beliefs, options, &graphs.ring);
    channels[0].iter().map(|hop| hop.log_line(0, &view.system)).collect()
}

#[test]
fn hops_are_logged_as_nccl_logs_them() {
    let default = TransportOptions::default();
    let lines = log("rtxpro6000x8", "2.27.3", &default);
    assert_eq!(lines.len(), 8);
    assert_eq!(lines[0], "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM");
    assert_eq!(lines[1], "Channel 00 : 1[1] -> 2[2] via SHM/direct/direct");
    assert_eq!(lines[7], "Channel 00 : 7[7] -> 0[0] via SHM/direct/direct");
    // Eight GPUs on root ports: all by host memory.
    let direct = log("rtxpro6000x8-direct", "2.27.3", &default);
    assert!(direct.iter().all(|line| line.ends_with("via SHM/direct/direct")));
    // Ampere with NVLink reads; older versions share by IPC.
    let reads = log("a100x8-nvswitch", "2.18.3", &default);
    assert_eq!(reads[0], "Channel 00/0 : 0[0] -> 1[1] via P2P/IPC/read");
    let writes = TransportOptions { copy_engine: true, ..TransportOptions::default() };
    let copied = log("a100x8-nvswitch", "2.27.3", &writes);
    assert_eq!(copied[0], "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/CE");
    let one = TransportOptions { one_process: true, ..TransportOptions::default() };
    let pointer = log("h100x8-nvswitch", "2.27.3", &one);
    assert_eq!(pointer[0], "Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer");
}

#[test]
fn gpus_without_a_common_nvlink_are_joined_by_one_between_them() {
    let view = view(&surveyed("v100x8-cube-mesh", "2.27.3"), "2.27.3", &PeerOptions::default());
    let options = TransportOptions::default();
    let hop = between(&view.system, &view.paths, &view.beliefs, &options, 0, 5);
    assert_eq!(hop.path, PathType::Nvb);
    assert!(hop.transport.name(&view.system).starts_with("P2P/indirect/"));
    // Copy engines cannot go through a third GPU.
    let engines = TransportOptions { copy_engine: true, ..TransportOptions::default() };
    let hop = between(&view.system, &view.paths, &view.beliefs, &engines, 0, 5);
    assert_eq!(hop.transport.name(&view.system), "SHM/direct/direct");
}

/// A NIC below the GPUs' own switches that is faster than the link between the sockets.
#[test]
fn a_fast_nic_beats_a_slow_link_between_sockets() {
    let mut machine = surveyed("rtxpro6000x8", "2.27.3");
    let mut number = 0;
    for switch in machine.cpus.iter_mut().flat_map(|cpu| &mut cpu.devices) {
        let Function::Bridge { devices, .. } = &mut switch.function else { continue };
        let name = format!("mlx5_{number}");
        // 400 Gb/s = 50 GB/s.
        let net = Net { name, dev: Some(number), speed: 400_000, ..Net::default() };
        devices.push(Pci {
            bus_id: format!("0001:{number:02x}:00.0"),
            class: CLASS_NIC,
            ids: 0,
            gt_per_s: Some(32.0),
            width: 16,
            function: Function::Nic(vec![net]),
        });
        number += 1;
    }
    let view = view(&machine, "2.27.3", &PeerOptions::default());
    let name = |from, to, options: &TransportOptions| {
        let hop = between(&view.system, &view.paths, &view.beliefs, options, from, to);
        (hop.transport.name(&view.system), hop.reason)
    };
    let default = TransportOptions::default();
    let reason = "both GPUs reach a NIC at 48 GB/s, each other at 16 GB/s";
    assert_eq!(name(0, 7, &default), ("NET".to_owned(), reason.to_owned()));
    // 48 is not faster than 48.
    assert_eq!(name(0, 2, &default).0, "SHM/direct/direct");
    let inside = TransportOptions { no_net_inside: true, ..TransportOptions::default() };
    assert_eq!(name(0, 7, &inside).0, "SHM/direct/direct");
    let no_shm = TransportOptions { no_shm: true, ..inside };
    assert_eq!(name(0, 2, &no_shm).0, "NET");
}

#[test]
fn without_shm_and_nics_nothing_joins_distant_gpus() {
    let view = view(&surveyed("rtxpro6000x8", "2.27.3"), "2.27.3", &PeerOptions::default());
    let options = TransportOptions { no_shm: true, ..TransportOptions::default() };
    let hop = between(&view.system, &view.paths, &view.beliefs, &options, 0, 7);
    assert_eq!(hop.transport.name(&view.system), "nothing");
    let reason = "SYS is beyond PXB, the default limit, SHM is switched off, there is no NIC";
    assert_eq!(hop.reason, reason);
}
