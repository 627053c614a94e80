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

/// A figure with its range: `14.9 (13-17)`.
pub fn with_range(range: Range) -> String {
    format!("{} ({}-{})", short(range.value), shorter(range.low), shorter(range.high))
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
        assert_eq!(with_range(Range { value: 14.9, low: 12.9, high: 17.2 }), "14.9 (13-17)");
    }
}
