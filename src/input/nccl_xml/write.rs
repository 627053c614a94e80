//! Writing both files as NCCL reads them.

use std::fmt::Write;

use crate::selection::nccl::graph::{Graph, PathType, Pattern};
use crate::selection::nccl::inventory::{Cpu, Function, Gpu, Inventory, Net, Pci};
use crate::selection::nccl::search::Graphs;

/// An element with its attributes, open or closed by itself.
fn element(text: &mut String, depth: usize, name: &str, attributes: &[(&str, String)], open: bool) {
    let pad = "  ".repeat(depth);
    // Writing to a String does not fail.
    let _ = write!(text, "{pad}<{name}");
    for (key, value) in attributes {
        let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
        let _ = write!(text, " {key}=\"{value}\"");
    }
    text.push_str(if open { ">\n" } else { "/>\n" });
}

fn close(text: &mut String, depth: usize, name: &str) {
    let _ = writeln!(text, "{}</{name}>", "  ".repeat(depth));
}

/// A system file (`NCCL_TOPO_FILE`). NCCL finds its GPUs by bus id: those of a machine that was not
/// read from such a file are made up and must be replaced.
pub fn write_system(machine: &Inventory) -> String {
    let mut text = String::new();
    let mut attributes = vec![("version", "1".to_owned())];
    if let Some(name) = &machine.name {
        attributes.push(("name", name.clone()));
    }
    element(&mut text, 0, "system", &attributes, true);
    for cpu in &machine.cpus {
        write_cpu(&mut text, cpu);
    }
    close(&mut text, 0, "system");
    text
}

fn write_cpu(text: &mut String, cpu: &Cpu) {
    let mut attributes = Vec::new();
    if let Some(hash) = &cpu.host_hash {
        attributes.push(("host_hash", hash.clone()));
    }
    attributes.push(("numaid", cpu.numa.to_string()));
    if !cpu.affinity.is_empty() {
        attributes.push(("affinity", cpu.affinity.clone()));
    }
    attributes.push(("arch", cpu.names.arch.clone()));
    if !cpu.names.vendor.is_empty() {
        attributes.push(("vendor", cpu.names.vendor.clone()));
        attributes.push(("familyid", cpu.names.family.to_string()));
        attributes.push(("modelid", cpu.names.model.to_string()));
    }
    element(text, 1, "cpu", &attributes, true);
    for device in &cpu.devices {
        write_pci(text, device, 2);
    }
    if !cpu.networks.is_empty() {
        write_nic(text, &cpu.networks, 2);
    }
    close(text, 1, "cpu");
}

fn write_pci(text: &mut String, device: &Pci, depth: usize) {
    let mut attributes =
        vec![("busid", device.bus_id.clone()), ("class", format!("{:#08x}", device.class))];
    let names = ["vendor", "device", "subsystem_vendor", "subsystem_device"];
    for (place, name) in names.into_iter().enumerate() {
        let id = device.ids >> (48 - 16 * place) & 0xffff;
        attributes.push((name, format!("{id:#06x}")));
    }
    let speed = device.gt_per_s.map_or(String::new(), |rate| format!("{rate:.1} GT/s PCIe"));
    attributes.push(("link_speed", speed));
    attributes.push(("link_width", device.width.to_string()));
    let open = !matches!(device.function, Function::Other);
    element(text, depth, "pci", &attributes, open);
    match &device.function {
        Function::Bridge { devices, peers } => {
            for below in devices {
                write_pci(text, below, depth + 1);
            }
            for peer in peers {
                element(text, depth + 1, "pcilink", &[("target", peer.clone())], false);
            }
        }
        Function::Gpu(gpu) => write_gpu(text, gpu, depth + 1),
        Function::Nic(nets) => write_nic(text, nets, depth + 1),
        Function::Other => {}
    }
    if open {
        close(text, depth, "pci");
    }
}

