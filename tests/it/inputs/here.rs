//! `simulate here` on made-up PCI trees in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use collsim::input::found::faults::{Fault, survey};
use collsim::input::found::merge::merge;
use collsim::input::found::{Devices, Found};
use collsim::input::here::read_here;
use collsim::topology::{Topology, checks};

use super::{counts, link_up, rows};
use crate::cli::simulate;

/// A folder that stands for `/` and goes when it is done.
pub(crate) struct Root(PathBuf);

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A PCI function to make.
#[derive(Clone)]
pub(crate) struct Made {
    class: &'static str,
    ids: (&'static str, &'static str),
    numa: i32,
    /// Rate and width now, rate and width at most.
    now: (&'static str, u8),
    most: (&'static str, u8),
    /// Port type of the Express capability.
    port: u8,
    redirect: bool,
    /// Bytes of configuration space that can be read.
    visible: usize,
    group: Option<&'static str>,
}

const GEN5: &str = "32.0 GT/s PCIe";
const GEN4: &str = "16.0 GT/s PCIe";
const GEN1: &str = "2.5 GT/s PCIe";

fn bridge(port: u8) -> Made {
    Made {
        class: "0x060400",
        ids: ("0x1000", "0xc030"),
        numa: 0,
        now: (GEN5, 16),
        most: (GEN5, 16),
        port,
        redirect: false,
        visible: 4096,
        group: None,
    }
}

fn gpu() -> Made {
    Made { class: "0x030000", ids: ("0x10de", "0x2bb5"), group: Some("identity"), ..bridge(0) }
}

/// 4,096 bytes with an Express capability (payload 256, read requests 512, 10-bit tags on) and ACS.
fn config(made: &Made) -> Vec<u8> {
    let mut bytes = vec![0_u8; 4096];
    bytes[0x34] = 0x60;
    bytes[0x60] = 0x10;
    bytes[0x62] = 2 | made.port << 4;
    bytes[0x68..0x6a].copy_from_slice(&(1_u16 << 5 | 2 << 12).to_le_bytes());
    bytes[0x84..0x88].copy_from_slice(&(1_u32 << 17).to_le_bytes());
    bytes[0x88..0x8a].copy_from_slice(&(1_u16 << 12).to_le_bytes());
    // Two extended capabilities, the second is ACS.
    bytes[0x100..0x104].copy_from_slice(&(1_u32 | 1 << 16 | 0x148 << 20).to_le_bytes());
    bytes[0x148..0x14c].copy_from_slice(&(0x0d_u32 | 1 << 16).to_le_bytes());
    bytes[0x14e] = u8::from(made.redirect) << 2;
    bytes.truncate(made.visible);
    bytes
}

impl Root {
    fn new(name: &str) -> Root {
        let path = std::env::temp_dir().join(format!("collsim-here-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Root(path)
    }

    fn write(&self, file: &str, bytes: &[u8]) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, bytes).expect("written");
    }

    fn function(&self, place: &str, made: &Made) {
        let path = format!("sys/devices/{place}");
        let put = |file: &str, text: &str| self.write(&format!("{path}/{file}"), text.as_bytes());
        put("class", made.class);
        put("vendor", made.ids.0);
        put("device", made.ids.1);
        put("numa_node", &made.numa.to_string());
        put("current_link_speed", made.now.0);
        put("current_link_width", &made.now.1.to_string());
        put("max_link_speed", made.most.0);
        put("max_link_width", &made.most.1.to_string());
        if let Some(group) = made.group {
            put("iommu_group/type", group);
        }
        self.write(&format!("{path}/config"), &config(made));
    }

    /// Two EPYC 9575F; two GPUs below a switch, two at root ports of the same socket.
    pub(crate) fn four(name: &str, change: impl Fn(&str, &mut Made)) -> Root {
        let root = Root::new(name);
        let top = "pci0000:00/0000:00:01.1";
        let up = format!("{top}/0000:01:00.0");
        let all = [
            (top.to_owned(), bridge(4)),
            (up.clone(), bridge(5)),
            (format!("{up}/0000:02:00.0"), bridge(6)),
            (format!("{up}/0000:02:00.0/0000:03:00.0"), gpu()),
            (format!("{up}/0000:02:01.0"), bridge(6)),
            (format!("{up}/0000:02:01.0/0000:04:00.0"), gpu()),
            ("pci0000:40/0000:40:01.1".to_owned(), bridge(4)),
            ("pci0000:40/0000:40:01.1/0000:41:00.0".to_owned(), gpu()),
            ("pci0000:60/0000:60:01.1".to_owned(), bridge(4)),
            ("pci0000:60/0000:60:01.1/0000:61:00.0".to_owned(), gpu()),
        ];
        for (place, mut made) in all {
            change(place.rsplit('/').next().expect("a name"), &mut made);
            root.function(&place, &made);
        }
        for (node, first) in [(0, 0), (1, 64)] {
            root.write(
                &format!("sys/devices/system/node/node{node}/cpulist"),
                format!("{first}-{}", first + 63).as_bytes(),
            );
            let package = format!("sys/devices/system/cpu/cpu{first}/topology/physical_package_id");
            root.write(&package, node.to_string().as_bytes());
        }
        let cpu = "processor : 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC 9575F 64-Core Processor\n";
        root.write("proc/cpuinfo", cpu.as_bytes());
        root
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }

    fn found(&self) -> Found {
        read_here(&self.0).unwrap_or_else(|error| panic!("{error}"))
    }

    fn surveyed(&self) -> (Topology, Vec<Fault>) {
        let devices = Devices::embedded().expect("a table");
        let merged = merge(vec![self.found()]).expect("one machine");
        survey(merged, &devices, &collsim::input::Stated::default(), "here").expect("a machine")
    }
}

fn told(faults: &[Fault]) -> Vec<&str> {
    faults.iter().map(|fault| fault.what.as_str()).collect()
}

#[test]
fn a_sound_machine_is_read_and_nothing_is_wrong() {
    let root = Root::four("sound", |_, _| {});
    let (topology, faults) = root.surveyed();
    assert_eq!(checks::check(&topology), []);
    assert_eq!(told(&faults), [""; 0]);
    assert_eq!(counts(&topology), [4, 1, 0, 3, 2]);
    assert_eq!(rows(&topology)[0], "X PIX NODE NODE");
    assert_eq!(topology.gpu_models(), ["rtx-pro-6000"]);
    let cpu = topology.find("cpu1").expect("a second socket");
    assert_eq!(topology.kind(cpu).model(), Some(("socket", "epyc-turin")));
    let one = &root.found().functions;
    let first = one.iter().find(|f| f.address.to_string() == "0000:03:00.0").expect("a GPU");
    assert_eq!(
        (first.payload, first.read_request, first.tags),
        (Some(256), Some(512), Some((true, true)))
    );
}

#[test]
fn idle_links_are_no_fault_and_slow_ones_are() {
    let root = Root::four("links", |place, made| match place {
        "0000:03:00.0" => made.now = (GEN1, 16),
        "0000:41:00.0" => made.now = (GEN5, 8),
        "0000:01:00.0" => made.now = (GEN4, 16),
        _ => {}
    });
    let (topology, faults) = root.surveyed();
    assert_eq!(link_up(&topology, "gpu0"), (5, 16));
    assert_eq!(
        told(&faults),
        [
            "gpu2 (0000:41:00.0) trained to Gen5 x8, both ends could do Gen5 x16",
            "switch0 (0000:01:00.0) trained to Gen4 x16, both ends could do Gen5 x16",
        ]
    );
    let mended = faults[1].mended.as_ref().expect("a machine");
    assert_eq!((link_up(&topology, "switch0"), link_up(mended, "switch0")), ((4, 16), (5, 16)));
}

#[test]
fn acs_iommu_and_a_far_gpu() {
    let root = Root::four("settings", |place, made| {
        made.redirect = made.port == 6;
        made.group = made.group.map(|_| "DMA-FQ");
        if place.starts_with("0000:6") {
            made.numa = 1;
        }
    });
    let (topology, faults) = root.surveyed();
    assert!(topology.settings.acs_redirect && topology.settings.iommu);
    assert_eq!(
        told(&faults),
        [
            "ACS Request Redirect is on at 0000:02:00.0, 0000:02:01.0",
            "the IOMMU translates what GPUs send",
            "gpu3 on another socket than the other GPUs",
        ]
    );
    let near = faults[2].mended.as_ref().expect("a machine");
    assert_eq!(
        (rows(&topology)[3].as_str(), rows(near)[3].as_str()),
        ("SYS SYS SYS X", "NODE NODE NODE X")
    );
    assert_eq!(checks::check(near), []);
}

#[test]
fn without_root_settings_are_hidden() {
    let root = Root::four("hidden", |_, made| made.visible = 64);
    let (topology, faults) = root.surveyed();
    assert!(topology.assumptions.iter().any(|a| a.what.contains("hidden without root")));
    assert_eq!(told(&faults), [""; 0]);
    assert_eq!(rows(&topology)[0], "X PIX NODE NODE");
}

#[test]
fn the_program_orders_faults_by_what_they_cost() {
    let root = Root::four("page", |place, made| match place {
        "0000:41:00.0" => made.now = (GEN4, 8),
        "0000:03:00.0" => made.numa = -1,
        _ => made.group = made.group.map(|_| "DMA"),
    });
    let path = root.0.to_string_lossy().into_owned();
    let out = root.0.join("here.json").to_string_lossy().into_owned();
    let run = simulate(&["here", "--root", &path, "--out", &out]);
    assert_eq!(run.code, 0, "{}", run.err);
    let place =
        |part: &str| run.out.find(part).unwrap_or_else(|| panic!("no `{part}` in\n{}", run.out));
    assert!(place("trained to Gen4 x8") < place("the IOMMU translates"), "{}", run.out);
    assert!(place("the IOMMU translates") < place("the kernel knows no NUMA node"), "{}", run.out);
    place("cure: reseat card and riser");
    place("?: no part of the model stands for it");
    assert_eq!(simulate(&["topo", "check", &out]).code, 0);
}

#[test]
fn where_there_is_nothing_to_see() {
    let run = simulate(&["here", "--root", "/nonexistent"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("no PCI device to be seen there"), "{}", run.err);
    let empty = Root::new("empty");
    empty.write("sys/devices/pci0000:00/0000:00:02.0/class", b"0x060000");
    assert!(read_here(Path::new(&empty.0)).is_err());
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_not_read() {
    let root = Root::four("endless", |_, _| {});
    let sound = root.found();
    let gpu = "sys/devices/pci0000:40/0000:40:01.1/0000:41:00.0";
    for file in [format!("{gpu}/config"), format!("{gpu}/numa_node"), "proc/cpuinfo".to_owned()] {
        let path = root.0.join(&file);
        let text = fs::read(&path).expect("made");
        fs::remove_file(&path).expect("ours");
        std::os::unix::fs::symlink("/dev/zero", &path).expect("ours");
        assert_eq!(root.found().functions.len(), sound.functions.len(), "{file}");
        fs::remove_file(&path).expect("ours");
        // A large file, most of it a hole: its start is what counts.
        fs::write(&path, &text).expect("ours");
        let large = fs::OpenOptions::new().write(true).open(&path).expect("ours");
        large.set_len(1 << 36).expect("a hole");
        let found = root.found();
        assert_eq!(found.functions.len(), sound.functions.len(), "{file}");
        assert!(file.ends_with("numa_node") || found == sound, "{file}");
        fs::write(&path, &text).expect("ours");
    }
    assert_eq!(root.found(), sound);
}

#[test]
fn a_name_that_no_file_may_have_is_refused_before_the_work() {
    let root = Root::four("named", |_, _| {});
    let out = format!("{}/x.json", root.path());
    let long = "x".repeat(checks::NAME_MAX + 1);
    for (name, part) in [("", "empty"), (" ", "empty"), ("a\nb", "control"), (&long, "61")] {
        for command in [&["here", "--root", root.path(), "-o", &out][..], &["import", "x.json"]] {
            let run = simulate(&[command, &["--name", name]].concat());
            assert!(run.code == 2 && run.out.is_empty() && run.err.contains(part), "{}", run.err);
        }
        assert!(!Path::new(&out).exists());
    }
    let run = simulate(&["here", "--root", root.path(), "-o", &out, "--name", "mine"]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(simulate(&["topo", "check", &out]).code, 0);
}
