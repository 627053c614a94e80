//! The messages of Perfetto's trace format that are written here, with the field numbers of its
//! protocol (perfetto.dev, protos/perfetto/trace: trace.proto, trace_packet.proto,
//! track_event/*.proto, interned_data.proto). Declared by hand, so that no compiler of protocols is
//! needed.

use prost::Message;

/// A whole file.
#[derive(Clone, PartialEq, Message)]
pub struct File {
    /// In any order of time; each sequence in its own.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<Packet>,
}

/// One entry.
#[derive(Clone, PartialEq, Message)]
pub struct Packet {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// Which writer it is of; interned names hold within one.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Something that happens.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<Event>,
    /// Names by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<Interned>,
    /// 1: names begin anew; 2: names are needed.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// A track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<Descriptor>,
}

/// Names by number.
#[derive(Clone, PartialEq, Message)]
pub struct Interned {
    /// Of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<Name>,
    /// Of figures.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<Name>,
}

/// A name with its number.
#[derive(Clone, PartialEq, Message)]
pub struct Name {
    /// From 1.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A track.
#[derive(Clone, PartialEq, Message)]
pub struct Descriptor {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// It is a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessInfo>,
    /// The track that it is below.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// It is a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterInfo>,
}

/// A process.
#[derive(Clone, PartialEq, Message)]
pub struct ProcessInfo {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A counter.
#[derive(Clone, PartialEq, Message)]
pub struct CounterInfo {
    /// Of its values.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// The beginning of a box.
pub const SLICE_BEGIN: i32 = 1;
/// Its end.
pub const SLICE_END: i32 = 2;
/// A value of a counter.
pub const COUNTER: i32 = 4;

/// Something that happens.
#[derive(Clone, PartialEq, Message)]
pub struct Event {
    /// Figures.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<Figure>,
    /// What: [`SLICE_BEGIN`], [`SLICE_END`] or [`COUNTER`].
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Number of its name.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// The track that it is on.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// Value of a counter.
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
    /// Flows that leave it.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Flows that end in it.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// A figure of an event.
#[derive(Clone, PartialEq, Message)]
pub struct Figure {
    /// Number of its name.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// Its value.
    #[prost(double, optional, tag = "5")]
    pub double_value: Option<f64>,
}
