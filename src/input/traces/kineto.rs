//! Traces of the torch profiler (Kineto, Chrome's format): one event at a time, whatever the size.

use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::shown::at_fault;
use super::{Call, Trace, TraceFormat, names};
use crate::error::Result;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "kineto",
    title: "a trace of the torch profiler",
    sniff: |head| head.trim_start().starts_with('{') && head.contains("\"traceEvents\""),
    tells_calls: true,
    read,
};

/// What matters of an event.
#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    cat: String,
    #[serde(default)]
    name: String,
    ts: Option<f64>,
    dur: Option<f64>,
    args: Option<Arguments>,
}

/// What torch says of a kernel of its collectives.
#[derive(Deserialize)]
struct Arguments {
    #[serde(rename = "Collective name")]
    collective: Option<String>,
    #[serde(rename = "In msg nelems")]
    sent: Option<u64>,
    #[serde(rename = "Out msg nelems")]
    received: Option<u64>,
    dtype: Option<String>,
    #[serde(rename = "Group size")]
    ranks: Option<u32>,
}

/// What the file says of its process.
#[derive(Deserialize)]
struct Process {
    rank: Option<u64>,
    world_size: Option<u32>,
}

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    let mut reader = serde_json::Deserializer::from_reader(stream);
    let whole = Whole(trace).deserialize(&mut reader);
    if let Err(error) = whole {
        // The profiler writes while it runs: what was read before the end stands.
        if trace.calls.is_empty() || !error.is_eof() {
            return Err(at_fault(file, "no trace", &error, "is it cut off, or edited by hand?"));
        }
        trace.warn(format!(
            "the trace breaks off at line {}: what was before it stands",
            error.line()
        ));
    }
    if let Some(rank) = trace.rank {
        trace.calls.iter_mut().for_each(|call| call.rank = rank);
    }
    Ok(())
}

/// The object around the events.
struct Whole<'a>(&'a mut Trace);

impl<'de> DeserializeSeed<'de> for Whole<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object with `traceEvents`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => map.next_value_seed(Events(self.0))?,
                "distributedInfo" => {
                    let process: Process = map.next_value()?;
                    (self.0.rank, self.0.ranks) = (process.rank, process.world_size);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// The list of events.
struct Events<'a>(&'a mut Trace);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        while let Some(event) = list.next_element::<Event>()? {
            add(self.0, event);
        }
        Ok(())
    }
}

fn add(trace: &mut Trace, event: Event) {
    if event.cat != "kernel" {
        return;
    }
    let arguments = event.args.as_ref();
    let of_torch =
        arguments.and_then(|arguments| names::of_torch(arguments.collective.as_deref()?));
    let Some(collective) = names::of_kernel(&event.name).or(of_torch) else {
        trace.leave_out(names::other(&event.name), 1);
        return;
    };
    let said = arguments.and_then(|arguments| arguments.dtype.clone());
    let dtype = said.unwrap_or_else(|| names::type_of_kernel(&event.name).to_owned());
    let bytes = arguments.and_then(|arguments| {
        let (sent, received) = (arguments.sent?, arguments.received.or(arguments.sent)?);
        Some(names::size(collective, sent, received, names::element(&dtype)?.0))
    });
    trace.calls.push(Call {
        rank: 0,
        collective,
        bytes,
        dtype,
        ranks: arguments.and_then(|arguments| arguments.ranks),
        start_us: event.ts,
        duration_us: event.dur,
        by: event.name,
    });
}
