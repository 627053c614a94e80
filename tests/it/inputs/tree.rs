//! The PCI tree as lspci and hwloc show it.

use super::{assumes, counts, does_not_assume, format, link_up, machine, refused, rows};

/// One socket, a switch with two GPUs below, a GPU and a NIC straight at root ports of another
/// host bridge. The second GPU is idle, the third trained to half its lanes.
pub(super) fn lspci() -> String {
    let mut text = String::new();
    let mut bridge = |place: &str, port: &str, buses: &str, link: (&str, &str), acs: &str| {
        text += &format!(
            "{place} PCI bridge: Some Vendor Device [1234:5678] (prog-if 00 [Normal decode])\n\
             \tControl: I/O+ Mem+ BusMaster+\n\tNUMA node: 0\n\tBus: {buses}, sec-latency=0\n\
             \tCapabilities: [68] Express (v2) {port}, MSI 00\n\
             \t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0\n\
             \t\tDevCtl:\tCorrErr- NonFatalErr-\n\t\t\tMaxPayload 512 bytes, MaxReadReq 512 bytes\n\
             \t\tLnkCap:\tPort #0, Speed {}, Width {}, ASPM not supported\n\
             \t\tLnkSta:\tSpeed {}, Width {}\n\
             \t\tLnkCap2: Supported Link Speeds: 2.5-64GT/s\n\
             \tCapabilities: [148 v1] Access Control Services\n\
             \t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+\n\
             \t\tACSCtl:\tSrcValid- TransBlk- ReqRedir{acs} CmpltRedir-\n\n",
            link.0, "x16", link.1, "x16"
        );
    };
    let gen5 = ("32GT/s", "32GT/s");
    bridge("00:01.1", "Root Port (Slot+)", "primary=00, secondary=01, subordinate=05", gen5, "-");
    bridge("01:00.0", "Upstream Port", "primary=01, secondary=02, subordinate=05", gen5, "-");
    bridge(
        "02:00.0",
        "Downstream Port (Slot+)",
        "primary=02, secondary=03, subordinate=03",
        gen5,
        "-",
    );
    bridge(
        "02:01.0",
        "Downstream Port (Slot+)",
        "primary=02, secondary=04, subordinate=04",
        gen5,
        "-",
    );
    bridge("40:01.1", "Root Port (Slot+)", "primary=40, secondary=41, subordinate=41", gen5, "-");
    bridge("40:02.1", "Root Port (Slot+)", "primary=40, secondary=42, subordinate=42", gen5, "-");
    let mut end = |place: &str, what: &str, cap: &str, sta: &str| {
        text += &format!(
            "{place} {what}\n\tNUMA node: 0\n\tCapabilities: [60] Express (v2) Endpoint, MSI 00\n\
             \t\tLnkCap:\tPort #0, {cap}, ASPM L1\n\t\tLnkSta:\t{sta}\n\
             \t\tDevCap2: Completion Timeout: Range AB, 10BitTagComp+ 10BitTagReq+ OBFF\n\
             \t\tDevCtl2: Completion Timeout: 50us, 10BitTagReq- OBFF\n\n"
        );
    };
    let gpu = "VGA compatible controller [0300]: NVIDIA Corporation GB202GL [RTX PRO 6000 Blackwell Server Edition] [10de:2bb5] (rev a1)";
    let cap = "Speed 32GT/s, Width x16";
    end("03:00.0", gpu, cap, "Speed 32GT/s, Width x16");
    end(
        "03:00.1",
        "Audio device [0403]: NVIDIA Corporation Device [10de:22e8] (rev a1)",
        cap,
        "Speed 32GT/s, Width x16",
    );
    end("04:00.0", gpu, cap, "Speed 2.5GT/s (downgraded), Width x16");
    end("41:00.0", gpu, cap, "Speed 32GT/s, Width x8 (downgraded)");
    let nic =
        "Ethernet controller [0200]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]";
    end(
        "42:00.0",
        nic,
        "Speed 32GT/s, Width x16",
        "Speed 16GT/s (downgraded), Width x8 (downgraded)",
    );
    text
}

