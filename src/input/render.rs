//! An [`Error`] as people read it: what is wrong, a picture of the place, what to do.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::error::{Error, Problem, Span};

/// Problems drawn; of more only the number is told.
const DRAWN: usize = 8;
/// Columns of a line shown around the place.
const COLUMNS: usize = 100;
/// Characters of a message or an advice shown.
const MESSAGE: usize = 1000;

/// Draws an error, with terminal colors when `color` is set. Ends with a line break.
pub fn render(error: &Error, color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() }.term_width(COLUMNS);
    let mut out = match error {
        Error::Input { file, text, problems } => input(&renderer, file, text, problems),
        Error::Read { help, .. } | Error::Request { help, .. } => {
            picture(&renderer, &error.to_string(), None, help)
        }
        Error::Stuck(_) => picture(&renderer, &error.to_string(), None, ""),
    };
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out
}

fn input(renderer: &Renderer, file: &str, text: &str, problems: &[Problem]) -> String {
    let mut pictures: Vec<String> = problems
        .iter()
        .take(DRAWN)
        .map(|problem| {
            let place = problem.span.as_ref().map(|span| Place::new(file, text, span));
            let whole_file = format!("{file}: {}", problem.message);
            let message = place.as_ref().map_or(whole_file.as_str(), |_| &problem.message);
            picture(renderer, message, place.as_ref(), &problem.help)
        })
        .collect();
    if problems.len() > DRAWN {
        pictures.push(format!("and {} more", problems.len() - DRAWN));
    }
    pictures.join("\n\n")
}

fn picture(renderer: &Renderer, message: &str, place: Option<&Place>, help: &str) -> String {
    let mut group = Group::with_title(Level::ERROR.primary_title(harmless(message)));
    let Some(place) = place else {
        // Two reports, for the renderer joins groups by a bar that belongs to a picture.
        let mut out = renderer.render(&[group]);
        if !help.is_empty() {
            let help = Level::HELP.primary_title(harmless(help));
            out = format!("{out}\n{}", renderer.render(&[Group::with_title(help)]));
        }
        return out;
    };
    let mark = AnnotationKind::Primary.span(place.mark.start..place.mark.end);
    group = group.element(
        Snippet::source(place.shown.as_str())
            .path(harmless(&place.file))
            .line_start(place.line)
            .annotation(mark),
    );
    if !help.is_empty() {
        group = group.element(Level::HELP.message(harmless(help)));
    }
    renderer.render(&[group])
}

/// A text of the user without what a terminal would obey, and not endless.
fn harmless(text: &str) -> String {
    let mut out: String = text.chars().take(MESSAGE).map(visible).collect();
    if text.chars().nth(MESSAGE).is_some() {
        out.push_str("...");
    }
    out
}

fn visible(c: char) -> char {
    let turns_text =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    match c {
        '\t' => ' ',
        _ if c.is_control() || turns_text => '\u{fffd}',
        _ => c,
    }
}

/// The line of a place, as it is shown: the renderer cuts it around the mark.
struct Place {
    file: String,
    /// Line from 1.
    line: usize,
    /// The line, each character replaced by one that is harmless.
    shown: String,
    /// The marked bytes of `shown`.
    mark: Span,
}

impl Place {
    fn new(file: &str, text: &str, span: &Span) -> Place {
        let start = floor(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = floor(text, span.end).clamp(start, line_end);
        let mut shown: String = text[line_start..start].chars().map(visible).collect();
        let mark_start = shown.len();
        // A mark wider than the picture is cut; one of nothing (the end of a line) is one wide.
        let marked = text[start..end].chars().take(COLUMNS / 2);
        shown.extend(marked.map(visible));
        if shown.len() == mark_start {
            shown.push(text[start..line_end].chars().next().map_or(' ', visible));
        }
        let mark_end = shown.len();
        let count = shown[mark_start..].chars().count();
        shown.extend(text[start..line_end].chars().skip(count).map(visible));
        Place {
            file: file.to_owned(),
            line: text[..line_start].matches('\n').count() + 1,
            shown,
            mark: Span { start: mark_start, end: mark_end },
        }
    }
}

/// The nearest place at or before `at` between two characters.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(text: &str, start: usize, end: usize) -> String {
        let mut problem = Problem::new("this is wrong", "a.b").help("mend it");
        problem.span = Some(Span { start, end });
        let (file, text) = ("machine.json".to_owned(), text.to_owned());
        let problems = vec![problem];
        render(&Error::Input { file, text, problems }, false)
    }

    #[test]
    fn a_picture_of_the_place() {
        let expected = "\
error: this is wrong
 --> machine.json:2:6
  |
2 | \"a\": \"five\",
  |      ^^^^^^
  |
  = help: mend it
";
        assert_eq!(drawn("{\n\"a\": \"five\",\n", 7, 13), expected);
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{}\"five\"{}", "x".repeat(1 << 20), "y".repeat(1 << 20));
        let picture = drawn(&text, 1 << 20, (1 << 20) + 6);
        assert!(picture.contains("machine.json:1:1048577"), "{picture}");
        assert!(picture.lines().all(|line| line.chars().count() < 120), "{picture}");
        assert!(picture.contains("x\"five\"y"), "{picture}");
    }

    #[test]
    fn any_span_can_be_drawn() {
        let text = "a\u{1b}[31m\té\u{202e}\n";
        for start in 0..=text.len() + 2 {
            for end in 0..=text.len() + 2 {
                let picture = drawn(text, start, end);
                assert!(!picture.contains('\u{1b}'), "{picture}");
            }
        }
        assert!(drawn("", 0, 0).contains("machine.json:1:1"));
    }

    #[test]
    fn many_problems_are_counted() {
        let problems: Vec<Problem> =
            (0..1000).map(|index| Problem::new(format!("fault {index}"), "")).collect();
        let text = render(
            &Error::Input { file: "machine.json".to_owned(), text: String::new(), problems },
            false,
        );
        assert!(text.contains("error: machine.json: fault 7"), "{text}");
        assert!(text.ends_with("\nand 992 more\n"), "{text}");
    }

    #[test]
    fn requests_and_unreadable_files_have_their_advice() {
        let text = render(&Error::request("no such rank", "ranks are 0 to 7"), false);
        assert_eq!(text, "error: no such rank\nhelp: ranks are 0 to 7\n");
    }
}
