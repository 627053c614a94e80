//! How long ranks compute before each call, so that they come to it one after another.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Exp, LogNormal, Uniform};

use super::draw;

/// When the ranks come to the calls of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// Microseconds that each rank computes between its end of the call before and the next call:
    /// a list of ranks for each call, used again from its start when the step has more calls.
    ListedUs(Vec<Vec<f64>>),
    /// Drawn apart for every rank and call.
    Drawn(Drawn),
}

/// A seeded distribution of the time that a rank computes before a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Drawn {
    /// The same seed draws the same times.
    pub seed: u64,
    /// What they are like.
    pub distribution: Distribution,
}

/// A distribution of times, us.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Anything between two times, alike.
    Uniform {
        /// Shortest.
        low_us: f64,
        /// Longest.
        high_us: f64,
    },
    /// Many short ones and a few long ones.
    Exponential {
        /// Mean.
        mean_us: f64,
    },
    /// Its logarithm is normal.
    LogNormal {
        /// Median.
        median_us: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

impl Distribution {
    /// The time below which a share of all lies, us; zero for a distribution that [`Arrival::fault`]
    /// refuses.
    fn quantile_us(self, share: f64) -> f64 {
        match self {
            Distribution::Uniform { low_us, high_us } => {
                Uniform::new(low_us, high_us).map_or(low_us, |d| d.inverse_cdf(share))
            }
            Distribution::Exponential { mean_us } => {
                Exp::new(1.0 / mean_us).map_or(0.0, |d| d.inverse_cdf(share))
            }
            Distribution::LogNormal { median_us, sigma } => {
                LogNormal::new(median_us.ln(), sigma).map_or(median_us, |d| d.inverse_cdf(share))
            }
        }
    }

    fn fault(self) -> Option<&'static str> {
        let times = match self {
            Distribution::Uniform { low_us, high_us } if low_us > high_us => {
                return Some("the shortest time is longer than the longest");
            }
            Distribution::Uniform { low_us, high_us } => [low_us, high_us],
            Distribution::Exponential { mean_us: 0.0 } => {
                return Some("a mean of zero is no exponential distribution");
            }
            Distribution::Exponential { mean_us } => [mean_us, 0.0],
            Distribution::LogNormal { median_us, sigma } if median_us == 0.0 || sigma > 4.0 => {
                return Some(
                    "a log-normal distribution needs a median above 0 and a sigma up to 4",
                );
            }
            Distribution::LogNormal { median_us, sigma } => [median_us, sigma],
        };
        times.iter().any(|&time| !sound(time)).then_some(SOUND)
    }
}

/// Longest time that a rank computes before a call, us.
const LONGEST_US: f64 = 1e7;
const SOUND: &str = "times are 0 to 10,000,000 us";

fn sound(us: f64) -> bool {
    (0.0..=LONGEST_US).contains(&us)
}

impl Arrival {
    /// What is wrong with it for so many ranks, if anything.
    pub fn fault(&self, ranks: u32) -> Option<String> {
        match self {
            Arrival::ListedUs(calls) if calls.is_empty() => Some("no call is listed".to_owned()),
            Arrival::ListedUs(calls) => calls.iter().enumerate().find_map(|(call, gaps)| {
                if gaps.len() != ranks as usize {
                    return Some(format!("call {call} has {} times for {ranks} ranks", gaps.len()));
                }
                gaps.iter().any(|&us| !sound(us)).then(|| format!("call {call}: {SOUND}"))
            }),
            Arrival::Drawn(drawn) => drawn.distribution.fault().map(str::to_owned),
        }
    }

    /// Microseconds that each of `ranks` ranks computes before each of `calls` calls.
    pub fn gaps_us(&self, calls: u32, ranks: u32) -> Vec<Vec<f64>> {
        let each = 0..calls as usize;
        match self {
            Arrival::ListedUs(listed) => {
                each.map(|call| listed[call % listed.len().max(1)].clone()).collect()
            }
            Arrival::Drawn(Drawn { seed, distribution }) => each
                .map(|call| {
                    let draw = |rank| draw::uniform(*seed, call as u64, u64::from(rank));
                    (0..ranks).map(|rank| distribution.quantile_us(draw(rank))).collect()
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(seed: u64, distribution: Distribution) -> Arrival {
        Arrival::Drawn(Drawn { seed, distribution })
    }

    #[test]
    fn lists_are_used_again() {
        let arrival = Arrival::ListedUs(vec![vec![0.0, 1.0], vec![2.0, 3.0]]);
        assert_eq!(arrival.gaps_us(3, 2), [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]]);
        assert_eq!(arrival.fault(2), None);
        assert!(arrival.fault(3).is_some_and(|fault| fault.contains("2 times for 3 ranks")));
        assert!(Arrival::ListedUs(vec![vec![-1.0]]).fault(1).is_some());
    }

    #[test]
    fn draws_have_the_stated_mean_and_follow_the_seed() {
        let mean_of = |arrival: &Arrival| {
            let gaps = arrival.gaps_us(2000, 4);
            gaps.iter().flatten().sum::<f64>() / 8000.0
        };
        let exponential = Distribution::Exponential { mean_us: 80.0 };
        // The standard error of a mean of 8000 is 80 / sqrt(8000) = 0.9.
        assert!((mean_of(&drawn(7, exponential)) - 80.0).abs() < 3.6);
        let even = Distribution::Uniform { low_us: 10.0, high_us: 30.0 };
        assert!((mean_of(&drawn(7, even)) - 20.0).abs() < 0.3);
        // exp(sigma^2 / 2) = 1.1331 times the median.
        let skewed = Distribution::LogNormal { median_us: 50.0, sigma: 0.5 };
        assert!((mean_of(&drawn(7, skewed)) - 56.66).abs() < 1.4);
        assert_eq!(drawn(7, even).gaps_us(3, 2), drawn(7, even).gaps_us(3, 2));
        assert_ne!(drawn(7, even).gaps_us(3, 2), drawn(8, even).gaps_us(3, 2));
    }

    #[test]
    fn impossible_distributions_are_refused() {
        let refused = [
            Distribution::Uniform { low_us: 3.0, high_us: 2.0 },
            Distribution::Uniform { low_us: -3.0, high_us: 2.0 },
            Distribution::Exponential { mean_us: 0.0 },
            Distribution::Exponential { mean_us: f64::NAN },
            Distribution::LogNormal { median_us: 0.0, sigma: 1.0 },
            Distribution::LogNormal { median_us: 1.0, sigma: -1.0 },
        ];
        for distribution in refused {
            assert!(drawn(1, distribution).fault(8).is_some(), "{distribution:?}");
        }
    }
}
