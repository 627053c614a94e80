//! Figures as people read them: three digits where they mean something.

use crate::prediction::Range;

/// Three significant digits: 9.87, 98.7, 987.
pub fn short(value: f64) -> String {
    let size = value.abs();
    if size < 9.995 {
        format!("{value:.2}")
    } else if size < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Two significant digits: 9.8, 98, 987.
pub fn shorter(value: f64) -> String {
    if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Two significant digits, also of figures below one, so that the ends of a range differ: 0.083, 0.83.
fn two_digits(value: f64) -> String {
    match value.abs() {
        size if size > 0.0 && size < 0.095 => format!("{value:.3}"),
        size if size < 0.95 => format!("{value:.2}"),
        _ => shorter(value),
    }
}

/// A figure with its range: `14.9 (13-17)`.
pub fn with_range(range: Range) -> String {
    if range.high.abs() < 0.0005 && range.low.abs() < 0.0005 {
        return "0".to_owned();
    }
    format!("{} ({}-{})", short(range.value), two_digits(range.low), two_digits(range.high))
}

/// A share: `12 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A signed share: `+12 %`.
pub fn signed_percent(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_follow_the_size() {
        assert_eq!(short(9.876), "9.88");
        assert_eq!(short(9.999), "10.0");
        assert_eq!(short(254.01), "254");
        assert_eq!(with_range(Range { value: 0.0, low: 0.0, high: 0.0 }), "0");
        assert_eq!(with_range(Range { value: 14.9, low: 12.9, high: 17.2 }), "14.9 (13-17)");
        // Ends that differ by a tenth or more are told apart, however small the figure.
        for exponent in -1..4 {
            let value = 0.83 * 10f64.powi(exponent);
            let told = with_range(Range { value, low: value / 1.1, high: value * 1.1 });
            let ends = told.split_once(" (").and_then(|(_, ends)| ends.split_once('-'));
            let (low, high) = ends.expect("a range");
            assert_ne!(low, high.trim_end_matches(')'), "{told}");
        }
    }
}
