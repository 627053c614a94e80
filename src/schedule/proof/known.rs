//! What is known of a stretch of memory: runs of elements whose values follow each other, so that a
//! trip of a block is one step of the proof however many elements it moves.

/// One element's value: which ranks' inputs are summed in it, and which input element they were.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Value {
    /// Bit r: the input of rank r.
    pub(super) ranks: u64,
    /// Element of the input, plus one; zero for no data at all.
    pub(super) element: u32,
}

impl Value {
    /// The value `distance` elements on in a run that begins with this one.
    pub(super) fn on(self, distance: u32) -> Value {
        let element = if self.ranks == 0 { 0 } else { self.element + distance };
        Value { element, ..self }
    }
}

/// Elements of the same ranks' inputs, counting up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// First element of the memory.
    pub(super) first: u32,
    /// How many.
    pub(super) count: u32,
    /// Of the first.
    pub(super) value: Value,
}

impl Run {
    fn end(&self) -> u32 {
        self.first + self.count
    }

    /// The part of it inside `[first, end)`, which it has to meet.
    fn within(&self, first: u32, end: u32) -> Run {
        let from = self.first.max(first);
        let value = self.value.on(from - self.first);
        Run { first: from, count: self.end().min(end) - from, value }
    }

    /// Whether the other goes on where this ends.
    fn goes_on_in(&self, next: &Run) -> bool {
        self.end() == next.first && self.value.on(self.count) == next.value
    }
}

/// Appends a run to a list, joined to the last where it goes on.
fn append(list: &mut Vec<Run>, run: Run) {
    match list.last_mut() {
        Some(last) if last.goes_on_in(&run) => last.count += run.count,
        _ => list.push(run),
    }
}

/// Runs in order, apart from each other; what lies between was never stored.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    runs: Vec<Run>,
}

impl Known {
    /// A memory that begins with one run.
    pub(super) fn of(run: Run) -> Known {
        Known { runs: if run.count > 0 { vec![run] } else { Vec::new() } }
    }

    /// The runs that meet `[first, end)`.
    fn meeting(&self, first: u32, end: u32) -> std::ops::Range<usize> {
        let from = self.runs.partition_point(|run| run.end() <= first);
        let to = from + self.runs[from..].partition_point(|run| run.first < end);
        from..to
    }

    /// Fills a list with the values of `count` elements, as runs without a gap: what was never stored
    /// is nothing.
    pub(super) fn read(&self, first: u32, count: u32, list: &mut Vec<Run>) {
        list.clear();
        let (mut at, end) = (first, first + count);
        let nothing = |from: u32, to: u32| Run { first: from, count: to - from, ..NOTHING };
        for run in &self.runs[self.meeting(first, end)] {
            let run = run.within(first, end);
            if at < run.first {
                append(list, nothing(at, run.first));
            }
            at = run.end();
            append(list, run);
        }
        if at < end {
            append(list, nothing(at, end));
        }
    }

    /// Whether all of `count` elements were stored.
    pub(super) fn holds(&self, first: u32, count: u32) -> bool {
        let (mut at, end) = (first, first + count);
        for run in &self.runs[self.meeting(first, end)] {
            if run.first > at {
                return false;
            }
            at = run.end();
        }
        at >= end
    }

    /// Stores runs without a gap from `first` on, wherever they were read.
    pub(super) fn store(&mut self, first: u32, runs: &[Run]) {
        let Some(start) = runs.first().map(|run| run.first) else { return };
        let end = first + runs.iter().map(|run| run.count).sum::<u32>();
        let mut old = self.meeting(first, end);
        if let [run] = *runs
            && self.store_one(old.clone(), Run { first, ..run })
        {
            return;
        }
        // The neighbours too, so that what goes on in them is one run with them.
        old.start = old.start.saturating_sub(1);
        old.end = (old.end + 1).min(self.runs.len());
        let mut new = Vec::with_capacity(runs.len() + 4);
        for run in self.runs[old.clone()].iter().filter(|run| run.first < first) {
            append(&mut new, run.within(run.first, first));
        }
        for run in runs {
            append(&mut new, Run { first: first + (run.first - start), ..*run });
        }
        for run in self.runs[old.clone()].iter().filter(|run| run.end() > end) {
            append(&mut new, run.within(end, run.end()));
        }
        self.runs.splice(old, new);
    }

