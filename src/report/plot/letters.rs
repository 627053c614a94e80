//! How wide a text is without a font at hand, and how to make it fit.
//!
//! Plotters measures text with a font library, which needs fonts of the system; pictures have to be
//! the same on every machine. Widths are those of Helvetica, which Arial and Liberation Sans share.

/// Advance widths of the characters from space to tilde, in thousandths of the letters' size
/// (Adobe, Core 14 AFM files, Helvetica).
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556,
    556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667,
    611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667,
    667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500,
    222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];
/// Of letters beyond ASCII: Latin, Greek and Cyrillic ones, and the square ones of East Asia.
const OTHER: u16 = 667;
const SQUARE: u16 = 1000;
/// From here on letters are square.
const SQUARE_FROM: char = '\u{1100}';
/// What bold adds, as a share; also room for fonts that are a little wider.
const BOLD: f64 = 1.08;

/// Width of a text, pixels.
pub fn width(text: &str, size: f64, bold: bool) -> f64 {
    let thousandths: u32 = text.chars().map(|letter| u32::from(width_of(letter))).sum();
    f64::from(thousandths) / 1000.0 * size * if bold { BOLD } else { 1.0 }
}

fn width_of(letter: char) -> u16 {
    match letter {
        ' '..='~' => WIDTHS[letter as usize - 32],
        _ if letter >= SQUARE_FROM => match letter {
            // Arrows and signs.
            '\u{2000}'..='\u{2BFF}' => OTHER,
            _ => SQUARE,
        },
        _ => OTHER,
    }
}

/// The text, its middle left out where it is wider than `room`: both ends of a name tell more than
/// its middle.
pub fn fitted(text: &str, size: f64, room: f64) -> String {
    if width(text, size, false) <= room {
        return text.to_owned();
    }
    let letters: Vec<char> = text.chars().collect();
    for kept in (0..letters.len()).rev() {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        let start: String = letters[..head].iter().collect();
        let end: String = letters[letters.len() - tail..].iter().collect();
        let short = format!("{}\u{2026}{}", start.trim_end(), end.trim_start());
        if width(&short, size, false) <= room {
            return short;
        }
    }
    String::new()
}

/// The text in rows of at most `room`, broken at spaces; the last of `most` rows is fitted.
pub fn wrapped(text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = rows.last().map(|row| format!("{row} {word}"));
        match longer {
            Some(longer) if width(&longer, size, false) <= room || rows.len() == most => {
                if let Some(last) = rows.last_mut() {
                    *last = longer;
                }
            }
            _ => rows.push(word.to_owned()),
        }
    }
    rows.iter().map(|row| fitted(row, size, room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit() {
        let name = "a-name-of-a-machine-that-is-as-long-as-names-of-machines-get-8";
        for text in [name, "机器-机器-机器-机器", "Ünïcödé →", "", "x"] {
            for room in [10.0, 60.0, 200.0] {
                assert!(width(&fitted(text, 11.0, room), 11.0, false) <= room, "{text} {room}");
                for row in wrapped(text, 11.0, room, 2) {
                    assert!(width(&row, 11.0, false) <= room, "{row}");
                }
            }
        }
        assert!(fitted(name, 11.0, 200.0).starts_with("a-name-of"));
        assert!(fitted(name, 11.0, 200.0).ends_with("get-8"));
        assert_eq!(wrapped("one two three", 10.0, 40.0, 3), ["one two", "three"]);
    }
}
