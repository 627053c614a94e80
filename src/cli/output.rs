//! The one way out: standard output and standard error, colors where wanted, and the exit code.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

use super::files::followed;
use crate::error::Error;
use crate::input::render;

/// How it went, when it went.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered.
    Done,
    /// Answered, and a check is outside its tolerance.
    OutsideTolerance,
    /// Stopped by the person or the batch system; what was done is kept.
    Stopped,
}

/// Why it did not.
#[derive(Debug)]
pub enum Failure {
    /// An input or a request.
    Request(Error),
    /// The output.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Request(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

/// A value as JSON for people and programs, with its last newline.
pub(super) fn pretty<T: Serialize>(value: &T) -> std::result::Result<String, Error> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(|error| Error::request(format!("cannot write it: {error}"), ""))? + "\n")
}

/// Standard output and standard error.
pub struct Output {
    out: AutoStream<io::Stdout>,
    err: AutoStream<io::Stderr>,
}

impl Output {
    /// With or without colors.
    pub fn new(color: ColorChoice) -> Output {
        Output {
            out: AutoStream::new(io::stdout(), color),
            err: AutoStream::new(io::stderr(), color),
        }
    }

    /// Writes a text.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn text(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    /// Writes a note beside the answer, to standard error.
    ///
    /// # Errors
    /// Those of standard error.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.err, "note: {text}")
    }

    /// Writes a text whose first row is a title, or JSON, which has none, or writes either to a file
    /// in one step: a file of that name is never half written.
    ///
    /// # Errors
    /// Those of the file system or of standard output.
    pub fn titled(&mut self, text: &str, file: Option<&str>) -> Result<(), Failure> {
        if let Some(file) = file {
            return write_file(file, text.as_bytes());
        }
        let json = text.starts_with(['{', '[']);
        let title = if json { 0 } else { text.find('\n').unwrap_or(0) };
        let (title, rest) = text.split_at(title);
        let styled = format!("\x1b[1m{title}\x1b[0m{rest}");
        // Without colors the stream drops the escape sequences again.
        Ok(self.text(if title.is_empty() { text } else { &styled })?)
    }

    /// Writes a text to standard output or to a file.
    ///
    /// # Errors
    /// As [`Output::titled`].
    pub fn plain(&mut self, text: &str, file: Option<&str>) -> Result<(), Failure> {
        match file {
            Some(file) => write_file(file, text.as_bytes()),
            None => Ok(self.text(text)?),
        }
    }

    /// Writes bytes to a file, as [`Output::titled`] does a text.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn file(&mut self, file: &str, bytes: &[u8]) -> Result<(), Failure> {
        write_file(file, bytes)
    }

    /// Flushes, tells what went wrong, and names the exit code. A closed pipe is no failure: whoever
    /// read has seen enough.
    pub fn finish(mut self, outcome: Result<Outcome, Failure>) -> ExitCode {
        let outcome = outcome.and_then(|done| {
            self.out.flush()?;
            Ok(done)
        });
        match outcome {
            Ok(Outcome::Done) => ExitCode::SUCCESS,
            Ok(Outcome::OutsideTolerance) => ExitCode::from(1),
            Ok(Outcome::Stopped) => ExitCode::from(130),
            Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => {
                ExitCode::SUCCESS
            }
            Err(failure) => {
                let error = match failure {
                    Failure::Request(error) => error,
                    Failure::Output(error) => Error::request(
                        format!("cannot write the answer: {error}"),
                        "is the disk full, or the output closed?",
                    ),
                };
                // Nobody is left to be told when standard error is closed too.
                let _ = self.err.write_all(render(&error, true).as_bytes());
                ExitCode::from(2)
            }
        }
    }
}

/// That a file cannot be written.
pub(super) fn cannot_write(file: &str, reason: impl std::fmt::Display) -> Error {
    let help = "check the directory, its permissions and the space left";
    Error::request(format!("cannot write {file}: {reason}"), help)
}

fn write_file(file: &str, bytes: &[u8]) -> Result<(), Failure> {
    let cannot = |error: io::Error| Failure::Request(cannot_write(file, error));
    // A link is followed; what is no regular file (a device, a pipe) is written as it is.
    let target = followed(Path::new(file));
    let path = target.as_path();
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|meta| !meta.is_file()) {
        return fs::OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut special| special.write_all(bytes))
            .map_err(cannot);
    }
    let Some(name) = path.file_name() else {
        return Err(cannot(io::Error::from(ErrorKind::InvalidInput)));
    };
    let mut temporary = name.to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(temporary);
    let keep_mode = || match &before {
        Some(meta) => fs::set_permissions(&temporary, meta.permissions()),
        None => Ok(()),
    };
    let written = fs::write(&temporary, bytes)
        .and_then(|()| keep_mode())
        .and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // The reason matters more than a leftover that may never have been made.
        let _ = fs::remove_file(&temporary);
        cannot(error)
    })
}
