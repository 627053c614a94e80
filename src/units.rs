//! Time, sizes and rates as types: integer picoseconds, bytes, bytes per second.
//!
//! Sizes are written in powers of 1024 (`8M`), rates in powers of 1000 (`63 GB/s`), as nccl-tests
//! and every data sheet do.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

use serde::{Deserialize, Serialize};

/// A point in simulated time or a duration, in picoseconds. Holds 213 days.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// Time zero.
    pub const ZERO: Time = Time(0);
    /// The far end of simulated time.
    pub const MAX: Time = Time(u64::MAX);

    /// From integer picoseconds.
    pub const fn from_ps(picoseconds: u64) -> Time {
        Time(picoseconds)
    }

    /// From nanoseconds, rounded to the nearest picosecond; negative values become zero.
    pub fn from_ns(nanoseconds: f64) -> Time {
        Time((nanoseconds * 1e3).round().max(0.0) as u64)
    }

    /// From microseconds, rounded to the nearest picosecond; negative values become zero.
    pub fn from_us(microseconds: f64) -> Time {
        Time((microseconds * 1e6).round().max(0.0) as u64)
    }

    /// Whole picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Nanoseconds.
    pub fn as_ns(self) -> f64 {
        self.0 as f64 * 1e-3
    }

    /// Microseconds.
    pub fn as_us(self) -> f64 {
        self.0 as f64 * 1e-6
    }

    /// Milliseconds.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 * 1e-9
    }

    /// Seconds.
    pub fn as_s(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// The difference, or zero where `other` is later.
    pub fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
}

/// Whether a file or a person can mean so long a time, us: finite, not negative, up to eleven days.
pub fn is_time_us(us: f64) -> bool {
    (0.0..=1e12).contains(&us)
}

/// The times of [`is_time_us`], in words.
pub const TIMES_US: &str = "times are 0 to 1e12 us, eleven days";

/// Whether a file or a person can mean so high a rate, GB/s: a kilobyte to a petabyte a second.
pub fn is_rate_gb_per_s(rate: f64) -> bool {
    (1e-6..=1e6).contains(&rate)
}

/// The rates of [`is_rate_gb_per_s`], in words.
pub const RATES_GB_PER_S: &str = "rates are 1e-6 to 1e6 GB/s";

impl Add for Time {
    type Output = Time;
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

impl Mul<u64> for Time {
    type Output = Time;
    fn mul(self, times: u64) -> Time {
        Time(self.0 * times)
    }
}

impl Div<u64> for Time {
    type Output = Time;
    fn div(self, parts: u64) -> Time {
        Time(self.0 / parts)
    }
}

impl Sum for Time {
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, Add::add)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = self.as_us();
        if us >= 1e6 {
            write!(out, "{:.3} s", us * 1e-6)
        } else if us >= 1e3 {
            write!(out, "{:.3} ms", us * 1e-3)
        } else if us >= 1.0 {
            write!(out, "{us:.2} us")
        } else {
            write!(out, "{:.1} ns", us * 1e3)
        }
    }
}

/// A rate of one direction, in bytes per second.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bandwidth(f64);

impl Bandwidth {
    /// From bytes per second.
    pub const fn from_bytes_per_second(bytes_per_second: f64) -> Bandwidth {
        Bandwidth(bytes_per_second)
    }

    /// From GB/s, 1e9 bytes a second.
    pub fn from_gb_per_s(gb_per_s: f64) -> Bandwidth {
        Bandwidth(gb_per_s * 1e9)
    }

    /// GB/s, 1e9 bytes a second.
    pub fn as_gb_per_s(self) -> f64 {
        self.0 * 1e-9
    }

    /// How long one byte takes, in femtoseconds, the engine's unit of serialization: 62.5 GB/s is
    /// exactly 16,000 fs.
    pub fn femtoseconds_per_byte(self) -> u64 {
        (1e15 / self.0).round() as u64
    }

