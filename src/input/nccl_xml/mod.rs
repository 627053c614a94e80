//! NCCL's XML: the system file (`NCCL_TOPO_FILE`, `NCCL_TOPO_DUMP_FILE`) and the graph file
//! (`NCCL_GRAPH_FILE`, `NCCL_GRAPH_DUMP_FILE`), read and written.

mod graph;
mod system;
mod write;

use roxmltree::{Document, Node};

use crate::error::{Error, Problem, Result, Span};

pub use graph::read_graphs;
pub use system::read_system;
pub use write::{write_graphs, write_system};

/// Largest file read, in bytes.
pub const XML_LIMIT: u64 = 16 << 20;
/// What to say of a larger one.
pub const XML_IS_SMALL: &str = "NCCL's files are under 1 MiB: is it the right file?";

/// The document of a text, or an error that shows where it is no XML.
fn document<'a>(file: &str, text: &'a str) -> Result<Document<'a>> {
    Document::parse(text).map_err(|error| {
        let at = error.pos();
        let before: usize =
            text.split_inclusive('\n').take(at.row.saturating_sub(1) as usize).map(str::len).sum();
        let column = at.col.saturating_sub(1) as usize;
        let line = text.get(before..).unwrap_or("");
        let start = before + line.char_indices().nth(column).map_or(line.len(), |(byte, _)| byte);
        let start = start.min(text.len());
        let mut problem = Problem::new(format!("this is no XML: {error}"), "")
            .help("NCCL writes such files with NCCL_TOPO_DUMP_FILE and NCCL_GRAPH_DUMP_FILE");
        problem.span = Some(Span { start, end: start });
        Error::Input { file: file.to_owned(), text: text.to_owned(), problems: vec![problem] }
    })
}

/// Collects what is wrong with a document.
struct Faults {
    problems: Vec<Problem>,
}

impl Faults {
    fn new() -> Faults {
        Faults { problems: Vec::new() }
    }

    /// Something wrong with an element.
    fn add(&mut self, node: Node, message: impl Into<String>, help: impl Into<String>) {
        let mut problem = Problem::new(message, place(node)).help(help);
        let start = node.range().start;
        problem.span = Some(Span { start, end: start + 1 + node.tag_name().name().len() });
        self.problems.push(problem);
    }

    /// The number in an attribute, decimal or hexadecimal; `default` when it is missing, where
    /// there is a default.
    fn number<T>(&mut self, node: Node, name: &str, default: Option<T>) -> T
    where
        T: TryFrom<i64> + Default,
    {
        let Some(attribute) = node.attribute_node(name) else {
            if default.is_none() {
                let message = format!("<{}> needs `{name}`", node.tag_name().name());
                self.add(node, message, format!("write {name}=\"0\" with the right number"));
            }
            return default.unwrap_or_default();
        };
        let value = attribute.value().trim();
        let parsed = match value.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None => value.parse().ok(),
        };
        match parsed.and_then(|number| T::try_from(number).ok()) {
            Some(number) => number,
            None => {
                let message = format!("`{value}` is no number that {name} can be");
                let mut problem = Problem::new(message, format!("{} {name}", place(node)));
                let range = attribute.range_value();
                problem.span = Some(Span { start: range.start, end: range.end });
                self.problems.push(problem);
                default.unwrap_or_default()
            }
        }
    }

    /// The decimal number in an attribute.
    fn decimal(&mut self, node: Node, name: &str, default: Option<f64>) -> f64 {
        match (node.attribute(name).map(|value| value.trim().parse::<f64>()), default) {
            (Some(Ok(number)), _) if number.is_finite() => number,
            (None, Some(number)) => number,
            (None, None) => self.number::<i64>(node, name, None) as f64,
            _ => {
                let value = node.attribute(name).unwrap_or("");
                self.add(node, format!("`{value}` is no number that {name} can be"), "");
                0.0
            }
        }
    }

    /// What was read, unless something is wrong.
    fn finish<T>(self, file: &str, text: &str, value: T) -> Result<T> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        let (file, text) = (file.to_owned(), text.to_owned());
        Err(Error::Input { file, text, problems: self.problems })
    }
}

/// Where an element is, such as `system/cpu/pci 0000:3b:00.0`.
fn place(node: Node) -> String {
    let mut names: Vec<String> = node
        .ancestors()
        .filter(|above| above.is_element())
        .map(|above| match above.attribute("busid") {
            Some(bus_id) if above == node => format!("{} {bus_id}", above.tag_name().name()),
            _ => above.tag_name().name().to_owned(),
        })
        .collect();
    names.reverse();
    names.join("/")
}

/// The root, which must have this name and version 1.
fn root<'a, 'b>(
    document: &'a Document<'b>,
    name: &str,
    faults: &mut Faults,
) -> Option<Node<'a, 'b>> {
    let root = document.root_element();
    if root.tag_name().name() != name {
        let message = format!("expected <{name}>, found <{}>", root.tag_name().name());
        let help = match root.tag_name().name() {
            "graphs" => "this is a graph file, for NCCL_GRAPH_FILE",
            "system" => "this is a system file, for NCCL_TOPO_FILE",
            "topology" => "this is a file of hwloc",
            _ => "",
        };
        faults.add(root, message, help);
        return None;
    }
    let version: u32 = faults.number(root, "version", None);
    if version != 1 && root.has_attribute("version") {
        faults.add(root, format!("version {version} of <{name}>: NCCL reads version 1"), "");
    }
    Some(root)
}

#[cfg(test)]
mod tests;
