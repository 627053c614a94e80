//! Versions of NCCL.

use std::fmt;

use crate::error::{Error, Result};

/// A version of NCCL.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 2.
    pub major: u32,
    /// Such as 27.
    pub minor: u32,
    /// Such as 3; a version given without it is the latest of its minor.
    pub patch: u32,
}

impl Version {
    /// Stands for the latest patch of a minor version.
    pub const LATEST: u32 = 99;

    /// The newest whose constants are known.
    pub const NEWEST: Version = Version { major: 2, minor: 30, patch: Self::LATEST };

    /// Reads `2.27`, `2.27.3`, `v2.27.3-1`, or NCCL's own number `22703`.
    ///
    /// # Errors
    /// When it is none of these.
    pub fn parse(text: &str) -> Result<Version> {
        let wrong = || {
            Error::request(format!("`{text}` is no version of NCCL"), "write it as 2.27 or 2.27.3")
        };
        let plain = text.trim().trim_start_matches('v');
        let plain = plain.split_once(['-', '+']).map_or(plain, |parts| parts.0);
        let numbers: Vec<u32> = plain
            .split('.')
            .map(|part| part.parse().map_err(|_| wrong()))
            .collect::<Result<_>>()?;
        match numbers[..] {
            [major @ 1..=9, minor @ 0..=98] => Ok(Version { major, minor, patch: Self::LATEST }),
            [major @ 1..=9, minor @ 0..=98, patch @ 0..=98] => Ok(Version { major, minor, patch }),
            // NCCL_VERSION_CODE: major x 10,000 + minor x 100 + patch since 2.9.
            [code @ 20_900..=99_999] => {
                Ok(Version { major: code / 10_000, minor: code / 100 % 100, patch: code % 100 })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.major, self.minor)?;
        if self.patch == Self::LATEST { Ok(()) } else { write!(out, ".{}", self.patch) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_ordered() {
        let version = |text: &str| Version::parse(text).expect("a version");
        assert_eq!(version("22703"), version("2.27.3"));
        assert_eq!(version("v2.30.7-1").to_string(), "2.30.7");
        assert!(version("2.27") > version("2.27.7") && version("2.27") < version("2.28.0"));
        for wrong in ["", "2", "2.x", "2.27.3.1", "two"] {
            assert!(Version::parse(wrong).is_err(), "{wrong}");
        }
    }
}
