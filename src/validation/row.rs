//! One observation beside its prediction, and what is made of it.

use serde::Serialize;

use super::mechanism::{self, Nearest};
use crate::measurement::Run;
use crate::prediction::Range;
use crate::prediction::regime::{Regime, Residuals};

/// Whether a measured value is explained.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It lies in the predicted range.
    InRange,
    /// It does not, and constants that are off would explain it.
    OutOfRange,
    /// No constant of the machine does, each off by up to [`BOUND`] of its standard deviations, all in
    /// the same sense: the machine is not what its topology says, or the model lacks something.
    NotExplained,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::InRange => "within range",
            Verdict::OutOfRange => "outside range",
            Verdict::NotExplained => "not explained by the topology",
        }
    }
}

/// Standard deviations by which a constant may be off: 12 % for what was measured, a third for what is
/// inferred, twice as much or half for an estimate.
pub const BOUND: f64 = 3.0;

/// One observation, predicted.
#[derive(Clone, Debug, Serialize)]
pub struct CheckRow {
    /// Folder of `measured/`.
    pub machine: String,
    /// Topology used.
    pub topology: String,
    /// File, line and a short text.
    pub id: String,
    /// Summarised together.
    pub experiment: String,
    /// Of the values.
    pub unit: &'static str,
    /// Measured, the median of `repetitions` rows.
    pub measured: f64,
    /// Rows of the file.
    pub repetitions: u32,
    /// Predicted.
    pub predicted: f64,
    /// Lower end of the 80 % range.
    pub low: f64,
    /// Upper end of the 80 % range.
    pub high: f64,
    /// predicted / measured - 1.
    pub error: f64,
    /// Predicted without the declared regimes, where a regime was read from this row.
    pub without_regimes: Option<f64>,
    /// Constants were fitted to it.
    pub fit: bool,
    /// Whether the measured value is explained.
    pub verdict: Verdict,
    /// Outside of the range: the mechanism that most of the prediction follows.
    pub nearest: Option<Nearest>,
    /// Environment as the source tells it.
    pub condition: String,
    /// What was assumed.
    pub note: String,
    /// Its kind, for what no constant explains.
    #[serde(serialize_with = "regime_name")]
    pub regime: Regime,
    /// Relative standard deviation over the constants.
    pub constants_sigma: f64,
    /// How far constants that are off by [`BOUND`] move the prediction, of logarithms.
    pub reach: f64,
    /// How the prediction follows each mechanism.
    #[serde(skip)]
    pub slopes: Vec<f64>,
    /// Half of what lies between repeated measurements, relative, where there are several.
    pub noise: Option<f64>,
    /// What ran.
    #[serde(skip)]
    pub run: Run,
}

fn regime_name<S: serde::Serializer>(
    regime: &Regime,
    out: S,
) -> std::result::Result<S::Ok, S::Error> {
    out.serialize_str(&regime.names()[0])
}

impl CheckRow {
    /// Logarithm of predicted over measured.
    pub fn log_error(&self) -> f64 {
        self.error.ln_1p()
    }

    /// Half of the range, of logarithms.
    pub fn half_range(&self) -> f64 {
        (self.high / self.low).ln() / 2.0
    }

    /// Fills in the range, from what other machines say of what no constant explains.
    pub(super) fn judge(&mut self, residuals: &Residuals) {
        let residual = residuals.sigma(&self.regime, Some(&self.machine));
        let range = Range::around(self.predicted, self.constants_sigma.hypot(residual));
        (self.low, self.high) = (range.low, range.high);
        let off = self.log_error();
        self.verdict = match (range.low..=range.high).contains(&self.measured) {
            true => Verdict::InRange,
            false if off.abs() <= self.reach => Verdict::OutOfRange,
            false => Verdict::NotExplained,
        };
        let outside = self.verdict != Verdict::InRange;
        self.nearest = if outside { mechanism::nearest(&self.slopes, off) } else { None };
    }
}
