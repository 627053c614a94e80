//! Is the screen in the README the program's? `COLLSIM_BLESS=1` rewrites it.

use crate::bless::{file_text, same_as_file};
use crate::cli::simulate;

const COMMAND: &str = "$ cargo run --release -- --topo rtxpro6000x8.json\n";

#[test]
fn the_screen_is_the_programs() {
    let text = file_text("README.md");
    let (before, rest) = text.split_once(COMMAND).expect("the command is in the README");
    let (_, after) = rest.split_once("```").expect("the block ends");
    let run = simulate(&["--topo", "rtxpro6000x8.json"]);
    same_as_file("README.md", &format!("{before}{COMMAND}{}```{after}", run.out));
}
