//! Latency plus bytes over rate: every pair of memories has a pipe of its own, as wide as the
//! narrowest link between them, and shares nothing with other pairs.
//!
//! What a call takes here and what it takes with packets differ by contention alone, which is how
//! the share of waiting is told.

use super::flows::Flows;

/// The model.
pub type AlphaBeta<'a> = Flows<'a, false>;
