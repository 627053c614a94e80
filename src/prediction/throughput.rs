//! From times of calls to steps and tokens, against what was reported.

use serde::Serialize;

use super::range::{Range, SIGMAS_80};

/// What another algorithm would make of a reported rate.
#[derive(Clone, Debug, Serialize)]
pub struct Exchange {
    /// Reported with the first algorithm, tokens a second.
    pub reported_tok_per_s: f64,
    /// The step that it means, ms.
    pub step_ms: f64,
    /// Of which all-reduces by the first algorithm, ms.
    pub all_reduce_ms: f64,
    /// Predicted with the second algorithm.
    pub tok_per_s: Range,
    /// The same without declared regimes.
    pub without_regimes: Option<Range>,
}

impl Exchange {
    /// `calls` calls of a step exchanged, at one token a step.
    pub fn of(
        reported_tok_per_s: f64,
        calls: u32,
        first: Range,
        second: Range,
        bare: Option<Range>,
    ) -> Exchange {
        let step_ms = 1e3 / reported_tok_per_s;
        let calls = f64::from(calls);
        let with = |second: Range| {
            let step = |us: f64| step_ms + calls * us / 1e3;
            let change = second.value - first.value;
            // The two are taken as independent; the sum of their squares is the change's.
            let sigma = (first.sigma() * first.value).hypot(second.sigma() * second.value);
            let rate = |us: f64| 1e3 / step(us).max(1e-6);
            Range {
                value: rate(change),
                low: rate(change + SIGMAS_80 * sigma),
                high: rate(change - SIGMAS_80 * sigma),
            }
        };
        Exchange {
            reported_tok_per_s,
            step_ms,
            all_reduce_ms: calls * first.value / 1e3,
            tok_per_s: with(second),
            without_regimes: bare.map(with),
        }
    }
}

/// The chance that a figure is below another, both log-normal and independent.
pub fn chance_below(a: Range, b: Range) -> f64 {
    use statrs::distribution::{ContinuousCDF, Normal};
    let sigma = a.sigma().hypot(b.sigma());
    match Normal::new(0.0, sigma) {
        Ok(normal) => normal.cdf((b.value / a.value).ln()),
        Err(_) => f64::from(u8::from(a.value < b.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_calls_change_nothing() {
        let call = Range::around(20.0, 0.1);
        let exchange = Exchange::of(82.0, 122, call, call, None);
        assert!((exchange.tok_per_s.value - 82.0).abs() < 1e-9);
        assert!((exchange.step_ms - 12.195).abs() < 1e-3);
        assert!((exchange.all_reduce_ms - 2.44).abs() < 1e-9);
        assert!(exchange.tok_per_s.low < 82.0 && exchange.tok_per_s.high > 82.0);
    }

    #[test]
    fn the_chance_is_a_half_for_equals() {
        let call = Range::around(20.0, 0.1);
        assert!((chance_below(call, call) - 0.5).abs() < 1e-12);
        // ln(22.1 / 20) = 0.0998 is 0.706 of sqrt(2) x 0.1 x 1.0: 76 %.
        let other = Range::around(22.1, 0.1);
        assert!((chance_below(call, other) - 0.76).abs() < 0.005);
    }
}
