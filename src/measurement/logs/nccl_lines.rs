//! What lines of NCCL's own say, in logs of benchmarks and of engines alike.

/// The number of `NCCL version 2.27.7+cuda12.9`.
pub fn version(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("NCCL version ")?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|number| number.contains('.'))
}

/// Name and value of `NCCL_ALGO set by environment to Ring.`; of variables of NCCL only.
pub fn setting(line: &str) -> Option<(&str, &str)> {
    let (before, value) = line.split_once(" set by environment to ")?;
    let name = before.split_whitespace().last().filter(|name| name.starts_with("NCCL_"))?;
    let value = value.trim().trim_end_matches('.');
    Some((name, value)).filter(|_| !value.is_empty())
}

/// Prefix (host, process, device) and what is said, of a line of `NCCL_DEBUG=INFO`.
pub fn said(line: &str) -> Option<(&str, &str)> {
    line.split_once("NCCL INFO ").map(|(prefix, said)| (prefix, said.trim()))
}

/// What `NCCL WARN` warns of.
pub fn warning(line: &str) -> Option<&str> {
    line.split_once("NCCL WARN ").map(|(_, warning)| warning.trim())
}

/// Whether NCCL wrote into a text.
pub fn in_text(text: &str) -> bool {
    text.contains("NCCL INFO") || text.contains("NCCL WARN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_they_say() {
        assert_eq!(version("NCCL version 2.27.7+cuda12.9"), Some("2.27.7"));
        assert_eq!(version("NCCL version unknown"), None);
        let line = "box:7:9 [0] NCCL INFO NCCL_ALGO set by environment to Ring.";
        assert_eq!(setting(line), Some(("NCCL_ALGO", "Ring")));
        assert_eq!(said(line).map(|parts| parts.0), Some("box:7:9 [0] "));
        assert_eq!(setting("PATH set by environment to x"), None);
        assert_eq!(warning("x NCCL WARN Call failed "), Some("Call failed"));
    }
}
