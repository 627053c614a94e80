//! Prediction against what real machines did.

pub mod check;
pub mod experiment;
pub mod predict;
pub mod render;
pub mod summary;
pub mod tolerance;