fn write_gpu(text: &mut String, gpu: &Gpu, depth: usize) {
    let mut attributes = vec![("dev", gpu.dev.to_string())];
    if let Some(number) = gpu.compute_capability {
        attributes.push(("sm", number.to_string()));
    }
    if let Some(rank) = gpu.rank {
        attributes.push(("rank", rank.to_string()));
    }
    attributes.push(("gdr", u32::from(gpu.gdr).to_string()));
    let open = !gpu.nvlinks.is_empty() || gpu.c2c.is_some();
    element(text, depth, "gpu", &attributes, open);
    for links in &gpu.nvlinks {
        let attributes = [
            ("target", links.target.clone()),
            ("count", links.count.to_string()),
            ("tclass", format!("{:#08x}", links.target_class)),
        ];
        element(text, depth + 1, "nvlink", &attributes, false);
    }
    if let Some((count, rate)) = gpu.c2c {
        let attributes = [("bw", rate.to_string()), ("count", count.to_string())];
        element(text, depth + 1, "c2c", &attributes, false);
    }
    if open {
        close(text, depth, "gpu");
    }
}

fn write_nic(text: &mut String, nets: &[Net], depth: usize) {
    element(text, depth, "nic", &[], true);
    for net in nets {
        let mut attributes = vec![("name", net.name.clone())];
        if let Some(dev) = net.dev {
            attributes.push(("dev", dev.to_string()));
        }
        attributes.push(("speed", net.speed.to_string()));
        attributes.push(("port", net.port.to_string()));
        attributes.push(("latency", format!("{:.6}", net.latency)));
        attributes.push(("guid", net.guid.clone()));
        attributes.push(("maxconn", net.maxconn.to_string()));
        attributes.push(("gdr", u32::from(net.gdr).to_string()));
        element(text, depth + 1, "net", &attributes, false);
    }
    close(text, depth, "nic");
}

/// A graph file (`NCCL_GRAPH_FILE`) of one machine. Graphs without channels are left to the search.
pub fn write_graphs(graphs: &Graphs, machine: &Inventory) -> String {
    let devs: Vec<(u32, u32)> =
        machine.gpus().into_iter().filter_map(|(_, gpu)| Some((gpu.rank?, gpu.dev))).collect();
    let mut text = String::new();
    element(&mut text, 0, "graphs", &[("version", "1".to_owned())], true);
    write_graph(&mut text, 0, Some(&graphs.ring), Pattern::Ring, &devs);
    write_graph(&mut text, 1, Some(&graphs.tree), Pattern::BalancedTree, &devs);
    write_graph(&mut text, 4, None, Pattern::CollnetDirect, &devs);
    write_graph(&mut text, 2, None, Pattern::Tree, &devs);
    write_graph(&mut text, 3, graphs.nvls.as_ref(), Pattern::Nvls, &devs);
    close(&mut text, 0, "graphs");
    text
}

fn write_graph(
    text: &mut String,
    id: u32,
    graph: Option<&Graph>,
    pattern: Pattern,
    devs: &[(u32, u32)],
) {
    let none: &[Vec<u32>] = &[];
    let channels = graph.map_or(none, |graph| &graph.channels);
    // Rates are single precision in NCCL and written short.
    let rate = |of: fn(&Graph) -> f64| graph.map_or(0.0, of) as f32;
    let kind = |of: fn(&Graph) -> PathType| graph.map_or(PathType::Loc, of).name().to_owned();
    let flag = |on: bool| u32::from(on).to_string();
    let attributes = [
        ("id", id.to_string()),
        ("pattern", graph.map_or(pattern, |graph| graph.pattern).number().to_string()),
        ("crossnic", graph.map_or(0, |graph| graph.cross_nic).to_string()),
        ("nchannels", channels.len().to_string()),
        ("speedintra", rate(|graph| graph.bw_intra).to_string()),
        ("speedinter", rate(|graph| graph.bw_inter).to_string()),
        ("latencyinter", rate(|graph| graph.latency_inter_us).to_string()),
        ("typeintra", kind(|graph| graph.type_intra)),
        ("typeinter", kind(|graph| graph.type_inter)),
        ("samechannels", flag(graph.is_some_and(|graph| graph.same_channels))),
    ];
    element(text, 1, "graph", &attributes, !channels.is_empty());
    for channel in channels {
        element(text, 2, "channel", &[], true);
        for rank in channel {
            let dev = devs.iter().find(|entry| entry.0 == *rank).map_or(*rank, |entry| entry.1);
            // As C's %#lx: no prefix for zero.
            let written = if dev == 0 { "0".to_owned() } else { format!("{dev:#x}") };
            element(text, 3, "gpu", &[("dev", written)], false);
        }
        close(text, 2, "channel");
    }
    if !channels.is_empty() {
        close(text, 1, "graph");
    }
}
