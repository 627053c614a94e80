//! Files of real machines, by what a person reads in them.

use std::fs;
use std::path::Path;

use super::{assumes, counts, found, link_up, machine, nvlinks, rows};

fn text(file: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    fs::read_to_string(folder.join(file)).expect("a file")
}

fn of(file: &str) -> collsim::topology::Topology {
    machine(&[&text(file)])
}

/// Rows of n GPUs in groups: `near` within a group of `size`, `far` otherwise.
fn groups(n: usize, size: usize, near: &str, far: &str) -> Vec<String> {
    let cell = |a: usize, b: usize| match a / size == b / size {
        _ if a == b => "X",
        true => near,
        false => far,
    };
    (0..n).map(|a| (0..n).map(|b| cell(a, b)).collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn four_a6000_on_two_xeons() {
    let topology = of("nccl/a6000x4/topo.xml");
    // Four GPUs and two ports of a NIC below two CPUs, no switch.
    assert_eq!(counts(&topology), [4, 0, 2, 6, 2]);
    assert_eq!(rows(&topology), groups(4, 2, "NODE", "SYS"));
    assert_eq!(topology.gpu_models(), ["a6000"]);
    assert_eq!(link_up(&topology, "gpu0"), (3, 16));
    assert_eq!(link_up(&topology, "nic0"), (3, 4));
    assumes(&topology, "does not say which root ports share a host bridge");
}

#[test]
fn eight_a100_of_aws() {
    let topology = of("nccl/aws-p4de/topo.xml");
    assert_eq!(counts(&topology), [8, 4, 4, 4, 2]);
    assert_eq!(rows(&topology)[0], "X PIX NODE NODE SYS SYS SYS SYS");
    assert_eq!(rows(&topology)[5], "SYS SYS SYS SYS PIX X NODE NODE");
    assert_eq!(topology.gpu_models(), ["a100-sxm"]);
    assert_eq!(link_up(&topology, "gpu7"), (3, 16));
    assert_eq!(link_up(&topology, "switch3"), (3, 16));
}

#[test]
fn eight_a100_of_azure() {
    let topology = of("nccl/azure-nd96/topo.xml");
    // Four NUMA nodes with two GPUs and two NICs below a switch each.
    assert_eq!(counts(&topology), [8, 4, 8, 4, 2]);
    assert_eq!(rows(&topology), groups(8, 2, "PIX", "SYS"));
    assert_eq!(link_up(&topology, "gpu0"), (4, 16));
    assumes(&topology, "4 NUMA nodes are two sockets");
    assumes(&topology, "its model is not said");
}

#[test]
fn four_a100_of_azure_with_links_to_themselves() {
    let topology = of("nccl/azure-nc96ads/topo.xml");
    assert_eq!(counts(&topology), [4, 0, 0, 4, 2]);
    assert_eq!(rows(&topology), groups(4, 1, "", "SYS"));
    assert_eq!(nvlinks(&topology), [""; 0]);
    assumes(&topology, "NVLinks whose far end is the GPU itself");
    assumes(&topology, "its rate is not said: taken as Gen4");
    // The matrix of the same machine has the pairs.
    let both = machine(&[
        &text("nccl/azure-nc96ads/topo.xml"),
        &text("machines/azure-nc96ads.matrix.txt"),
    ]);
    assert_eq!(nvlinks(&both), ["gpu0-gpu1 x12", "gpu2-gpu3 x12"]);
    assert_eq!(rows(&both), groups(4, 2, "NV12", "SYS"));
}

#[test]
fn rings_of_the_graph_files() {
    assert_eq!(found(&text("nccl/azure-nc96ads/graph.xml")).ring, Some(vec![0, 1, 2, 3]));
    assert_eq!(found(&text("nccl/a6000x4/graph.xml")).ring.map(|ring| ring.len()), Some(4));
}

#[test]
fn eight_h800_with_switches_of_both_kinds() {
    let topology = of("nccl/h800x8/topo.xml");
    assert_eq!(counts(&topology), [8, 8, 8, 8, 2]);
    assert_eq!(rows(&topology), groups(8, 8, "NV8", ""));
    assert_eq!(nvlinks(&topology)[7], "gpu7-nvswitch x8");
    assert_eq!(topology.gpu_models(), ["h800"]);
    assert_eq!(link_up(&topology, "switch7"), (5, 16));
}

#[test]
fn sixteen_l20_behind_two_levels() {
    let topology = of("nccl/l20x16/topo.xml");
    assert_eq!(counts(&topology), [16, 12, 8, 4, 2]);
    assert_eq!(link_up(&topology, "gpu0"), (4, 16));
    assert_eq!(link_up(&topology, "switch1"), (5, 16));
    let first = "X PIX SYS SYS PXB PXB SYS SYS NODE NODE SYS SYS NODE NODE SYS SYS";
    assert_eq!(rows(&topology)[0], first);
    assumes(&topology, "a L20, which the calibration lacks");
}

/// The cells between GPUs of a matrix file.
fn cells(file: &str, gpus: usize) -> Vec<String> {
    let text = text(file);
    let rows = text.lines().filter(|line| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|word| word.starts_with("GPU")) && words.next() != Some("GPU1")
    });
    rows.map(|row| row.split_whitespace().skip(1).take(gpus).collect::<Vec<_>>().join(" "))
        .collect()
}

#[test]
fn matrices_come_back_as_they_were_read() {
    let all = [
        ("4090x8", 8),
        ("a100pcie-r7525", 2),
        ("a100pcie-x4", 4),
        ("a800x8", 8),
        ("azure-nc96ads", 4),
        ("h100pcie-x2", 2),
        ("rtx6000ada-x2", 2),
    ];
    for (name, gpus) in all {
        let file = format!("machines/{name}.matrix.txt");
        let topology = of(&file);
        assert_eq!(rows(&topology), cells(&file, gpus), "{name}");
        assumes(&topology, "its rate is not said");
        assumes(&topology, "its width is not said");
    }
}

#[test]
fn what_the_matrices_say_beside_paths() {
    // Eight NUMA nodes, a NIC of four ports beside GPU 6.
    let topology = of("machines/4090x8.matrix.txt");
    assert_eq!(counts(&topology), [8, 0, 4, 8, 2]);
    assumes(&topology, "8 NUMA nodes are two sockets");
    let topology = of("machines/a800x8.matrix.txt");
    assert_eq!(nvlinks(&topology).len(), 8);
    assert_eq!(counts(&topology)[4], 2);
    // Rows cut short by the one who posted them; the first row has all.
    let topology = of("machines/b200x8.matrix.txt");
    assert_eq!(rows(&topology), groups(8, 8, "NV18", ""));
    assumes(&topology, "the matrix lacks cells");
    let topology = of("machines/a100pcie-r7525.matrix.txt");
    assumes(&topology, "conflict: GPU1 is SYS to a device of its own NUMA node");
}
