//! Prediction against what real machines did.

pub mod experiment;
