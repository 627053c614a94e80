//! Lines of a text that a program printed: without colors and prefixes, each with its place.

use std::borrow::Cow;

use crate::error::{Problem, Span};

/// One line.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// From 1.
    pub number: usize,
    /// The text without escape sequences and without what follows the end.
    pub text: Cow<'a, str>,
    /// Where it stands, as it was.
    pub span: Span,
}

/// All lines of a text, with either line end.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    text.split('\n').enumerate().map(move |(index, line)| {
        let span = Span { start, end: start + line.trim_end_matches('\r').len() };
        start += line.len() + 1;
        Line { number: index + 1, text: plain(line.trim_end_matches('\r')), span }
    })
}

/// A line without escape sequences of terminals.
pub fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            out.push(c);
        } else if rest.peek() == Some(&'[') {
            rest.next();
            // Parameters, then one letter.
            while rest.next_if(|c| !('@'..='~').contains(c)).is_some() {}
            rest.next();
        }
    }
    Cow::Owned(out)
}

/// A problem with a line as a whole.
pub fn problem(line: &Line, message: impl Into<String>, help: impl Into<String>) -> Problem {
    let mut problem = Problem::new(message, format!("line {}", line.number)).help(help);
    problem.span = Some(line.span.clone());
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_colors_and_keep_their_places() {
        let text = "a\r\n\u{1b}[4m\tGPU0\u{1b}[0m b\n\u{1b}";
        let all: Vec<Line> = lines(text).collect();
        let texts: Vec<&str> = all.iter().map(|line| line.text.as_ref()).collect();
        assert_eq!(texts, ["a", "\tGPU0 b", ""]);
        assert_eq!(all.iter().map(|line| line.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(&text[all[0].span.start..all[0].span.end], "a");
        assert_eq!(all[2].span, Span { start: text.len() - 1, end: text.len() });
    }
}
