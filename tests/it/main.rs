//! One binary for all integration tests, a module a question.

mod bad_input;
mod bless;
mod check;
mod cli;
mod invariants;
mod readme;
mod rig;
mod schedules;
mod schema;
mod tidy;
