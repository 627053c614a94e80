//! The range of a predicted figure, from how well its constants are known.
//!
//! Each group of constants that are uncertain together is moved by one standard deviation; the
//! changes it makes are added as squares, since the groups are independent. To these comes what no
//! constant explains, by regime ([`super::regime`]), and the sum is widened to the stated coverage.

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

/// How each group of constants, moved by one standard deviation, changes a figure: logarithms of the
/// ratios to the nominal.
pub fn shifts(nominal: f64, moved: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let shift = |moved: f64| match nominal > 0.0 && moved > 0.0 {
        true => (moved / nominal).ln(),
        false => 0.0,
    };
    moved.into_iter().map(shift).collect()
}

/// Relative standard deviation over the constants of a figure with these [`shifts`].
pub fn constants_sigma(shifts: &[f64]) -> f64 {
    shifts.iter().map(|shift| shift * shift).sum::<f64>().sqrt()
}

/// What no constant explains of one of two figures of a kind that is not alike in both: phases of
/// polls and jitter. The spread (p5 to p95) of repeated calls in `measured/h200-one-link` is about 15 %.
const NOT_SHARED: f64 = 0.08;

/// Relative standard deviation of the ratio of two figures: what moves both alike cancels.
pub fn ratio_sigma(a: &[f64], b: &[f64]) -> f64 {
    let at = |shifts: &[f64], index: usize| shifts.get(index).copied().unwrap_or(0.0);
    let groups = (0..a.len().max(b.len())).map(|index| at(a, index) - at(b, index));
    groups.fold(2.0 * NOT_SHARED * NOT_SHARED, |sum, shift| sum + shift * shift).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_groups_add_as_squares() {
        // ln(1.1) = 0.0953 twice: 0.1348; 10 x exp(1.2816 x 0.1348) = 11.89.
        let range = Range::around(10.0, constants_sigma(&shifts(10.0, [11.0, 10.0 / 1.1])));
        assert!((range.high - 11.89).abs() < 0.01, "{range:?}");
        assert!((range.sigma() - 0.1348).abs() < 1e-4);
    }

    #[test]
    fn what_two_figures_share_cancels_in_their_ratio() {
        let (a, b) = (shifts(10.0, [11.0, 12.0]), shifts(20.0, [22.0, 24.0]));
        // Only the two residuals are left: sqrt(2) x 0.08.
        assert!((ratio_sigma(&a, &b) - 2f64.sqrt() * NOT_SHARED).abs() < 1e-12);
        assert!(ratio_sigma(&a, &[0.0, 0.0]) > constants_sigma(&a));
    }
}
