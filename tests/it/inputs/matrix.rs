//! `nvidia-smi topo -m` in the layouts of several drivers.

use super::{assumes, counts, does_not_assume, format, machine, nvlinks, refused, rows};

/// A driver of 2024: tabs, an underlined header, NICs, legends.
pub(super) const NEW: &str = "\u{1b}[4m\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
GPU0\t X \tPIX\tPXB\tPXB\tPIX\tSYS\t0-63,128-191\t0\t\tN/A\n\
GPU1\tPIX\t X \tPXB\tPXB\tPIX\tSYS\t0-63,128-191\t0\t\tN/A\n\
GPU2\tPXB\tPXB\t X \tPIX\tPXB\tSYS\t0-63,128-191\t0\t\tN/A\n\
GPU3\tPXB\tPXB\tPIX\t X \tPXB\tSYS\t0-63,128-191\t0\t\tN/A\n\
NIC0\tPIX\tPIX\tPXB\tPXB\t X \tSYS\t\t\t\t\n\
NIC1\tSYS\tSYS\tSYS\tSYS\tSYS\t X \t\t\t\t\n\
\n\
Legend:\n\
\n\
  X    = Self\n\
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n\
\n\
NIC Legend:\n\
\n\
  NIC0: mlx5_0\n\
  NIC1: mlx5_1\n";

const NEW_ROWS: [&str; 4] = ["X PIX PXB PXB", "PIX X PXB PXB", "PXB PXB X PIX", "PXB PXB PIX X"];

#[test]
fn tabs_underlines_nics_and_legends() {
    assert_eq!(format(NEW), "smi-topo");
    let topology = machine(&[NEW]);
    assert_eq!(rows(&topology), NEW_ROWS);
    // Two switches below a third; the far NIC is on the other socket.
    assert_eq!(counts(&topology), [4, 3, 2, 2, 2]);
    does_not_assume(&topology, "conflict");
    does_not_assume(&topology, "lacks cells");
}

#[test]
fn the_same_without_header_colors_legend_or_nics() {
    let rows_only: String =
        NEW.lines().filter(|line| line.starts_with("GPU")).fold(String::new(), |text, line| {
            text + &line.split_whitespace().take(5).collect::<Vec<_>>().join("   ") + "\r\n"
        });
    let topology = machine(&[&rows_only]);
    assert_eq!(rows(&topology), NEW_ROWS);
    assert_eq!(counts(&topology), [4, 3, 0, 1, 1]);
    assumes(&topology, "one socket: no file says NUMA nodes");
}

#[test]
fn as_a_markdown_table_within_a_report() {
    let report = "Here is my topology:\n\n| | GPU0 | GPU1 | CPU Affinity | NUMA Affinity |\n|---|---|---|---|---|\n\
                  | GPU0 | X | PHB | 0-15 | 0 |\n| GPU1 | PHB | X | 0-15 | 0 |\n";
    assert_eq!(rows(&machine(&[report])), ["X PHB", "PHB X"]);
}

#[test]
fn an_old_driver() {
    let old = "\tGPU0\tGPU1\tGPU2\tmlx4_0\tCPU Affinity\n\
               GPU0\t X \tPIX\tSOC\tPHB\t0-7,16-23\n\
               GPU1\tPIX\t X \tSOC\tPHB\t0-7,16-23\n\
               GPU2\tSOC\tSOC\t X \tSOC\t8-15,24-31\n\
               mlx4_0\tPHB\tPHB\tSOC\t X \t\n";
    let topology = machine(&[old]);
    assert_eq!(rows(&topology), ["X PIX SYS", "PIX X SYS", "SYS SYS X"]);
    assert_eq!(counts(&topology), [3, 1, 1, 2, 2]);
}

#[test]
fn missing_rows_are_taken_from_the_columns() {
    let without: String = NEW
        .lines()
        .filter(|line| !line.starts_with("GPU2"))
        .map(|line| format!("{line}\n"))
        .collect();
    let topology = machine(&[&without]);
    assert_eq!(rows(&topology), NEW_ROWS);
    does_not_assume(&topology, "lacks cells");
    // Cut off within the third row: the pair 2-3 is in no row.
    let end = NEW.find("GPU2\tPXB").expect("a row") + "GPU2\tPXB".len();
    let topology = machine(&[&NEW[..end]]);
    assert_eq!(rows(&topology)[0], "X PIX PXB PXB");
    assumes(&topology, "the matrix lacks cells");
}

