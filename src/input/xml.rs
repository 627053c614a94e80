//! What readers of XML share.

use roxmltree::{Document, Node};

use crate::error::{Error, Problem, Result, Span};

/// Whether the first element of a text has this name.
pub(super) fn starts_with(text: &str, name: &str) -> bool {
    let mut rest = text.trim_start_matches('\u{feff}').trim_start();
    // Declarations, document types and comments come first.
    while let Some(after) = rest.strip_prefix("<!--").map(|r| (r, "-->")).or_else(|| {
        let other = rest.strip_prefix("<?").or_else(|| rest.strip_prefix("<!"));
        other.map(|r| (r, ">"))
    }) {
        let Some((_, next)) = after.0.split_once(after.1) else { return false };
        rest = next.trim_start();
    }
    let tag = rest.strip_prefix('<').unwrap_or("");
    let end = tag.find(|c: char| !(c.is_alphanumeric() || "_-".contains(c)));
    &tag[..end.unwrap_or(tag.len())] == name
}

/// The document, or an error that shows where it is no XML.
pub(super) fn document<'a>(file: &str, text: &'a str, help: &str) -> Result<Document<'a>> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        let before: usize =
            text.split_inclusive('\n').take(at.row.saturating_sub(1) as usize).map(str::len).sum();
        let line = text.get(before..).unwrap_or("");
        let column = at.col.saturating_sub(1) as usize;
        let start = before + line.char_indices().nth(column).map_or(line.len(), |(byte, _)| byte);
        let start = start.min(text.len());
        let mut problem = Problem::new(format!("this is no XML: {error}"), "").help(help);
        problem.span = Some(Span { start, end: start });
        Error::Input { file: file.to_owned(), text: text.to_owned(), problems: vec![problem] }
    })
}

/// A problem at an element.
pub(super) fn problem(node: Node, message: impl Into<String>, help: &str) -> Problem {
    let start = node.range().start;
    let name = node.tag_name().name();
    let mut problem = Problem::new(message, name).help(help);
    problem.span = Some(Span { start, end: start + 1 + name.len() });
    problem
}

#[cfg(test)]
mod tests {
    use super::starts_with;

    #[test]
    fn the_first_element_counts() {
        assert!(starts_with("<system version=\"1\">", "system"));
        assert!(starts_with("<?xml version=\"1.0\"?>\n<!-- <graphs> -->\n<system>", "system"));
        assert!(starts_with("<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology", "topology"));
        assert!(!starts_with("<systems>", "system"));
        assert!(!starts_with("<!-- open", "system"));
        assert!(!starts_with("system", "system"));
    }
}
