//! What must hold whatever the constants are.

mod bounds;
mod bytes;
mod ladder;
mod multicast;
mod settings;
mod stuck;
mod symmetry;
mod widths;
