//! Prediction against what real machines did.

pub mod cause;
pub mod check;
pub mod experiment;
mod figures;
pub mod fit;
pub mod left_out;
mod likeness;
mod line;
pub mod mechanism;
mod nccl;
pub mod page;
mod page_misses;
pub mod predict;
pub mod read;
mod regret;
pub mod render;
pub mod replay;
mod residual;
mod row;
mod score;
pub mod stages;
pub mod summary;
pub mod target;
pub mod tolerance;
