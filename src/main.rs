//! The `simulate` program.
fn main() {}