    /// Stores a run in the plain cases: where nothing was or the same is. `old` are those that it
    /// meets.
    fn store_one(&mut self, old: std::ops::Range<usize>, run: Run) -> bool {
        if let [same] = self.runs[old.clone()] {
            let inside = same.first <= run.first && run.end() <= same.end();
            return inside && same.value.on(run.first - same.first) == run.value;
        }
        let at = old.start;
        if !old.is_empty() || self.runs.get(at).is_some_and(|next| run.goes_on_in(next)) {
            return false;
        }
        match self.runs[..at].last_mut() {
            Some(before) if before.goes_on_in(&run) => before.count += run.count,
            _ => self.runs.insert(at, run),
        }
        true
    }
}

/// A run of no elements.
const NOTHING: Run = Run { first: 0, count: 0, value: Value { ranks: 0, element: 0 } };

/// Cuts two lists over the same elements so that their runs lie side by side.
pub(super) fn side_by_side<'a>(
    a: &'a [Run],
    b: &'a [Run],
) -> impl Iterator<Item = (Run, Value)> + 'a {
    let (mut left, mut right, mut done) = (0, 0, 0);
    let start = (a.first().map_or(0, |run| run.first), b.first().map_or(0, |run| run.first));
    std::iter::from_fn(move || {
        let (x, y) = (a.get(left)?, b.get(right)?);
        let (x_end, y_end) = (x.end() - start.0, y.end() - start.1);
        let end = x_end.min(y_end);
        let value = |run: &Run, start: u32| run.value.on(done - (run.first - start));
        let run = Run { first: start.0 + done, count: end - done, value: value(x, start.0) };
        let other = value(y, start.1);
        done = end;
        left += usize::from(x_end == end);
        right += usize::from(y_end == end);
        Some((run, other))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(first: u32, count: u32, element: u32) -> Run {
        Run { first, count, value: Value { ranks: 1, element } }
    }

    #[test]
    fn runs_that_go_on_are_one() {
        let mut known = Known::default();
        known.store(4, &[run(0, 2, 5)]);
        known.store(8, &[run(0, 2, 9)]);
        assert!(known.holds(4, 2) && !known.holds(4, 3) && !known.holds(3, 2));
        known.store(6, &[run(0, 2, 7)]);
        let read = |known: &Known, first, count| {
            let mut list = Vec::new();
            known.read(first, count, &mut list);
            list
        };
        assert_eq!(read(&known, 4, 6), [run(4, 6, 5)]);
        // A store in the middle leaves both ends.
        known.store(5, &[run(0, 1, 50)]);
        assert_eq!(read(&known, 4, 6), [run(4, 1, 5), run(5, 1, 50), run(6, 4, 7)]);
        assert_eq!(read(&known, 9, 3), [run(9, 1, 10), Run { first: 10, count: 2, ..NOTHING }]);
    }

    /// Against elements one by one.
    #[test]
    fn runs_say_what_elements_say() {
        let (mut known, mut plain) = (Known::default(), vec![None; 64]);
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) % below) as u32
        };
        for _ in 0..5000 {
            let (first, count) = (draw(56), 1 + draw(8));
            let value = Value { ranks: u64::from(draw(3)), element: first + draw(2) }.on(1);
            known.store(first, &[Run { first: 7, count, value }]);
            for index in 0..count {
                plain[(first + index) as usize] = Some(value.on(index));
            }
            let (first, count) = (draw(56), 1 + draw(8));
            let wanted = &plain[first as usize..(first + count) as usize];
            assert_eq!(known.holds(first, count), wanted.iter().all(Option::is_some));
            let mut found = Vec::new();
            known.read(first, count, &mut found);
            let values = found.iter().flat_map(|run| (0..run.count).map(|i| run.value.on(i)));
            assert!(values.eq(wanted.iter().map(|value| value.unwrap_or_default())));
        }
    }
}
