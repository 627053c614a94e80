//! Prediction against what real machines did.

pub mod check;
pub mod experiment;
mod nccl;
pub mod predict;
pub mod render;
pub mod summary;
pub mod tolerance;
