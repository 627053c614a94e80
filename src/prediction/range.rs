//! The range of a predicted figure, from how well its constants are known.
//!
//! Each group of constants that are uncertain together is moved by one standard deviation; the
//! changes it makes are added as squares, since the groups are independent, and widened to the
//! stated coverage.

use serde::Serialize;

/// A figure with its 80 % range.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Nominal value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Standard deviations to either side that hold 80 % of a normal distribution.
pub const SIGMAS_80: f64 = 1.2816;

/// What no constant explains, as a relative standard deviation: phases of polls and jitter. The
/// spread (p5 to p95) of repeated calls in `measured/h200-one-link` is about 15 %.
pub const RESIDUAL: f64 = 0.08;

impl Range {
    /// A log-normal range around `value` with relative standard deviation `sigma`.
    pub fn around(value: f64, sigma: f64) -> Range {
        let factor = (SIGMAS_80 * sigma).exp();
        Range { value, low: value / factor, high: value * factor }
    }

    /// Relative standard deviation behind the range.
    pub fn sigma(&self) -> f64 {
        if self.low <= 0.0 { 0.0 } else { (self.high / self.low).ln() / (2.0 * SIGMAS_80) }
    }
}

/// Relative standard deviation of a figure, from its nominal value and what it becomes when each group
/// of constants is moved by one standard deviation.
pub fn sigma(nominal: f64, moved: impl IntoIterator<Item = f64>) -> f64 {
    let mut variance = RESIDUAL * RESIDUAL;
    for moved in moved {
        if nominal > 0.0 && moved > 0.0 {
            variance += (moved / nominal).ln().powi(2);
        }
    }
    variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_without_constants_has_the_residual_range() {
        let range = Range::around(10.0, sigma(10.0, [10.0; 4]));
        // 10 x exp(1.2816 x 0.08) = 11.08.
        assert!((range.high - 11.08).abs() < 0.01, "{range:?}");
        assert!((range.sigma() - RESIDUAL).abs() < 1e-9);
    }
}
