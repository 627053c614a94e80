//! A report as Markdown, for an issue: words and tables.

use super::content::{Block, Page};
use crate::report::table::TableFormat;

/// Writes it. Pictures are told by the command that draws them.
pub fn markdown(page: &Page, machine: &str) -> String {
    let mut out = format!("# {}\n", page.title);
    let mut drawn = Vec::new();
    for block in &page.blocks {
        match block {
            Block::Heading("Pictures") => {}
            Block::Heading(text) => out.push_str(&format!("\n## {text}\n")),
            Block::Text(text) => out.push_str(&format!("\n{text}\n")),
            Block::Table(table) => {
                out.push('\n');
                out.push_str(&table.write(TableFormat::Markdown));
            }
            Block::Code(text) => out.push_str(&format!("\n```\n{text}\n```\n")),
            Block::Picture(name, _) => drawn.push(*name),
            Block::Play(..) | Block::Sizes(_) => {}
        }
    }
    if let Some(first) = drawn.first() {
        out.push_str(&format!(
            "\nPictures ({}): `simulate plot {first} --topo {machine} --out {first}.svg`\n",
            drawn.join(", ")
        ));
    }
    out
}
