//! What real machines did: plain records, and readers of the tables they come from.
//!
//! A reader turns every row of a file into an [`Observation`] or into a [`Skipped`] with its
//! reason; nothing is dropped silently. What a row means as a run of the simulator is told by
//! [`Run`], in terms of GPUs and memories; `validation` does the running.

pub mod library;
pub mod logs;
mod observation;
mod read;
pub mod table;
pub mod trace;

use observation::large;
pub use observation::{
    Carrier, Copy, KernelCall, Launches, Load, LoadKind, Memory, NcclCall, Observation, Pair, Run,
    Skipped,
};
pub use read::{Record, SET_ASIDE, read_machine, read_tables};
