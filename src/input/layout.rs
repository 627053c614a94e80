//! JSON laid out for people: outer levels a line each, inner values on one line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Writes `value` with the first `levels` levels of nesting broken into lines.
///
/// # Errors
/// A value that JSON cannot hold.
pub(super) fn to_json<T: Serialize>(value: &T, levels: usize) -> serde_json::Result<String> {
    let mut bytes = Vec::new();
    let layout = Layout { levels, depth: 0, empty: true };
    value.serialize(&mut Serializer::with_formatter(&mut bytes, layout))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(serde::ser::Error::custom)
}

struct Layout {
    levels: usize,
    depth: usize,
    /// Nothing was written since the last opening bracket.
    empty: bool,
}

impl Layout {
    fn open<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        out.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < self.levels && !self.empty {
            self.line(out)?;
        }
        self.empty = false;
        out.write_all(bracket)
    }

    fn element<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.empty = false;
        if self.depth <= self.levels {
            if !first {
                out.write_all(b",")?;
            }
            self.line(out)
        } else if first {
            Ok(())
        } else {
            out.write_all(b", ")
        }
    }

    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        for _ in 0..self.depth {
            out.write_all(b"  ")?;
        }
        Ok(())
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.element(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_values_stay_on_a_line() {
        let value = serde_json::json!({"a": {"b": {"c": [1, 2]}, "d": 3}, "e": []});
        let text = to_json(&value, 2).expect("JSON");
        let expected = "{\n  \"a\": {\n    \"b\": {\"c\": [1, 2]},\n    \"d\": 3\n  },\n  \
                        \"e\": []\n}\n";
        assert_eq!(text, expected);
    }
}
