//! Chakra execution traces as protobuf (`PREFIX.RANK.et`): messages, each behind its length.

use std::io::{BufRead, Read};

use prost::Message;

use super::{Trace, TraceFormat, chakra, failure};
use crate::error::Result;

/// The format.
pub(super) const FORMAT: TraceFormat = TraceFormat {
    name: "chakra-et",
    title: "a Chakra trace in protobuf",
    sniff,
    tells_calls: true,
    read,
};

/// Longest message, bytes: a node holds shapes and names.
const MESSAGE_MAX: u64 = 64 << 20;

/// The first message is a version: field 1, a short text.
fn sniff(head: &str) -> bool {
    let mut start = head.chars();
    let [length, field, count] = std::array::from_fn(|_| start.next().map_or(0, u32::from));
    let version: String = start.take(count as usize).collect();
    let sign = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    field == 10
        && (1..32).contains(&count)
        && count + 2 <= length
        && version.chars().count() == count as usize
        && version.chars().all(sign)
        && version.starts_with(|c: char| c.is_ascii_digit())
}

/// A node, as far as it matters here.
#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint32, tag = "3")]
    kind: u32,
    #[prost(uint64, tag = "6")]
    start_us: u64,
    #[prost(uint64, tag = "7")]
    duration_us: u64,
    #[prost(message, repeated, tag = "10")]
    attributes: Vec<Attribute>,
}

/// An attribute of a whole number; those of other types have no value here.
#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(int32, optional, tag = "7")]
    int32: Option<i32>,
    #[prost(int64, optional, tag = "9")]
    int64: Option<i64>,
    #[prost(uint32, optional, tag = "11")]
    uint32: Option<u32>,
    #[prost(uint64, optional, tag = "13")]
    uint64: Option<u64>,
}

impl Node {
    fn number(&self, name: &str) -> Option<u64> {
        let found = self.attributes.iter().find(|attribute| attribute.name == name)?;
        let signed = found.int64.or(found.int32.map(i64::from));
        let unsigned = found.uint64.or(found.uint32.map(u64::from));
        unsigned.or(signed.and_then(|number| u64::try_from(number).ok()))
    }
}

fn read(file: &str, stream: &mut dyn BufRead, trace: &mut Trace) -> Result<()> {
    let rank = rank_of(file).unwrap_or(0);
    let mut bytes = Vec::new();
    let wrong = |number: u64, what: String| {
        failure(file, format!("message {number}: {what}"), "is it a Chakra trace, and whole?")
    };
    let mut timed = false;
    for number in 0.. {
        let Some(length) = varint(stream).map_err(|what| wrong(number, what))? else { break };
        if length > MESSAGE_MAX {
            return Err(wrong(number, format!("{length} bytes are no length of a message")));
        }
        bytes.clear();
        let read = (&mut *stream).take(length).read_to_end(&mut bytes);
        let read = read.map_err(|error| wrong(number, error.to_string()))?;
        if (read as u64) < length {
            if trace.calls.is_empty() {
                return Err(wrong(number, "it is cut off".to_owned()));
            }
            trace.warn(format!(
                "the trace breaks off in message {number}: what was before it stands"
            ));
            break;
        }
        if number == 0 {
            // What the whole file is of.
            continue;
        }
        let node = Node::decode(&bytes[..]).map_err(|error| wrong(number, error.to_string()))?;
        if node.kind != chakra::COLLECTIVE {
            continue;
        }
        let kind = node.number("comm_type").and_then(|kind| u32::try_from(kind).ok());
        let (bytes, start, duration) = (node.number("comm_size"), node.start_us, node.duration_us);
        if let Some(call) = chakra::call(trace, kind, bytes, node.name) {
            call.rank = rank;
            if duration > 0 {
                timed = true;
                (call.start_us, call.duration_us) = (Some(start as f64), Some(duration as f64));
            }
        }
    }
    if timed {
        trace.warn(
            "times are taken as microseconds, as the form says; some writers put nanoseconds",
        );
    }
    Ok(())
}

/// The rank of `PREFIX.RANK.et`, also packed.
fn rank_of(file: &str) -> Option<u64> {
    let name = file.strip_suffix(".gz").unwrap_or(file).strip_suffix(".et")?;
    name.rsplit('.').next()?.parse().ok()
}

/// A number in groups of seven bits; nothing at the end of the stream.
fn varint(stream: &mut dyn BufRead) -> std::result::Result<Option<u64>, String> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        let read = stream.read(&mut byte).map_err(|error| error.to_string())?;
        if read == 0 {
            let cut = Err("its length is cut off".to_owned());
            return if shift == 0 { Ok(None) } else { cut };
        }
        value |= u64::from(byte[0] & 0x7f) << shift;
        if byte[0] < 0x80 {
            return Ok(Some(value));
        }
    }
    Err("its length has more than ten bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lengths_and_starts() {
        assert_eq!(rank_of("run/llama.3.et"), Some(3));
        assert_eq!(rank_of("llama.12.et.gz"), Some(12));
        assert_eq!(rank_of("llama.et"), None);
        assert_eq!(varint(&mut &[0xac, 0x02][..]), Ok(Some(300)));
        assert_eq!(varint(&mut &[][..]), Ok(None));
        assert!(varint(&mut &[0x80][..]).is_err() && varint(&mut &[0xff; 11][..]).is_err());
        assert!(sniff("\u{7}\n\u{5}0.0.4") && !sniff("\u{7}\n\u{5}") && !sniff("{\n\n"));
    }
}
