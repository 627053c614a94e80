//! Constants from observations: least squares of logarithms with priors, robust against outliers.
//!
//! Each constant may move from where it is; how far is costly by its prior, which is as wide as its
//! confidence says. Residuals beyond what is usual count less (Huber). The spread of the result comes
//! from the curvature at the optimum; a constant about which the rows say little keeps the spread of
//! its prior, and is told to be not identifiable.

use std::collections::BTreeSet;

use serde::Serialize;

use super::figures::{self, Job};
use crate::error::{Error, Result};
use crate::fabric::calibration::relative_uncertainty;
use crate::fabric::{Calibration, DeviceClass};
use crate::measurement::Observation;
use crate::prediction::range::SIGMAS_80;
use crate::statistics::{median, quantile};

/// Which constant: class, device and name.
pub type Name = (DeviceClass, String, String);

/// A constant before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Fitted {
    /// `class/device/name`.
    pub name: String,
    /// Unit of the values.
    pub unit: String,
    /// Before.
    pub before: f64,
    /// After; as before where the rows do not tell.
    pub after: f64,
    /// Where all is likeliest, told or not: of constants that the rows tell only together, each has its
    /// share by the priors.
    #[serde(skip)]
    pub likeliest: f64,
    /// Lower end of the 80 % interval.
    pub low: f64,
    /// Upper end of the 80 % interval.
    pub high: f64,
    /// Whether these rows tell it.
    pub identifiable: bool,
}

/// Errors of some rows before and after.
#[derive(Copy, Clone, Debug, Serialize)]
pub struct Effect {
    /// Rows that have a prediction before and after.
    pub rows: usize,
    /// Rows that have none before or after: they count in no figure.
    pub without: usize,
    /// Median of |predicted / measured - 1| before.
    pub median_before: f64,
    /// After.
    pub median_after: f64,
    /// Its 90th percentile before.
    pub p90_before: f64,
    /// After.
    pub p90_after: f64,
}

/// What came of a fit.
#[derive(Clone, Debug, Serialize)]
pub struct Fit {
    /// By constant, in the order asked for.
    pub constants: Vec<Fitted>,
    /// On the rows fitted to.
    pub fitted: Effect,
    /// On those held out.
    pub held_out: Option<Effect>,
    /// Rounds until nothing moved.
    pub rounds: u32,
    /// All constants with those that the rows tell in place.
    #[serde(skip)]
    pub calibration: Calibration,
}

/// A prior is so many times as wide as the confidence says: the constant may stand for another
/// machine than the one it was measured on.
const PRIOR: f64 = 3.0;
/// No constant moves by more standard deviations of its prior.
const BOUND: f64 = 4.0;
/// Step of the differences, of logarithms: more than what a change of the order of service makes.
const STEP: f64 = 0.05;
/// Rounds at most.
const ROUNDS: u32 = 8;
/// No constant moved by more: done.
const STILL: f64 = 0.002;
/// Residuals beyond so many of their usual size count by their size only.
const HUBER: f64 = 1.345;
/// Least size of residuals: what repeated measurements differ by.
const SIZE_MIN: f64 = 0.01;
/// A constant whose spread is not below this share of its prior's is not told by the rows.
const TOLD: f64 = 0.7;

/// Predictions of observations, where there are any.
///
/// # Errors
/// Unknown topologies.
pub fn predict(
    observations: &[Observation],
    calibration: &Calibration,
) -> Result<Vec<Option<f64>>> {
    let job = |observation: &Observation| Job {
        topology: observation.topology.clone(),
        regimes: true,
        variant: 0,
        quick: false,
        run: observation.run.clone(),
    };
    let jobs: BTreeSet<Job> = observations.iter().map(job).collect();
    let figures = figures::simulate(calibration, &jobs, &|| {})?;
    let value = |observation: &Observation| {
        let done = figures.get(&job(observation))?.as_ref().ok()?;
        done.figures.get(observation.figure).copied().filter(|value| *value > 0.0)
    };
    Ok(observations.iter().map(value).collect())
}

/// Logarithm of predicted over measured.
fn residual(observation: &Observation, predicted: f64) -> f64 {
    (predicted / observation.measured).ln()
}

/// Those of all; nothing for a row without a prediction.
fn residuals(observations: &[Observation], calibration: &Calibration) -> Result<Vec<Option<f64>>> {
    let predicted = predict(observations, calibration)?;
    let each = observations.iter().zip(predicted);
    Ok(each.map(|(row, predicted)| predicted.map(|p| residual(row, p))).collect())
}

/// A problem of least squares.
struct Problem<'a> {
    rows: &'a [Observation],
    names: &'a [Name],
    start: &'a Calibration,
    values: Vec<f64>,
    priors: Vec<f64>,
}

