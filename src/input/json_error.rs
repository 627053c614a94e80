//! What serde says of a JSON text -> a [`Problem`] with the place, in a person's words.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::error::Category;

use super::kinds;
use super::places::Places;
use crate::error::{Error, Problem, Result, Span};
use crate::suggestion::did_you_mean;

/// Reads a JSON text into a form of ours.
///
/// # Errors
/// The first fault of syntax or type, with its place.
pub(super) fn read_json<T: DeserializeOwned>(text: &str) -> std::result::Result<T, Box<Problem>> {
    if text.trim().is_empty() {
        let help = "a file starts with `{\"schema_version\": 1, ...`";
        return Err(Box::new(Problem::new("the file is empty", "").help(help)));
    }
    // serde would take a list for an object and name its elements by position.
    if text.trim_start().starts_with('[') {
        let mut problem = Problem::new("invalid type: a list, expected an object in braces", "");
        let start = text.len() - text.trim_start().len();
        problem.span = Some(Span { start, end: start + 1 });
        return Err(Box::new(problem));
    }
    parse(text)
}

/// Reads a JSON list of texts from a file; `help` shows one.
///
/// # Errors
/// [`Error::Input`] with the first fault of syntax or type and its place.
pub fn read_list(file: &str, text: &str, help: &str) -> Result<Vec<String>> {
    parse(text).map_err(|problem| Error::Input {
        file: file.to_owned(),
        text: text.to_owned(),
        problems: vec![problem.help(help)],
    })
}

fn parse<T: DeserializeOwned>(text: &str) -> std::result::Result<T, Box<Problem>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        Box::new(problem(text, path, &error.into_inner()))
    })?;
    reader.end().map_err(|error| Box::new(problem(text, String::new(), &error)))?;
    Ok(value)
}

/// Reads a JSON text into the form of ours that is called `title`.
///
/// # Errors
/// [`Error::Input`] with the first fault of syntax or type and its place, or with what the text is
/// instead and who reads that.
pub(super) fn read_own<T: DeserializeOwned>(file: &str, text: &str, title: &str) -> Result<T> {
    read_json(text).map_err(|problem| {
        let other = kinds::of_another(file, text, title, &format!("not {title}"));
        other.unwrap_or_else(|| Error::Input {
            file: file.to_owned(),
            text: text.to_owned(),
            problems: vec![*problem],
        })
    })
}

/// Reads a form that is called `title` in [`kinds`], whose version `version` finds in it, and whose other
/// faults `faults` does.
///
/// # Errors
/// [`Error::Input`] for a fault of syntax or type, another kind of text, a version other than `known`, or
/// what `faults` finds, with their places.
pub fn read_form<T: DeserializeOwned>(
    (file, text): (&str, &str),
    title: &str,
    known: u32,
    version: impl Fn(&T) -> u32,
    faults: impl Fn(&T) -> Vec<Problem>,
) -> Result<T> {
    let form: T = read_own(file, text, title)?;
    let mut problems = Vec::from_iter(other_version(version(&form), known));
    problems.extend(faults(&form));
    if problems.is_empty() {
        return Ok(form);
    }
    let places = Places::new(text);
    for problem in &mut problems {
        problem.span = places.value(&problem.path);
    }
    problems.sort_by_key(|problem| problem.span.as_ref().map(|span| span.start));
    Err(Error::Input { file: file.to_owned(), text: text.to_owned(), problems })
}

/// What is wrong with a form whose version is not the `known` one.
pub(super) fn other_version(version: u32, known: u32) -> Option<Problem> {
    (version != known).then(|| {
        Problem::new(format!("schema version {version} is not known"), "schema_version")
            .help(format!("this program reads version {known}"))
    })
}

/// What is wrong with a kind that is not an object of one key.
const ONE_KIND: &str = "expected an object with one key that says the kind";
const ONE_KIND_HELP: &str =
    "such as `{\"gpu\": {\"model\": ...}}` or `{\"pcie\": {\"generation\": ...}}`";

