//! Where in a JSON text a path such as `links[3].b` stands, as bytes.
//!
//! serde keeps no places of values; checks of meaning name a path, and this scanner finds it.

use crate::error::Span;

/// Deeper than any file of ours; serde_json refuses 128.
const DEEPEST: usize = 130;

/// A JSON text with the place of each value. Text that is no JSON gives an index of what stands
/// before the fault.
pub(super) struct Places<'a> {
    text: &'a str,
    root: Option<Value>,
}

/// A value and where it stands.
struct Value {
    span: Span,
    inside: Inside,
}

enum Inside {
    Object(Vec<Entry>),
    Array(Vec<Value>),
    Scalar,
}

struct Entry {
    key: String,
    key_span: Span,
    value: Value,
}

impl<'a> Places<'a> {
    /// Scans a text once.
    pub(super) fn new(text: &'a str) -> Places<'a> {
        let root = Scanner { text, at: 0 }.value(0);
        Places { text, root }
    }

    /// The bytes of the value at `path`, or of the nearest value around it that exists; `None`
    /// where the text could not be scanned. Long objects are cut to their first line.
    pub(super) fn value(&self, path: &str) -> Option<Span> {
        let (value, _) = self.walk(path)?;
        Some(self.first_line(&value.span))
    }

    /// The bytes of the key that `path` ends in; of the value where it ends in no key.
    pub(super) fn key(&self, path: &str) -> Option<Span> {
        let (value, key) = self.walk(path)?;
        Some(key.map_or_else(|| self.first_line(&value.span), Clone::clone))
    }

    /// The bytes of the key `key` of the object at `path`, its `occurrence`th from 0.
    pub(super) fn repeated_key(&self, path: &str, key: &str, occurrence: usize) -> Option<Span> {
        let (value, _) = self.walk(path)?;
        let Inside::Object(entries) = &value.inside else {
            return None;
        };
        entries
            .iter()
            .filter(|entry| entry.key == key)
            .nth(occurrence)
            .map(|entry| entry.key_span.clone())
    }

    fn walk(&self, path: &str) -> Option<(&Value, Option<&Span>)> {
        let mut value = self.root.as_ref()?;
        let mut key = None;
        let mut rest = path;
        loop {
            rest = rest.strip_prefix('.').unwrap_or(rest);
            if rest.is_empty() {
                return Some((value, key));
            }
            let step = match &value.inside {
                Inside::Object(entries) => entry_of(entries, rest)
                    .map(|entry| (&entry.value, Some(&entry.key_span), entry.key.len())),
                Inside::Array(items) => item_of(items, rest).map(|(item, len)| (item, None, len)),
                Inside::Scalar => None,
            };
            let Some((next, next_key, length)) = step else {
                return Some((value, key));
            };
            (value, key) = (next, next_key);
            rest = &rest[length..];
        }
    }

    fn first_line(&self, span: &Span) -> Span {
        let inside = &self.text[span.start..span.end];
        let length = inside.find('\n').unwrap_or(inside.len());
        Span { start: span.start, end: span.start + inside[..length].trim_end().len().max(1) }
    }
}

/// Names may hold dots and brackets, so the longest key that the path goes on with is taken.
fn entry_of<'v>(entries: &'v [Entry], rest: &str) -> Option<&'v Entry> {
    entries
        .iter()
        .filter(|entry| {
            rest.strip_prefix(entry.key.as_str())
                .is_some_and(|after| after.is_empty() || after.starts_with(['.', '[']))
        })
        .max_by_key(|entry| entry.key.len())
}

