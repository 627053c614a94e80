//! Matrices of pairs: rows that begin with a number, below a row of the numbers of the columns.

use super::{Reading, about};
use crate::lines::Line;
use crate::measurement::{Copy, Memory, Run};

/// Bytes of a copy; beyond the start the rate does not depend on it.
pub(super) const COPY_BYTES: u64 = 64 << 20;

/// A matrix being read.
#[derive(Default)]
pub(super) struct Columns {
    numbers: Vec<u32>,
}

/// What a line of a matrix is.
pub(super) enum Cells {
    /// The numbers of the columns.
    Header,
    /// Values of a row, by column; `None` where it says `N/A`.
    Row(u32, Vec<(u32, Option<f64>)>),
    /// Nothing of it.
    Other,
}

impl Columns {
    /// Reads a line.
    pub(super) fn read(&mut self, line: &Line) -> Cells {
        let mut words = line.text.split_whitespace().peekable();
        // `D\D`, `GPU` and `CPU` stand in the corner.
        words.next_if(|word| matches!(*word, "D\\D" | "GPU" | "CPU"));
        let all: Vec<&str> = words.collect();
        let whole: Option<Vec<u32>> = all.iter().map(|word| word.parse().ok()).collect();
        let counts =
            |numbers: &Vec<u32>| (0..).zip(numbers).all(|(at, &number): (u32, _)| at == number);
        match whole {
            Some(numbers) if !numbers.is_empty() && counts(&numbers) && self.numbers.is_empty() => {
                self.numbers = numbers;
                return Cells::Header;
            }
            _ => {}
        }
        let Some((row, cells)) = all.split_first() else { return Cells::Other };
        let Ok(row) = row.parse::<u32>() else { return Cells::Other };
        let values = cells.iter().map(|word| word.parse::<f64>().ok().filter(|v| v.is_finite()));
        let known = cells.iter().all(|word| *word == "N/A" || word.parse::<f64>().is_ok());
        if cells.is_empty() || !known || cells.len() > self.numbers.len() {
            return Cells::Other;
        }
        Cells::Row(row, self.numbers.iter().copied().zip(values).collect())
    }

    /// Columns that a row lacks.
    pub(super) fn missing(&self, row: &[(u32, Option<f64>)]) -> usize {
        self.numbers.len() - row.len()
    }
}

/// Adds a rate of copies at once.
pub(super) fn add(
    reading: &mut Reading,
    line: usize,
    experiment: &str,
    copies: Vec<Copy>,
    rate: f64,
) {
    let name = |memory: Memory| match memory {
        Memory::Gpu(gpu) => format!("gpu{gpu}"),
        Memory::HostNear(gpu) => format!("host of gpu{gpu}"),
    };
    let text = format!("{} to {}", name(copies[0].from), name(copies[0].to));
    let about = about(experiment.to_owned(), text);
    reading.add(line, about, Run::Copies(copies), (rate, "GB/s"));
}

/// One copy.
pub(super) fn copy(from: Memory, to: Memory, engine: u32, kernel: bool) -> Copy {
    Copy { from, to, engine, bytes: COPY_BYTES, kernel }
}
