//! Axes: from values to pixels, and the few values that are written beside them.

use super::letters;
use super::picture::{Anchor, Picture, Point, Words};
use super::style::{HAIR, Ink, LABEL, SMALL};
use crate::report::number::short;
use crate::units::format_size;

/// How values lie on an axis.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm.
    Log,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// How values lie.
    pub scale: Scale,
    /// Smallest and largest value.
    pub range: (f64, f64),
    /// Values that are written, with their text.
    pub ticks: Vec<(f64, String)>,
    /// What the values are.
    pub label: String,
}

/// Least distance of two ticks of sizes, as a factor.
const SIZE_TICKS: f64 = 1.9;

impl Axis {
    /// Values from zero, or from the smallest where one is below.
    pub fn linear(label: &str, values: impl IntoIterator<Item = f64>, ticks: usize) -> Axis {
        let (low, high) = extent(values);
        let (low, high) = (low.min(0.0), high.max(0.0));
        let high = if high > low { high } else { low + 1.0 };
        let step = nice_step((high - low) / ticks as f64);
        let (first, last) = ((low / step).floor() as i64, (high / step).ceil() as i64);
        let text = |value: f64| if step >= 1.0 { format!("{value:.0}") } else { trimmed(value) };
        Axis {
            scale: Scale::Linear,
            range: (first as f64 * step, last as f64 * step),
            ticks: (first..=last).map(|n| (n as f64 * step, text(n as f64 * step))).collect(),
            label: label.to_owned(),
        }
    }

    /// Positive values by their logarithm, with ticks at 1, 2 and 5, or fewer.
    pub fn log(label: &str, values: impl IntoIterator<Item = f64>) -> Axis {
        let positive = values.into_iter().filter(|value| *value > 0.0 && value.is_finite());
        let (low, high) = extent(positive);
        let (low, high) = if low > 0.0 { (low / 1.15, high * 1.15) } else { (0.5, 2.0) };
        let decades = (high / low).log10();
        let leads: &[f64] = match decades {
            ..1.7 => &[1.0, 2.0, 5.0],
            ..2.7 => &[1.0, 3.0],
            _ => &[1.0],
        };
        let mut ticks = Vec::new();
        for power in low.log10().floor() as i32..=high.log10().ceil() as i32 {
            let values = leads.iter().map(|lead| lead * 10_f64.powi(power));
            let inside = values.filter(|value| (low..=high).contains(value));
            ticks.extend(inside.map(|value| (value, trimmed(value))));
        }
        if ticks.is_empty() {
            let middle = (low * high).sqrt();
            ticks.push((middle, short(middle)));
        }
        Axis { scale: Scale::Log, range: (low, high), ticks, label: label.to_owned() }
    }

    /// Sizes of calls in bytes, written as powers of two.
    pub fn sizes(label: &str, sizes: &[u64]) -> Axis {
        let (low, high) = extent(sizes.iter().map(|&size| size as f64));
        let low = low.max(1.0);
        let (low, high) = if high > low { (low, high) } else { (low / 2.0, low * 2.0) };
        let first = low.log2().ceil() as u32;
        let last = high.log2().floor() as u32;
        // About eight ticks have room.
        let step = ((last.saturating_sub(first) + 1) as usize).div_ceil(8).max(1);
        let powers = (first..=last).step_by(step).map(|power| 1_u64 << power);
        let mut ticks: Vec<(f64, String)> =
            powers.map(|bytes| (bytes as f64, format_size(bytes))).collect();
        if ticks.is_empty() {
            ticks.extend(sizes.first().map(|&bytes| (bytes as f64, format_size(bytes))));
        }
        ticks.dedup_by(|later, before| later.0 / before.0 < SIZE_TICKS);
        Axis { scale: Scale::Log, range: (low, high), ticks, label: label.to_owned() }
    }

    /// Where a value lies, 0 to 1; what is outside lies at the edge.
    pub fn share(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        let share = match self.scale {
            Scale::Linear => (value - low) / (high - low),
            Scale::Log => (value.max(low) / low).ln() / (high / low).ln(),
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Smallest and largest of the finite values, or zeros.
fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let finite = values.into_iter().filter(|value| value.is_finite());
    let range = finite.fold(None, |range: Option<(f64, f64)>, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    });
    range.unwrap_or((0.0, 0.0))
}

/// The step at or above `least` that is 1, 2 or 5 times a power of ten.
fn nice_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let lead = least / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|step| *step >= lead - 1e-9).unwrap_or(10.0)
}

