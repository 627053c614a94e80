//! Medians and quantiles of the values at hand: one definition for every table.

use statrs::statistics::{Data, OrderStatistics};

/// The quantile of a share between 0 and 1, estimated so that it is nearly free of bias whatever the
/// values come from (Hyndman and Fan, Sample quantiles in statistical packages, 1996, type 8); of an
/// even number of values the median is the mean of the middle two. 0 of no value.
pub fn quantile(values: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let values: Vec<f64> = values.into_iter().collect();
    if values.is_empty() { 0.0 } else { Data::new(values).quantile(share.clamp(0.0, 1.0)) }
}

/// The median; 0 of no value.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(values, 0.5)
}

/// Half of the width of a conformal band that holds a further value of the same kind with at least
/// this chance, from the sizes of those that there are: the (n + 1)-fold share of them in order, and
/// the largest where there are too few to tell. 0 of no value.
pub fn conformal(sizes: impl IntoIterator<Item = f64>, share: f64) -> f64 {
    let mut sizes: Vec<f64> = sizes.into_iter().collect();
    sizes.sort_by(f64::total_cmp);
    let rank = (share * (sizes.len() + 1) as f64 - 1e-9).ceil().max(1.0) as usize;
    sizes.get(rank.min(sizes.len()).saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_median_of_odd_and_even_numbers_of_values() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 3.0, 2.0]), 2.5);
        assert_eq!([median([]), median([7.0]), quantile([], 0.9)], [0.0, 7.0, 0.0]);
    }

    #[test]
    fn quantiles_lie_between_the_values() {
        // Type 8: (10 + 1/3) x 0.9 + 1/3 = 9.633, two thirds of the way from the ninth to the tenth.
        let values = (1..=10).map(f64::from);
        assert!((quantile(values.clone(), 0.9) - 9.633_333).abs() < 1e-5);
        assert_eq!([quantile(values.clone(), 0.0), quantile(values, 1.0)], [1.0, 10.0]);
    }

    #[test]
    fn a_conformal_band_counts_the_value_to_come() {
        // 0.8 x 10 = 8 of nine values, 0.8 x 5 = 4 of four, and one of one.
        let ramp = |n: u32| (1..=n).map(f64::from);
        assert_eq!(conformal(ramp(9), 0.8), 8.0);
        assert_eq!([conformal(ramp(4), 0.8), conformal(ramp(1), 0.8)], [4.0, 1.0]);
        assert_eq!(conformal([], 0.8), 0.0);
    }
}
