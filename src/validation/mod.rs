//! Prediction against what real machines did.

pub mod check;
pub mod experiment;
mod figures;
pub mod fit;
mod line;
mod nccl;
pub mod page;
pub mod predict;
pub mod read;
mod regret;
pub mod render;
pub mod replay;
mod residual;
mod score;
pub mod summary;
pub mod tolerance;
