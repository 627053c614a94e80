//! One binary for all integration tests, a module a question.

mod arrival;
mod bad_input;
mod barrier;
mod bless;
mod check;
mod choose;
mod cli;
mod docs;
mod edits;
mod inputs;
mod invariants;
mod logs;
mod memory;
mod nccl_files;
mod nccl_schedules;
mod nccl_search;
mod nccl_setup;
mod nccl_tuner;
mod probe;
mod readme;
mod rig;
mod schedules;
mod schema;
mod serving;
mod tidy;
mod wire_bytes;
