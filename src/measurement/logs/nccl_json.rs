//! The JSON of nccl-tests (`-J FILE`), versions 1 to 3.

use serde_json::Value;

use super::sizes::{Half, SizeRow, Test};
use super::{LogFormat, Reading, number_of, whole_json};
use crate::error::Result;

/// The format.
pub(super) const FORMAT: LogFormat = LogFormat { title: "nccl-tests JSON", sniff, read };

pub(super) fn sniff(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && text.contains("\"out_of_place\"")
        && text.contains("\"nccl_version\"")
}

fn read(text: &str, reading: &mut Reading) -> Result<()> {
    let value = whole_json(text, reading)?;
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

fn test(value: &Value) -> Test {
    let config = &value["config"];
    let count = |name: &str| number_of(&config[name]).map(|number| number as u32);
    let mut test = Test {
        threads: count("nthreads"),
        iterations: count("iterations"),
        graph: count("graph").is_some_and(|graph| graph > 0),
        ranks: count("nthreads")
            .zip(count("ngpus"))
            .map(|(threads, gpus)| threads.saturating_mul(gpus)),
        version: number_of(&value["nccl_version"]).map(|code| format!("{code:.0}")),
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
        test.gpus.push(number_of(&device["device"]).unwrap_or(0.0) as u32);
        test.processes.push(number_of(&device["pid"]).unwrap_or(0.0) as u64);
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
                time_us: number_of(&half["time"]).or_else(|| number_of(&half["cpu_time"]))?,
                algorithm_gb_per_s: number_of(&half["alg_bw"])?,
                bus_gb_per_s: number_of(&half["bus_bw"])?,
                wrong: number_of(&half["nwrong"]),
            })
        })
        .filter(|half| half.time_us > 0.0)
        .collect();
    if halves.is_empty() {
        return None;
    }
    Some(SizeRow {
        line,
        bytes: number_of(&result["size"])? as u64,
        dtype: text("type"),
        redop: text("redop"),
        root: text("root").parse().ok(),
        halves,
    })
}
