//! `nvidia-smi --query-gpu=.. --format=csv`: whatever columns were asked for.

use super::Format;
use super::smi_query::generation;
use super::text::leading_number;
use crate::error::{Error, Problem, Result};
use crate::input::found::{Address, Card, Found, LinkFact};

/// The format.
pub(super) const FORMAT: Format = Format {
    name: "smi-csv",
    title: "nvidia-smi --query-gpu as CSV",
    sniff: |text| {
        let header = text.trim_start().lines().next().unwrap_or("");
        header.contains(',') && (header.contains("pci.bus_id") || header.contains("pcie.link."))
    },
    read,
};

fn read(file: &str, text: &str) -> Result<Found> {
    let failed = |message: String, help: &str| {
        let problems = vec![Problem::new(message, "").help(help)];
        Error::Input { file: file.into(), text: text.into(), problems }
    };
    let mut rows = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(text.trim_start().as_bytes());
    let header = rows.headers().map_err(|error| failed(error.to_string(), ""))?.clone();
    // Newer drivers put units behind the names.
    let column = |name: &str| header.iter().position(|field| field.split(' ').next() == Some(name));
    let mut found = Found::from_source(file, FORMAT.title);
    for row in rows.records() {
        let row = row.map_err(|error| failed(error.to_string(), ""))?;
        let field = |name: &str| column(name).and_then(|at| row.get(at)).unwrap_or("");
        let number = |name: &str| leading_number(field(name)).map(|number| number as u32);
        let link_generation = |name: &str| generation(number(name));
        let width = |name: &str| LinkFact::new(None, number(name)).width;
        found.cards.push(Card {
            number: number("index"),
            address: Address::parse(field("pci.bus_id"))
                .or_else(|| Address::parse(field("gpu_bus_id"))),
            title: field("name").to_owned(),
            trained: LinkFact {
                generation: link_generation("pcie.link.gen.current")
                    .or_else(|| link_generation("pcie.link.gen.gpucurrent")),
                width: width("pcie.link.width.current"),
            },
            able: LinkFact {
                generation: link_generation("pcie.link.gen.max"),
                width: width("pcie.link.width.max"),
            },
        });
    }
    if found.cards.is_empty() {
        return Err(failed("a header and no GPU".to_owned(), "is the output cut off?"));
    }
    Ok(found)
}
