//! Numbers on the command line that have no type of their own.

use crate::units::{RATES_GB_PER_S, is_rate_gb_per_s};

/// Larger is a slip of the pen: of ms eleven days.
const MOST: f64 = 1e9;

/// A number above zero.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number > 0.0 && *number <= MOST);
    number.ok_or_else(|| format!("`{text}` is no number above 0 and up to 1e9"))
}

/// A rate, GB/s.
pub(super) fn gb_per_s(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| is_rate_gb_per_s(*rate));
    rate.ok_or_else(|| format!("`{text}` is no rate: {RATES_GB_PER_S}"))
}
