//! Perfetto's own format: TrackEvent packets.

use std::collections::BTreeMap;

use prost::Message;

use super::protobuf::{
    COUNTER, CounterInfo, Descriptor, Event, Figure, File, Interned, Name, Packet, ProcessInfo,
    SLICE_BEGIN, SLICE_END,
};
use super::{Process, Slice, Trace};
use crate::units::Time;

/// All packets are of one writer.
const SEQUENCE: u32 = 1;
/// Flags of a packet: names begin anew, names are needed.
const NAMES_CLEARED: u32 = 1;
const NAMES_NEEDED: u32 = 2;

/// Writes a trace.
pub fn perfetto(trace: &Trace) -> Vec<u8> {
    let mut writer = Writer::default();
    for (index, process) in trace.processes.iter().enumerate() {
        writer.process(index, process);
    }
    writer.file.encode_to_vec()
}

#[derive(Default)]
struct Writer {
    file: File,
    names: BTreeMap<String, u64>,
    figures: BTreeMap<&'static str, u64>,
    tracks: u64,
}

fn ns(time: Time) -> u64 {
    time.as_ps() / 1000
}

impl Writer {
    fn push(&mut self, packet: Packet) {
        let first = self.file.packet.is_empty();
        let flags = if first { NAMES_CLEARED | NAMES_NEEDED } else { NAMES_NEEDED };
        self.file.packet.push(Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(flags),
            ..packet
        });
    }

    /// Describes a track and gives its number.
    fn track(&mut self, descriptor: Descriptor) -> u64 {
        self.tracks += 1;
        let descriptor = Descriptor { uuid: Some(self.tracks), ..descriptor };
        self.push(Packet { track_descriptor: Some(descriptor), ..Packet::default() });
        self.tracks
    }

    fn process(&mut self, index: usize, process: &Process) {
        let info =
            ProcessInfo { pid: Some(index as i32 + 1), process_name: Some(process.name.clone()) };
        let whole = self.track(Descriptor { process: Some(info), ..Descriptor::default() });
        let below = |name: &str| Descriptor {
            name: Some(name.to_owned()),
            parent_uuid: Some(whole),
            ..Descriptor::default()
        };
        for track in &process.tracks {
            let uuid = self.track(below(&track.name));
            track.slices.iter().for_each(|slice| self.slice(uuid, slice));
        }
        for counter in &process.counters {
            let info = CounterInfo { unit_name: Some(counter.unit.to_owned()) };
            let uuid = self.track(Descriptor { counter: Some(info), ..below(&counter.name) });
            for &(time, value) in &counter.points {
                let event = Event {
                    r#type: Some(COUNTER),
                    track_uuid: Some(uuid),
                    double_counter_value: Some(value),
                    ..Event::default()
                };
                self.event(time, event, Interned::default());
            }
        }
    }

    /// A box: its beginning and its end.
    fn slice(&mut self, uuid: u64, slice: &Slice) {
        let mut new = Interned::default();
        let next = self.names.len() as u64 + 1;
        let name = *self.names.entry(slice.name.clone()).or_insert_with(|| {
            new.event_names.push(Name { iid: Some(next), name: Some(slice.name.clone()) });
            next
        });
        let mut figures = Vec::new();
        for &(figure, value) in &slice.figures {
            let next = self.figures.len() as u64 + 1;
            let iid = *self.figures.entry(figure).or_insert_with(|| {
                let name = Name { iid: Some(next), name: Some(figure.to_owned()) };
                new.debug_annotation_names.push(name);
                next
            });
            figures.push(Figure { name_iid: Some(iid), double_value: Some(value) });
        }
        let begin = Event {
            debug_annotations: figures,
            r#type: Some(SLICE_BEGIN),
            name_iid: Some(name),
            track_uuid: Some(uuid),
            flow_ids: slice.sends.clone(),
            terminating_flow_ids: slice.receives.clone(),
            ..Event::default()
        };
        self.event(slice.start, begin, new);
        let end = Event { r#type: Some(SLICE_END), track_uuid: Some(uuid), ..Event::default() };
        self.event(slice.end, end, Interned::default());
    }

    fn event(&mut self, time: Time, event: Event, names: Interned) {
        let interned_data = (names != Interned::default()).then_some(names);
        self.push(Packet {
            timestamp: Some(ns(time)),
            track_event: Some(event),
            interned_data,
            ..Packet::default()
        });
    }
}
