//! Fuzzing of every text reader, by libFuzzer: one program, whose target the variable `FUZZ_TARGET`
//! names (`list` prints all of them). A panic, a hang (`-timeout`) and memory beyond ten times the
//! input, plus a base for tables and messages, are failures.

#![no_main]

mod memory;
mod targets;

use std::sync::OnceLock;

use libfuzzer_sys::{Corpus, fuzz_target};

use targets::Target;

#[global_allocator]
static MEMORY: memory::Counted = memory::Counted;

fn target() -> &'static Target {
    static TARGET: OnceLock<Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let mut all = targets::all();
        if let Some(at) = all.iter().position(|target| target.name == wanted) {
            return all.swap_remove(at);
        }
        for target in all {
            println!("{}", target.name);
        }
        std::process::exit(i32::from(wanted != "list"));
    })
}

fuzz_target!(
    init: {
        let target = target();
        // Tables that are built once are no part of an input's cost.
        (target.run)(b"");
        (target.run)(b"\n");
    },
    |data: &[u8]| -> Corpus {
        memory::start();
        (target().run)(data);
        memory::check(data.len());
        Corpus::Keep
    }
);
