//! Are pictures whole: every text inside and by itself, nothing empty, the same from run to run, and
//! those of the gallery what the code draws?

use std::path::PathBuf;

use collsim::input::topology_json;
use collsim::report::plot::gallery::ENTRIES;
use collsim::report::plot::letters::width;
use collsim::report::plot::{KINDS, style::WIDTH};
use collsim::topology::{Gpu, Link, NodeKind, Topology};

use crate::bless::{file_text, same_as_file};
use crate::cli::simulate;
use crate::rig::topology;

/// A text of a picture: what it says, and left, top, right and bottom of what it covers, pixels.
struct Seen {
    text: String,
    area: [f64; 4],
}

/// Drawn units of a pixel.
const UNITS: f64 = 10.0;

/// The texts of a picture, which must be well-formed.
fn texts(name: &str, svg: &str) -> Vec<Seen> {
    let tree = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}"));
    let texts = tree.descendants().filter(|node| node.has_tag_name("text"));
    texts
        .map(|node| {
            let number = |name: &str| node.attribute(name).and_then(|n| n.parse::<f64>().ok());
            let at = [number("x"), number("y"), number("font-size")];
            let [x, y, size] = at.map(|value| value.expect("a number") / UNITS);
            let text = node.text().unwrap_or_default().to_owned();
            let wide = width(&text, size, node.attribute("font-weight").is_some());
            let left = match node.attribute("text-anchor") {
                Some("middle") => x - wide / 2.0,
                Some("end") => x - wide,
                _ => x,
            };
            // Capitals and most letters are below 0.36 of the size on either side of the middle.
            let half = size * 0.36;
            Seen { text, area: [left, y - half, left + wide, y + half] }
        })
        .collect()
}

/// What is wrong with a picture.
fn faults(name: &str, svg: &str) -> Vec<String> {
    let texts = texts(name, svg);
    let tree = roxmltree::Document::parse(svg).expect("well-formed");
    let height: f64 = tree.root_element().attribute("height").and_then(|h| h.parse().ok()).unwrap();
    let mut wrong = Vec::new();
    for (index, one) in texts.iter().enumerate() {
        let [left, top, right, bottom] = one.area;
        if left < 0.0 || top < 0.0 || right > WIDTH || bottom > height {
            wrong.push(format!("{name}: `{}` is cut off: {:?}", one.text, one.area));
        }
        for other in &texts[index + 1..] {
            let [l, t, r, b] = other.area;
            if left < r && l < right && top < b && t < bottom {
                wrong.push(format!("{name}: `{}` and `{}` overlap", one.text, other.text));
            }
        }
    }
    let shapes = ["polyline", "polygon", "rect", "circle"];
    let drawn = tree.descendants().filter(|node| shapes.contains(&node.tag_name().name()));
    if drawn.count() < 3 {
        wrong.push(format!("{name}: next to nothing is drawn"));
    }
    if svg.contains("NaN") || svg.contains("inf") {
        wrong.push(format!("{name}: no number"));
    }
    wrong
}

/// Draws a kind with a small call of one size, or as told.
fn drawn(machine: &str, kind: &str, more: &[&str]) -> String {
    let mut arguments = vec!["plot", kind, "--topo", machine];
    arguments.extend(more);
    let run = simulate(&arguments);
    assert_eq!(run.code, 0, "{machine} {kind}: {}", run.err);
    run.out
}

#[test]
fn pictures_of_the_gallery_are_what_the_code_draws() {
    for entry in ENTRIES {
        let file = format!("plots/{}", entry.file_name());
        same_as_file(&file, &drawn(entry.machine, entry.kind, &[]));
        let wrong = faults(&file, &file_text(&file));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn the_page_of_the_gallery_shows_every_file() {
    let page = file_text("plots/README.md");
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("plots");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        let known = name == "README.md" || page.contains(&format!("]({name})"));
        assert!(known, "plots/{name} is on no page: simulate plot gallery --out plots");
    }
}

/// A machine in a file of its own, for as long as a test runs.
struct File(PathBuf);

impl File {
    fn of(topology: &Topology) -> File {
        let name = format!("collsim-plots-{}-{}.json", std::process::id(), topology.nodes.len());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, topology_json::write(topology).expect("JSON")).expect("writable");
        File(file)
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("UTF-8")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Eight NVSwitch boxes in one: 64 GPUs, with a long name in letters beyond ASCII.
fn odd_machine() -> Topology {
    let mut odd = topology("h100x8-nvswitch");
    odd.name = "ein-Rechner-mit-64-Grafikprozessoren-机器-<&>-Überlänge-usw".to_owned();
    odd.title = format!("{}, {}", odd.name, odd.title);
    let switch = odd.find("nvswitch").expect("an NVSwitch");
    let nvlink = odd.links.iter().find(|link| link.b == switch).expect("a link").kind;
    for gpu in 8..64 {
        let kind = NodeKind::Gpu(Gpu { model: "h100-sxm".to_owned() });
        let id = format!("gpu{gpu}");
        odd.nodes.push(collsim::topology::Node { id, kind });
        let node = collsim::topology::NodeId(odd.nodes.len() as u32 - 1);
        odd.links.push(Link { a: node, b: switch, kind: nvlink });
    }
    odd
}

#[test]
fn odd_machines_are_drawn_whole() {
    let odd = File::of(&odd_machine());
    let mut wrong = Vec::new();
    let few = KINDS.iter().filter(|kind| kind.name != "errors").map(|kind| (kind.name, "0,1"));
    let many = ["machine", "timeline", "contention"].map(|kind| (kind, "0-23"));
    for (kind, gpus) in few.chain(many) {
        let call = ["-b", "1K", "--gpus", gpus, "--algo", "ring,one_shot_push"];
        let svg = drawn(odd.name(), kind, &call);
        wrong.extend(faults(&format!("odd {kind} {gpus}"), &svg));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn one_gpu_has_pictures_of_its_machine_only() {
    for kind in KINDS.iter().filter(|kind| kind.name != "errors") {
        let run = simulate(&["plot", kind.name, "--topo", "h200-host-link"]);
        if kind.of_calls {
            assert!(run.code == 2 && run.err.contains("nothing to reduce"), "{}", run.err);
        } else {
            let wrong = faults(kind.name, &run.out);
            assert!(run.code == 0 && wrong.is_empty(), "{}{}", run.err, wrong.join("\n"));
        }
    }
}

#[test]
fn pictures_do_not_depend_on_threads_or_runs() {
    for kind in ["time", "timeline"] {
        let once = drawn("rtxpro6000x8-direct", kind, &["-b", "1K", "-e", "4K", "-j", "1"]);
        let twice = drawn("rtxpro6000x8-direct", kind, &["-b", "1K", "-e", "4K", "-j", "3"]);
        assert!(once == twice, "{kind}");
    }
}

#[test]
fn unknown_pictures_and_flags_of_predictions_are_refused() {
    let run = simulate(&["plot", "tim", "--topo", "rtxpro6000x8"]);
    assert!(run.code == 2 && run.err.contains("did you mean `time`?"), "{}", run.err);
    let run = simulate(&["plot", "time", "--topo", "rtxpro6000x8", "--json"]);
    assert!(run.code == 2 && run.err.contains("--json is for a prediction"), "{}", run.err);
    let list = simulate(&["plot", "list"]).out;
    assert!(KINDS.iter().all(|kind| list.contains(kind.name)), "{list}");
}
