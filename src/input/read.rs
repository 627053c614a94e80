//! Files and standard input -> text, with a limit on the size and a reason a person understands.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::utf16;
use crate::error::{Error, Result};

/// Reads a UTF-8 text of at most `limit` bytes; `-` is standard input. `small` says in a sentence
/// how small such files are, for the one who passed a large one.
///
/// # Errors
/// [`Error::Read`] with the reason and what to do.
pub fn read_text(file: &str, limit: u64, small: &str) -> Result<String> {
    let bytes = if file == "-" {
        read_limited(io::stdin().lock(), limit)
    } else {
        read_file(Path::new(file), limit)
    };
    let bytes = bytes.map_err(|failure| read_error(file, &failure, small))?;
    decode(file, bytes)
}

/// Opens a file, or standard input by `-`, that is read as a stream.
///
/// # Errors
/// As [`read_text`], but for the size.
pub(super) fn open(file: &str) -> Result<Box<dyn Read>> {
    let failed = |failure: Failure| read_error(file, &failure, "");
    if file == "-" {
        return Ok(Box::new(io::stdin()));
    }
    let opened = File::open(file).map_err(|error| failed(Failure::Io(error)))?;
    match opened.metadata() {
        Ok(found) if found.is_dir() => Err(failed(Failure::Directory)),
        _ => Ok(Box::new(opened)),
    }
}

/// Why bytes could not be had.
enum Failure {
    Io(io::Error),
    Directory,
    TooLarge { size: Option<u64>, limit: u64 },
}

fn read_file(path: &Path, limit: u64) -> std::result::Result<Vec<u8>, Failure> {
    let metadata = path.metadata().map_err(Failure::Io)?;
    if metadata.is_dir() {
        return Err(Failure::Directory);
    }
    if metadata.len() > limit {
        let size = Some(metadata.len());
        return Err(Failure::TooLarge { size, limit });
    }
    read_limited(File::open(path).map_err(Failure::Io)?, limit)
}

/// Pipes and devices tell no size beforehand, so one byte more than allowed is asked for.
fn read_limited(source: impl Read, limit: u64) -> std::result::Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    source.take(limit + 1).read_to_end(&mut bytes).map_err(Failure::Io)?;
    if bytes.len() as u64 > limit {
        return Err(Failure::TooLarge { size: None, limit });
    }
    Ok(bytes)
}

/// UTF-8's byte order mark, which some editors and shells put first; JSON does not allow it.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// How many bytes of a text's start are no text: those of a byte order mark.
pub(super) fn mark(start: &[u8]) -> usize {
    if start.starts_with(&MARK) { MARK.len() } else { 0 }
}

fn decode(file: &str, mut bytes: Vec<u8>) -> Result<String> {
    if let Some((order, before)) = utf16::order(&bytes) {
        return utf16::exact(&bytes[before..], order).ok_or_else(|| Error::Read {
            file: file.to_owned(),
            reason: "it begins as UTF-16 text and is none".to_owned(),
            help: "is it the right file, and whole?".to_owned(),
        });
    }
    bytes.drain(..mark(&bytes));
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(wrong) => {
            let place = wrong.utf8_error().valid_up_to();
            let line = wrong.as_bytes()[..place].iter().filter(|&&byte| byte == b'\n').count() + 1;
            Err(Error::Read {
                file: file.to_owned(),
                reason: format!("it is not UTF-8 text: byte {place} (line {line}) is invalid"),
                help: "is it the right file? a text saved in another encoding can be converted \
                       with `iconv -t UTF-8`"
                    .to_owned(),
            })
        }
    }
}

fn read_error(file: &str, failure: &Failure, small: &str) -> Error {
    let (reason, help) = match failure {
        Failure::Io(error) => io_reason(error),
        Failure::Directory => ("it is a directory".to_owned(), "name a file inside it".to_owned()),
        Failure::TooLarge { size, limit } => {
            let size = size.map_or_else(|| "more".to_owned(), mib);
            (format!("it is too large: {size}, the limit is {}", mib(*limit)), small.to_owned())
        }
    };
    Error::Read { file: file.to_owned(), reason, help }
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn io_reason(error: &io::Error) -> (String, String) {
    let (reason, help) = match error.kind() {
        io::ErrorKind::NotFound => ("no such file", "check the spelling and the directory"),
        io::ErrorKind::PermissionDenied => {
            ("no permission to read it", "check with `ls -l` who may read it")
        }
        io::ErrorKind::InvalidInput => ("the name is not a valid file name", ""),
        _ => return (error.to_string(), String::new()),
    };
    (reason.to_owned(), help.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(error: &Error) -> String {
        match error {
            Error::Read { reason, help, .. } => format!("{reason}; {help}"),
            other => other.to_string(),
        }
    }

    #[test]
    fn no_permission_is_said_plainly() {
        let denied = Failure::Io(io::Error::from(io::ErrorKind::PermissionDenied));
        let error = read_error("machine.json", &denied, "");
        assert!(told(&error).starts_with("no permission to read it; check with `ls -l`"));
    }

    #[test]
    fn an_endless_pipe_is_cut_at_the_limit() {
        let failure = read_limited(io::repeat(b'{'), 1 << 20).unwrap_err();
        let error = read_error("-", &failure, "files are small");
        assert_eq!(told(&error), "it is too large: more, the limit is 1.0 MiB; files are small");
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        let text = decode("x", b"\xef\xbb\xbf{}".to_vec()).expect("valid");
        assert_eq!(text, "{}");
    }

    #[test]
    fn utf_16_is_text_and_half_of_it_is_told() {
        for bytes in [&b"\xff\xfeG\0P\0"[..], b"\xfe\xff\0G\0P", b"G\0P\0", b"\0G\0P"] {
            assert_eq!(decode("x", bytes.to_vec()).expect("valid"), "GP");
        }
        let error = decode("x", b"\xff\xfeG\0P".to_vec()).unwrap_err();
        assert!(told(&error).contains("UTF-16 text and is none"), "{}", told(&error));
    }

    #[test]
    fn other_encodings_are_named_with_the_line() {
        let error = decode("x", b"{\n\"a\": \"\xe9\"}".to_vec()).unwrap_err();
        assert!(told(&error).contains("byte 8 (line 2) is invalid"), "{}", told(&error));
    }
}
