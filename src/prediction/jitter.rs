//! How far equal calls differ from one another, and what that makes of a step of many.
//!
//! The logarithm of a call's time is taken as normal about the predicted time, which is the median.
//! Its spread by medium comes from the percentiles of repeated calls (`calibration/jitter.json`). Calls
//! of a step are taken as independent: no source tells how they hang together, and what slows a whole
//! step, such as a clock, comes on top.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, LogNormal};

use super::regime::Medium;
use crate::error::{Error, Result, embedded};
use crate::fabric::calibration::Constant;
use crate::statistics::quantile;
use crate::workload::uniform;

/// The data file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JitterFile {
    #[serde(rename = "comment")]
    _comment: String,
    sigmas: BTreeMap<String, Constant>,
}

/// Percentiles of a time.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half of all are below.
    pub p50: f64,
    /// 95 of 100.
    pub p95: f64,
    /// 99 of 100.
    pub p99: f64,
}

/// How far equal calls differ.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Jitter {
    /// Standard deviation of the logarithm of a call's time.
    pub sigma: f64,
}

/// Steps drawn for the percentiles of a step.
const STEPS: u64 = 1000;

impl Jitter {
    /// Of calls over a medium.
    ///
    /// # Errors
    /// When the embedded file is damaged, which a test excludes.
    pub fn of(medium: Medium) -> Result<Jitter> {
        const FILE: &str = "calibration/jitter.json";
        let file: JitterFile = embedded(FILE, include_str!("../../calibration/jitter.json"))?;
        let sigma = file.sigmas.get(medium.name());
        let missing = || Error::damaged(FILE, format!("{} is missing", medium.name()));
        let sigma = sigma.ok_or_else(missing)?;
        Ok(Jitter { sigma: sigma.value })
    }

    fn distribution(self, us: f64) -> Option<LogNormal> {
        LogNormal::new(us.ln(), self.sigma).ok()
    }

    /// Of calls whose median is `us`.
    pub fn call(self, us: f64) -> Percentiles {
        let at = |share: f64| self.distribution(us).map_or(us, |times| times.inverse_cdf(share));
        Percentiles { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    }

    /// Of steps of so many such calls, one after another, in the unit of `us`: the same seed draws the
    /// same steps.
    pub fn step(self, us: f64, calls: u32, seed: u64) -> Percentiles {
        let Some(times) = self.distribution(us) else {
            let whole = us * f64::from(calls);
            return Percentiles { p50: whole, p95: whole, p99: whole };
        };
        let steps: Vec<f64> = (0..STEPS)
            .map(|step| {
                let call = |call: u32| times.inverse_cdf(uniform(seed, step, u64::from(call)));
                (0..calls).map(call).sum()
            })
            .collect();
        let at = |share: f64| quantile(steps.iter().copied(), share);
        Percentiles { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::stats_tests::NaNPolicy;
    use statrs::stats_tests::ks_test::{KSOneSampleAlternativeMethod, ks_onesample};

    #[test]
    fn steps_of_one_call_are_spread_as_calls_are() {
        let jitter = Jitter { sigma: 0.076 };
        let times = jitter.distribution(20.0).expect("a distribution");
        for seed in 0..5 {
            let drawn = |step| times.inverse_cdf(uniform(seed, step, 0));
            let all: Vec<f64> = (0..STEPS).map(drawn).collect();
            let method = KSOneSampleAlternativeMethod::TwoSidedAsymptotic;
            let (_, p) = ks_onesample(all, &times, method, NaNPolicy::Error).expect("a test");
            assert!(p > 0.01, "seed {seed}: {p}");
            let (call, step) = (jitter.call(20.0), jitter.step(20.0, 1, seed));
            assert!((step.p95 / call.p95 - 1.0).abs() < 0.02, "{call:?} {step:?}");
        }
    }

    /// Independent calls even out: a step of 122 varies by an eleventh of what a call does.
    #[test]
    fn many_calls_even_out() {
        let jitter = Jitter { sigma: 0.076 };
        let step = jitter.step(20.0, 122, 7);
        // The mean of a log-normal is exp(sigma^2 / 2) of its median: 0.29 % more.
        assert!((step.p50 / (122.0 * 20.0 * 1.0029) - 1.0).abs() < 0.002, "{step:?}");
        let expected = 1.645 * 0.076 / 122.0_f64.sqrt();
        assert!(((step.p95 / step.p50 - 1.0) / expected - 1.0).abs() < 0.2, "{step:?}");
        assert_eq!(step, jitter.step(20.0, 122, 7));
        assert_ne!(step, jitter.step(20.0, 122, 8));
    }
}