fn problem(text: &str, path: String, error: &serde_json::Error) -> Problem {
    let told = error.to_string();
    let message = match told.rfind(" at line ") {
        Some(end) => &told[..end],
        None => &told,
    };
    let here = token_at(text, error.line(), error.column());
    match error.classify() {
        Category::Data => {
            let span = span_of_data(text, &path, message).unwrap_or(here);
            let mut problem = Problem::new(plain_words(message), path).help(advice(message));
            problem.span = Some(span);
            problem
        }
        // serde_json says "expected value" of a sound text too, where a kind has no or two keys.
        Category::Syntax
            if message == "expected value" && serde_json::from_str::<IgnoredAny>(text).is_ok() =>
        {
            let mut problem = Problem::new(ONE_KIND, path).help(ONE_KIND_HELP);
            problem.span = Some(here);
            problem
        }
        Category::Syntax | Category::Eof | Category::Io => {
            let mut problem = Problem::new(format!("not valid JSON: {message}"), path)
                .help(syntax_advice(text, message));
            problem.span = Some(here);
            problem
        }
    }
}

/// Where a fault of type stands: the value at the path, or the key of it that the message names.
fn span_of_data(text: &str, path: &str, message: &str) -> Option<Span> {
    let places = Places::new(text);
    if message.starts_with("unknown") {
        let named = names_in(message).next()?;
        let key = places.key(path)?;
        let is_named = |span: &Span| text[span.start..span.end].trim_matches('"') == named;
        let inner = places.repeated_key(path, named, 0);
        return [Some(key), inner, places.value(path)]
            .into_iter()
            .flatten()
            .find(is_named)
            .or_else(|| places.value(path));
    }
    if message.starts_with("duplicate field") {
        let named = names_in(message).next()?;
        return places.repeated_key(path, named, 1);
    }
    places.value(path)
}

/// Names that serde puts in backticks.
fn names_in(message: &str) -> impl Iterator<Item = &str> {
    message.split('`').skip(1).step_by(2)
}

/// Rust's names of types mean little to one who writes JSON.
fn plain_words(message: &str) -> String {
    if message.contains("unit variant") {
        return ONE_KIND.to_owned();
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        return format!("the key {name} is missing");
    }
    if let Some(name) = message.strip_prefix("duplicate field ") {
        return format!("the key {name} is given twice");
    }
    let (said, expected) = match message.rsplit_once("expected ") {
        Some(parts) => parts,
        None => return message.to_owned(),
    };
    let plain = match expected {
        "u8" => "an integer from 0 to 255",
        "u32" => "an integer from 0 to 4294967295",
        "f64" => "a number",
        "a string" | "string" => "a text in double quotes",
        "a boolean" => "true or false",
        "a sequence" => "a list in square brackets",
        _ if expected.starts_with("struct ") || expected == "a map" => "an object in braces",
        _ if expected.contains("enum ") => "an object with one key that says the kind",
        _ => expected,
    };
    if said.starts_with("unknown") {
        let said = said.replace("field", "key").replace("variant", "kind");
        return said.trim_end().trim_end_matches(',').to_owned();
    }
    let said = said
        .replace("invalid type: map,", "invalid type: an object,")
        .replace("invalid type: sequence,", "invalid type: a list,");
    format!("{said}expected {plain}")
}

fn advice(message: &str) -> String {
    if message.contains("unit variant") {
        return ONE_KIND_HELP.to_owned();
    }
    if !message.starts_with("unknown") {
        return String::new();
    }
    let mut names = names_in(message);
    let wrong = names.next().unwrap_or_default();
    let known: Vec<&str> = names.collect();
    let guess = did_you_mean(wrong, known.iter().copied());
    let space = if guess.is_empty() { "" } else { " " };
    format!("{guess}{space}known here: {}", known.join(", "))
}

fn syntax_advice(text: &str, message: &str) -> &'static str {
    if text.trim_start().starts_with('<') {
        "this looks like XML; our files are JSON objects in braces"
    } else if message.starts_with("EOF") {
        "the file ends too early: was it cut off, or is a brace or bracket not closed?"
    } else if message.starts_with("trailing comma") {
        "JSON allows no comma after the last element"
    } else if message.starts_with("recursion limit") {
        "a topology nests no deeper than six levels"
    } else if message.starts_with("key must be a string") {
        "keys stand in double quotes"
    } else {
        ""
    }
}

/// The token around serde's line and column, both from 1, the column in bytes.
fn token_at(text: &str, line: usize, column: usize) -> Span {
    let mut line_start = 0;
    for _ in 1..line {
        line_start += text[line_start..].find('\n').map_or(0, |at| at + 1);
    }
    let mut start = (line_start + column.saturating_sub(1)).min(text.len().saturating_sub(1));
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let ends = |c: char| c.is_whitespace() || ",:{}[]".contains(c);
    let length = text[start..].find(ends).unwrap_or(text.len() - start);
    let first = text[start..].chars().next().map_or(0, char::len_utf8);
    Span { start, end: start + length.max(first) }
}
