//! Lists of GPUs and CPUs that know no tree.

use super::{assumes, counts, does_not_assume, format, link_up, machine, nvlinks, refused, rows};

pub(super) const QUERY: &str = "
==============NVSMI LOG==============

Timestamp                                 : Tue Mar  3 10:00:00 2026
Driver Version                            : 580.95.05
Attached GPUs                             : 2
GPU 00000000:01:00.0
    Product Name                          : NVIDIA RTX PRO 6000 Blackwell Workstation Edition
    PCI
        Bus                               : 0x01
        GPU Link Info
            PCIe Generation
                Max                       : 5
                Current                   : 1
                Device Current            : 1
                Device Max                : 5
                Host Max                  : 5
            Link Width
                Max                       : 16x
                Current                   : 16x
    FB Memory Usage
        Total                             : 97887 MiB
GPU 00000000:02:00.0
    Product Name                          : NVIDIA RTX PRO 6000 Blackwell Workstation Edition
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 4
            Link Width
                Max                       : 16x
                Current                   : 8x
";

#[test]
fn a_query_alone_has_no_tree() {
    assert_eq!(format(QUERY), "smi-query");
    let topology = machine(&[QUERY]);
    assert_eq!(counts(&topology), [2, 0, 0, 2, 1]);
    assert_eq!(topology.gpu_models(), ["rtx-pro-6000"]);
    assert_eq!((link_up(&topology, "gpu0"), link_up(&topology, "gpu1")), ((5, 16), (4, 8)));
    assumes(&topology, "how the GPUs are joined is not said");
    assumes(&topology, "gpu0: idle link trained down to Gen1");
    assumes(&topology, "gpu1: trained to x8, both ends could do x16");
    refused(&QUERY.replace("00000000:02:00.0", "two"), &["expected a bus id", "sample:23:1"]);
    refused(&QUERY[..150], &["no GPU in it", "cut off"]);
}

#[test]
fn a_query_beside_a_matrix() {
    let topology = machine(&["GPU0 X PHB\nGPU1 PHB X\n", QUERY]);
    assert_eq!(rows(&topology), ["X PHB", "PHB X"]);
    assert_eq!(topology.gpu_models(), ["rtx-pro-6000"]);
    assert_eq!((link_up(&topology, "gpu0"), link_up(&topology, "gpu1")), ((5, 16), (4, 8)));
    does_not_assume(&topology, "its rate is not said");
}

#[test]
fn a_query_as_xml() {
    let text = "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n\
        <nvidia_smi_log>\n<attached_gpus>1</attached_gpus>\n<gpu id=\"00000000:0F:00.0\">\n\
        <product_name>NVIDIA H100 80GB HBM3</product_name><pci><pci_gpu_link_info><pcie_gen>\
        <max_link_gen>5</max_link_gen><current_link_gen>5</current_link_gen></pcie_gen><link_widths>\
        <max_link_width>16x</max_link_width><current_link_width>16x</current_link_width>\
        </link_widths></pci_gpu_link_info></pci></gpu>\n</nvidia_smi_log>\n";
    assert_eq!(format(text), "smi-xml");
    let topology = machine(&[text]);
    assert_eq!(topology.gpu_models(), ["h100-sxm"]);
    assert_eq!(link_up(&topology, "gpu0"), (5, 16));
    refused(&text.replace("00000000:0F:00.0", "?"), &["`?` is no bus id", "sample:5:1"]);
}

#[test]
fn a_query_as_csv() {
    let text = "index, name, pci.bus_id, pcie.link.gen.current, pcie.link.gen.max, pcie.link.width.current\n\
                0, NVIDIA GeForce RTX 4090, 00000000:01:00.0, 1, 4, 16\n\
                1, NVIDIA GeForce RTX 4090, 00000000:02:00.0, 4, 4, 8\n";
    assert_eq!(format(text), "smi-csv");
    let topology = machine(&["GPU0 X PHB\nGPU1 PHB X\n", text]);
    assert_eq!(topology.gpu_models(), ["rtx-4090"]);
    assert_eq!((link_up(&topology, "gpu0"), link_up(&topology, "gpu1")), ((4, 16), (4, 8)));
    assumes(&topology, "gpu0: idle link trained down to Gen1: taken as Gen4");
    // Units behind the names, and another order.
    let units = "pci.bus_id, pcie.link.width.current, name\n00000000:01:00.0, 8, NVIDIA H200\n";
    assert_eq!(link_up(&machine(&[units]), "gpu0"), (5, 8));
    refused(text.lines().next().expect("a header"), &["a header and no GPU"]);
}

#[test]
fn nvlinks_by_rate_and_by_far_end() {
    let rates = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n\
                 GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\n\t Link 0: 25 GB/s\n\t Link 1: 25 GB/s\n\t Link 2: <inactive>\n";
    assert_eq!(format(rates), "smi-nvlink");
    let topology = machine(&["GPU0 X PHB\nGPU1 PHB X\n", rates]);
    assert_eq!(nvlinks(&topology), ["gpu0-gpu1 x2"]);
    assumes(&topology, "the NVLinks of both GPUs join them");
    assumes(&topology, "1 NVLinks are inactive");
    let three = format!("{rates}GPU 2: NVIDIA A100-SXM4-80GB (UUID: GPU-3)\n");
    let matrix = "GPU0 X PHB PHB\nGPU1 PHB X PHB\nGPU2 PHB PHB X\n";
    assumes(&machine(&[matrix, &three]), "NVLinks whose far ends no file says are left out");
    let ends = "GPU 0: NVIDIA H200 (UUID: GPU-1)\n\t Link 0: Remote Device 00000000:02:00.0: Link 1\n\
                GPU 1: NVIDIA H200 (UUID: GPU-2)\n\t Link 1: Remote Device 00000000:01:00.0: Link 0\n";
    let topology = machine(&[QUERY, ends]);
    assert_eq!(nvlinks(&topology), ["gpu0-gpu1 x1"]);
}

#[test]
fn lscpu_tells_sockets_and_model() {
    let text = "Architecture:             x86_64\nVendor ID:                AuthenticAMD\n\
                Model name:             AMD EPYC 7542 32-Core Processor\nCPU family:           23\n\
                Model:                49\nSocket(s):            2\nNUMA node(s):             8\n";
    assert_eq!(format(text), "lscpu");
    let matrix = "GPU0 X SYS 0-7 0\nGPU1 SYS X 8-15 4\n";
    let topology = machine(&[matrix, text]);
    assert_eq!(counts(&topology)[4], 2);
    assert_eq!(rows(&topology), ["X SYS", "SYS X"]);
    does_not_assume(&topology, "the CPU is not said");
    does_not_assume(&topology, "NUMA nodes are two sockets");
    assumes(&topology, "sockets are joined by xGMI x4, the most that epyc-rome has");
}
