//! A row on the terminal while something long runs; nothing when nobody looks.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts what is done of a total.
pub(super) struct Progress {
    /// Where it is known beforehand.
    total: Option<usize>,
    done: AtomicUsize,
    started: Instant,
    shown: bool,
    /// Minutes of which a log has been told.
    minutes: AtomicU64,
}

impl Progress {
    /// Of so many parts.
    pub(super) fn new(total: usize) -> Progress {
        Progress::started(Some(total))
    }

    /// Of parts whose number nobody knows beforehand.
    pub(super) fn counting() -> Progress {
        Progress::started(None)
    }

    #[expect(clippy::disallowed_methods, reason = "how long to wait is no result")]
    fn started(total: Option<usize>) -> Progress {
        let (shown, started) = (io::stderr().is_terminal(), Instant::now());
        let (done, minutes) = (AtomicUsize::new(0), AtomicU64::new(0));
        Progress { total, done, started, shown, minutes }
    }

    /// Time since it began.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// One more is done; told on a terminal once the whole has taken a second, in a log once a minute.
    pub(super) fn step(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let seconds = self.started.elapsed().as_secs_f64();
        // A progress row that cannot be written is no reason to stop.
        if self.shown && seconds >= 1.0 {
            let _ = write!(io::stderr(), "\r{:60}", self.text(done, seconds));
        } else if !self.shown {
            let minute = (seconds / 60.0) as u64;
            if self.minutes.fetch_max(minute, Ordering::Relaxed) < minute {
                let _ = writeln!(io::stderr(), "{}", self.text(done, seconds));
            }
        }
    }

    /// How much is done, how fast, and how long the rest takes at that rate.
    fn text(&self, done: usize, seconds: f64) -> String {
        let rate = done as f64 / seconds;
        let Some(total) = self.total else {
            return format!("{done} simulations, {rate:.1}/s");
        };
        let left = (total.saturating_sub(done) as f64 / rate).ceil() as u64;
        let (minutes, seconds) = (left / 60, left % 60);
        format!("{done}/{total} cases, {rate:.1}/s, {minutes}:{seconds:02} left")
    }

    /// Wipes the row.
    pub(super) fn finish(&self) {
        if self.shown && self.started.elapsed().as_secs() >= 1 {
            let _ = write!(io::stderr(), "\r{:60}\r", "");
        }
    }
}

/// Tells how much of a large file was read.
pub(super) struct Bytes<'a> {
    file: &'a str,
    told: AtomicU64,
    shown: bool,
}

/// A row for every so many bytes.
const TOLD_EVERY: u64 = 64 << 20;

impl<'a> Bytes<'a> {
    /// Of this file.
    pub(super) fn new(file: &'a str) -> Bytes<'a> {
        Bytes { file, told: AtomicU64::new(0), shown: io::stderr().is_terminal() }
    }

    /// So many bytes were read.
    pub(super) fn at(&self, bytes: u64) {
        if self.shown && bytes >= self.told.load(Ordering::Relaxed) + TOLD_EVERY {
            self.told.store(bytes, Ordering::Relaxed);
            // A progress row that cannot be written is no reason to stop.
            let _ = write!(io::stderr(), "\r{}: {} MiB read", self.file, bytes >> 20);
        }
    }

    /// Wipes the row.
    pub(super) fn finish(self) {
        if self.told.load(Ordering::Relaxed) > 0 {
            let _ = write!(io::stderr(), "\r{:60}\r", "");
        }
    }
}
