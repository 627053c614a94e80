//! Host memory: a limited number of places for each root port's group, slowed by what other ports
//! do, and the GPU's rule of one outstanding read a line.

use super::super::{Load, NONE, Wrapped};
use super::transaction::Transaction;
use super::{Event, LAST, LINE, NON_POSTED, Packet, Queue, Tlp};
use crate::engine::observer::Observer;
use crate::engine::pool::Pool;
use crate::fabric::{EndpointId, Fabric, LinkId};
use crate::schedule::Schedule;
use crate::units::Time;

/// Bytes of a line of host memory.
const LINE_BYTES: u64 = 128;
/// Time over which the load of a port is averaged.
const WINDOW: Time = Time::from_ps(1_000_000);
/// Payload of one port at full rate over the window: Gen5 x16, 52.6 GB/s.
const FULL: u64 = 52_600;

/// One port of a host memory: the places of its root ports.
pub(super) struct MemoryPort {
    memory: usize,
    /// When each place is free again, for reads and for writes.
    reads: Places,
    writes: Places,
    /// When the last write taken so far will be done.
    written: Time,
    read_load: Load1us,
    write_load: Load1us,
}

/// Servers in parallel, as the times at which each is free again.
struct Places {
    free: Vec<Time>,
    next: usize,
}

impl Places {
    /// Occupies the next place for `service`, from `now` or when it is free; returns the end.
    fn occupy(&mut self, count: usize, now: Time, service: Time) -> Time {
        if self.free.len() != count {
            self.free = vec![Time::ZERO; count];
            self.next = 0;
        }
        let end = self.free[self.next].max(now) + service;
        self.free[self.next] = end;
        self.next = (self.next + 1) % count;
        end
    }
}

/// Bytes of about the last microsecond, by a leaking counter.
#[derive(Default)]
struct Load1us {
    bytes: u64,
    at: Time,
}

impl Load1us {
    fn leak(&mut self, now: Time) {
        let gone = now.saturating_sub(self.at).min(WINDOW);
        self.bytes -= self.bytes * gone.as_ps() / WINDOW.as_ps();
        self.at = now;
    }

    fn add(&mut self, now: Time, bytes: u64) {
        self.leak(now);
        self.bytes += bytes;
    }

    /// Share of a full port, in thousandths, at most one.
    fn share(&mut self, now: Time) -> u64 {
        self.leak(now);
        (self.bytes * 1000 / FULL).min(1000)
    }
}

impl MemoryPort {
    pub(super) fn new(memory: usize) -> MemoryPort {
        let places = || Places { free: Vec::new(), next: 0 };
        MemoryPort {
            memory,
            reads: places(),
            writes: places(),
            written: Time::ZERO,
            read_load: Load1us::default(),
            write_load: Load1us::default(),
        }
    }
}

