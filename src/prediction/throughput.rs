//! From times of calls to steps and tokens, against what was reported.

use serde::Serialize;

use super::case::{CasePrediction, regime_sigma};
use super::range::{Range, SIGMAS_80, constants_sigma};

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
        first: &CasePrediction,
        second: &CasePrediction,
    ) -> Exchange {
        let step_ms = 1e3 / reported_tok_per_s;
        let calls = f64::from(calls);
        let (before, after) = (Spread::of(first), Spread::of(second));
        let with = |us: f64, after: &Spread<'_>| {
            let step = |us: f64| step_ms + calls * us / 1e3;
            let change = us - first.time_us.value;
            let sigma = after.difference((us, &before, first.time_us.value));
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
            all_reduce_ms: calls * first.time_us.value / 1e3,
            tok_per_s: with(second.time_us.value, &after),
            without_regimes: second
                .without_regimes_us
                .map(|bare| with(bare.value, &Spread { regime: 0.0, ..after.clone() })),
        }
    }
}

/// What the range of a prediction holds, in parts that another of the same machine has or has not:
/// relative standard deviations.
#[derive(Clone, Debug)]
struct Spread<'a> {
    /// By group of constants, with the sign of the change: constants are the same for both.
    shifts: &'a [f64],
    /// Of a declared regime, which is the same for both where it touches both.
    regime: f64,
    /// What no constant explains: of each by itself.
    own: f64,
}

impl<'a> Spread<'a> {
    fn of(prediction: &'a CasePrediction) -> Spread<'a> {
        let time = prediction.time_us;
        let regime = regime_sigma(time.value, prediction.without_regimes_us.map(|us| us.value));
        let told = constants_sigma(&prediction.shifts).hypot(regime);
        let own = (time.sigma().powi(2) - told.powi(2)).max(0.0).sqrt();
        Spread { shifts: &prediction.shifts, regime, own }
    }

    /// Standard deviation of `own` times this less `other` times the other: what moves both alike
    /// cancels.
    fn difference(&self, (own, other, times): (f64, &Spread<'_>, f64)) -> f64 {
        let at = |shifts: &[f64], group: usize| shifts.get(group).copied().unwrap_or(0.0);
        let groups = 0..self.shifts.len().max(other.shifts.len());
        let shared =
            groups.map(|group| own * at(self.shifts, group) - times * at(other.shifts, group));
        let regime = own * self.regime - times * other.regime;
        let apart = [own * self.own, times * other.own, regime];
        shared.chain(apart).map(|part| part * part).sum::<f64>().sqrt()
    }
}

/// The chance that a call is faster than another on the same machine, both log-normal: what is not
/// known of the machine's constants moves both, and only what is left of it between them counts.
pub fn chance_faster(a: &CasePrediction, b: &CasePrediction) -> f64 {
    use statrs::distribution::{ContinuousCDF, Normal};
    let sigma = Spread::of(a).difference((1.0, &Spread::of(b), 1.0));
    let (a, b) = (a.time_us.value, b.time_us.value);
    match Normal::new(0.0, sigma) {
        Ok(normal) => normal.cdf((b / a).ln()),
        Err(_) => f64::from(u8::from(a < b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::Bottleneck;
    use crate::schedule::Collective;

    /// A call that moves by these shifts with the constants, and by `own` besides.
    fn call(us: f64, shifts: &[f64], own: f64) -> CasePrediction {
        CasePrediction {
            title: String::new(),
            collective: Collective::AllReduce,
            algorithm: "ring",
            protocol: "LL",
            bytes: 1024,
            bytes_rounded: 1024,
            time_us: Range::around(us, constants_sigma(shifts).hypot(own)),
            without_regimes_us: None,
            shifts: shifts.to_vec(),
            regimes: Vec::new(),
            waiting: 0.0,
            bottleneck: Bottleneck::Latency { part: "GPUs" },
            calls_simulated: 1,
            repeats: true,
            spread: 0.0,
            extrapolated: false,
            events: 0,
            hops: 0,
        }
    }

    #[test]
    fn equal_calls_change_nothing() {
        let call = call(20.0, &[], 0.1);
        let exchange = Exchange::of(82.0, 122, &call, &call);
        assert!((exchange.tok_per_s.value - 82.0).abs() < 1e-9);
        assert!((exchange.step_ms - 12.195).abs() < 1e-3);
        assert!((exchange.all_reduce_ms - 2.44).abs() < 1e-9);
        assert!(exchange.tok_per_s.low < 82.0 && exchange.tok_per_s.high > 82.0);
    }

    #[test]
    fn the_chance_is_a_half_for_equals() {
        let first = call(20.0, &[], 0.1);
        assert!((chance_faster(&first, &first) - 0.5).abs() < 1e-12);
        // ln(22.1 / 20) = 0.0998 is 0.706 of sqrt(2) x 0.1: 76 %.
        let other = call(22.1, &[], 0.1);
        assert!((chance_faster(&first, &other) - 0.76).abs() < 0.005);
    }

    #[test]
    fn constants_that_move_both_calls_tell_nothing_of_their_order() {
        // A constant that is known to 30 % only moves both by as much: 5 % of difference against
        // sqrt(2) x 2 % of their own are 1.77 standard deviations, 96 %.
        let (a, b) = (call(20.0, &[0.3, 0.0], 0.02), call(21.03, &[0.3, 0.0], 0.02));
        assert!((chance_faster(&a, &b) - 0.962).abs() < 0.002);
        // Constants of their own leave the order open.
        let c = call(21.03, &[0.0, 0.3], 0.02);
        assert!(chance_faster(&a, &c) < 0.56);
        // And the exchange of one for the other is as sure as what differs between them.
        let width = |exchange: Exchange| exchange.tok_per_s.high - exchange.tok_per_s.low;
        let (shared, apart) = (Exchange::of(82.0, 122, &a, &b), Exchange::of(82.0, 122, &a, &c));
        assert!(width(shared) < 0.2 * width(apart));
    }
}
