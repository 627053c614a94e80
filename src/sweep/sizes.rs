//! Many sizes of one call, as nccl-tests runs them.

use serde::Serialize;

use super::in_parallel;
use crate::error::{Error, Result};
use crate::prediction::nccl::taken;
use crate::prediction::{Case, CaseOptions, CasePrediction, Machine};
use crate::selection::nccl::Setup;
use crate::units::format_size;
use crate::workload::Collective;

/// From which size to which, and by what factor.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// First, bytes.
    pub begin: u64,
    /// Last, bytes.
    pub end: u64,
    /// Each is the one before times this.
    pub factor: f64,
}

/// More sizes than this are a slip of the pen.
const COUNT_MAX: usize = 200;

impl Sizes {
    /// All sizes.
    ///
    /// # Errors
    /// An empty range, a factor that does not grow, or too many sizes.
    pub fn all(&self) -> Result<Vec<u64>> {
        if self.begin == 0 {
            return Err(Error::request("a call of 0 bytes moves nothing", "begin with -b 8"));
        }
        if self.begin > self.end {
            let (begin, end) = (format_size(self.begin), format_size(self.end));
            return Err(Error::request(
                format!("no size from {begin} up to {end}"),
                format!("the first size is the smaller: -b {end} -e {begin}"),
            ));
        }
        if !(self.factor.is_finite() && self.factor > 1.0) {
            return Err(Error::request(
                format!("a factor of {} does not lead from one size to the next", self.factor),
                "use -f 2 to double each time",
            ));
        }
        let mut sizes = vec![self.begin];
        let mut at = self.begin;
        while at < self.end {
            let next = (at as f64 * self.factor).round() as u64;
            at = next.max(at + 1);
            if at <= self.end {
                sizes.push(at);
            }
            if sizes.len() > COUNT_MAX {
                return Err(Error::request(
                    format!("more than {COUNT_MAX} sizes"),
                    "take a larger factor: -f 2",
                ));
            }
        }
        Ok(sizes)
    }
}

/// Predictions of every case at every size: `[size][case]`. `progress` is told after each.
///
/// # Errors
/// Those of the algorithms and the engine.
pub fn sweep(
    machine: &Machine,
    cases: &[Case],
    sizes: &[u64],
    options: &CaseOptions,
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<Vec<CasePrediction>>> {
    // The large sizes of a case share what is simulated; they come first, being the longest.
    let exact: Vec<usize> = cases
        .iter()
        .map(|case| sizes.partition_point(|&size| size <= case.exact(options)))
        .collect();
    let mut jobs: Vec<(&[u64], usize)> = Vec::new();
    jobs.extend((0..cases.len()).map(|case| (&sizes[exact[case]..], case)));
    jobs.retain(|(large, _)| !large.is_empty());
    for place in (0..sizes.len()).rev() {
        let small = (0..cases.len()).filter(|&case| place < exact[case]);
        jobs.extend(small.map(|case| (&sizes[place..=place], case)));
    }
    let done = in_parallel(&jobs, |&(sizes, case)| {
        let predictions = predicted(machine, &cases[case], sizes, options);
        sizes.iter().for_each(|_| progress());
        predictions
    })?;
    let cases_of = jobs.iter().map(|&(_, case)| case);
    let mut all: Vec<(usize, CasePrediction)> = cases_of
        .zip(done)
        .flat_map(|(case, predictions)| predictions.into_iter().map(move |one| (case, one)))
        .collect();
    all.sort_by_key(|(case, prediction)| (prediction.bytes, *case));
    let mut all = all.into_iter().map(|(_, prediction)| prediction);
    Ok(sizes.iter().map(|_| all.by_ref().take(cases.len()).collect()).collect())
}

/// How a call is simulated; nothing where no schedule replays it.
type Way = Option<(Case, CaseOptions)>;

/// What NCCL takes by itself at each size, and gives, as nccl-tests would show it; `None` where no
/// schedule replays it.
///
/// # Errors
/// Those of the engine.
pub fn taken_by_nccl(
    machine: &Machine,
    setup: &Setup,
    collective: Collective,
    sizes: &[u64],
    options: &CaseOptions,
) -> Result<Vec<Option<CasePrediction>>> {
    // Large sizes that are run alike share what is simulated; they come first, being the longest.
    let key = |way: &Way| way.as_ref().map(|(case, options)| case.key(options));
    let is_large = |way: &Way, size: u64| {
        way.as_ref().is_some_and(|(case, options)| size > case.exact(options))
    };
    let mut jobs: Vec<(Vec<u64>, Way)> = Vec::new();
    for &size in sizes.iter().rev() {
        let way = taken(setup, collective, size, options)?.case.ok();
        match jobs.last_mut() {
            Some((together, before)) if is_large(&way, size) && key(before) == key(&way) => {
                together.insert(0, size);
            }
            _ => jobs.push((vec![size], way)),
        }
    }
    let found = in_parallel(&jobs, |(sizes, way)| {
        let Some((case, options)) = way else { return Ok(vec![None; sizes.len()]) };
        let predictions = predicted(machine, case, sizes, options)?;
        let named = predictions.into_iter().map(|one| {
            let title = format!("what NCCL takes: {}", one.title);
            Some(CasePrediction { title, ..one })
        });
        Ok(named.collect())
    })?;
    Ok(found.into_iter().rev().flatten().collect())
}

/// A case at some sizes, large ones together.
fn predicted(
    machine: &Machine,
    case: &Case,
    sizes: &[u64],
    options: &CaseOptions,
) -> Result<Vec<CasePrediction>> {
    if sizes[0] > case.exact(options) {
        return case.predict_large(machine, sizes, options);
    }
    sizes.iter().map(|&size| case.predict(machine, size, options)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_double() {
        let sizes = Sizes { begin: 8, end: 64, factor: 2.0 };
        assert_eq!(sizes.all().expect("fine"), [8, 16, 32, 64]);
    }

    #[test]
    fn impossible_ranges_are_refused() {
        for (begin, end, factor) in [(0, 8, 2.0), (9, 8, 2.0), (8, 64, 1.0), (1, 1 << 40, 1.01)] {
            assert!(Sizes { begin, end, factor }.all().is_err(), "{begin} {end} {factor}");
        }
    }
}