#[test]
fn lspci_shows_links_and_what_is_wrong_with_them() {
    let text = lspci();
    assert_eq!(format(&text), "lspci");
    let topology = machine(&[&text]);
    assert_eq!(counts(&topology), [3, 1, 1, 2, 1]);
    assert_eq!(rows(&topology), ["X PIX NODE", "PIX X NODE", "NODE NODE X"]);
    assert_eq!(link_up(&topology, "gpu0"), (5, 16));
    assert_eq!(link_up(&topology, "gpu1"), (5, 16));
    assert_eq!(link_up(&topology, "gpu2"), (5, 8));
    assert_eq!(link_up(&topology, "nic0"), (4, 8));
    assumes(&topology, "gpu1: idle link trained down to Gen1: taken as Gen5");
    assumes(&topology, "gpu2, nic0: trained to x8, both ends could do x16");
    assumes(&topology, "nic0: trained to Gen4, both ends could do Gen5");
    does_not_assume(&topology, "its rate is not said");
    does_not_assume(&topology, "ACS Request Redirect off");
    assert!(!topology.settings.acs_redirect);
    assert_eq!(topology.gpu_models(), ["rtx-pro-6000"]);
}

#[test]
fn acs_on_ports_of_a_switch_is_seen() {
    let text = lspci().replace("ReqRedir-", "ReqRedir+");
    assert!(machine(&[&text]).settings.acs_redirect);
}

#[test]
fn a_virtual_bridge_says_nothing() {
    let text =
        lspci().replacen("LnkSta:\tSpeed 32GT/s, Width x16", "LnkSta:\tSpeed 2.5GT/s, Width x1", 2);
    let topology = machine(&[&text]);
    assumes(&topology, "switch0: 2.5 GT/s x1 is what bridges without a wire say");
    assert_eq!(link_up(&topology, "switch0"), (5, 16));
}

#[test]
fn without_root_the_links_are_hidden() {
    let text: String = lspci()
        .lines()
        .filter(|line| !line.starts_with("\t\t"))
        .map(|line| match line.contains("Capabilities") {
            true => "\tCapabilities: <access denied>\n".to_owned(),
            false => format!("{line}\n"),
        })
        .collect();
    let topology = machine(&[&text]);
    assert_eq!(rows(&topology), ["X PIX NODE", "PIX X NODE", "NODE NODE X"]);
    assumes(&topology, "lspci was not run as root");
    assumes(&topology, "its rate is not said: taken as Gen5");
}

#[test]
fn a_list_without_a_tree_is_refused() {
    let plain: String = lspci()
        .lines()
        .filter(|line| !line.starts_with('\t'))
        .map(|line| format!("{line}\n"))
        .collect();
    refused(&plain, &["does not say what hangs on what", "sudo lspci -vvv"]);
    let bad = lspci().replacen("secondary=02", "secondary=zz", 1);
    refused(&bad, &["no bus below this bridge", "sample:19:1"]);
}

/// The same machine, drawn.
pub(super) const TREE: &str = "\
-+-[0000:40]-+-00.0  Advanced Micro Devices, Inc. [AMD] Device 14a4
 |           +-01.1-[41]----00.0  NVIDIA Corporation Device 2bb5
 |           \\-02.1-[42]--+-00.0  Mellanox Technologies MT2910 Family [ConnectX-7]
 |                        \\-00.1  Some Audio Thing
 \\-[0000:00]-+-00.0  Advanced Micro Devices, Inc. [AMD] Device 14a4
             +-01.1-[01-05]----00.0-[02-05]--+-00.0-[03]--+-00.0  NVIDIA Corporation Device 2bb5
             |                               |            \\-00.1  NVIDIA Corporation Device 22e8
             |                               +-01.0-[04]----00.0  NVIDIA Corporation Device 2bb5
             |                               \\-02.0-[05]--
             +-14.0  Advanced Micro Devices, Inc. [AMD] FCH SMBus Controller
             \\-18.7  Advanced Micro Devices, Inc. [AMD] Device 14b3
";

#[test]
fn a_drawn_tree_has_the_same_paths() {
    assert_eq!(format(TREE), "lspci-tree");
    let topology = machine(&[TREE]);
    assert_eq!(counts(&topology), [3, 1, 1, 2, 1]);
    assert_eq!(rows(&topology), ["X PIX NODE", "PIX X NODE", "NODE NODE X"]);
    assert_eq!(topology.gpu_models(), ["rtx-pro-6000"]);
    assumes(&topology, "its rate is not said: taken as Gen5");
    assumes(&topology, "ACS Request Redirect off");
}

