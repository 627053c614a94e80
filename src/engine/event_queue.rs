//! The event queue: a timing wheel with FIFO order among equal times.
//!
//! Events of this simulator lie within a few microseconds, so a wheel of narrow buckets takes and
//! gives each in constant time; what lies farther waits in a heap. Order is by time, then by the
//! sequence in which events were pushed, exactly as a single sorted list would give
//! (`tests::agrees_with_a_sorted_list`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::units::Time;

/// Width of a bucket as a power of two of picoseconds: 1.024 ns.
const BUCKET_SHIFT: u32 = 10;
/// Buckets of the wheel, a power of two: 4.2 us in all.
const BUCKETS: usize = 4096;

#[derive(Clone, Copy)]
struct Entry<E> {
    time: u64,
    event: E,
}

/// An entry beyond the wheel, which needs its sequence number to keep its place among equals.
struct Far<E> {
    sequence: u64,
    entry: Entry<E>,
}

impl<E> Far<E> {
    fn key(&self) -> (u64, u64) {
        (self.entry.time, self.sequence)
    }
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<E> Eq for Far<E> {}
impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Pending events in order of time, then of arrival.
pub struct EventQueue<E> {
    now: u64,
    sequence: u64,
    /// The bucket being emptied, in order, and how much of it is gone.
    current: Vec<Entry<E>>,
    gone: usize,
    /// Number of the bucket being emptied.
    bucket: u64,
    /// Buckets hold their entries in the order of pushing; what moves in from afar was pushed before
    /// the wheel reached there, so a stable sort by time is the order by time and sequence.
    wheel: Vec<Vec<Entry<E>>>,
    /// One bit a bucket that is not empty.
    occupied: Vec<u64>,
    far: BinaryHeap<Reverse<Far<E>>>,
    length: usize,
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time zero.
    pub fn new() -> EventQueue<E> {
        EventQueue {
            now: 0,
            sequence: 0,
            current: Vec::new(),
            gone: 0,
            bucket: 0,
            wheel: (0..BUCKETS).map(|_| Vec::new()).collect(),
            occupied: vec![0; BUCKETS / 64],
            far: BinaryHeap::new(),
            length: 0,
        }
    }

    /// Adds an event.
    ///
    /// # Panics
    /// When the time is before the last popped one: time never goes back.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        let time = time.as_ps();
        assert!(time >= self.now, "events do not go back in time");
        let entry = Entry { time, event };
        self.length += 1;
        let bucket = time >> BUCKET_SHIFT;
        if bucket <= self.bucket {
            // Into the bucket being emptied: after all earlier or equal ones.
            let mut at = self.current.len();
            while at > self.gone && self.current[at - 1].time > time {
                at -= 1;
            }
            self.current.insert(at, entry);
        } else if bucket < self.bucket + BUCKETS as u64 {
            self.put(bucket, entry);
        } else {
            self.sequence += 1;
            self.far.push(Reverse(Far { sequence: self.sequence, entry }));
        }
    }

    #[inline]
    fn put(&mut self, bucket: u64, entry: Entry<E>) {
        let slot = bucket as usize & (BUCKETS - 1);
        self.wheel[slot].push(entry);
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.gone == self.current.len() && !self.refill() {
            return None;
        }
        let entry = self.current[self.gone];
        self.gone += 1;
        assert!(entry.time >= self.now, "events do not go back in time");
        self.now = entry.time;
        self.length -= 1;
        Some((Time::from_ps(entry.time), entry.event))
    }

    /// Opens the next bucket that holds anything.
    fn refill(&mut self) -> bool {
        if self.length == 0 {
            return false;
        }
        let next = self.next_occupied();
        let far = self.far.peek().map(|far| far.0.entry.time >> BUCKET_SHIFT);
        self.bucket = match (next, far) {
            (Some(near), Some(far)) => near.min(far),
            (Some(near), None) => near,
            (None, Some(far)) => far,
            (None, None) => return false,
        };
        // What was far and now lies within the wheel moves into it.
        while let Some(far) = self.far.peek() {
            let bucket = far.0.entry.time >> BUCKET_SHIFT;
            if bucket >= self.bucket + BUCKETS as u64 {
                break;
            }
            if let Some(Reverse(far)) = self.far.pop() {
                self.put(bucket, far.entry);
            }
        }
        let slot = self.bucket as usize & (BUCKETS - 1);
        self.current.clear();
        self.gone = 0;
        std::mem::swap(&mut self.current, &mut self.wheel[slot]);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        sort_by_time(&mut self.current);
        true
    }

    /// Number of the first bucket after the current one that holds anything.
    fn next_occupied(&self) -> Option<u64> {
        let words = self.occupied.len();
        let start = (self.bucket as usize + 1) & (BUCKETS - 1);
        let (first_word, first_bit) = (start / 64, start % 64);
        for step in 0..=words {
            let word = (first_word + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << first_bit;
            } else if step == words {
                bits &= !(u64::MAX << first_bit);
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                let ahead = (slot + BUCKETS - start) & (BUCKETS - 1);
                return Some(self.bucket + 1 + ahead as u64);
            }
        }
        None
    }

    /// Pending events.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Stable sort by time; buckets are short and nearly in order, so insertion is best.
fn sort_by_time<E: Copy>(entries: &mut [Entry<E>]) {
    if entries.len() > 64 {
        entries.sort_by_key(|entry| entry.time);
        return;
    }
    for index in 1..entries.len() {
        let entry = entries[index];
        let mut at = index;
        while at > 0 && entries[at - 1].time > entry.time {
            entries[at] = entries[at - 1];
            at -= 1;
        }
        entries[at] = entry;
    }
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_come_out_in_the_order_they_went_in() {
        let mut queue = EventQueue::new();
        for label in 0..10 {
            queue.push(Time::from_ps(5), label);
        }
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop().map(|(_, label)| label)).collect();
        assert_eq!(order, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn agrees_with_a_sorted_list() {
        // A hold model with gaps from 0 to 20 us: near, same bucket, far, ties.
        let mut queue = EventQueue::new();
        let mut list: Vec<(u64, u64)> = Vec::new();
        let mut state = 12_345_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let mut label = 0;
        for _ in 0..64 {
            let time = random() % 30_000;
            queue.push(Time::from_ps(time), label);
            list.push((time, label));
            label += 1;
        }
        for _ in 0..20_000 {
            let (time, found) = queue.pop().expect("not empty");
            let at = (0..list.len()).min_by_key(|&i| list[i]).expect("not empty");
            assert_eq!((time.as_ps(), found), list.remove(at));
            let gap = match random() % 4 {
                0 => 0,
                1 => random() % 1_000,
                2 => random() % 400_000,
                _ => random() % 20_000_000,
            };
            queue.push(time + Time::from_ps(gap), label);
            list.push((time.as_ps() + gap, label));
            label += 1;
        }
    }

    #[test]
    #[should_panic(expected = "back in time")]
    fn time_does_not_go_back() {
        let mut queue = EventQueue::new();
        queue.push(Time::from_ps(10), 0);
        queue.pop();
        queue.push(Time::from_ps(9), 1);
    }
}
