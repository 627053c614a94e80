//! Files that commands write: ordinary ones, none that is read, nor another that is written.

use std::fs;
use std::path::PathBuf;

use crate::error::{Error, Result};

/// Flags before a file that is written.
const WRITTEN: [&str; 7] =
    ["--out", "-o", "--trace", "--plot", "--write-tuner", "--write-graph", "--write-topo"];

/// Refuses a command line that names a written file twice.
///
/// # Errors
/// [`Error::Request`] with the file.
pub(super) fn named_once(words: impl Iterator<Item = String>) -> Result<()> {
    let words: Vec<String> = words.skip(1).flat_map(split).collect();
    for pair in words.windows(2).filter(|pair| WRITTEN.contains(&pair[0].as_str())) {
        let target = place(&pair[1]);
        // A device or a pipe takes what several write.
        let special = fs::metadata(&target).is_ok_and(|meta| !meta.is_file());
        if !special && words.iter().filter(|word| place(word) == target).count() > 1 {
            let message = format!("{} is written, and named a second time", pair[1]);
            return Err(Error::request(message, "write to a file of another name"));
        }
    }
    Ok(())
}

/// A file of rows is an ordinary one: what a device gives has no end.
pub(super) fn ordinary(file: &str) -> Result<()> {
    if fs::metadata(file).is_ok_and(|found| !found.is_file()) {
        let help = "name a file, such as rows.jsonl";
        return Err(Error::request(format!("{file} is no ordinary file"), help));
    }
    Ok(())
}

/// That a file of rows cannot be read or written: what was done before stands.
pub(super) fn cannot(what: &str, file: &str, error: &std::io::Error) -> Error {
    Error::request(
        format!("cannot {what} {file}: {error}"),
        "mend the cause (directory, permissions, space) and run the same command: it goes on",
    )
}

/// `--flag=value` as its two words.
fn split(word: String) -> Vec<String> {
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
        named_once(format!("- {line}").split(' ').map(str::to_owned)).is_err()
    }

    #[test]
    fn no_file_is_written_and_named_again() {
        assert!(refused("--topo m.json --out m.json"));
        assert!(refused("--topo=./Cargo.toml --out=Cargo.toml"));
        assert!(refused("sweep merge --out s0 s0 s1"));
        assert!(refused("--what-if @e.json -o e.json"));
        assert!(refused("--json --out a --trace a"));
        assert!(!refused("--topo m.json --out n.json"));
        assert!(!refused("--out /dev/null --trace /dev/null"));
        assert!(!refused("plot time --topo m.json --topo m.json"));
    }
}
