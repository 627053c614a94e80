//! Does the probe's code that needs no GPU work, and do its pages say what it does?

use std::process::Command;

use crate::bless::file_text;

/// Names of the questions, as `--list` would print them.
fn questions() -> Vec<String> {
    let text = file_text("probe/probe.cu");
    let (_, table) = text.split_once("const Question questions[] = {").expect("the table");
    let (table, _) = table.split_once("};").expect("its end");
    table.lines().filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

#[test]
fn every_question_is_explained_and_has_a_file() {
    let (page, header) = (file_text("docs/probe.md"), file_text("probe/context.h"));
    let asked = questions();
    assert!(asked.len() > 10, "{asked:?}");
    for name in asked {
        assert!(page.contains(&format!("| `{name}` |")), "docs/probe.md does not explain {name}");
        assert!(header.contains(&format!("void ask_{name}(Context&);")), "{name}");
    }
}

/// One line builds it: the same in the page and in the program.
#[test]
fn the_line_that_builds_it_is_told_once() {
    let line = "nvcc -O3 -std=c++17 -arch=native -o collsim-probe probe/*.cu";
    assert!(file_text("docs/probe.md").contains(line));
    assert!(file_text("probe/probe.cu").contains(line));
}

/// Options, statistics, clock alignment, rows and wiring, compiled by the machine's C++ compiler.
#[test]
fn what_needs_no_gpu_works() {
    let root = env!("CARGO_MANIFEST_DIR");
    let program = std::env::temp_dir().join(format!("collsim-probe-tests-{}", std::process::id()));
    let built = Command::new("c++")
        .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(format!("{root}/probe/tests.cpp"))
        .output();
    // A machine for Rust alone has no C++ compiler; `docs/probe.md` is for one that has.
    let Ok(built) = built else { return };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = Command::new(&program).output().expect("it was built");
    std::fs::remove_file(&program).expect("ours");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
