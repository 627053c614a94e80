//! One binary for all integration tests, a module a question.

mod bad_input;
mod check;
mod schedules;
mod schema;
