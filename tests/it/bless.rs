//! Files that the code can write itself: compared, or rewritten with `COLLSIM_BLESS=1`.

/// Whether files are rewritten.
#[expect(clippy::disallowed_methods, reason = "tests are told so by their environment")]
pub(crate) fn blessing() -> bool {
    std::env::var("COLLSIM_BLESS").is_ok()
}

/// The text of a file of the tree, empty when there is none.
pub(crate) fn file_text(file: &str) -> String {
    let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Compares a text with a file of the tree, or rewrites the file.
pub(crate) fn same_as_file(file: &str, text: &str) {
    if blessing() {
        let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, text).expect("writable");
    }
    let kept = file_text(file);
    assert!(kept == text, "{file} is out of date: run the tests with COLLSIM_BLESS=1");
}