impl Problem<'_> {
    fn calibration(&self, moves: &[f64]) -> Result<Calibration> {
        let mut calibration = self.start.clone();
        for ((class, device, name), (value, by)) in
            self.names.iter().zip(self.values.iter().zip(moves))
        {
            calibration.set(*class, device, name, value * by.exp())?;
        }
        Ok(calibration)
    }

    /// Residuals after these moves; nothing when some row has no prediction there.
    fn residuals(&self, moves: &[f64]) -> Result<Option<Vec<f64>>> {
        Ok(residuals(self.rows, &self.calibration(moves)?)?.into_iter().collect())
    }

    /// What the residuals and the moves cost.
    fn cost(&self, residuals: &[f64], moves: &[f64], size: f64) -> f64 {
        let one = |residual: &f64| {
            let scaled = residual.abs() / size;
            if scaled <= HUBER { scaled * scaled / 2.0 } else { HUBER * (scaled - HUBER / 2.0) }
        };
        let prior = moves.iter().zip(&self.priors).map(|(by, prior)| (by / prior).powi(2) / 2.0);
        residuals.iter().map(one).sum::<f64>() + prior.sum::<f64>()
    }

    /// Curvature and slope of the cost.
    fn normal(
        &self,
        residuals: &[f64],
        slopes: &[Vec<f64>],
        moves: &[f64],
        size: f64,
    ) -> (Vec<Vec<f64>>, Vec<f64>) {
        let count = moves.len();
        let mut curvature = vec![vec![0.0; count]; count];
        let mut slope = vec![0.0; count];
        for (row, residual) in residuals.iter().enumerate() {
            let scaled = residual.abs() / size;
            let weight = if scaled <= HUBER { 1.0 } else { HUBER / scaled } / (size * size);
            for a in 0..count {
                slope[a] += weight * slopes[a][row] * residual;
                for b in 0..count {
                    curvature[a][b] += weight * slopes[a][row] * slopes[b][row];
                }
            }
        }
        for a in 0..count {
            let precision = 1.0 / (self.priors[a] * self.priors[a]);
            curvature[a][a] += precision;
            slope[a] += precision * moves[a];
        }
        (curvature, slope)
    }
}

/// Usual size of residuals: from the median, which outliers do not move.
fn usual(residuals: &[f64]) -> f64 {
    let sizes = residuals.iter().map(|residual| residual.abs());
    (1.4826 * median(sizes)).max(SIZE_MIN)
}

/// Solves a symmetric positive system by Cholesky's method; each column of `right` apart.
fn solve(matrix: &[Vec<f64>], right: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let count = matrix.len();
    let mut lower = vec![vec![0.0; count]; count];
    for row in 0..count {
        for column in 0..=row {
            let sum: f64 = (0..column).map(|k| lower[row][k] * lower[column][k]).sum();
            let rest: f64 = matrix[row][column] - sum;
            lower[row][column] =
                if row == column { rest.max(1e-300).sqrt() } else { rest / lower[column][column] };
        }
    }
    let one = |right: &Vec<f64>| {
        let mut x = right.clone();
        for row in 0..count {
            let sum: f64 = (0..row).map(|k| lower[row][k] * x[k]).sum();
            x[row] = (x[row] - sum) / lower[row][row];
        }
        for row in (0..count).rev() {
            let sum: f64 = (row + 1..count).map(|k| lower[k][row] * x[k]).sum();
            x[row] = (x[row] - sum) / lower[row][row];
        }
        x
    };
    right.iter().map(one).collect()
}

/// Fits constants to rows, and judges them on others.
///
/// # Errors
/// No rows, constants that are not known or zero, unknown topologies.
pub fn fit(
    rows: &[Observation],
    held_out: &[Observation],
    names: &[Name],
    start: &Calibration,
) -> Result<Fit> {
    let prior = |(class, device, name): &Name| {
        let constant = start.constant(*class, device, name)?;
        Ok(PRIOR * relative_uncertainty(constant.confidence))
    };
    let priors = names.iter().map(prior).collect::<Result<Vec<f64>>>()?;
    fit_with_priors(rows, held_out, names, priors, start)
}