#[test]
fn nvlinks_in_pairs_in_a_mesh_and_by_switches() {
    let mesh = "GPU0 X NV1 NV1 NV2\nGPU1 NV1 X NV2 NV1\nGPU2 NV1 NV2 X NV1\nGPU3 NV2 NV1 NV1 X\n";
    let topology = machine(&[mesh]);
    assert_eq!(rows(&topology)[0], "X NV1 NV1 NV2");
    assert_eq!(nvlinks(&topology).len(), 6);
    assert_eq!(topology.gpu_models(), ["v100"]);
    let all = "GPU0 X NV12 NV12 NV12\nGPU1 NV12 X NV12 NV12\nGPU2 NV12 NV12 X NV12\nGPU3 NV12 NV12 NV12 X\n";
    let topology = machine(&[all]);
    assert_eq!(nvlinks(&topology), [0, 1, 2, 3].map(|gpu| format!("gpu{gpu}-nvswitch x12")));
    let pairs = "GPU0 X NV4 SYS\nGPU1 NV4 X SYS\nGPU2 SYS SYS X\n";
    assert_eq!(nvlinks(&machine(&[pairs])), ["gpu0-gpu1 x4"]);
}

#[test]
fn what_the_answer_hangs_on_stands_on_the_first_screen() {
    let told = |text: &str| {
        let run = crate::cli::simulate_with(&["--topo", "-"], text.as_bytes());
        assert_eq!(run.code, 0, "{}", run.err);
        let notes = run.out.lines().filter_map(|line| line.strip_prefix("  note: "));
        notes.map(str::to_owned).collect::<Vec<String>>()
    };
    let guessed = "gpu0, gpu1, gpu2, gpu3: its model is not said: taken as rtx-pro-6000";
    let notes = told(NEW);
    assert!(notes.iter().any(|note| note == guessed), "{notes:?}");
    assert!(!notes.iter().any(|note| note.starts_with("conflict")), "{notes:?}");
    let notes = told(&NEW.replace("GPU1\tPIX\t X ", "GPU1\tPHB\t X "));
    let conflict = "conflict: GPU0-GPU1 is PIX in one row, PHB in the other";
    assert!(notes.iter().any(|note| note == conflict), "{notes:?}");
    assert!(notes.iter().any(|note| note == guessed), "{notes:?}");
}

#[test]
fn a_matrix_that_contradicts_itself_is_read_with_a_conflict() {
    let odd = "GPU0 X PIX SYS\nGPU1 PIX X PIX\nGPU2 SYS PIX X\n";
    let topology = machine(&[odd]);
    assumes(&topology, "conflict: GPU0-GPU2: SYS in the matrix, PIX here");
    let two = "GPU0 X PIX\nGPU1 PHB X\n";
    let topology = machine(&[two]);
    assumes(&topology, "conflict: GPU0-GPU1 is PIX in one row, PHB in the other");
    assert_eq!(rows(&topology), ["X PIX", "PIX X"]);
}

#[test]
fn broken_rows_are_shown() {
    refused(
        "GPU0 X PIX\nGPU1 PIX X\n        GPU0 GPU1\nGPU1 PIX X\n",
        &["sample:4:1", "row GPU1 stands twice"],
    );
    let wrong = NEW.replace("GPU1\tPIX", "GPU1\tPIXX");
    refused(&wrong, &["sample:3:1", "`PIXX` is no path type", "SYS, NODE, PHB"]);
    let shifted = "        GPU0 GPU1\nGPU0 X SYS\nGPU1 X SYS\n";
    refused(shifted, &["sample:3:1", "GPU1 and itself: SYS, expected X"]);
    refused(
        "        GPU0 GPU1\nGPU0 X SYS\nGPU7 SYS X\n",
        &["sample:3:1", "row GPU7 has no column"],
    );
}

#[test]
fn peer_to_peer_states() {
    let fine = " \tGPU0\tGPU1\t\n GPU0\tX\tOK\t\n GPU1\tOK\tX\t\n\nLegend:\n  OK  = Status Ok\n";
    let off = fine.replace("\tOK", "\tCNS");
    assert_eq!((format(fine), format(&off)), ("smi-p2p", "smi-p2p"));
    let matrix = "GPU0 X PHB\nGPU1 PHB X\n";
    let topology = machine(&[matrix, fine]);
    assert!(topology.settings.peer_to_peer);
    does_not_assume(&topology, "P2P on");
    let topology = machine(&[&off, matrix]);
    assert!(!topology.settings.peer_to_peer);
    assumes(&topology, "P2P is off: not supported by the chipset");
    refused(" GPU0 X OK\n GPU1 MAYBE X\n", &["sample:2:1", "`MAYBE` is no state of P2P"]);
}
