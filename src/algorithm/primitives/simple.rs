//! Simple: slices pass through a buffer, each announced by a flag behind a fence.

use super::connection::End;
use super::{Nccl, Place, Primitive, STEPS};
use crate::schedule::build::{Part, trips};
use crate::schedule::{Action, Op};

/// A slice is no smaller than this share of the largest.
const SLICE_SHARE: u64 = 32;

impl Nccl<'_> {
    /// A primitive in slices; those that are empty pass their flags all the same.
    pub(super) fn simple(&mut self, place: Place, primitive: Primitive) {
        for slice in 0..self.slices.count {
            let (from, length) = self.slice_of(primitive.length, slice);
            let data = Part { offset: primitive.at + from, bytes: length };
            let slots = self.slots();
            let receive = primitive
                .receive
                .and_then(|id| self.connections[id].receive_slice(&mut self.builder, slots));
            let host = self.request.kernel.host_copy;
            let send = primitive.send.and_then(|id| {
                self.connections[id].send_slice(&mut self.builder, length, slots, host)
            });
            if let Some(end) = receive {
                self.push(place, Op::PollStep(end.flag));
            }
            if let Some(credit) = send.and_then(|end| end.credit) {
                self.push(place, Op::PollCredit(credit));
            }
            if length > 0 {
                self.push(place, Op::BlockBarrier);
                let slice = self.request.kernel.slice_of(self.threads(place));
                self.push(place, Op::Delay(slice));
                self.slice_data(place, primitive, data, receive, send);
            } else {
                self.push(place, Op::Delay(self.request.kernel.empty_slice));
            }
            self.push(place, Op::BlockBarrier);
            if let Some(message) = receive.and_then(|end| end.credit) {
                self.push(place, Op::Post { message, fenced: false });
            }
            if let Some(end) = send {
                self.push(place, Op::Post { message: end.flag, fenced: length > 0 });
            }
        }
    }

    /// Slots of a connection: a slice takes its steps.
    fn slots(&self) -> usize {
        STEPS / self.slices.steps as usize
    }

    /// First byte and length of a slice of a chunk: a small chunk is all in the first.
    fn slice_of(&self, length: u32, slice: u32) -> (u32, u32) {
        let least = (self.slices.slice() / SLICE_SHARE) as u32;
        let each = (length.div_ceil(self.slices.count).div_ceil(16) * 16).max(least);
        let from = (slice * each).min(length);
        (from, each.min(length - from))
    }

    /// Loads what a slice is made of and stores it: so many trips at once as a thread has loads in
    /// flight.
    fn slice_data(
        &mut self,
        place: Place,
        primitive: Primitive,
        data: Part,
        receive: Option<End>,
        send: Option<End>,
    ) {
        let Place { rank, block } = place;
        let parts: Vec<Part> = trips(0, data.bytes, 0, 1, self.threads(place)).collect();
        for group in parts.chunks(self.request.kernel.unroll as usize) {
            for part in group {
                let own = Part { offset: data.offset + part.offset, bytes: part.bytes };
                if let Some(end) = receive {
                    let slot = Part { offset: end.offset + part.offset, bytes: part.bytes };
                    let at = own.offset;
                    self.builder.load_at(rank, block, end.buffer, slot, at, Action::Set);
                }
                if primitive.own {
                    let action = if receive.is_some() { Action::Add } else { Action::Set };
                    self.load_own(place, primitive, own, action);
                }
            }
            self.push(place, Op::WaitLoads);
            self.push(place, Op::Delay(self.request.kernel.group));
            for part in group {
                let own = Part { offset: data.offset + part.offset, bytes: part.bytes };
                if let Some(end) = send {
                    let slot = Part { offset: end.offset + part.offset, bytes: part.bytes };
                    self.builder.write_at(rank, block, end.buffer, slot, own.offset);
                }
                if primitive.copy {
                    self.keep(place, primitive, own);
                }
            }
        }
    }
}
