//! Are the examples in `docs/` true?

use collsim::engine::Fidelity;
use collsim::input::topology_json::parse;

use crate::bless::file_text;
use crate::cli::simulate;
use crate::rig::{Rig, choices};

fn example() -> String {
    let text = file_text("docs/topology-files.md");
    let (_, rest) = text.split_once("```json\n").expect("an example");
    rest.split_once("```").expect("the example ends").0.to_owned()
}

#[test]
fn the_example_of_a_topology_file_is_a_machine() {
    let rig = Rig::of(parse("example", &example()).unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(rig.gpus().len(), 4);
    for choice in choices() {
        rig.run(&rig.schedule(choice, 14_336), Fidelity::MaxMin);
    }
    let file = std::env::temp_dir().join(format!("collsim-example-{}.json", std::process::id()));
    std::fs::write(&file, example()).expect("writable");
    let check = simulate(&["topo", "check", file.to_str().expect("UTF-8")]);
    std::fs::remove_file(&file).expect("ours");
    assert!(check.code == 0 && check.out.contains("sound"), "{}{}", check.out, check.err);
}

/// A chip with more lanes in use than it has is refused by the program.
#[test]
fn too_many_lanes_are_refused() {
    let name = "\"root2\": {";
    let more: String =
        (0..6).map(|n| format!("\"nic{n}\": {{\"nic\": {{\"model\": \"x\"}}}},")).collect();
    let pcie = "\"kind\": {\"pcie\": {\"generation\": 5, \"width\": 16}}}";
    let links: String =
        (0..6).map(|n| format!("{{\"a\": \"nic{n}\", \"b\": \"switch\", {pcie},")).collect();
    let text = example()
        .replace(name, &format!("{more}{name}"))
        .replace("\"links\": [", &format!("\"links\": [{links}"));
    let file = std::env::temp_dir().join(format!("collsim-lanes-{}.json", std::process::id()));
    std::fs::write(&file, text).expect("writable");
    let run = simulate(&["--topo", file.to_str().expect("UTF-8")]);
    std::fs::remove_file(&file).expect("ours");
    assert!(run.code == 2 && run.err.contains("lanes"), "{}{}", run.out, run.err);
}
