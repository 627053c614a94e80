//! Rows of all-reduce kernels of serving libraries, named `library version`.

use super::Sink;
use super::collective::{experiment, size, time_us};
use super::standard::about;
use crate::algorithm::Implementation;
use crate::error::Result;
use crate::measurement::table::Row;
use crate::measurement::{KernelCall, Run};

/// The first rank count that holds gives the size, below which or up to which a kernel is taken.
type Limits = [(u32, u64); 3];

/// vLLM's and SGLang's first kernel reads all of each peer below this, where NVLink joins all GPUs
/// (`custom_all_reduce.cuh`).
const ONE_STAGE_BELOW: Limits = [(2, u64::MAX), (4, 512 << 10), (8, 256 << 10)];
/// SGLang hands larger calls to NCCL.
const SGLANG_MOST: u64 = 8 << 20;
/// SGLang v2 pushes up to this (`custom_all_reduce_v2.py`), as tuned on H200 and on B200; beyond, two
/// GPUs read all of each other, and more take two stages.
const PUSHED: [Limits; 2] =
    [[(2, 2 << 20), (4, 384 << 10), (8, 160 << 10)], [(2, 4 << 20), (4, 2 << 20), (8, 720 << 10)]];
/// TensorRT-LLM stays with its one-shot kernel up to this, read off the figures: beyond they are
/// those of other kernels and of NCCL.
const LAMPORT: [Limits; 2] =
    [[(2, 4 << 20), (4, 1 << 20), (8, 512 << 10)], [(2, 4 << 20), (4, 2 << 20), (8, 2 << 20)]];

/// What runs: algorithm, whose kernel, and how the rows are called.
type Kernel = (&'static str, Implementation, &'static str);

/// One row.
pub(super) fn read(sink: &mut Sink, row: &Row) -> Result<()> {
    let name = row.column("implementation")?;
    let (ranks, bytes) = (row.count(row.column("ranks")?)?, size(row)?);
    let (algorithm, implementation, what) = match kernel(sink, name, ranks, bytes) {
        Ok(kernel) => kernel,
        Err(reason) => {
            sink.skip(row, reason);
            return Ok(());
        }
    };
    let gpus = (0..ranks).collect();
    let run = Run::Collective(KernelCall::all_reduce(algorithm, implementation, gpus, bytes));
    let experiment = experiment(sink, what, ranks, "");
    let about = about(sink, row, experiment, format!("{name} {ranks} GPUs {bytes} B"))?;
    sink.add(row, about, run, 0, (time_us(row)?, "us"));
    Ok(())
}

fn of(limits: Limits, ranks: u32) -> u64 {
    limits.iter().find(|entry| ranks <= entry.0).map_or(0, |entry| entry.1)
}

/// The kernel of a row, or why nothing is predicted.
fn kernel(sink: &Sink, name: &str, ranks: u32, bytes: u64) -> std::result::Result<Kernel, String> {
    let nvswitch = sink.topology.ends_with("nvswitch");
    let tuned = usize::from(["b200", "gb20"].iter().any(|gpu| sink.topology.starts_with(gpu)));
    let custom = match bytes < of(ONE_STAGE_BELOW, ranks) {
        true => ("one_shot_pull", Implementation::CustomAllReduce, "custom all-reduce, one-stage"),
        false => ("two_shot_pull", Implementation::CustomAllReduce, "custom all-reduce, two-stage"),
    };
    match name.split_once(' ') {
        Some(("SGLang", version)) if version.starts_with("0.5.14") && nvswitch => {
            if bytes >= SGLANG_MOST {
                return Err("SGLang leaves calls of this size to NCCL".into());
            }
            let v2 = Implementation::SglangV2;
            Ok(match bytes <= of(PUSHED[tuned], ranks) {
                true => ("one_shot_push", v2, "SGLang v2, push"),
                false if ranks == 2 => ("one_shot_pull", v2, "SGLang v2, one-stage"),
                false => ("two_shot_pull_push", v2, "SGLang v2, two-stage"),
            })
        }
        Some(("SGLang", _)) if bytes >= SGLANG_MOST || (!nvswitch && ranks > 2) => {
            Err("SGLang leaves calls of this size to NCCL".into())
        }
        Some(("vLLM", _)) if bytes >= vllm_most(sink, ranks) || (!nvswitch && ranks > 2) => {
            Err("vLLM leaves calls of this size to another kernel".into())
        }
        Some(("TRTLLM", version)) if version.starts_with("1.0") => {
            Err("TensorRT-LLM 1.0 pushes and waits by flags, and has no Lamport kernel".into())
        }
        Some(("TRTLLM", _)) if bytes > of(LAMPORT[tuned], ranks) || !nvswitch => {
            Err("TensorRT-LLM leaves calls of this size to another kernel".into())
        }
        Some(("TRTLLM", _)) => {
            Ok(("one_shot_push", Implementation::FlashInfer, "TensorRT-LLM, one-shot"))
        }
        Some(("SGLang" | "vLLM", _)) => Ok(custom),
        _ => Err(format!("no model of {name}")),
    }
}

/// From here on vLLM takes torch's symmetric memory or NCCL.
fn vllm_most(sink: &Sink, ranks: u32) -> u64 {
    let sizes: [u64; 4] = match sink.topology.get(..4) {
        Some("h100" | "h200" | "h800") => [64 << 20, 32 << 20, 512 << 10, 256 << 10],
        Some("b200" | "gb20") => [2 << 20, 2 << 20, 1 << 20, 1 << 20],
        _ => [8 << 20; 4],
    };
    sizes[(ranks as usize / 2).clamp(1, 4) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The first of these conditions by this name.
    fn condition<'a>(conditions: &'a Value, name: &str) -> Option<&'a Value> {
        conditions.as_array()?.iter().find_map(|one| one.get(name))
    }

    /// Rows were measured with these kernels, and `simulate choose` takes them by the rules: the two
    /// must not part.
    #[test]
    fn limits_are_those_of_the_rules() {
        let text = include_str!("../../../calibration/serving.json");
        let rules: Value = serde_json::from_str(text).expect("JSON");
        let find = |list: &Value, name: &str| {
            let mut all = list.as_array().expect("a list").iter();
            all.find(|one| one["name"] == name).expect("listed").clone()
        };
        let custom = find(&find(&rules["engines"], "vllm")["candidates"], "custom");
        let runs = custom["runs"].as_array().expect("runs").iter();
        let below = runs.filter_map(|run| {
            let ranks = condition(&run["when"], "ranks_up_to")?.as_u64()?;
            Some((ranks as u32, condition(&run["when"], "bytes_below")?.as_u64()?))
        });
        assert_eq!(below.collect::<Vec<_>>(), ONE_STAGE_BELOW[1..]);
        let rules = custom["rules"].as_array().expect("rules").iter();
        let table = rules.filter_map(|rule| rule["needs"].get("size_table")).next().expect("one");
        for row in table["rows"].as_array().expect("rows") {
            let (ranks, bytes) = (row["ranks"].as_u64(), row["bytes"].as_u64());
            // GB300, of which there are no rows, has limits of its own.
            let machine = match row["capability"].as_str() {
                Some("9.0") => "h100x8-nvswitch",
                Some("10.0") => "b200x8-nvswitch",
                _ => continue,
            };
            let most = vllm_most(&Sink::new("", machine), ranks.expect("ranks") as u32);
            assert_eq!(Some(most), bytes, "{machine} {ranks:?}");
        }
        let other = vllm_most(&Sink::new("", "a100x8-nvswitch"), 8);
        assert_eq!(Some(other), table["otherwise"].as_u64());
    }
}
