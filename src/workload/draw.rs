//! Numbers that look random and are not: each is a function of a seed and of what it is drawn for, so
//! that it does not depend on what was drawn before.

/// Mixes the bits of a counter (the finaliser of SplitMix64).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A number between 0 and 1, both excluded, for a call and a rank (or whatever else two numbers name).
pub fn uniform(seed: u64, call: u64, rank: u64) -> f64 {
    // An odd constant near 2^64 over the golden ratio keeps neighbouring counters apart.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let next =
        |state: u64, value: u64| mix(state.wrapping_add(STEP) ^ mix(value.wrapping_add(STEP)));
    let bits = next(next(next(0, seed), call), rank);
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::Uniform;
    use statrs::stats_tests::NaNPolicy;
    use statrs::stats_tests::ks_test::{KSOneSampleAlternativeMethod, ks_onesample};

    #[test]
    fn draws_are_uniform_whatever_the_seed() {
        let even = Uniform::new(0.0, 1.0).expect("a range");
        for seed in 0..5 {
            let drawn: Vec<f64> = (0..2000).map(|i| uniform(seed, i / 8, i % 8)).collect();
            let method = KSOneSampleAlternativeMethod::TwoSidedAsymptotic;
            let (_, p) = ks_onesample(drawn, &even, method, NaNPolicy::Error).expect("a test");
            assert!(p > 0.01, "seed {seed}: {p}");
        }
        assert_ne!(uniform(1, 2, 3), uniform(1, 3, 2));
        assert_ne!(uniform(1, 2, 3), uniform(2, 2, 3));
        assert_eq!(uniform(1, 2, 3), uniform(1, 2, 3));
    }
}
