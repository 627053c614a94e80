//! Many cases: the answer to a question as a whole. The only threads of the program are here, and
//! results do not depend on their number.

pub mod answer;
pub mod ask;
pub mod capacity;
pub mod choose;
pub mod compare;
pub mod dispatch;
pub mod environments;
pub mod faults;
pub mod grid;
pub mod grouping;
pub mod measured;
pub mod nearby;
pub mod placement;
pub mod plan;
pub mod rows;
pub mod sensitivity;
pub mod sizes;
pub mod spread;
pub mod step;
pub mod study;
pub mod wiring;

pub use answer::{Answer, Question};
pub use study::Study;

use rayon::prelude::*;

use crate::error::Result;

/// Runs jobs in parallel; results stand in the order of the jobs, and of several errors the first
/// in that order is told.
pub(crate) fn in_parallel<J: Sync, D: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<D> + Sync + Send,
) -> Result<Vec<D>> {
    let done: Vec<Result<D>> = jobs.par_iter().with_max_len(1).map(work).collect();
    done.into_iter().collect()
}
