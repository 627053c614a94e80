//! LL and LL128: lines carry their flags, so that a line is passed on as soon as it is polled.
//!
//! NCCL's kernel polls a line, adds and stores the next line in one trip of its threads; the probe's
//! kernel stores all lines of a step before it polls any.

use super::{Nccl, Place, Primitive, STEPS};
use crate::algorithm::lines::{LineTrip, line_trips};
use crate::schedule::build::Part;
use crate::schedule::{Action, Lines, MessageId, Op};

impl Nccl<'_> {
    /// A primitive over lines.
    pub(super) fn lines(&mut self, place: Place, primitive: Primitive, lines: Lines) {
        let probe = self.request.kernel.is_probe();
        let length = primitive.length;
        let mut credit = None;
        let receive = primitive.receive.map(|id| {
            let connection = &mut self.connections[id];
            let (_, message, given) = connection.receive(&mut self.builder, length, lines);
            credit = given;
            message
        });
        let send = primitive.send.map(|id| {
            let connection = &mut self.connections[id];
            let (_, message, waited) = connection.send(&mut self.builder, length, lines, STEPS);
            if let Some(waited) = waited {
                // Of a primitive's two barriers the first is only spelled out where it keeps the other
                // warps from storing too early; it passes while the block waits for lines.
                self.push(place, Op::PollCredit(waited));
                self.push(place, Op::BlockBarrier);
            }
            message
        });
        let trips = line_trips(lines, (primitive.at, length), (0, 1), self.threads(place));
        for (index, &trip) in trips.iter().enumerate() {
            self.line_in(place, primitive, receive, trip);
            // NCCL's first trip is part of its step.
            if receive.is_some() && (probe || index > 0) {
                self.push(place, Op::Delay(self.request.kernel.line_trip));
            }
            if let Some(message) = send.filter(|_| !probe || receive.is_none()) {
                self.line_out(place, message, trip);
            }
            if primitive.copy {
                self.keep(place, primitive, trip.data);
            }
        }
        if receive.is_some() || !probe {
            self.step_end(place, credit);
        }
        if let Some(message) = send.filter(|_| probe && receive.is_some()) {
            for &trip in &trips {
                self.line_out(place, message, trip);
            }
        }
    }

    /// Loads own data and polls lines: NCCL asks for its own data before it polls, the probe's kernel
    /// after.
    fn line_in(
        &mut self,
        place: Place,
        primitive: Primitive,
        receive: Option<MessageId>,
        trip: LineTrip,
    ) {
        let LineTrip { wire: Part { offset, bytes }, data } = trip;
        let poll = |message, action| Op::Poll { message, offset, bytes, data: data.offset, action };
        let probe = self.request.kernel.is_probe();
        match receive {
            None => self.load_own(place, primitive, data, Action::Set),
            Some(message) if primitive.own && probe => {
                self.push(place, poll(message, Action::Set));
                self.load_own(place, primitive, data, Action::Add);
            }
            Some(message) if primitive.own => {
                self.load_own(place, primitive, data, Action::Set);
                self.push(place, poll(message, Action::Add));
            }
            Some(message) => self.push(place, poll(message, Action::Set)),
        }
        self.push(place, Op::WaitLoads);
    }

    fn line_out(&mut self, place: Place, message: MessageId, trip: LineTrip) {
        let LineTrip { wire: Part { offset, bytes }, data } = trip;
        self.push(place, Op::Send { message, offset, bytes, data: data.offset });
    }

    fn step_end(&mut self, place: Place, credit: Option<MessageId>) {
        let step = self.request.kernel.step_of(self.threads(place));
        self.push(place, Op::Delay(step));
        self.push(place, Op::BlockBarrier);
        if let Some(credit) = credit {
            self.push(place, Op::Flag(credit));
        }
    }
}
