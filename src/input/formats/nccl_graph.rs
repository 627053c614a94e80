//! NCCL's graph file (`NCCL_GRAPH_DUMP_FILE`): the order of its rings; the machine is in another
//! file.

use super::Format;
use crate::error::{Error, Result};
use crate::input::found::Found;
use crate::input::xml::{document, problem, starts_with};

/// The format.
pub(super) const FORMAT: Format = Format {
    name: "nccl-graph",
    title: "NCCL graph file",
    sniff: |text| starts_with(text, "graphs"),
    read,
};

const HELP: &str = "NCCL writes such a file with NCCL_GRAPH_DUMP_FILE";

fn read(file: &str, text: &str) -> Result<Found> {
    let document = document(file, text, HELP)?;
    let mut found = Found::from_source(file, FORMAT.title);
    let mut problems = Vec::new();
    let graphs = document.root_element().children().filter(|node| node.has_tag_name("graph"));
    let Some(ring) = graphs.into_iter().find(|graph| graph.attribute("id") == Some("0")) else {
        problems.push(problem(document.root_element(), "no graph with id=\"0\", the rings", HELP));
        return Err(Error::Input { file: file.into(), text: text.into(), problems });
    };
    let channels: Vec<_> = ring.children().filter(|node| node.has_tag_name("channel")).collect();
    if let Some(channel) = channels.first() {
        let mut order: Vec<u32> = Vec::new();
        for gpu in channel.children().filter(|node| node.has_tag_name("gpu")) {
            let dev = gpu.attribute("dev").unwrap_or("").trim();
            match u32::from_str_radix(dev.strip_prefix("0x").unwrap_or(dev), 16) {
                Ok(dev) if order.contains(&dev) => {
                    problems.push(problem(gpu, format!("GPU {dev} stands twice in this ring"), ""));
                }
                Ok(dev) => order.push(dev),
                Err(_) => {
                    let message = format!("`{dev}` is no number of a GPU");
                    problems.push(problem(gpu, message, "dev=\"0x1f\", hexadecimal"));
                }
            }
        }
        found.ring = Some(order).filter(|order| order.len() > 1);
    }
    if !problems.is_empty() {
        return Err(Error::Input { file: file.into(), text: text.into(), problems });
    }
    if channels.len() > 1 {
        found.remark(
            format!("ranks follow the first of {} rings of the graph file", channels.len()),
            "NCCL runs all of them at once for large calls",
        );
    }
    Ok(found)
}
