//! Squares colored by a figure, with the figure in them where it has room.

use super::letters::{fitted, width};
use super::picture::{Anchor, Picture, Point, Words};
use super::style::{HAIR, HEAT_LEVELS, Ink, SMALL, TINY};

/// What is drawn.
pub(super) struct Heat<'a> {
    /// Of the rows, from top to bottom.
    pub(super) rows: Vec<String>,
    /// Of the columns; empty: none are written.
    pub(super) columns: Vec<String>,
    /// `[row][column]`: share of the most, 0 to 1; nothing for an empty cell.
    pub(super) shares: Vec<Vec<Option<f64>>>,
    /// What is written in a cell.
    pub(super) text: &'a dyn Fn(usize, usize) -> String,
    /// What a cell says on hovering; empty: nothing.
    pub(super) tip: &'a dyn Fn(usize, usize) -> String,
    /// Pixels.
    pub(super) left: f64,
    /// Pixels.
    pub(super) right: f64,
    /// Where the first row begins, pixels.
    pub(super) top: f64,
    /// Height of a row, pixels.
    pub(super) row: f64,
}

impl Heat<'_> {
    /// Width of a column, pixels.
    pub(super) fn column(&self) -> f64 {
        let columns = self.shares.first().map_or(1, Vec::len).max(1);
        (self.right - self.left) / columns as f64
    }

    /// Where the last row ends, pixels.
    pub(super) fn bottom(&self) -> f64 {
        self.top + self.row * self.rows.len() as f64
    }

    /// Draws it, names of rows at the left, names of columns above.
    pub(super) fn draw(&self, picture: &mut Picture) {
        picture.plain();
        let every = |room: f64, least: f64| (least / room).ceil().max(1.0) as usize;
        let step = every(self.row, SMALL);
        for (row, name) in self.rows.iter().enumerate().step_by(step) {
            let y = self.top + (row as f64 + 0.5) * self.row;
            let text = fitted(name, SMALL, self.left - 10.0);
            let words = Words::new((self.left - 6.0, y), text, Anchor::End, Ink::Muted);
            picture.words(words.sized(SMALL));
        }
        let widest = self.columns.iter().map(|name| width(name, SMALL, false)).fold(0.0, f64::max);
        let step = every(self.column(), widest + 3.0);
        for (column, name) in self.columns.iter().enumerate().step_by(step) {
            let x = self.left + (column as f64 + 0.5) * self.column();
            let words = Words::new((x, self.top - 9.0), name, Anchor::Middle, Ink::Muted);
            picture.words(words.sized(SMALL));
        }
        for (row, cells) in self.shares.iter().enumerate() {
            self.draw_row(picture, row, cells);
        }
    }

    fn draw_row(&self, picture: &mut Picture, row: usize, cells: &[Option<f64>]) {
        let y = self.top + row as f64 * self.row;
        let gap = if self.column() > 6.0 && self.row > 6.0 { 0.5 } else { 0.0 };
        let mut column = 0;
        while column < cells.len() {
            let ink = cells[column].map_or(Ink::Panel, Ink::heat);
            let (text, tip) = ((self.text)(row, column), (self.tip)(row, column));
            // Equal cells that say nothing are one.
            let same = |&next: &usize| {
                cells[next].map_or(Ink::Panel, Ink::heat) == ink
                    && (self.text)(row, next).is_empty()
                    && (self.tip)(row, next).is_empty()
            };
            let silent = text.is_empty() && tip.is_empty();
            let more = (column + 1..cells.len()).take_while(|next| silent && same(next)).count();
            let x = self.left + column as f64 * self.column();
            let end = x + (more + 1) as f64 * self.column();
            if tip.is_empty() {
                picture.plain()
            } else {
                picture.tip(None, tip)
            }
            picture.block((x + gap, y + gap), (end - gap, y + self.row - gap), ink);
            self.write(picture, (x + end) / 2.0, y + self.row / 2.0, &text, cells[column]);
            column += more + 1;
        }
    }

    /// Writes a cell's text in the largest letters that fit, if any do.
    fn write(&self, picture: &mut Picture, x: f64, y: f64, text: &str, share: Option<f64>) {
        let fits =
            |size: &f64| width(text, *size, false) <= self.column() - 2.0 && *size < self.row;
        let Some(size) = [SMALL, 9.5, TINY].into_iter().find(fits) else { return };
        let ink = share.map_or(Ink::Muted, Ink::on_heat);
        picture.words(Words::new((x, y), text, Anchor::Middle, ink).sized(size));
    }
}

/// Pixels that a legend takes.
pub(super) const LEGEND: f64 = 22.0;

/// Draws what the colors mean, from the least to the most, in a row at `y`.
pub(super) fn legend(picture: &mut Picture, left: f64, y: f64, least: &str, most: &str) {
    legend_from(picture, (left, y), 0, least, most);
}

/// The same from a level of heat on.
pub(super) fn legend_from(
    picture: &mut Picture,
    (left, y): Point,
    first: usize,
    least: &str,
    most: &str,
) {
    picture.plain();
    let at = (left, y);
    picture.words(Words::new(at, least, Anchor::Start, Ink::Muted).sized(SMALL));
    let start = left + width(least, SMALL, false) + 6.0;
    let (square, from) = (14.0, 5.0);
    for level in first..HEAT_LEVELS {
        let x = start + (level - first) as f64 * square;
        picture.block((x, y - from), (x + square, y + from), Ink::Heat(level));
    }
    let end = start + (HEAT_LEVELS - first) as f64 * square;
    picture.outline((start, y - from), (end, y + from), Ink::Grid, HAIR);
    let words = Words::new((end + 6.0, y), most, Anchor::Start, Ink::Muted);
    picture.words(words.sized(SMALL));
}
