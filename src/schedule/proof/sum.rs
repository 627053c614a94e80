//! Sums of contributions, and what a switch does for all members of a group.

use super::super::{ELEMENT_BYTES, Op};
use super::{Flaw, Machine, Value, elements};

/// Element by element, the sum of two runs of values that start at `first`.
pub(super) fn added(
    mut sums: Vec<Value>,
    found: &[Value],
    rank: usize,
    first: usize,
) -> Result<Vec<Value>, Flaw> {
    for (index, (a, b)) in sums.iter_mut().zip(found).enumerate() {
        let element = first + index;
        if a.ranks & b.ranks != 0 {
            return Err(Flaw::Twice { rank, element, ranks: a.ranks & b.ranks });
        }
        if a.ranks != 0 && b.ranks != 0 && a.element != b.element {
            return Err(Flaw::Mixed { rank, element });
        }
        *a = Value { ranks: a.ranks | b.ranks, element: a.element.max(b.element) };
    }
    Ok(sums)
}

impl Machine<'_> {
    /// Operations that a switch does for all members of a group.
    pub(super) fn multicast(&mut self, rank: usize, block: usize, op: Op) -> Result<(), Flaw> {
        match op {
            Op::LoadReduce { group, base, offset, bytes, action } => {
                let first = (offset / ELEMENT_BYTES) as usize;
                let sum = self.sum_of(group, base, rank, first, elements(u64::from(bytes)))?;
                self.act(rank, block, first as u32, sum, action)?;
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
        first: usize,
        count: usize,
    ) -> Result<Vec<Value>, Flaw> {
        let mut sum = vec![Value::default(); count];
        for buffer in self.members(group, base) {
            let found = &self.buffers[buffer as usize][first..first + count];
            sum = added(sum, found, rank, first)?;
        }
        Ok(sum)
    }
}