/// As [`fit`], with a prior of each constant: one standard deviation of its logarithm.
///
/// # Errors
/// As [`fit`].
pub fn fit_with_priors(
    rows: &[Observation],
    held_out: &[Observation],
    names: &[Name],
    priors: Vec<f64>,
    start: &Calibration,
) -> Result<Fit> {
    // Rows without a prediction say nothing of constants.
    let known = rows.iter().zip(predict(rows, start)?);
    let known = known.filter_map(|(row, p)| Some((row.clone(), residual(row, p?))));
    let (rows, before): (Vec<Observation>, Vec<f64>) = known.unzip();
    if rows.is_empty() {
        return Err(Error::request("there is no row to fit to", "choose other observations"));
    }
    let mut values = Vec::new();
    for (class, device, name) in names {
        let constant = start.constant(*class, device, name)?;
        if constant.value <= 0.0 {
            let message = format!("{device} {name} is zero");
            return Err(Error::request(message, "a logarithm cannot be fitted to it"));
        }
        values.push(constant.value);
    }
    let problem = Problem { rows: &rows, names, start, values, priors };
    let (moves, covariance, rounds) = descend(&problem, before.clone())?;
    let mut calibration = start.clone();
    let mut constants = Vec::new();
    for (index, (class, device, name)) in names.iter().enumerate() {
        let value = problem.values[index];
        let spread = covariance[index][index].max(0.0).sqrt();
        let identifiable = spread < TOLD * problem.priors[index];
        let after = if identifiable { value * moves[index].exp() } else { value };
        if identifiable {
            calibration.set(*class, device, name, after)?;
        }
        let factor = (SIGMAS_80 * spread).exp();
        constants.push(Fitted {
            name: format!("{}/{device}/{name}", class.word()),
            unit: start.constant(*class, device, name)?.unit.clone(),
            before: value,
            after,
            likeliest: value * moves[index].exp(),
            low: after / factor,
            high: after * factor,
            identifiable,
        });
    }
    let before: Vec<Option<f64>> = before.into_iter().map(Some).collect();
    let fitted = effect(&before, &residuals(&rows, &calibration)?);
    let held_out = match held_out.is_empty() {
        true => None,
        false => Some(compared(held_out, start, &calibration)?),
    };
    Ok(Fit { constants, fitted, held_out, rounds, calibration })
}

/// Moves of the least cost, their covariance, and rounds taken; `now` are the residuals of no move.
fn descend(problem: &Problem<'_>, mut now: Vec<f64>) -> Result<(Vec<f64>, Vec<Vec<f64>>, u32)> {
    let count = problem.names.len();
    let mut moves = vec![0.0; count];
    let unit = |at: usize| (0..count).map(|index| f64::from(u8::from(index == at))).collect();
    let units: Vec<Vec<f64>> = (0..count).map(unit).collect();
    for round in 1..=ROUNDS {
        let size = usual(&now);
        let mut slopes = Vec::new();
        for index in 0..count {
            let mut there = moves.clone();
            there[index] += STEP;
            // Where a row has no prediction beside this place, nothing is known of the slope.
            let moved = problem.residuals(&there)?.unwrap_or_else(|| now.clone());
            slopes.push(moved.iter().zip(&now).map(|(a, b)| (a - b) / STEP).collect());
        }
        let (curvature, slope) = problem.normal(&now, &slopes, &moves, size);
        let step = solve(&curvature, &[slope]).remove(0);
        let cost = problem.cost(&now, &moves, size);
        let mut share = 1.0;
        let mut largest = 0.0_f64;
        while share > 0.1 {
            let there: Vec<f64> = (0..count)
                .map(|index| {
                    let bound = BOUND * problem.priors[index];
                    (moves[index] - share * step[index]).clamp(-bound, bound)
                })
                .collect();
            let residuals = problem.residuals(&there)?;
            if let Some(residuals) = residuals
                && problem.cost(&residuals, &there, size) <= cost
            {
                largest = moves.iter().zip(&there).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                (moves, now) = (there, residuals);
                break;
            }
            share /= 2.0;
        }
        if largest < STILL || round == ROUNDS {
            return Ok((moves, solve(&curvature, &units), round));
        }
    }
    Ok((moves, solve(&units, &units), ROUNDS))
}

/// Errors of these rows by some constants and by others.
///
/// # Errors
/// Unknown topologies.
pub fn compared(rows: &[Observation], before: &Calibration, after: &Calibration) -> Result<Effect> {
    Ok(effect(&residuals(rows, before)?, &residuals(rows, after)?))
}

/// What a fit does to these residuals: those of rows that have a prediction both times.
fn effect(before: &[Option<f64>], after: &[Option<f64>]) -> Effect {
    let both: Vec<(f64, f64)> = before.iter().zip(after).filter_map(|(a, b)| a.zip(*b)).collect();
    let before_of = || both.iter().map(|pair| pair.0.exp_m1().abs());
    let after_of = || both.iter().map(|pair| pair.1.exp_m1().abs());
    Effect {
        rows: both.len(),
        without: before.len() - both.len(),
        median_before: median(before_of()),
        median_after: median(after_of()),
        p90_before: quantile(before_of(), 0.9),
        p90_after: quantile(after_of(), 0.9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_prediction_is_no_perfect_one() {
        let told = effect(&[Some(0.2), None, Some(-0.1)], &[Some(0.1), Some(0.0), None]);
        assert_eq!((told.rows, told.without), (1, 2));
        assert!((told.median_before - 0.2_f64.exp_m1()).abs() < 1e-12);
        assert!((told.median_after - 0.1_f64.exp_m1()).abs() < 1e-12);
        assert_eq!(effect(&[None], &[None]).rows, 0);
    }

    #[test]
    fn a_system_is_solved() {
        // 4 x + y = 1, x + 3 y = 2: x = 1/11, y = 7/11.
        let x = solve(&[vec![4.0, 1.0], vec![1.0, 3.0]], &[vec![1.0, 2.0]]).remove(0);
        assert!((x[0] - 1.0 / 11.0).abs() < 1e-12 && (x[1] - 7.0 / 11.0).abs() < 1e-12);
    }
}
