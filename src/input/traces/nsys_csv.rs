//! `nsys stats --report cuda_gpu_trace --format csv`: every kernel with start and duration, no sizes.

use std::io::BufRead;

use super::{Call, Trace, TraceFormat, failure, names};
use crate::error::Result;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "nsys",
    title: "nsys stats (cuda_gpu_trace) as CSV",
    sniff,
    tells_calls: true,
    read,
};

fn sniff(head: &str) -> bool {
    head.lines().any(|line| {
        line.contains("Start (ns)") && line.contains("Duration (ns)") && line.contains("Name")
    })
}

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(stream);
    let mut columns: Option<[usize; 4]> = None;
    for row in rows.records() {
        let row =
            row.map_err(|error| failure(file, error.to_string(), "is it the CSV of nsys stats?"))?;
        let at = |name: &str| row.iter().position(|field| field.trim() == name);
        // Lines of nsys itself come before the header.
        let Some([start, duration, device, name]) = columns else {
            let found = at("Start (ns)").zip(at("Duration (ns)")).zip(at("Name"));
            columns = found.map(|((start, duration), name)| {
                [start, duration, at("Device").unwrap_or(usize::MAX), name]
            });
            continue;
        };
        let field = |at: usize| row.get(at).unwrap_or("").trim();
        let kernel = field(name);
        let Some(collective) = names::of_kernel(kernel) else {
            trace.leave_out(names::other(kernel), 1);
            continue;
        };
        let ns = |at: usize| field(at).replace(',', "").parse::<f64>().ok();
        trace.calls.push(Call {
            rank: device_number(field(device)),
            collective,
            bytes: None,
            dtype: names::type_of_kernel(kernel).to_owned(),
            ranks: None,
            start_us: ns(start).map(|ns| ns / 1e3),
            duration_us: ns(duration).map(|ns| ns / 1e3),
            by: kernel.to_owned(),
        });
    }
    trace.fact("kernels have no sizes in nsys; their times hold the waiting for the slowest rank");
    Ok(())
}

/// The number of `NVIDIA H200 (3)`.
fn device_number(text: &str) -> u64 {
    text.rsplit_once('(').and_then(|(_, rest)| rest.trim_end_matches(')').parse().ok()).unwrap_or(0)
}
