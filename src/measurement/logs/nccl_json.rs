//! The JSON of nccl-tests (`-J FILE`), versions 1 to 3.

use serde_json::Value;

use super::sizes::{Half, SizeRow, Test};
use super::{LogFormat, Reading};
use crate::error::{Error, Problem, Result, Span};

/// The format.
pub(super) const FORMAT: LogFormat = LogFormat { title: "nccl-tests JSON", sniff, read };

fn sniff(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && text.contains("\"out_of_place\"")
        && text.contains("\"nccl_version\"")
}

fn read(text: &str, reading: &mut Reading) -> Result<()> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let line_start: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let start = (line_start + error.column().saturating_sub(1)).min(text.len());
        let mut problem = Problem::new(format!("not valid JSON: {error}"), "")
            .help("the file is complete only when the test has ended");
        problem.span = Some(Span { start, end: start });
        let (file, text) = (reading.file().to_owned(), text.to_owned());
        Error::Input { file, text, problems: vec![problem] }
    })?;
    let mut test = test(&value);
    let results = value["results"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, result) in results.iter().enumerate() {
        // JSON has no lines that matter: rows are counted.
        match row(result, index + 1, &mut test) {
            Some(row) => test.rows.push(row),
            None => reading.warn(format!("result {}: no size or no time: left out", index + 1)),
        }
    }
    reading.fact(format!("graph {}", u8::from(test.graph)));
    test.finish(reading);
    Ok(())
}

/// A number, or a text that is one.
fn number(value: &Value) -> Option<f64> {
    let text = value.as_str().and_then(|text| text.trim().parse().ok());
    value.as_f64().or(text).filter(|number: &f64| number.is_finite())
}

fn test(value: &Value) -> Test {
    let config = &value["config"];
    let count = |name: &str| number(&config[name]).map(|number| number as u32);
    let mut test = Test {
        threads: count("nthreads"),
        iterations: count("iterations"),
        graph: count("graph").is_some_and(|graph| graph > 0),
        ranks: count("nthreads")
            .zip(count("ngpus"))
            .map(|(threads, gpus)| threads.saturating_mul(gpus)),
        version: number(&value["nccl_version"]).map(|code| format!("{code:.0}")),
        ..Test::default()
    };
    if let Some(text) = value["nccl_version"].as_str().filter(|text| text.contains('.')) {
        test.version = Some(text.to_owned());
    }
    if let Some(program) = value["args"][0].as_str() {
        program.rsplit('/').next().unwrap_or(program).clone_into(&mut test.program);
    }
    for variable in value["env"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if variable.starts_with("NCCL_") && !variable.starts_with("NCCL_DEBUG") {
            test.settings.push(variable.to_owned());
        }
    }
    for device in config["devices"].as_array().into_iter().flatten() {
        test.gpus.push(number(&device["device"]).unwrap_or(0.0) as u32);
        test.processes.push(number(&device["pid"]).unwrap_or(0.0) as u64);
        let host = device["hostname"].as_str().unwrap_or("").to_owned();
        if !test.hosts.contains(&host) {
            test.hosts.push(host);
        }
    }
    test
}

fn row(result: &Value, line: usize, test: &mut Test) -> Option<SizeRow> {
    let text = |name: &str| result[name].as_str().unwrap_or("").trim().to_owned();
    let halves: Vec<Half> = ["out_of_place", "in_place"]
        .iter()
        .filter_map(|place| {
            let half = &result[*place];
            test.cpu_time |= half.get("cpu_time").is_some();
            Some(Half {
                time_us: number(&half["time"]).or_else(|| number(&half["cpu_time"]))?,
                algorithm_gb_per_s: number(&half["alg_bw"])?,
                bus_gb_per_s: number(&half["bus_bw"])?,
                wrong: number(&half["nwrong"]),
            })
        })
        .filter(|half| half.time_us > 0.0)
        .collect();
    if halves.is_empty() {
        return None;
    }
    Some(SizeRow {
        line,
        bytes: number(&result["size"])? as u64,
        dtype: text("type"),
        redop: text("redop"),
        root: text("root").parse().ok(),
        halves,
    })
}
