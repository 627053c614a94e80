//! The event queue: a timing wheel with FIFO order among equal times.
//!
//! Events of this simulator lie within a few microseconds, so a wheel of narrow buckets takes and
//! gives each in constant time; what lies farther waits in a heap. Order is by time, then by the
//! sequence in which events were pushed, exactly as a single sorted list would give
//! (`tests::agrees_with_a_sorted_list`).
//!
//! All pending events lie in one pool whose places are used again at once, and stay where they are
//! until they are popped: a bucket is a chain through the pool, and what is sorted are times and
//! numbers. The memory that is touched is that of what is pending, however many buckets there are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::pool::Pool;
use crate::units::Time;

/// Width of a bucket as a power of two of picoseconds: 1.024 ns.
const BUCKET_SHIFT: u32 = 10;
/// Bits of a word.
const WORD: usize = u64::BITS as usize;
/// Buckets of the wheel, 4.2 us in all: a bit of a word of bits for each.
const BUCKETS: usize = WORD * WORD;
/// Ends the chain of a bucket.
const END: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Entry<E> {
    time: u64,
    event: E,
    /// What was pushed into the same bucket just before.
    before: u32,
}

/// Pending events in order of time, then of arrival.
pub struct EventQueue<E> {
    now: u64,
    pending: Pool<Entry<E>>,
    /// Times and numbers of the bucket being emptied, in order, and how much of it is gone.
    current: Vec<(u64, u32)>,
    gone: usize,
    /// Number of the bucket being emptied.
    bucket: u64,
    /// The entry that was pushed last into each bucket. What moves in from afar was pushed before the
    /// wheel reached there, so a chain has the order of pushing, and a stable sort by time gives the
    /// order by time and sequence.
    wheel: Vec<u32>,
    /// One bit a bucket that is not empty, and one a word of them that is not zero.
    occupied: [u64; WORD],
    words: u64,
    /// Time, sequence and number of what lies beyond the wheel.
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    sequence: u64,
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time zero.
    pub fn new() -> EventQueue<E> {
        EventQueue {
            now: 0,
            pending: Pool::new(),
            current: Vec::new(),
            gone: 0,
            bucket: 0,
            wheel: vec![END; BUCKETS],
            occupied: [0; WORD],
            words: 0,
            far: BinaryHeap::new(),
            sequence: 0,
        }
    }

    /// Adds an event.
    ///
    /// # Panics
    /// When the time is before the last popped one: time never goes back.
    #[inline(always)]
    pub fn push(&mut self, time: Time, event: E) {
        let time = time.as_ps();
        assert!(time >= self.now, "events do not go back in time");
        let number = self.pending.keep(Entry { time, event, before: END });
        let bucket = time >> BUCKET_SHIFT;
        if bucket > self.bucket && bucket < self.bucket + BUCKETS as u64 {
            self.chain(bucket, number);
        } else {
            self.push_apart(time, number);
        }
    }

    /// Puts an event into the bucket being emptied, or beyond the wheel.
    #[inline(never)]
    fn push_apart(&mut self, time: u64, number: u32) {
        if time >> BUCKET_SHIFT > self.bucket {
            self.sequence += 1;
            self.far.push(Reverse((time, self.sequence, number)));
            return;
        }
        // After all earlier or equal ones.
        let mut at = self.current.len();
        while at > self.gone && self.current[at - 1].0 > time {
            at -= 1;
        }
        self.current.insert(at, (time, number));
    }

    #[inline]
    fn chain(&mut self, bucket: u64, number: u32) {
        let slot = bucket as usize % BUCKETS;
        self.pending[number].before = std::mem::replace(&mut self.wheel[slot], number);
        self.occupied[slot / WORD] |= 1 << (slot % WORD);
        self.words |= 1 << (slot / WORD);
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.gone == self.current.len() && !self.refill() {
            return None;
        }
        let (time, number) = self.current[self.gone];
        self.gone += 1;
        assert!(time >= self.now, "events do not go back in time");
        self.now = time;
        Some((Time::from_ps(time), self.pending.take(number).event))
    }

    /// Opens the next bucket that holds anything.
    fn refill(&mut self) -> bool {
        let near = self.next_occupied();
        let far = self.far.peek().map(|far| far.0.0 >> BUCKET_SHIFT);
        self.bucket = match (near, far) {
            (Some(near), Some(far)) => near.min(far),
            (Some(next), None) | (None, Some(next)) => next,
            (None, None) => return false,
        };
        // What was far and now lies within the wheel moves into it.
        while let Some(&Reverse((time, _, number))) = self.far.peek() {
            let bucket = time >> BUCKET_SHIFT;
            if bucket >= self.bucket + BUCKETS as u64 {
                break;
            }
            self.far.pop();
            self.chain(bucket, number);
        }
        self.open(self.bucket as usize % BUCKETS);
        true
    }

    /// Makes a bucket's chain the one being emptied, in order.
    fn open(&mut self, slot: usize) {
        self.current.clear();
        self.gone = 0;
        let mut number = std::mem::replace(&mut self.wheel[slot], END);
        while number != END {
            let Entry { time, before, .. } = self.pending[number];
            self.current.push((time, number));
            number = before;
        }
        self.current.reverse();
        sort_by_time(&mut self.current);
        let word = slot / WORD;
        self.occupied[word] &= !(1 << (slot % WORD));
        if self.occupied[word] == 0 {
            self.words &= !(1 << word);
        }
    }

    /// Number of the first bucket after the current one that holds anything.
    fn next_occupied(&self) -> Option<u64> {
        let start = (self.bucket as usize + 1) % BUCKETS;
        let (word, bit) = (start / WORD, start % WORD);
        let here = self.occupied[word] >> bit;
        if here != 0 {
            return Some(self.bucket + 1 + u64::from(here.trailing_zeros()));
        }
        // The words after this one in turn, this one last.
        let after = (word + 1) % WORD;
        let in_turn = self.words.rotate_right(after as u32);
        if in_turn == 0 {
            return None;
        }
        let word = (after + in_turn.trailing_zeros() as usize) % WORD;
        let slot = word * WORD + self.occupied[word].trailing_zeros() as usize;
        let ahead = (slot + BUCKETS - start) % BUCKETS;
        Some(self.bucket + 1 + ahead as u64)
    }

    /// Pending events.
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Stable sort by time; buckets are short and nearly in order, so insertion is best.
fn sort_by_time(entries: &mut [(u64, u32)]) {
    if entries.len() > 64 {
        entries.sort_by_key(|entry| entry.0);
        return;
    }
    for index in 1..entries.len() {
        let entry = entries[index];
        let mut at = index;
        while at > 0 && entries[at - 1].0 > entry.0 {
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
