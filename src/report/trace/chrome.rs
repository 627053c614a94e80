//! Chrome's trace event format, as JSON: what chrome://tracing, Perfetto and most tools read.

use std::fmt::Write;

use super::{Slice, Trace};
use crate::units::Time;

/// Writes a trace, an event a line.
pub fn chrome(trace: &Trace) -> String {
    let about = serde_json::json!({
        "program": env!("CARGO_PKG_NAME"),
        "title": trace.title,
        "collective": trace.collective,
        "bytes": trace.bytes,
        "by": trace.by,
    });
    let out = format!("{{\"displayTimeUnit\":\"ns\",\"otherData\":{about},\"traceEvents\":[");
    let mut writer = Writer { out, first: true };
    for (pid, process) in trace.processes.iter().enumerate() {
        writer.name("process_name", pid, None, &process.name);
        for (tid, track) in process.tracks.iter().enumerate() {
            writer.name("thread_name", pid, Some(tid), &track.name);
            for slice in &track.slices {
                writer.slice(pid, tid, slice);
            }
        }
        for counter in &process.counters {
            for (time, value) in &counter.points {
                writer.event("C", pid, None, *time);
                writer.out.push_str(",\"name\":");
                string(&mut writer.out, &counter.name);
                let _ = write!(writer.out, ",\"args\":{{\"{}\":{value}}}}}", counter.unit);
            }
        }
    }
    writer.out.push_str("\n]}\n");
    writer.out
}

struct Writer {
    out: String,
    first: bool,
}

impl Writer {
    fn begin(&mut self, phase: &str, pid: usize, tid: Option<usize>) {
        // Writing to a String cannot fail.
        let comma = if self.first { "" } else { "," };
        self.first = false;
        let _ = write!(self.out, "{comma}\n{{\"ph\":\"{phase}\",\"pid\":{pid}");
        if let Some(tid) = tid {
            let _ = write!(self.out, ",\"tid\":{tid}");
        }
    }

    /// Begins an event at a time.
    fn event(&mut self, phase: &str, pid: usize, tid: Option<usize>, time: Time) {
        self.begin(phase, pid, tid);
        let _ = write!(self.out, ",\"ts\":{}", us(time));
    }

    fn name(&mut self, what: &str, pid: usize, tid: Option<usize>, name: &str) {
        self.begin("M", pid, tid);
        let _ = write!(self.out, ",\"name\":\"{what}\",\"args\":{{\"name\":");
        string(&mut self.out, name);
        self.out.push_str("}}");
    }

    /// A box and the ends of its flows.
    fn slice(&mut self, pid: usize, tid: usize, slice: &Slice) {
        self.event("X", pid, Some(tid), slice.start);
        let _ = write!(self.out, ",\"dur\":{},\"name\":", us(slice.end - slice.start));
        string(&mut self.out, &slice.name);
        if !slice.figures.is_empty() {
            let figures = slice.figures.iter().map(|(name, value)| format!("\"{name}\":{value}"));
            let _ = write!(self.out, ",\"args\":{{{}}}", figures.collect::<Vec<_>>().join(","));
        }
        self.out.push('}');
        for flow in &slice.sends {
            self.event("s", pid, Some(tid), slice.start);
            let _ = write!(self.out, ",\"id\":{flow},\"name\":\"message\",\"cat\":\"message\"}}");
        }
        for flow in &slice.receives {
            // It arrives while the box lasts: at its end, bound to the box that encloses that time.
            let at = slice.end - Time::from_ps(1).min(slice.end - slice.start);
            self.event("f", pid, Some(tid), at);
            let rest = "\"name\":\"message\",\"cat\":\"message\"}";
            let _ = write!(self.out, ",\"bp\":\"e\",\"id\":{flow},{rest}");
        }
    }
}

/// Microseconds to the picosecond, without needless zeros.
fn us(time: Time) -> String {
    let ps = time.as_ps();
    let (whole, rest) = (ps / 1_000_000, ps % 1_000_000);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{whole}.{rest:06}").trim_end_matches('0').to_owned()
}

/// A string as JSON has it.
fn string(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact() {
        let told = [0, 1, 1_000_000, 1_230_000, 12_345_678].map(|ps| us(Time::from_ps(ps)));
        assert_eq!(told, ["0", "0.000001", "1", "1.23", "12.345678"]);
    }
}
