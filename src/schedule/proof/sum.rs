//! Sums of contributions, and what a switch does for all members of a group.

use super::super::Op;
use super::known::{Run, Value, side_by_side};
use super::{Flaw, Machine};

/// Element by element, the sum of two lists of runs over as many elements; `first` is where they
/// stand in the call's data.
pub(super) fn added(
    a: &[Run],
    b: &[Run],
    rank: usize,
    first: u32,
    sum: &mut Vec<Run>,
) -> Result<(), Flaw> {
    let start = a.first().map_or(0, |run| run.first);
    sum.clear();
    for (run, other) in side_by_side(a, b) {
        let (ours, element) = (run.value, (first + run.first - start) as usize);
        if ours.ranks & other.ranks != 0 {
            return Err(Flaw::Twice { rank, element, ranks: ours.ranks & other.ranks });
        }
        if ours.ranks != 0 && other.ranks != 0 && ours.element != other.element {
            return Err(Flaw::Mixed { rank, element });
        }
        let (ranks, element) = (ours.ranks | other.ranks, ours.element.max(other.element));
        sum.push(Run { value: Value { ranks, element }, ..run });
    }
    Ok(())
}

impl Machine<'_> {
    /// Operations that a switch does for all members of a group.
    pub(super) fn multicast(&mut self, rank: usize, block: usize, op: Op) -> Result<(), Flaw> {
        match op {
            Op::LoadReduce { group, base, offset, bytes, action } => {
                let (first, count) = self.buffer_range(rank, base, offset, bytes)?;
                let sum = self.sum_of(group, base, rank, first, count)?;
                self.act(rank, block, first, &sum, action)?;
            }
            Op::WriteAll { group, base, offset, bytes } => {
                for buffer in self.members(group, base) {
                    self.step(rank, block, Op::Write { buffer, offset, bytes, data: offset })?;
                }
            }
            Op::SendAll { group, base, stride, offset, bytes, data } => {
                for member in self.members(group, 0) {
                    let message = base + member * stride;
                    self.step(rank, block, Op::Send { message, offset, bytes, data })?;
                }
            }
            Op::FlagAll { group, base } => {
                for message in self.members(group, base) {
                    self.flags[message as usize] = true;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The buffers or messages of a group's members.
    fn members(&self, group: u32, base: u32) -> std::ops::Range<u32> {
        base..base + self.schedule.groups[group as usize].len() as u32
    }

    /// The sum of the same elements of every member's buffer.
    fn sum_of(
        &self,
        group: u32,
        base: u32,
        rank: usize,
        first: u32,
        count: u32,
    ) -> Result<Vec<Run>, Flaw> {
        let mut sum = vec![Run { first, count, value: Value::default() }];
        let (mut found, mut next) = (Vec::new(), Vec::new());
        for buffer in self.members(group, base) {
            self.buffers[buffer as usize].read(first, count, &mut found);
            added(&sum, &found, rank, first, &mut next)?;
            std::mem::swap(&mut sum, &mut next);
        }
        Ok(sum)
    }
}
