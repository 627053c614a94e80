//! What a library would choose: which algorithm, protocol, channels and transport it takes for a
//! call on a machine, by its own beliefs about the machine. What that choice costs on the wires is
//! not said here: `prediction` and `sweep` time it.

pub mod gpu;
pub mod memory;
pub mod nccl;
pub mod serving;
