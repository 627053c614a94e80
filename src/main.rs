//! The `simulate` program: arguments in, an answer out, an exit code.
//!
//! 0: answered. 1: a check is outside its tolerance. 2: the input or the request cannot be met, or
//! the answer cannot be written. 130: stopped by Ctrl-C, what was done is kept. 101: a bug of ours.

use std::process::ExitCode;

use collsim::cli::{Arguments, Output, run};

fn main() -> ExitCode {
    let arguments = Arguments::read();
    let mut output = Output::new(arguments.color());
    let outcome = run(&arguments, &mut output);
    output.finish(outcome)
}
