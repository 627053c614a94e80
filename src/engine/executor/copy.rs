//! Copy engines: streams of large packets with a limited part in flight.

use super::super::network::{ActorId, Load, Network, Store, Wrapped};
use super::{CopyState, Machine, State};
use crate::fabric::LinkClass;
use crate::schedule::{BufferId, Op};
use crate::topology::TrafficKind;
use crate::units::{Bandwidth, Time};

/// A copy engine issues its stream in pieces of this many bytes.
const CHUNK: u32 = 2048;
/// Written chunks that one engine keeps queued in the GPU's egress: enough to keep it busy.
const WRITES_QUEUED: u32 = 4;

/// The parts of [`Op::Copy`].
struct CopyOp {
    from: BufferId,
    to: BufferId,
    bytes: u32,
    push: bool,
    kernel: bool,
}

impl<N: Network> Machine<'_, N> {
    pub(super) fn copy_start(&mut self, actor: ActorId, block: usize) -> super::ops::Next {
        let gpu = self.blocks[block].gpu;
        let start = self.fabric.gpus[gpu as usize].copy_engine_start;
        let begin = if self.blocks[block].background { self.now } else { self.now + start };
        let record = &mut self.actors[actor as usize];
        record.state = State::Copy;
        record.copy = CopyState { next_issue: begin, armed: true, ..CopyState::default() };
        self.queue.push(begin, Wrapped::Repoll(actor));
        super::ops::Next::Waits
    }

    /// The copy that an actor is in.
    fn copy_op(&self, actor: ActorId) -> Option<CopyOp> {
        let record = &self.actors[actor as usize];
        let ops = self.blocks[record.block as usize].ops;
        match ops.get(record.position.checked_sub(1)? as usize)? {
            &Op::Copy { from, to, bytes, push, kernel, .. } => {
                Some(CopyOp { from, to, bytes, push, kernel })
            }
            _ => None,
        }
    }

    /// Issues as much as window and rate allow.
    pub(super) fn copy_issue(&mut self, actor: ActorId) {
        let Some(CopyOp { from, to, bytes: total, push, kernel }) = self.copy_op(actor) else {
            return;
        };
        let block = self.actors[actor as usize].block as usize;
        let gpu = self.blocks[block].gpu;
        let model = &self.fabric.gpus[gpu as usize];
        let target = self.schedule.buffers[if push { to } else { from } as usize].home;
        let chunk = if kernel { model.copy_kernel_burst } else { CHUNK };
        let by_nvlink = self.fabric.first_class(gpu, target) == Some(LinkClass::Nvlink);
        let window = match (push, kernel) {
            (true, _) => WRITES_QUEUED * chunk,
            (false, true) => model.copy_kernel_window,
            (false, false) if by_nvlink => model.copy_engine_read_window,
            (false, false) => model.copy_engine_read_window_pcie,
        };
        let limit = self.copy_rate(gpu, target);
        // Reads of host memory are limited by the window alone: it stays full, so that whoever reads
        // beside it waits for all of it (`h200-two-host-links/beside.csv`).
        let paced = push || by_nvlink || self.fabric.is_gpu(target);
        loop {
            let record = &mut self.actors[actor as usize];
            let left = total - record.copy.issued;
            if left == 0 || record.copy.in_flight + chunk.min(left) > window {
                return;
            }
            if record.copy.next_issue > self.now {
                if !record.copy.armed {
                    record.copy.armed = true;
                    self.queue.push(record.copy.next_issue, Wrapped::Repoll(actor));
                }
                return;
            }
            let bytes = chunk.min(left);
            let address = u64::from(record.copy.issued);
            record.copy.issued += bytes;
            record.copy.in_flight += bytes;
            if paced {
                record.copy.next_issue = record.copy.next_issue.max(self.now)
                    + Time::from_ns(f64::from(bytes) / limit.as_gb_per_s());
            }
            let packet = model.copy_engine_tlp;
            if push {
                let store = Store { copier: actor, ..Store::new(gpu, target, bytes, packet) };
                self.issue_store(self.now, store);
            } else {
                let kind = TrafficKind::CopyRead;
                let load = Load { address, kind, ..Load::new(gpu, target, bytes, packet, actor) };
                self.issue_load(self.now, load);
            }
        }
    }

    /// The engine's own limit towards a memory.
    fn copy_rate(&self, gpu: u32, target: u32) -> Bandwidth {
        let model = &self.fabric.gpus[gpu as usize];
        match self.fabric.first_class(gpu, target) {
            Some(LinkClass::Nvlink) => model.copy_engine_nvlink,
            // Below Gen5 x16 the link is slower than the engine, which then keeps it full.
            _ => model.copy_engine_pcie,
        }
    }

    pub(super) fn copy_departed(&mut self, actor: ActorId, bytes: u32) {
        self.actors[actor as usize].copy.in_flight -= bytes;
        self.copy_issue(actor);
    }

    pub(super) fn copy_arrived(&mut self, actor: ActorId, bytes: u32, at: Time) {
        let Some(CopyOp { bytes: total, push, .. }) = self.copy_op(actor) else { return };
        let record = &mut self.actors[actor as usize];
        let block = &mut self.blocks[record.block as usize];
        record.copy.arrived += bytes;
        if push && at >= self.options.counted_from {
            block.used.stored += u64::from(bytes);
        }
        if record.copy.arrived == total {
            self.resume(actor, at);
        } else if !push {
            record.copy.in_flight -= bytes;
            self.copy_issue(actor);
        }
    }
}
