//! UTF-16 texts, as `>` of PowerShell and some editors write them -> text.

use std::io::{self, Cursor, Read};

/// Which byte of a unit comes first.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

/// What stands for a unit that is half of something.
const REPLACEMENT: u16 = 0xfffd;
/// Bytes decoded at once.
const CHUNK: usize = 1 << 13;

/// Whether a text is UTF-16, by its mark or by the zeros of plain letters, and how long the mark is.
pub(super) fn order(start: &[u8]) -> Option<(Order, usize)> {
    match *start {
        [0xff, 0xfe, ..] => Some((Order::Little, 2)),
        [0xfe, 0xff, ..] => Some((Order::Big, 2)),
        [a, 0, b, 0, ..] if a != 0 && b != 0 => Some((Order::Little, 0)),
        [0, a, 0, b, ..] if a != 0 && b != 0 => Some((Order::Big, 0)),
        _ => None,
    }
}

fn units(bytes: &[u8], order: Order) -> Vec<u16> {
    let unit = |pair: &[u8]| match (pair, order) {
        (&[a, b], Order::Little) => u16::from_le_bytes([a, b]),
        (&[a, b], Order::Big) => u16::from_be_bytes([a, b]),
        _ => REPLACEMENT,
    };
    bytes.chunks(2).map(unit).collect()
}

/// The text of bytes behind a mark; nothing when they are no UTF-16.
pub(super) fn exact(bytes: &[u8], order: Order) -> Option<String> {
    bytes.len().is_multiple_of(2).then(|| String::from_utf16(&units(bytes, order)).ok()).flatten()
}

/// The text of bytes behind a mark, with a sign for what is no UTF-16.
pub(super) fn lossy(bytes: &[u8], order: Order) -> String {
    String::from_utf16_lossy(&units(bytes, order))
}

/// A stream of UTF-16 behind its mark, read as UTF-8.
pub(super) struct Narrowed<R> {
    source: R,
    order: Order,
    /// Bytes that are not decoded yet.
    wide: Vec<u8>,
    text: Cursor<Vec<u8>>,
    ended: bool,
}

impl<R: Read> Narrowed<R> {
    pub(super) fn new(source: R, order: Order) -> Narrowed<R> {
        Narrowed { source, order, wide: Vec::new(), text: Cursor::default(), ended: false }
    }

    /// How many of the bytes can be decoded before more are there: whole units, and both of a pair.
    fn whole(&self) -> usize {
        let end = self.wide.len() & !1;
        let last = units(&self.wide[end.saturating_sub(2)..end], self.order);
        let opens = last.first().is_some_and(|unit| (0xd800..0xdc00).contains(unit));
        if opens { end - 2 } else { end }
    }
}

impl<R: Read> Read for Narrowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.text.read(buffer)?;
            if count > 0 || self.ended || buffer.is_empty() {
                return Ok(count);
            }
            let mut chunk = [0; CHUNK];
            let length = self.source.read(&mut chunk)?;
            self.ended = length == 0;
            self.wide.extend_from_slice(&chunk[..length]);
            let end = if self.ended { self.wide.len() } else { self.whole() };
            self.text = Cursor::new(lossy(&self.wide[..end], self.order).into_bytes());
            self.wide.drain(..end);
            if self.ended {
                return self.text.read(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "GPU0\t\u{e9}\u{1f600}\n";

    /// Gives one byte at a time, as a pipe may.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(buffer.len()).min(1);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn both_orders_are_read_with_and_without_a_mark_and_in_pieces() {
        let little: Vec<u8> = TEXT.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = TEXT.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (mark, bytes, which) in
            [(b"\xff\xfe", little, Order::Little), (b"\xfe\xff", big, Order::Big)]
        {
            assert_eq!(order(&bytes), Some((which, 0)));
            assert_eq!(order(&[&mark[..], &bytes].concat()), Some((which, 2)));
            assert_eq!(exact(&bytes, which).as_deref(), Some(TEXT));
            let mut text = String::new();
            Narrowed::new(Slow(&bytes), which).read_to_string(&mut text).expect("text");
            assert_eq!(text, TEXT);
        }
        for other in [&b"\0\0\0\0"[..], b"GPU0", b"", b"G\0", b"\xef\xbb\xbf{}", b"SQLite\0"] {
            assert_eq!(order(other), None);
        }
    }

    #[test]
    fn half_a_text_ends() {
        let mut text = String::new();
        Narrowed::new(&b"G\0\x3d\xd8U"[..], Order::Little).read_to_string(&mut text).expect("text");
        assert_eq!(text, "G\u{fffd}\u{fffd}");
        assert_eq!(exact(b"G\0\x3d\xd8", Order::Little), None);
        assert_eq!(exact(b"G\0U", Order::Little), None);
    }
}
