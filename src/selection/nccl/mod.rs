//! NCCL's choice. The machine as NCCL sees it becomes [`graph::Graph`]s of channels (search, or a
//! graph file); the tuner prices every algorithm and protocol on them.
//!
//! An [`inventory::Inventory`] (read from a system file or surveyed from a topology) becomes a
//! [`system::System`] with the bandwidths that a version believes in ([`beliefs::Beliefs`]), then
//! [`path::Paths`], then [`search::Graphs`]; [`transport`] says how each hop travels.

pub mod beliefs;
pub mod constants;
pub mod cure;
pub mod environment;
pub mod graph;
pub mod inventory;
pub mod launch;
mod lists;
pub mod memory;
pub mod path;
pub mod plugin;
mod price;
pub mod search;
pub mod setup;
pub mod survey;
pub mod system;
pub mod tables;
pub mod transport;
pub mod tune;
pub mod variables;
pub mod version;

pub use setup::Setup;
pub use version::Version;
