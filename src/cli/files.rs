//! Files that commands write: ordinary ones that can be written, none that is read, nor another that is
//! written.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use super::arguments::Arguments;
use super::output::cannot_write;
use crate::error::{Error, Result};
use crate::input::embedded;

/// Flags before a file that is written.
const WRITTEN: [&str; 7] =
    ["--out", "-o", "--trace", "--plot", "--write-tuner", "--write-graph", "--write-topo"];

/// Flags before a name that no folder stands for, though one may be called like it.
const NAMES: [&str; 6] = ["--topo", "--scenario", "--model", "--machine", "--engine", "--algo"];
/// What is read of a copy of `/sys` and `/proc`.
const ROOT: [&str; 2] = ["sys", "proc"];
/// Endings of what is only ever written: such a file in a folder that is read is no part of it.
const SHOWN: [&str; 2] = ["svg", "html"];
/// A chain of links is no longer.
const LINKS_MAX: usize = 40;

/// Refuses a command line that names a written file twice, writes over a file of a folder that it reads,
/// names one that cannot be written, or standard input twice: before the work, not after it.
///
/// # Errors
/// [`Error::Request`] with the file.
pub(super) fn checked(words: impl Iterator<Item = String>) -> Result<()> {
    let words: Vec<String> = words.skip(1).flat_map(split).collect();
    if words.iter().filter(|word| *word == "-").count() > 1 {
        let help = "write one of them to a file and name that";
        return Err(Error::request("standard input is named twice, and can be read once", help));
    }
    let sweep = words.iter().any(|word| word == "sweep");
    let gallery = words.windows(2).any(|pair| pair == ["plot", "gallery"]);
    for at in 1..words.len() {
        let file = words[at].as_str();
        if !WRITTEN.contains(&words[at - 1].as_str()) {
            continue;
        }
        let target = place(file);
        // A device or a pipe takes what several write.
        if fs::metadata(&target).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            continue;
        }
        let mut written = vec![(file.to_owned(), target.clone())];
        if sweep {
            let part = part_of(file);
            written.push((part.clone(), place(&part)));
        }
        for (name, target) in &written {
            let mut others = words.iter().enumerate().filter(|(other, _)| *other != at);
            if others.any(|(_, word)| names(word, target)) {
                let message = format!("{name} is written, and named a second time");
                return Err(Error::request(message, "write to a file of another name"));
            }
        }
        if let Some(folder) = folder_of(&words, &target) {
            let message = format!("{file} is there, and a part of {folder}, which is read");
            return Err(Error::request(message, "write to a new file, or remove this one before"));
        }
        if gallery && target.is_dir() {
            continue;
        }
        if target.is_dir() {
            return Err(cannot_write(file, "it is a directory"));
        }
        if target.is_symlink() {
            return Err(cannot_write(file, "it is a link that leads back to itself"));
        }
        room_beside(&target).map_err(|error| cannot_write(file, error))?;
    }
    Ok(())
}

/// Whether a word names a file: by itself, or as a part of a list or a value in it.
fn names(word: &str, target: &Path) -> bool {
    let parts = word.split([' ', '\t', '\n', ';', ',']);
    let mut parts = parts.flat_map(|part| [Some(part), part.split_once('=').map(|pair| pair.1)]);
    // What is not there yet cannot be read: a value that is called like it is another thing.
    place(word) == target
        || target.exists() && parts.any(|part| part.is_some_and(|part| place(part) == target))
}

/// The folder that is read and has this file, if it is there.
fn folder_of<'a>(words: &'a [String], target: &Path) -> Option<&'a str> {
    let ending = target.extension().and_then(|ending| ending.to_str()).unwrap_or("");
    if !target.is_file() || SHOWN.contains(&ending) {
        return None;
    }
    let program = Arguments::command();
    let mut command = Some(&program);
    // Words of commands are none of files.
    let first = words.iter().position(|word| {
        command = command.and_then(|command| command.find_subcommand(word));
        command.is_none()
    })?;
    let has = |folder: &Path| {
        folder.is_dir() && fs::canonicalize(folder).is_ok_and(|folder| target.starts_with(folder))
    };
    let reads = |at: &usize| {
        let flag = at.checked_sub(1).map_or("", |before| words[before].as_str());
        let path = Path::new(&words[*at]);
        if flag == "--root" {
            return ROOT.iter().any(|part| has(&path.join(part)));
        }
        let other = WRITTEN.contains(&flag) || NAMES.contains(&flag);
        !other && embedded::find(&words[*at]).is_none() && has(path)
    };
    (first..words.len()).find(reads).map(|at| words[at].as_str())
}

/// Where a file is, or would be made: links are followed, also to what is not there yet.
pub(super) fn followed(file: &Path) -> PathBuf {
    let mut path = file.to_owned();
    for _ in 0..LINKS_MAX {
        if let Ok(found) = fs::canonicalize(&path) {
            return found;
        }
        let Ok(link) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    let Some((folder, name)) = path.parent().zip(path.file_name()) else { return path };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    fs::canonicalize(folder).map_or(path.clone(), |folder| folder.join(name))
}

/// Where the rows of a file stand until it is finished. A link is followed: its target is what is made.
pub(super) fn part_of(file: &str) -> String {
    let is_link = fs::symlink_metadata(file).is_ok_and(|found| found.is_symlink());
    let target =
        if is_link { followed(Path::new(file)).display().to_string() } else { file.into() };
    format!("{target}.part")
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
    let help = match what {
        "read" => "check the directory and the permissions",
        _ => "mend the cause (directory, permissions, space) and run the same command: it goes on",
    };
    Error::request(format!("cannot {what} {file}: {error}"), help)
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
    followed(Path::new(word))
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
        assert!(refused("sweep run plan.part --out plan") && refused("sweep csv -o a a.part"));
        assert!(!refused("topo show plan.part --out plan"));
        assert!(!refused("--topo m.json --out n.json"));
        assert!(!refused("--out /dev/null --trace /dev/null"));
        assert!(!refused("plot time --topo m.json --topo m.json"));
        // A gallery fills a folder.
        assert!(!refused("plot gallery --out src") && refused("plot time --out src"));
        // A value in a word, and a file of a folder.
        assert!(refused("choose --nccl-env NCCL_TOPO_FILE=Cargo.toml --write-topo ./Cargo.toml"));
        assert!(refused("choose --nccl-env=A=b;B=Cargo.toml --write-tuner Cargo.toml"));
        assert!(refused("plan --with @Cargo.toml,3 --out Cargo.toml"));
        // It is not there: it is no file that is read.
        assert!(!refused("--beside 4-7=ring --out ring"));
        assert!(refused("check --measured src --plot src/lib.rs"));
        assert!(refused("replay ./src --plot src/cli/mod.rs"));
        assert!(!refused("replay src --plot src/new.csv"));
        assert!(!refused("--topo src --out src/lib.rs"));
        // Of a root only what Linux shows is read.
        assert!(!refused("here --root . -o Cargo.toml"));
        assert!(!refused("check --measured plots --plot plots/latency-rtxpro6000x8.svg"));
    }
}