#[test]
fn two_switches_in_a_row_are_pxb() {
    let tree = "\
-[0000:00]-+-00.0  Intel Corporation Device 09a2
           \\-01.0-[01-08]----00.0-[02-08]--+-00.0-[03-05]----00.0-[04-05]----00.0-[05]----00.0  NVIDIA Corporation Device 2684
                                           \\-01.0-[06-08]----00.0-[07-08]----00.0-[08]----00.0  NVIDIA Corporation Device 2684
";
    let topology = machine(&[tree]);
    assert_eq!(counts(&topology), [2, 3, 0, 1, 1]);
    assert_eq!(rows(&topology), ["X PXB", "PXB X"]);
}

#[test]
fn broken_drawings_are_shown() {
    let shifted = TREE.replace(" |           +-01.1", " |    +-01.1");
    refused(&shifted, &["sample:2:1", "a branch of nothing above it", "must keep their spaces"]);
    let nameless: String = TREE.lines().map(|line| line.split("  ").next().unwrap_or("")).fold(
        String::new(),
        |text, line| {
            if line.contains('[') && line.len() > 14 { text + line + "\n" } else { text }
        },
    );
    refused(&nameless, &["sample"]);
    refused(&TREE.replace("-[41]", "-[xy]"), &["sample:2:1", "`[xy]` is no range of buses"]);
}

/// hwloc 2: two packages, a switch below each host bridge.
pub(super) const HWLOC: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" nodeset="0x00000003">
    <object type="Package" os_index="0" nodeset="0x00000001">
      <info name="CPUVendor" value="GenuineIntel"/>
      <info name="CPUFamilyNumber" value="6"/>
      <info name="CPUModelNumber" value="143"/>
      <info name="CPUModel" value="Intel(R) Xeon(R) Platinum 8480+"/>
      <object type="NUMANode" os_index="0" nodeset="0x00000001"/>
      <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[15-1f]">
        <object type="Bridge" bridge_type="1-1" depth="1" bridge_pci="0000:[16-18]" pci_busid="0000:15:01.0" pci_type="0604 [8086:352a] [0000:0000] 04" pci_link_speed="63.015385">
          <object type="Bridge" bridge_type="1-1" depth="2" bridge_pci="0000:[17-18]" pci_busid="0000:16:00.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="63.015385">
            <object type="Bridge" bridge_type="1-1" depth="3" bridge_pci="0000:[18-18]" pci_busid="0000:17:00.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="63.015385">
              <object type="PCIDev" pci_busid="0000:18:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="63.015385">
                <info name="PCIVendor" value="NVIDIA Corporation"/>
              </object>
            </object>
            <object type="Bridge" bridge_type="1-1" depth="3" bridge_pci="0000:[19-19]" pci_busid="0000:17:01.0" pci_type="0604 [1000:c030] [1000:100b] b0" pci_link_speed="31.507692">
              <object type="PCIDev" pci_busid="0000:19:00.0" pci_type="0200 [15b3:101d] [15b3:0016] 00" pci_link_speed="31.507692"/>
            </object>
          </object>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" nodeset="0x00000002">
      <object type="NUMANode" os_index="1" nodeset="0x00000002"/>
      <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[97-9f]">
        <object type="Bridge" bridge_type="1-1" depth="1" bridge_pci="0000:[98-98]" pci_busid="0000:97:01.0" pci_type="0604 [8086:352a] [0000:0000] 04" pci_link_speed="15.753846">
          <object type="PCIDev" pci_busid="0000:98:00.0" pci_type="0302 [10de:2331] [10de:1626] a1" pci_link_speed="15.753846"/>
        </object>
      </object>
    </object>
  </object>
</topology>
"#;

#[test]
fn hwloc_shows_packages_and_rates() {
    assert_eq!(format(HWLOC), "hwloc");
    let topology = machine(&[HWLOC]);
    assert_eq!(counts(&topology), [2, 1, 1, 2, 2]);
    assert_eq!(rows(&topology), ["X SYS", "SYS X"]);
    assert_eq!(topology.gpu_models(), ["h100-sxm", "h100-pcie"]);
    assert_eq!((link_up(&topology, "gpu0"), link_up(&topology, "gpu1")), ((5, 16), (3, 16)));
    assert_eq!(link_up(&topology, "nic0"), (4, 16));
    does_not_assume(&topology, "two sockets");
    does_not_assume(&topology, "the CPU is not said");
    refused(&HWLOC.replace("</topology>", ""), &["this is no XML", "lstopo --of xml"]);
}
