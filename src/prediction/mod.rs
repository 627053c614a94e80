//! One case at a time: what a call takes on a machine, with its range.

pub mod range;

pub use range::Range;