    /// The rate that moves `bytes` in `time`; zero time gives zero.
    pub fn of(bytes: u64, time: Time) -> Bandwidth {
        if time == Time::ZERO { Bandwidth(0.0) } else { Bandwidth(bytes as f64 / time.as_s()) }
    }
}

impl Mul<f64> for Bandwidth {
    type Output = Bandwidth;
    fn mul(self, factor: f64) -> Bandwidth {
        Bandwidth(self.0 * factor)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gb = self.as_gb_per_s();
        if gb >= 100.0 { write!(out, "{gb:.0} GB/s") } else { write!(out, "{gb:.1} GB/s") }
    }
}

/// Largest size that is read, bytes.
pub const SIZE_MAX: u64 = 1 << 40;

/// Reads a size as nccl-tests does: digits with an optional K, M or G (powers of 1024, either
/// case, a trailing `B` or `iB` allowed).
///
/// # Errors
/// A sentence that names the text and the accepted form.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size: write bytes as 43008, 32K, 8M or 1G");
    let trimmed = text.trim();
    let lower = trimmed.to_ascii_lowercase();
    let body = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b')).unwrap_or(&lower);
    let (digits, shift) = match body.chars().last() {
        Some('k') => (&body[..body.len() - 1], 10),
        Some('m') => (&body[..body.len() - 1], 20),
        Some('g') => (&body[..body.len() - 1], 30),
        _ => (body, 0),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(1 << shift)
        .filter(|&size| size <= SIZE_MAX)
        .ok_or_else(|| format!("`{text}` is too large: sizes go up to 1024G"))
}

/// Writes a size the short way: 8, 32K, 8M where exact, digits otherwise.
pub fn format_size(bytes: u64) -> String {
    for (shift, letter) in [(30, 'G'), (20, 'M'), (10, 'K')] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{letter}", bytes >> shift);
        }
    }
    bytes.to_string()
}

/// Writes an integer with thousands separators, as people read sizes: 43,008.
pub fn format_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Writes numbers of GPUs or ranks as [`parse_gpus`] reads them: `0,1,4`.
pub fn format_gpus(gpus: &[u32]) -> String {
    let numbers: Vec<String> = gpus.iter().map(u32::to_string).collect();
    numbers.join(",")
}

/// Reads numbers of GPUs and ranges of them, such as `0,1,4-7`; nothing is no choice.
///
/// # Errors
/// What is no number or no range, and how to write them.
pub fn parse_gpus(text: &str) -> Result<Vec<u32>, String> {
    let mut gpus = Vec::new();
    let none = text.trim().is_empty();
    for part in text.split(',').map(str::trim).filter(|_| !none) {
        let number = |digits: &str| {
            let wrong = |_| format!("`{part}` is no GPU: write 0,1 or 4-7");
            digits.trim().parse::<u32>().map_err(wrong)
        };
        match part.split_once('-') {
            None => gpus.push(number(part)?),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if first > last || last - first >= 1024 {
                    return Err(format!("`{part}` is no range of GPUs: write 4-7"));
                }
                gpus.extend(first..=last);
            }
        }
    }
    Ok(gpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        assert_eq!(parse_size("43008"), Ok(43_008));
        assert_eq!(parse_size("8M"), Ok(8 << 20));
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert!(parse_size("x32").is_err());
        assert!(parse_size("-1").is_err());
        assert!(parse_size("99999999999G").is_err());
        assert_eq!(format_size(43_008), "42K");
        assert_eq!(format_size(14_337), "14337");
    }

    #[test]
    fn a_byte_at_gen5_x16_takes_16_ps() {
        // 62.5 GB/s: 1e15 fs / 62.5e9 = 16,000 fs.
        assert_eq!(Bandwidth::from_gb_per_s(62.5).femtoseconds_per_byte(), 16_000);
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!(format_thousands(14_336), "14,336");
        assert_eq!(format_thousands(122), "122");
    }
}
