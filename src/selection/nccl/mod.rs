//! NCCL's choice. The machine as NCCL sees it becomes [`graph::Graph`]s of channels (search, or a
//! graph file); the tuner prices every algorithm and protocol on them.

pub mod constants;
pub mod environment;
pub mod graph;
pub mod launch;
mod lists;
pub mod memory;
mod price;
pub mod tables;
pub mod tune;
pub mod variables;
pub mod version;

pub use version::Version;