impl<O: Observer> Packet<'_, O> {
    /// A write or read request has reached host memory.
    pub(super) fn serve_memory(
        &mut self,
        now: Time,
        link: LinkId,
        tlp: Tlp,
        context: &mut Queue<'_>,
    ) {
        let Some(port) = &self.memory_ports[link as usize] else {
            return;
        };
        let memory = port.memory;
        let model = &self.fabric.memories[memory];
        let (mut reads, mut writes) = (0, 0);
        for (other, port) in self.memory_ports.iter_mut().enumerate() {
            if let Some(port) = port
                && other != link as usize
                && port.memory == memory
            {
                reads += port.read_load.share(now);
                writes += port.write_load.share(now);
            }
        }
        let (reads, writes) = (reads.min(1000), writes.min(1000));
        let slowed = |time: Time, share: u64| Time::from_ps(time.as_ps() * share / 1000);
        let lines = u64::from(tlp.payload).div_ceil(LINE_BYTES).max(1);
        // Writes are taken as they come; reads wait until what was taken before them has moved.
        let moving = model.total.femtoseconds_per_byte() * lines * LINE_BYTES;
        let moved = self.memory_busy[memory].max(now) + Time::from_ps(moving / 1000);
        self.memory_busy[memory] = moved;
        let Some(port) = self.memory_ports[link as usize].as_mut() else {
            return;
        };
        let count = model.reads_outstanding as usize;
        let end = if tlp.class == NON_POSTED {
            port.read_load.add(now, u64::from(tlp.payload));
            let line = model.read_service + slowed(model.read_slowed_by_writes, writes);
            // Ports take turns packet by packet: a large one waits no longer than a small one.
            let turn = slowed(model.read_slowed_by_reads, reads);
            let service = line + turn / lines;
            let end = (0..lines).map(|_| port.reads.occupy(count, now, service)).last();
            end.unwrap_or(now).max(moved)
        } else {
            port.write_load.add(now, u64::from(tlp.payload));
            let turn = slowed(model.write_slowed_by_writes, writes);
            let service = model.write_service + turn / lines;
            let end = (0..lines).map(|_| port.writes.occupy(count, now, service)).last();
            port.written = port.written.max(end.unwrap_or(now));
            port.written
        };
        context.queue.push(end, Wrapped::Network(Event::Served(link, tlp)));
    }

    /// A place of a memory port has done its work.
    pub(super) fn served(&mut self, now: Time, link: LinkId, tlp: Tlp, context: &mut Queue<'_>) {
        self.release(now, link, &tlp, context);
        let Some(port) = self.memory_ports[link as usize].as_mut() else { return };
        let model = &self.fabric.memories[port.memory];
        if tlp.class == NON_POSTED {
            let cold = self.transactions[tlp.transaction].cold;
            let loaded = model.read_loaded.as_ps() * port.read_load.share(now) / 1000;
            let access = model.read.saturating_sub(model.read_service)
                + Time::from_ps(loaded)
                + if cold { model.cold } else { Time::ZERO };
            // A read pushes the writes before it: it is answered when they are done.
            let ordered = now.max(port.written);
            context.queue.push(ordered + access, Wrapped::Network(Event::Complete(tlp)));
        } else if tlp.flags & LAST != 0 && tlp.transaction != NONE {
            let rest = model.write_visible.saturating_sub(model.write_service);
            self.written(now + rest, tlp, context);
        }
    }

    /// A load of host memory, line by line: a line that another load of this GPU has asked for is
    /// waited for, since a GPU keeps one read of a line outstanding.
    pub(super) fn inject_lines(
        &mut self,
        now: Time,
        load: Load,
        parent: u32,
        context: &mut Queue<'_>,
    ) {
        let mut offset = 0;
        let mut requests = 0;
        while offset < load.bytes {
            let address = load.address + u64::from(offset);
            let to_line_end = (LINE_BYTES - address % LINE_BYTES) as u32;
            let bytes = to_line_end.min(load.bytes - offset);
            let line = self.lines.index(load.gpu, load.target, address / LINE_BYTES);
            let request = self.transactions.keep(Transaction {
                left: bytes,
                bytes,
                line,
                parent,
                ..Transaction::of_load(&load)
            });
            requests += 1;
            offset += bytes;
            match self.lines.waiting[line as usize] {
                IDLE => {
                    self.lines.waiting[line as usize] = NONE;
                    self.request(now, request, bytes as u16, LINE, context);
                }
                first => {
                    self.transactions[request].next = first;
                    self.lines.waiting[line as usize] = request;
                }
            }
        }
        self.transactions[parent].left = requests;
    }

    /// Takes one of the loads that wait for a line, if any.
    fn take_waiting(&mut self, line: u32) -> Option<u32> {
        let first = self.lines.waiting[line as usize];
        let rank = |request: u32, transactions: &Pool<Transaction>| {
            let mixed = u64::from(line) << 32 | u64::from(transactions[request].actor);
            // Fibonacci hashing (Knuth, TAOCP 3, section 6.4).
            mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
        };
        let (mut at, mut best) = (first, NONE);
        while at != NONE {
            if best == NONE || rank(at, &self.transactions) < rank(best, &self.transactions) {
                best = at;
            }
            at = self.transactions[at].next;
        }
        if best == NONE {
            return None;
        }
        let after = self.transactions[best].next;
        if best == first {
            self.lines.waiting[line as usize] = after;
        } else {
            let mut before = first;
            while self.transactions[before].next != best {
                before = self.transactions[before].next;
            }
            self.transactions[before].next = after;
        }
        Some(best)
    }

    /// The read of a line is back: one of the loads that wait for the line may ask. Which one is as
    /// good as random to a program, and different from line to line; here a hash of both decides.
    pub(super) fn line_returned(&mut self, now: Time, request: u32, context: &mut Queue<'_>) {
        let record = self.transactions.take(request);
        match self.take_waiting(record.line) {
            None => self.lines.waiting[record.line as usize] = IDLE,
            Some(next) => {
                let bytes = self.transactions[next].bytes;
                self.request(now, next, bytes as u16, LINE, context);
            }
        }
        let parent = &mut self.transactions[record.parent];
        parent.left -= 1;
        if parent.left == 0 {
            let whole = self.transactions.take(record.parent);
            context.notices.push(whole.loaded(now));
        }
    }
}

/// A line that nobody reads.
const IDLE: u32 = NONE - 1;

/// The loads of each GPU that wait for each line of host memory while one reads it.
pub(super) struct LineTable {
    /// First entry of each (GPU, memory).
    base: Vec<usize>,
    memories: usize,
    /// Endpoint of the first memory.
    first: usize,
    /// First of the waiting, [`NONE`] when the reading one is alone, [`IDLE`] when nobody reads.
    waiting: Vec<u32>,
}

impl LineTable {
    pub(super) fn new(fabric: &Fabric, schedule: &Schedule) -> LineTable {
        let memories = fabric.memories.len();
        let mut bytes = vec![0_u64; memories];
        for buffer in &schedule.buffers {
            if let Some(memory) = (buffer.home as usize).checked_sub(fabric.first_memory()) {
                bytes[memory] += buffer.span();
            }
        }
        let (mut base, mut total) = (Vec::new(), 0);
        for _ in 0..fabric.gpu_count {
            for &bytes in &bytes {
                base.push(total);
                total += (bytes / LINE_BYTES) as usize;
            }
        }
        LineTable { base, memories, first: fabric.first_memory(), waiting: vec![IDLE; total] }
    }

    fn index(&self, gpu: u32, memory: EndpointId, line: u64) -> u32 {
        let memory = memory as usize - self.first;
        (self.base[gpu as usize * self.memories + memory] + line as usize) as u32
    }
}
