//! What is no machine: told what it looks like, who reads it, and where it is wrong; by the
//! program, from files and from a pipe.

use std::fs;

use crate::cli::{Run, simulate, simulate_with};

/// A file of this text in an own place.
fn file(name: &str, text: &str) -> String {
    let folder = std::env::temp_dir().join(format!("collsim-inputs-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join(name);
    fs::write(&path, text).expect("written");
    path.to_string_lossy().into_owned()
}

#[track_caller]
fn refused(run: &Run, parts: &[&str]) {
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{}", run.err);
    for part in parts {
        assert!(run.err.contains(part), "no `{part}` in\n{}", run.err);
    }
}

const PAIR: &str = "GPU0\t X \tPHB\nGPU1\tPHB\t X \n";

#[test]
fn a_pipe_is_a_machine() {
    let run = simulate_with(&["topo", "show", "-", "--assumptions"], PAIR.as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("GPU1   PHB     X"), "{}", run.out);
    assert!(run.out.contains("its rate is not said: taken as Gen5\n    if not: "), "{}", run.out);
    let run = simulate_with(&["topo", "convert", "-", "--assume", "gpu=rtx-4090"], PAIR.as_bytes());
    assert!(run.out.contains("{\"gpu\": {\"model\": \"rtx-4090\"}}"), "{}", run.out);
    let again = simulate_with(&["topo", "show", "-"], run.out.as_bytes());
    assert!(again.out.contains("GPU1   PHB     X"), "{}\n{}", again.out, again.err);
}

#[test]
fn several_files_are_one_machine_and_a_graph_orders_ranks() {
    let matrix = file(
        "four.txt",
        "GPU0 X PIX PHB PHB\nGPU1 PIX X PHB PHB\nGPU2 PHB PHB X PIX\nGPU3 PHB PHB PIX X\n",
    );
    let graph = file(
        "graph.xml",
        "<graphs version=\"1\"><graph id=\"0\"><channel><gpu dev=\"0\"/><gpu dev=\"2\"/>\
         <gpu dev=\"0x3\"/><gpu dev=\"1\"/></channel></graph></graphs>",
    );
    let run = simulate(&[
        "--topo",
        &matrix,
        "--topo",
        &graph,
        "--scenario",
        "qwen3-5-397b-tp4",
        "--fidelity",
        "alpha_beta",
    ]);
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("ranks follow the graph file: 0,2,3,1"), "{}", run.out);
    refused(
        &simulate(&["--topo", &graph]),
        &["order of rings, not the machine", "--topo topo.xml"],
    );
    let pair = file("pair.txt", PAIR);
    refused(&simulate(&["--topo", &pair, "--topo", &graph]), &["has GPU 2", "GPUs 0 to 1"]);
    refused(
        &simulate(&["--topo", "h200x2-nvlink-pair", "--topo", "h200-host-link"]),
        &["a second topology file"],
    );
}

#[test]
fn a_format_can_be_forced() {
    let pair = file("forced.txt", PAIR);
    assert_eq!(simulate(&["topo", "show", &format!("smi-topo:{pair}")]).code, 0);
    let run = simulate(&["topo", "show", &format!("nccl-topo:{pair}")]);
    refused(&run, &["this is no XML", "forced.txt:1:"]);
}

#[test]
fn other_files_say_who_reads_them() {
    let tests =
        "# nThread 1 nGpus 8 minBytes 8 maxBytes 1024 step: 2(factor)\n#  size  count  type\n";
    let run = simulate(&["--topo", &file("log.txt", tests)]);
    refused(
        &run,
        &[
            "looks like nccl-tests",
            "log.txt:1:1",
            "`simulate check --measured FILE --topo MACHINE` reads it",
        ],
    );
    let run =
        simulate(&["--topo", &file("trace.json", "{\"schemaVersion\": 1, \"traceEvents\": [")]);
    refused(&run, &["a trace of the torch profiler", "`simulate import FILE` reads it"]);
    let run = simulate(&["--topo", &file("prose.txt", "\nDear all,\nmy box is slow\n")]);
    refused(
        &run,
        &[
            "describes no machine in any known form",
            "prose.txt:2:1",
            "Dear all",
            "nvidia-smi topo -m",
        ],
    );
}

#[test]
fn slips_in_what_is_stated() {
    let pair = file("stated.txt", PAIR);
    let run = |text: &str| simulate(&["--topo", &pair, "--assume", text]);
    refused(&run("gpu=h20"), &["there is no gpu `h20`", "did you mean `h200`?"]);
    refused(&run("gpus=h200"), &["nothing is called `gpus`", "did you mean `gpu`?"]);
    refused(&run("pcie=5x32"), &["`5x32` is no PCIe link"]);
    refused(&run("sockets=0"), &["1 to 8"]);
    refused(&run("h200"), &["expected NAME=VALUE"]);
}

#[test]
fn a_machine_is_written_as_the_files_ending_says() {
    let folder = std::env::temp_dir().join(format!("collsim-shown-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let shown = |name: &str| {
        let path = folder.join(name);
        let run =
            simulate(&["topo", "show", "rtxpro6000x8-flat", "--out", &path.to_string_lossy()]);
        assert_eq!(run.code, 0, "{}", run.err);
        fs::read_to_string(path).expect("written")
    };
    assert!(shown("m.txt").contains("GPU7"));
    let topology = collsim::input::topology_json::parse("m.json", &shown("m.json")).expect("JSON");
    assert_eq!(topology.name, "rtxpro6000x8-flat");
    let dot = shown("m.dot");
    // Every node once, every link once, and a line from a socket to each bridge and memory of it.
    let inside = |kind: &collsim::topology::NodeKind| {
        use collsim::topology::NodeKind::{HostBridge, HostMemory};
        matches!(kind, HostBridge(_) | HostMemory(_))
    };
    assert!(dot.starts_with("graph \"rtxpro6000x8-flat\" {\n") && dot.ends_with("}\n"), "{dot}");
    assert_eq!(dot.matches("[shape=").count(), topology.nodes.len());
    let joined = topology.nodes.iter().filter(|node| inside(&node.kind)).count();
    assert_eq!(dot.matches(" -- ").count(), topology.links.len() + joined);
    let svg = shown("m.svg");
    assert!(svg.contains("<svg") && svg.contains("No load.") && svg.contains("GPU"), "{svg}");
    let run = simulate(&["topo", "show", "rtxpro6000x8-flat", "--out", "m.png"]);
    refused(&run, &["the form of a machine is told by the file's ending", ".svg"]);
    fs::remove_dir_all(&folder).expect("gone");
}
