//! Files of rows while they are read and written: a line has a limit, and what stands in a file is gone
//! on with, never cut away.

use std::fs::{self, File};
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use super::files::{cannot, followed, owned};
use crate::error::{Error, Result};

/// Longest line of a file of rows, bytes: a row may quote the edits of its plan, which has 4 MiB at most.
const LINE_MAX: u64 = 16 << 20;

/// The next line with its end, and how many bytes that are; a longer one than any row breaks off without
/// its end.
pub(super) fn next_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    line.clear();
    reader.take(LINE_MAX).read_until(b'\n', line)
}

/// Whether [`next_line`] broke off.
pub(super) fn is_cut(line: &[u8]) -> bool {
    line.len() as u64 == LINE_MAX && line.last() != Some(&b'\n')
}

/// What is said of a line that [`next_line`] broke off.
pub(super) fn too_long() -> String {
    format!("has more than {} MiB without an end", LINE_MAX >> 20)
}

/// Gives what is finished its name; a link keeps its own.
pub(super) fn rename(part: &str, out: &str) -> io::Result<()> {
    fs::rename(part, followed(Path::new(out)))
}

/// A file that holds something else than what would be written.
pub(super) fn foreign(part: &str) -> Error {
    Error::request(
        format!("{part} is there, and holds something else than this command writes"),
        "it may be what a run has done that was stopped: move it away, or name another --out",
    )
}

/// A file that is written from its beginning, whose bytes that are there must be those that are written.
pub(super) struct Onward {
    file: File,
    /// Bytes there that were not written again yet.
    left: u64,
    /// Nothing was there.
    fresh: bool,
}

impl Onward {
    /// Takes a file, there or not.
    ///
    /// # Errors
    /// As [`owned`].
    pub(super) fn open(part: &str) -> Result<Onward> {
        let file = owned(part)?;
        let left = file.metadata().map_err(|error| cannot("write", part, &error))?.len();
        Ok(Onward { file, left, fresh: left == 0 })
    }

    /// Whether nothing was there.
    pub(super) fn is_fresh(&self) -> bool {
        self.fresh
    }

    /// Ends it on the disk.
    pub(super) fn finish(self) -> io::Result<()> {
        if self.left > 0 { Err(io::ErrorKind::AlreadyExists.into()) } else { self.file.sync_all() }
    }

    /// Why writing failed.
    pub(super) fn told(part: &str, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::AlreadyExists => foreign(part),
            _ => cannot("write", part, error),
        }
    }
}

impl Write for Onward {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.left == 0 {
            return self.file.write(bytes);
        }
        let length = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let mut there = vec![0; length];
        self.file.read_exact(&mut there)?;
        if there != bytes[..length] {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.left -= length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
