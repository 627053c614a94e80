//! `nvidia-smi -q`, as text and as XML (`-x`): products, bus ids, PCIe links now and at most.

use roxmltree::Node;

use super::Format;
use super::text::leading_number;
use crate::error::{Error, Problem, Result};
use crate::input::found::{Address, Card, Found, LinkFact};
use crate::input::xml::{document, starts_with};
use crate::lines::{lines, problem};

/// The text.
pub(super) const FORMAT: Format = Format {
    name: "smi-query",
    title: "nvidia-smi -q",
    sniff: |text| text.contains("NVSMI LOG") || text.contains("Attached GPUs"),
    read,
};

/// The XML.
pub(super) const XML: Format = Format {
    name: "smi-xml",
    title: "nvidia-smi -q -x",
    sniff: |text| starts_with(text, "nvidia_smi_log"),
    read: read_xml,
};

fn read(file: &str, text: &str) -> Result<Found> {
    let mut found = Found::from_source(file, FORMAT.title);
    let mut problems = Vec::new();
    // The heading that the lines with Max and Current stand below.
    let mut heading = "";
    for line in lines(text) {
        let words = line.text.trim();
        if let Some(place) = line.text.strip_prefix("GPU ") {
            match Address::parse(place) {
                Some(place) => {
                    found.cards.push(Card { address: Some(place), ..Card::default() });
                }
                None => {
                    problems.push(problem(&line, "expected a bus id", "such as 00000000:3B:00.0"))
                }
            }
            continue;
        }
        let Some(card) = found.cards.last_mut() else { continue };
        let Some((key, value)) = words.split_once(':').map(|(k, v)| (k.trim(), v.trim())) else {
            heading = match words {
                "PCIe Generation" => "generation",
                "Link Width" => "width",
                _ => "",
            };
            continue;
        };
        if key == "Product Name" {
            value.clone_into(&mut card.title);
        }
        let number = leading_number(value).map(|number| number as u32);
        match (heading, key) {
            ("generation", "Max") => card.able.generation = generation(number),
            ("generation", "Current") => card.trained.generation = generation(number),
            ("width", "Max") => card.able.width = LinkFact::new(None, number).width,
            ("width", "Current") => card.trained.width = LinkFact::new(None, number).width,
            _ => {}
        }
    }
    finish(file, text, found, problems)
}

/// A PCIe generation, where the number is one.
pub(super) fn generation(number: Option<u32>) -> Option<u8> {
    number.filter(|n| (1..=6).contains(n)).map(|n| n as u8)
}

fn finish(file: &str, text: &str, found: Found, mut problems: Vec<Problem>) -> Result<Found> {
    if found.cards.is_empty() && problems.is_empty() {
        problems.push(Problem::new("no GPU in it", "").help("is the output cut off?"));
    }
    if problems.is_empty() {
        return Ok(found);
    }
    Err(Error::Input { file: file.into(), text: text.into(), problems })
}

fn read_xml(file: &str, text: &str) -> Result<Found> {
    let document = document(file, text, "write it with `nvidia-smi -q -x`")?;
    let mut found = Found::from_source(file, XML.title);
    let mut problems = Vec::new();
    for gpu in document.root_element().children().filter(|node| node.has_tag_name("gpu")) {
        let id = gpu.attribute("id").unwrap_or("");
        let Some(place) = Address::parse(id) else {
            problems.push(crate::input::xml::problem(gpu, format!("`{id}` is no bus id"), ""));
            continue;
        };
        let number = |name| value(gpu, name).and_then(leading_number).map(|number| number as u32);
        let link = |rate, width| LinkFact {
            generation: generation(number(rate)),
            width: LinkFact::new(None, number(width)).width,
        };
        found.cards.push(Card {
            number: None,
            address: Some(place),
            title: value(gpu, "product_name").unwrap_or("").to_owned(),
            trained: link("current_link_gen", "current_link_width"),
            able: link("max_link_gen", "max_link_width"),
        });
    }
    finish(file, text, found, problems)
}

/// The text of the first element of this name.
fn value<'a>(gpu: Node<'a, '_>, name: &str) -> Option<&'a str> {
    gpu.descendants().find(|node| node.has_tag_name(name))?.text()
}
