//! One case at a time: what a call takes on a machine, with its range.

mod adapters;
pub mod barrier;
pub mod beside;
pub mod bottleneck;
pub mod breakdown;
pub mod case;
pub mod cases;
pub mod choice;
pub mod experts;
pub mod growth;
pub mod in_place;
pub mod jitter;
pub mod machine;
pub mod nccl;
pub mod options;
pub mod plan;
pub mod range;
pub mod regime;
pub mod ring_order;
pub mod throughput;
pub mod waterfall;

pub use bottleneck::Bottleneck;
pub use case::{Case, CasePrediction};
pub use choice::Choice;
pub use in_place::InPlace;
pub use machine::Machine;
pub use options::CaseOptions;
pub use range::Range;
pub use throughput::Exchange;
pub use waterfall::Waterfall;
