//! Are pictures whole: every text inside and by itself, nothing empty, the same from run to run, and
//! those of the gallery what the code draws?

use std::path::PathBuf;

use collsim::input::topology_json;
use collsim::report::plot::KINDS;
use collsim::report::plot::gallery::ENTRIES;
use collsim::report::plot::letters::width;
use collsim::report::plot::style::{Ink, WIDTH};
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
    for (line, text) in crossed(&tree, &texts) {
        wrong.push(format!("{name}: a line {line:?} goes through `{text}`"));
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

/// Lines in the color of text that go through a text, which then cannot be read.
fn crossed(tree: &roxmltree::Document<'_>, texts: &[Seen]) -> Vec<([f64; 4], String)> {
    let ink = format!("#{:06X}", Ink::Text.colors().0);
    let lines = tree.descendants().filter(|node| {
        node.has_tag_name("polyline") && node.attribute("stroke") == Some(ink.as_str())
    });
    let mut found = Vec::new();
    for line in lines {
        let numbers = line.attribute("points").unwrap_or_default().split([' ', ',']);
        let numbers: Vec<f64> =
            numbers.filter_map(|n| n.parse::<f64>().ok()).map(|n| n / UNITS).collect();
        let points: Vec<&[f64]> = numbers.chunks(2).collect();
        for pair in points.windows(2) {
            let segment = [pair[0][0], pair[0][1], pair[1][0], pair[1][1]];
            let through = texts.iter().filter(|text| meets(segment, text.area));
            found.extend(through.map(|text| (segment, text.text.clone())));
        }
    }
    found
}

/// Whether a line from one point to another has a part in an area.
fn meets([x0, y0, x1, y1]: [f64; 4], [left, top, right, bottom]: [f64; 4]) -> bool {
    let (mut first, mut last) = (0.0_f64, 1.0_f64);
    for (at, step, low, high) in [(x0, x1 - x0, left, right), (y0, y1 - y0, top, bottom)] {
        if step.abs() < 1e-9 {
            if at <= low || at >= high {
                return false;
            }
            continue;
        }
        let (a, b) = ((low - at) / step, (high - at) / step);
        (first, last) = (first.max(a.min(b)), last.min(a.max(b)));
    }
    first < last
}

/// The pictures of a report, by the name of their kind: all but `errors`.
fn of_report(machine: &str, more: &[&str]) -> Vec<(String, String)> {
    let name = format!("collsim-plots-{}-{}.html", std::process::id(), more.len());
    let file = std::env::temp_dir().join(name);
    let out = file.to_str().expect("UTF-8");
    let run = simulate(&[&["report", "--topo", machine, "--out", out], more].concat());
    assert_eq!(run.code, 0, "{machine} {more:?}: {}", run.err);
    let page = std::fs::read_to_string(&file).expect("written");
    let _ = std::fs::remove_file(&file);
    let figures = page.split("<figure id=\"plot-").skip(1).map(|figure| {
        let (name, rest) = figure.split_once('"').expect("a name");
        let (_, svg) = rest.split_once("<svg").expect("a picture");
        let (svg, _) = svg.split_once("</svg>").expect("it ends");
        (name.to_owned(), format!("<svg{svg}</svg>"))
    });
    figures.collect()
}

/// What is wrong with the pictures of a report, which must be of these kinds and no others.
fn faults_of_report(machine: &str, more: &[&str], kinds: &[&str]) -> Vec<String> {
    let pictures = of_report(machine, more);
    let mut drawn: Vec<&str> = pictures.iter().map(|picture| picture.0.as_str()).collect();
    drawn.sort_unstable();
    assert_eq!(drawn, kinds, "{machine}");
    let each = pictures.iter().flat_map(|(kind, svg)| faults(&format!("{kind} of {machine}"), svg));
    each.collect()
}

/// Kinds that a report shows, in the order of their names.
fn kinds_of_report(calls: bool) -> Vec<&'static str> {
    let shown = KINDS.iter().filter(|kind| kind.name != "errors" && (calls || !kind.of_calls));
    let mut names: Vec<&str> = shown.map(|kind| kind.name).collect();
    names.sort_unstable();
    names
}

/// Every kind of machine that people have: two wirings of eight GPUs, an NVSwitch, sixteen GPUs, a pair,
/// one alone.
#[test]
fn every_kind_is_whole_on_every_kind_of_machine() {
    let machines = [
        ("rtxpro6000x8", true),
        ("rtxpro6000x8-flat", true),
        ("h100x8-nvswitch", true),
        ("rtxpro6000x16-flat", true),
        ("h200x2-nvlink-pair", true),
        ("h200-host-link", false),
    ];
    let mut wrong = Vec::new();
    for (machine, calls) in machines {
        let call = ["-b", "1K", "-e", "4K", "-f", "4", "--algo", "ring,one_shot_push"];
        wrong.extend(faults_of_report(machine, &call, &kinds_of_report(calls)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Errors are of what was measured, which takes a check: of a machine with few measurements, of one without,
/// and by machine and regime.
#[test]
fn pictures_of_errors_are_whole() {
    let mut wrong = Vec::new();
    for machine in ["rtx6000ada-x2-pcie", "v100x8-cube-mesh"] {
        wrong.extend(faults(machine, &drawn(machine, "errors", &[])));
    }
    let file = std::env::temp_dir().join(format!("collsim-accuracy-{}.svg", std::process::id()));
    let out = file.to_str().expect("UTF-8");
    let rows = ["--machine", "wrx90-7955wx", "--experiment", "read"];
    let run = simulate(&[&["check", "--plot", out], &rows[..]].concat());
    assert!(run.code <= 1, "{}", run.err);
    let svg = std::fs::read_to_string(&file).expect("drawn");
    let _ = std::fs::remove_file(&file);
    wrong.extend(faults("accuracy", &svg));
    let shown = |text: &str| texts("accuracy", &svg).iter().any(|one| one.text.starts_with(text));
    assert!(shown("by machine") && shown("by regime") && shown("latency, PCIe"), "{svg}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn prices_and_times_of_edits_are_drawn_whole() {
    let file = std::env::temp_dir().join(format!("collsim-plan-{}.svg", std::process::id()));
    let out = file.to_str().expect("UTF-8");
    let plan = ["plan", "--topo", "rtxpro6000x8-direct", "--fidelity", "alpha_beta", "--plot", out];
    let with = ["--with", "link:gpu0=gen4x8", "--with", "p2p=off = 2", "--with", "nps=2 = 0"];
    let run = simulate(&[&plan[..], &["--target", "decode < 0.01 ms"], &with].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let svg = std::fs::read_to_string(&file).expect("drawn");
    let _ = std::fs::remove_file(&file);
    let wrong = faults("plan", &svg);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let shown = |text: &str| texts("plan", &svg).iter().any(|one| one.text.contains(text));
    assert!(shown("to be met") && shown("as it is") && shown("p2p=off"), "{svg}");
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
    for gpus in ["0,1", "0-23"] {
        let call = ["-b", "1K", "--gpus", gpus, "--algo", "ring,one_shot_push"];
        wrong.extend(faults_of_report(odd.name(), &call, &kinds_of_report(true)));
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
    for (kind, sizes) in [("time", &["-b", "1K", "-e", "4K"][..]), ("timeline", &["-b", "1K"])] {
        let on = |threads| drawn("rtxpro6000x8-direct", kind, &[sizes, &["-j", threads]].concat());
        let (once, twice) = (on("1"), on("3"));
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
