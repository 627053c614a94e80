//! Every command line that a message, a help text or a page of the documentation names must be one that
//! the program takes: parsed by the program's own parser, with words in the place of what stands for
//! something.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use collsim::cli::Arguments;

/// A command line and where it stands.
struct Suggested {
    place: String,
    line: String,
}

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
}

/// What stands between backticks and begins with the program's name; in pages also whole lines.
fn suggested() -> Vec<Suggested> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut code, mut pages) = (Vec::new(), Vec::new());
    files(&root.join("src"), "rs", &mut code);
    for folder in ["docs", "measured", "plots"] {
        files(&root.join(folder), "md", &mut pages);
    }
    pages.extend(["README.md", "ARCHITECTURE.md", "CHANGELOG.md"].map(|name| root.join(name)));
    let mut all = Vec::new();
    for path in code.iter().chain(&pages) {
        let text = fs::read_to_string(path).expect("UTF-8");
        let name = path.strip_prefix(root).expect("below").display().to_string();
        let is_page = pages.contains(path);
        for (number, line) in text.lines().enumerate() {
            let place = format!("{name}:{}", number + 1);
            let mut add = |line: &str| {
                all.push(Suggested { place: place.clone(), line: line.trim().to_owned() });
            };
            line.split('`').skip(1).step_by(2).filter(|part| begins(part)).for_each(&mut add);
            // After a pipe, and up to what a column of words says about it.
            let command = line.rsplit("| ").next().unwrap_or(line);
            if is_page && !line.contains('`') && begins(command) {
                add(command.split("  ").next().unwrap_or(command));
            }
        }
    }
    all
}

fn begins(text: &str) -> bool {
    text.strip_prefix("simulate ").is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '-') && !rest.contains("::")
    })
}

/// Words of a command line: what stands for something becomes something, redirections go.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut quoted: Option<String> = None;
    for word in line.split_whitespace() {
        match quoted.take() {
            Some(mut begun) => {
                begun.push(' ');
                begun.push_str(word);
                match begun.strip_suffix('"') {
                    Some(whole) => words.push(whole.to_owned()),
                    None => quoted = Some(begun),
                }
            }
            None => match word.strip_prefix('"') {
                Some(begun) if !begun.ends_with('"') => quoted = Some(begun.to_owned()),
                _ => words.push(word.trim_matches('"').to_owned()),
            },
        }
    }
    let end = words.iter().position(|word| word == ">").unwrap_or(words.len());
    words.truncate(end);
    words.retain(|word| word != "..");
    for word in &mut words {
        // Placeholders of format strings, and choices such as `a|b`.
        if word.contains('{') {
            *word = word.replace("{first}", "time").replace("{}", "time");
        }
        if let Some((one, _)) = word.split_once('|') {
            *word = one.to_owned();
        }
        if word == "KIND" {
            "time".clone_into(word);
        }
    }
    words
}

#[test]
fn every_suggested_command_line_parses() {
    let mut wrong = Vec::new();
    let all = suggested();
    assert!(all.len() > 100, "{} found: does the search still work?", all.len());
    for Suggested { place, line } in all {
        let words = words(&line);
        let Err(error) = Arguments::try_parse_from(&words) else { continue };
        use clap::error::ErrorKind::{
            DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument,
            MissingSubcommand,
        };
        // A command may be named without what it is about: `simulate calibrate`; the list of changes names
        // single options.
        let named = matches!(
            error.kind(),
            MissingRequiredArgument | MissingSubcommand | DisplayHelpOnMissingArgumentOrSubcommand
        ) && (place.starts_with("CHANGELOG")
            || !line.contains(" -") && words.len() <= 3);
        if !named && error.kind() != DisplayHelp {
            wrong.push(format!(
                "{place}: `{line}`: {}",
                error.to_string().lines().next().unwrap_or("")
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn messages_put_command_lines_between_backticks() {
    let names: Vec<String> = Arguments::command()
        .get_subcommands()
        .map(|command| command.get_name().to_owned())
        .collect();
    let mut code = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "rs", &mut code);
    let mut wrong = Vec::new();
    for path in code {
        let text = fs::read_to_string(&path).expect("UTF-8");
        for (number, line) in text.lines().enumerate() {
            let bare = line.split('`').step_by(2);
            let told = bare.filter(|_| !line.trim_start().starts_with("//")).any(|part| {
                part.match_indices("simulate ").any(|(at, start)| {
                    let next = part[at + start.len()..].split_whitespace().next().unwrap_or("");
                    next.starts_with("--") || names.iter().any(|name| name == next)
                })
            });
            // The head of the page that is compared byte for byte, and names of sources.
            let kept = [
                "all measurements: simulate check",
                "of simulate check; written",
                "\"simulate calibrate, ",
                "time.svg`; all kinds",
            ];
            if told && !kept.iter().any(|part| line.contains(part)) {
                wrong.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
