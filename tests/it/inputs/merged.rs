//! Several files of one machine at once.

use collsim::input::found::build::Stated;
use collsim::input::found::merge::merge;

use super::tree::lspci;
use super::{assumes, does_not_assume, found, link_up, machine, nvlinks, rows, stated};

/// NCCL's view of the machine of [`lspci`].
pub(super) const SYSTEM: &str = r#"<system version="1">
  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD" familyid="191" modelid="2">
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1234" device="0x5678" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:03:00.0" class="0x030000" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="120" rank="0" gdr="1"/>
      </pci>
      <pci busid="0000:04:00.0" class="0x030000" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="120" rank="1" gdr="1"/>
      </pci>
    </pci>
    <pci busid="0000:41:00.0" class="0x030000" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="2" sm="120" rank="2" gdr="1"/>
    </pci>
  </cpu>
</system>
"#;

const MATRIX: &str = "GPU0 X PIX NODE 0-63 0\nGPU1 PIX X NODE 0-63 0\nGPU2 NODE NODE X 0-63 0\n";

#[test]
fn matrix_lspci_and_nccl_fill_each_others_gaps() {
    let topology = machine(&[MATRIX, &lspci(), SYSTEM]);
    assert_eq!(rows(&topology), ["X PIX NODE", "PIX X NODE", "NODE NODE X"]);
    // The CPU is NCCL's, the links are lspci's.
    let cpu = topology.find("cpu0").expect("a socket");
    assert_eq!(topology.kind(cpu).model(), Some(("socket", "epyc-turin")));
    does_not_assume(&topology, "the CPU is not said");
    assert_eq!(topology.sources.len(), 3);
    assumes(
        &topology,
        "conflict: sample (NCCL system file) has width of link of 0000:41:00.0 16, not 8",
    );
    assert_eq!(link_up(&topology, "gpu2"), (5, 8));
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    let lspci = lspci();
    let one = machine(&[MATRIX, &lspci, SYSTEM]);
    let two = machine(&[SYSTEM, MATRIX, &lspci]);
    assert_eq!((one.nodes, one.links, one.settings), (two.nodes, two.links, two.settings));
}

#[test]
fn a_matrix_that_contradicts_the_devices_is_a_conflict() {
    let wrong = MATRIX.replace("PIX", "SYS");
    let topology = machine(&[&wrong, &lspci()]);
    assert_eq!(rows(&topology)[0], "X PIX NODE");
    assumes(&topology, "conflict: GPU0-GPU1: SYS in the matrix, PIX here");
    let fewer = "GPU0 X PIX\nGPU1 PIX X\n";
    assumes(
        &machine(&[fewer, &lspci()]),
        "conflict: the matrix shows 2 GPUs, the PCI devices are 3",
    );
}

#[test]
fn the_matrix_tells_host_bridges_and_bridges_of_nvlink() {
    let near = MATRIX.replace("NODE", "PHB").replace("PIX", "NV4");
    let topology = machine(&[SYSTEM, &near]);
    assert_eq!(rows(&topology), ["X NV4 PHB", "NV4 X PHB", "PHB PHB X"]);
    assert_eq!(nvlinks(&topology), ["gpu0-gpu1 x4"]);
    does_not_assume(&topology, "conflict");
}

#[test]
fn other_machines_are_refused() {
    let other = SYSTEM
        .replace("0000:03", "0000:a3")
        .replace("0000:04", "0000:a4")
        .replace("0000:41", "0000:a1");
    let error = merge(vec![found(&lspci()), found(&other)]).expect_err("two machines");
    assert!(error.to_string().contains("are of different machines"), "{error}");
}

#[test]
fn what_a_person_states_stands_for_what_files_do_not_say() {
    let said = Stated {
        gpu: Some("a100-pcie".to_owned()),
        cpu: Some("epyc-milan".to_owned()),
        sockets: Some(2),
        pcie: Some((4, 8)),
        ..Stated::default()
    };
    let topology = stated(&["GPU0 X SYS 0-7 0\nGPU1 SYS X 8-15 1\n"], &said);
    assert_eq!(topology.gpu_models(), ["a100-pcie"]);
    assert_eq!(link_up(&topology, "gpu1"), (4, 8));
    for part in ["model is not said", "rate is not said", "width is not said", "CPU is not said"] {
        does_not_assume(&topology, part);
    }
    does_not_assume(&topology, "two sockets");
    // Links that a file does state stay.
    assert_eq!(link_up(&stated(&[SYSTEM], &said), "gpu0"), (5, 16));
}