/// As few digits as tell the value.
fn trimmed(value: f64) -> String {
    if value.abs() >= 1.0 {
        return format!("{value:.1}").trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Where data are drawn: corners in pixels, and what they mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Along the bottom.
    pub x: Axis,
    /// Along the left.
    pub y: Axis,
    /// Pixels.
    pub left: f64,
    /// Pixels.
    pub top: f64,
    /// Pixels.
    pub right: f64,
    /// Pixels.
    pub bottom: f64,
}

impl Frame {
    /// Pixels of a place.
    pub fn place(&self, x: f64, y: f64) -> Point {
        (self.place_x(x), self.place_y(y))
    }

    /// Pixels from the left.
    pub fn place_x(&self, x: f64) -> f64 {
        self.left + self.x.share(x) * (self.right - self.left)
    }

    /// Pixels from the top.
    pub fn place_y(&self, y: f64) -> f64 {
        self.bottom - self.y.share(y) * (self.bottom - self.top)
    }

    /// Draws grid lines, ticks and labels; the label of the upright axis stands above it.
    pub fn draw(&self, picture: &mut Picture) {
        picture.plain();
        for (value, text) in &self.y.ticks {
            let y = self.place_y(*value);
            picture.line(vec![(self.left, y), (self.right, y)], Ink::Grid, HAIR);
            let at = (self.left - 6.0, y);
            picture.words(Words::new(at, text, Anchor::End, Ink::Muted).sized(SMALL));
        }
        self.draw_x(picture, true);
        let at = (self.left, self.top - LABEL);
        picture.words(Words::new(at, &self.y.label, Anchor::Start, Ink::Text));
    }

    /// Draws the axis along the bottom.
    pub fn draw_x(&self, picture: &mut Picture, grid: bool) {
        let ends = vec![(self.left, self.bottom), (self.right, self.bottom)];
        picture.line(ends, Ink::Muted, HAIR);
        let mut free_from = f64::NEG_INFINITY;
        for (value, text) in &self.x.ticks {
            let x = self.place_x(*value);
            if grid {
                picture.line(vec![(x, self.top), (x, self.bottom)], Ink::Grid, HAIR);
            }
            picture.line(vec![(x, self.bottom), (x, self.bottom + 4.0)], Ink::Muted, HAIR);
            let half = letters::width(text, SMALL, false) / 2.0;
            if x - half >= free_from {
                let at = (x, self.bottom + 12.0);
                picture.words(Words::new(at, text, Anchor::Middle, Ink::Muted).sized(SMALL));
                free_from = x + half + 4.0;
            }
        }
        let at = ((self.left + self.right) / 2.0, self.bottom + 28.0);
        picture.words(Words::new(at, &self.x.label, Anchor::Middle, Ink::Text));
    }
}

/// Pixels below the bottom of a frame that its axis takes.
pub const BELOW: f64 = 38.0;

/// Moves places apart so that each two are `gap` apart, all between `low` and `high` where there is
/// room, and each near where it was. The order stays.
pub fn apart(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut places = wanted.to_vec();
    let mut least = low;
    for &index in &order {
        places[index] = wanted[index].max(least);
        least = places[index] + gap;
    }
    let mut most = high;
    for &index in order.iter().rev() {
        places[index] = places[index].min(most);
        most = places[index] - gap;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_few_and_round() {
        let texts = |axis: &Axis| axis.ticks.iter().map(|tick| tick.1.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&Axis::linear("", [0.0, 47.0], 5)), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(texts(&Axis::log("", [3.0, 200.0])), ["3", "10", "30", "100"]);
        let sizes = Axis::sizes("", &[1024, 4096, 16_384, 65_536]);
        assert_eq!(texts(&sizes), ["1K", "2K", "4K", "8K", "16K", "32K", "64K"]);
    }

    #[test]
    fn one_value_and_none_have_an_axis() {
        for values in [vec![], vec![0.0], vec![7.0], vec![f64::NAN]] {
            for axis in [Axis::linear("", values.clone(), 4), Axis::log("", values.clone())] {
                assert!(axis.range.1 > axis.range.0, "{values:?} {axis:?}");
                assert!(!axis.ticks.is_empty(), "{values:?}");
                assert!((0.0..=1.0).contains(&axis.share(7.0)));
            }
        }
        assert_eq!(Axis::sizes("", &[14_336]).ticks.len(), 2);
        assert!(!Axis::sizes("", &[]).ticks.is_empty());
    }

    #[test]
    fn labels_move_apart_and_keep_their_order() {
        let places = apart(&[50.0, 52.0, 49.0, 99.0], 10.0, 0.0, 100.0);
        let mut sorted = places.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9), "{places:?}");
        assert!(sorted[0] >= 0.0 && sorted[3] <= 100.0);
        assert!(places[2] < places[0] && places[0] < places[1]);
    }
}
