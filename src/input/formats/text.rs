//! What readers of plain text share.

/// The number at the start of a text.
pub(super) fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// What follows a key, as far as the next comma or the end.
pub(super) fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    Some(rest.split(',').next().unwrap_or(rest).trim())
}

#[cfg(test)]
mod tests {
    use super::{after, leading_number};

    #[test]
    fn keys_and_numbers() {
        let line = "LnkSta:\tSpeed 16GT/s (downgraded), Width x8 (downgraded)";
        assert_eq!(after(line, "Speed ").and_then(leading_number), Some(16.0));
        assert_eq!(after(line, "Width x").and_then(leading_number), Some(8.0));
        assert_eq!(after(line, "Rate "), None);
        assert_eq!(leading_number("unknown"), None);
    }
}
