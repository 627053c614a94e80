//! Figures that cannot be, in every place of every form of ours that has a figure: below zero, zero
//! where nothing is meant by it, not a number, larger than anything.

use collsim::error::{Error, Result};
use collsim::input::embedded;
use collsim::input::kinds::{QUESTION, SWEEP};
use collsim::input::{read_form, render, scenario_json, topology_json};
use collsim::sweep::ask::Ask;
use collsim::sweep::grid::Grid;
use serde_json::{Value, json};

/// A form: its name, a sound text with all its figures, how it is read, and the ends of places where
/// zero means something.
struct Form {
    name: &'static str,
    sound: Value,
    read: fn(&str) -> Result<()>,
    zero: &'static [&'static str],
}

fn forms() -> Vec<Form> {
    let machine = embedded::find("rtxpro6000x8").expect("built in").text;
    let mut topology: Value = serde_json::from_str(machine).expect("JSON");
    for (key, value) in [("max_payload", 256), ("max_read_request", 512), ("numa_per_socket", 1)] {
        topology["settings"][key] = value.into();
    }
    let question = json!({
        "schema_version": 1, "name": "x", "question": "x?", "scenario": "kimi-k25-tp8",
        "sizes": [4096, 8192],
        "sides": [{"name": "a", "machine": "m"}, {"name": "b", "machine": "n"}],
        "measured": [
            {"ratio": {"bytes": 4096, "side": "b", "ratio": 0.5, "source": "x"}},
            {"crossover": {"bytes": 8192, "side": "b", "source": "x"}}
        ]
    });
    let plan = json!({
        "schema_version": 1, "machines": ["m"], "scenario": "x", "sizes": [1024], "seeds": [7],
        "algorithms": ["ring:LL"], "network_model": "packet"
    });
    let scenario = json!({
        "schema_version": 1, "name": "x", "title": "x", "tensor_parallel": 2,
        "steps": [{"name": "decode", "calls": 4, "bytes": 512, "dtype": "bf16",
            "arrival": {"drawn": {"seed": 1, "distribution": {"exponential": {"mean_us": 40}}}}}],
        "reported": [
            {"throughput": {"tok_per_s": 80.0, "step": "decode", "algorithm": "ring", "condition": "x"}},
            {"pass": {"ms": 30.0, "step": "decode", "algorithm": "ring", "condition": "x"}}
        ]
    });
    vec![
        Form {
            name: "topology",
            sound: topology,
            read: |text| topology_json::parse("x", text).map(|_| ()),
            zero: &["/quadrant", "_min"],
        },
        Form {
            name: "scenario",
            sound: scenario,
            read: |text| scenario_json::parse("x", text).map(|_| ()),
            zero: &["/seed", "/mean_us"],
        },
        Form {
            name: "question",
            sound: question,
            read: |text| {
                read_form(("x", text), QUESTION, 1, |ask: &Ask| ask.schema_version, Ask::faults)
                    .map(|_| ())
            },
            zero: &[],
        },
        Form {
            name: "plan of a sweep",
            sound: plan,
            read: |text| {
                read_form(("x", text), SWEEP, 1, |grid: &Grid| grid.schema_version, Grid::faults)
                    .map(|_| ())
            },
            zero: &["/seeds/0"],
        },
    ]
}

/// Places of figures, as JSON pointers.
fn figures(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(place.to_owned()),
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(at, one)| figures(one, &format!("{place}/{at}"), found));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, one)| figures(one, &format!("{place}/{key}"), found));
        }
        _ => {}
    }
}

#[test]
fn figures_that_cannot_be_are_refused_with_their_place() {
    const MARK: &str = "the figure";
    for form in forms() {
        (form.read)(&form.sound.to_string())
            .unwrap_or_else(|error| panic!("{}: {error}", form.name));
        let mut places = Vec::new();
        figures(&form.sound, "", &mut places);
        assert!(places.len() > 2, "{}", form.name);
        for place in places {
            for bad in ["-1", "0", "1e30", "1e308", "NaN", "-1e30", "1e400"] {
                if bad == "0" && form.zero.iter().any(|end| place.ends_with(end)) {
                    continue;
                }
                let mut changed = form.sound.clone();
                *changed.pointer_mut(&place).expect("there") = json!(MARK);
                let text = serde_json::to_string_pretty(&changed).expect("JSON");
                let text = text.replace(&format!("\"{MARK}\""), bad);
                let line = text.lines().position(|row| row.contains(bad)).map_or(0, |at| at + 1);
                let error = (form.read)(&text).expect_err(&format!("{}{place} = {bad}", form.name));
                assert!(matches!(error, Error::Input { .. }), "{error:?}");
                let told = render(&error, false);
                let shown = told
                    .split("--> x:")
                    .nth(1)
                    .and_then(|rest| rest.split(':').next()?.parse().ok());
                // An arrival is faulty as a whole: its first line is shown.
                let near = shown.is_some_and(|shown: usize| shown <= line && shown + 6 > line);
                let common = bad == "0" || bad == "-1";
                assert!(
                    common || near,
                    "{}{place} = {bad}: line {line} is not in\n{told}",
                    form.name
                );
            }
        }
    }
}