fn item_of<'v>(items: &'v [Value], rest: &str) -> Option<(&'v Value, usize)> {
    let inside = rest.strip_prefix('[')?;
    let end = inside.find(']')?;
    let index: usize = inside[..end].parse().ok()?;
    Some((items.get(index)?, end + 2))
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|b| b" \t\r\n".contains(b)).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// The value that starts here. A fault inside ends the value at the fault.
    fn value(&mut self, depth: usize) -> Option<Value> {
        let first = self.peek()?;
        if depth > DEEPEST {
            return None;
        }
        let start = self.at;
        let inside = match first {
            b'{' => Inside::Object(self.entries(depth)),
            b'[' => Inside::Array(self.items(depth)),
            b'"' => {
                self.string()?;
                Inside::Scalar
            }
            _ => {
                let rest = &self.text[self.at..];
                let ends = |c: char| c.is_whitespace() || ",:{}[]\"".contains(c);
                self.at += rest.find(ends).unwrap_or(rest.len());
                if self.at == start {
                    return None;
                }
                Inside::Scalar
            }
        };
        let end = self.at;
        Some(Value { span: Span { start, end }, inside })
    }

    fn entries(&mut self, depth: usize) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.at += 1;
        while self.peek() == Some(b'"') {
            let start = self.at;
            let Some(key) = self.string() else { break };
            let key_span = Span { start, end: self.at };
            if self.peek() != Some(b':') {
                break;
            }
            self.at += 1;
            let Some(value) = self.value(depth + 1) else {
                break;
            };
            entries.push(Entry { key, key_span, value });
            if self.peek() != Some(b',') {
                break;
            }
            self.at += 1;
        }
        if self.peek() == Some(b'}') {
            self.at += 1;
        }
        entries
    }

    fn items(&mut self, depth: usize) -> Vec<Value> {
        let mut items = Vec::new();
        self.at += 1;
        while self.peek().is_some_and(|next| next != b']') {
            let Some(item) = self.value(depth + 1) else {
                break;
            };
            items.push(item);
            if self.peek() != Some(b',') {
                break;
            }
            self.at += 1;
        }
        if self.peek() == Some(b']') {
            self.at += 1;
        }
        items
    }

    /// The string that starts here, unescaped.
    fn string(&mut self) -> Option<String> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        self.at += 1;
        loop {
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => {
                    self.at = bytes.len();
                    return None;
                }
            }
        }
        self.at += 1;
        serde_json::from_str(&self.text[start..self.at]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Option<Span>) -> Option<&str> {
        span.map(|span| &text[span.start..span.end])
    }

    #[test]
    fn paths_are_found() {
        let text = r#"{"a": {"x.y": [1, {"b": "two"}], "x": 3}, "é\n": [true]}"#;
        let places = Places::new(text);
        assert_eq!(shown(text, places.value("a.x.y[1].b")), Some("\"two\""));
        assert_eq!(shown(text, places.value("a.x")), Some("3"));
        assert_eq!(shown(text, places.key("a.x.y[1].b")), Some("\"b\""));
        assert_eq!(shown(text, places.value("é\n[0]")), Some("true"));
        assert_eq!(shown(text, places.value("a.x.y[7]")), Some(r#"[1, {"b": "two"}]"#));
    }

    #[test]
    fn repeated_keys_are_counted() {
        let text = r#"{"nodes": {"gpu0": 1, "gpu0": 2}}"#;
        let second = Places::new(text).repeated_key("nodes", "gpu0", 1);
        assert_eq!(second, Some(Span { start: 22, end: 28 }));
    }

    #[test]
    fn broken_and_deep_text_is_no_trouble() {
        let cut = r#"{"a": [1, 2"#;
        assert_eq!(shown(cut, Places::new(cut).value("a[1]")), Some("2"));
        let deep = "[".repeat(1 << 20);
        assert!(Places::new(&deep).value("").is_some());
        for text in ["", "\"", "\"\\", "{", "{\"a\"", "{\"a\":", "é", "}"] {
            let _ = Places::new(text).value("a");
        }
    }

    #[test]
    fn an_object_of_many_lines_is_marked_on_its_first() {
        let text = "{\"a\": {  \n \"b\": 1\n}}";
        assert_eq!(shown(text, Places::new(text).value("a")), Some("{"));
    }
}
