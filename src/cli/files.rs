//! Files that commands write: ordinary ones that can be written, none that is read, nor another that is
//! written.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::output::cannot_write;
use crate::error::{Error, Result};

/// Flags before a file that is written.
const WRITTEN: [&str; 7] =
    ["--out", "-o", "--trace", "--plot", "--write-tuner", "--write-graph", "--write-topo"];

/// Refuses a command line that names a written file twice, one that cannot be written, or standard input
/// twice: before the work, not after it.
///
/// # Errors
/// [`Error::Request`] with the file.
pub(super) fn checked(words: impl Iterator<Item = String>) -> Result<()> {
    let words: Vec<String> = words.skip(1).flat_map(split).collect();
    if words.iter().filter(|word| *word == "-").count() > 1 {
        let help = "write one of them to a file and name that";
        return Err(Error::request("standard input is named twice, and can be read once", help));
    }
    for pair in words.windows(2).filter(|pair| WRITTEN.contains(&pair[0].as_str())) {
        let target = place(&pair[1]);
        // A device or a pipe takes what several write.
        if fs::metadata(&target).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            continue;
        }
        if words.iter().filter(|word| place(word) == target).count() > 1 {
            let message = format!("{} is written, and named a second time", pair[1]);
            return Err(Error::request(message, "write to a file of another name"));
        }
        if target.is_dir() {
            return Err(cannot_write(&pair[1], "it is a directory"));
        }
        room_beside(&target).map_err(|error| cannot_write(&pair[1], error))?;
    }
    Ok(())
}

/// That a file can be made beside this one, as every writer does before it renames it.
fn room_beside(target: &Path) -> io::Result<()> {
    let trial = target.with_file_name(format!(".collsim-{}.tmp", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&trial)?;
    fs::remove_file(&trial)
}

/// A file of rows is an ordinary one: what a device gives has no end.
pub(super) fn ordinary(file: &str) -> Result<()> {
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        let help = "name a file, such as rows.jsonl";
        return Err(Error::request(format!("{file} is no ordinary file"), help));
    }
    Ok(())
}

/// A file of rows that this process alone writes, as it is; a second run is told of the first.
///
/// # Errors
/// [`Error::Request`] when it cannot be opened, or another run has it.
pub(super) fn owned(file: &str) -> Result<File> {
    ordinary(file)?;
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(file);
    let opened = opened.map_err(|error| cannot("write", file, &error))?;
    match opened.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::request(
            format!("another run is writing {file}"),
            "wait for its end, or name another --out",
        )),
        // A file system without locks is as good as before there were any.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(opened),
    }
}

/// That a file of rows cannot be read or written: what was done before stands.
pub(super) fn cannot(what: &str, file: &str, error: &io::Error) -> Error {
    Error::request(
        format!("cannot {what} {file}: {error}"),
        "mend the cause (directory, permissions, space) and run the same command: it goes on",
    )
}

/// `--flag=value` and `-oVALUE` as their two words.
fn split(word: String) -> Vec<String> {
    if let Some(value) = word.strip_prefix("-o").filter(|value| !value.is_empty()) {
        return vec!["-o".to_owned(), value.strip_prefix('=').unwrap_or(value).to_owned()];
    }
    match word.split_once('=') {
        Some((flag, value)) if flag.starts_with('-') => vec![flag.to_owned(), value.to_owned()],
        _ => vec![word],
    }
}

/// Where a word leads, if it is a file: links are followed.
fn place(word: &str) -> PathBuf {
    let word = word.strip_prefix('@').unwrap_or(word);
    fs::canonicalize(word).unwrap_or_else(|_| PathBuf::from(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &str) -> bool {
        checked(format!("- {line}").split(' ').map(str::to_owned)).is_err()
    }

    #[test]
    fn no_file_is_written_and_named_again() {
        assert!(refused("--topo m.json --out m.json"));
        assert!(refused("--topo=./Cargo.toml --out=Cargo.toml"));
        assert!(refused("sweep merge --out s0 s0 s1"));
        assert!(refused("--what-if @e.json -o e.json"));
        assert!(refused("--json --out a --trace a"));
        assert!(refused("--topo Cargo.toml -oCargo.toml"));
        assert!(refused("trace show - -") && refused("topo show - --assume -"));
        assert!(!refused("--topo m.json --out n.json"));
        assert!(!refused("--out /dev/null --trace /dev/null"));
        assert!(!refused("plot time --topo m.json --topo m.json"));
    }
}
