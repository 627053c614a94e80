//! A report as one HTML file: nothing is fetched, and all is there without the script, which only
//! adds what a reader can do.

use std::fmt::Write;

use super::Playback;
use super::content::{Block, Page};
use crate::report::markup::escaped;
use crate::report::plot::Picture;
use crate::report::plot::style::{HEAT_LEVELS, Ink, dark_sheet};
use crate::report::table::TableFormat;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes it.
pub fn html(page: &Page) -> String {
    let title = escaped(&page.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{}{STYLE}{}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n",
        variables(),
        dark_sheet(&Ink::all().collect()),
    );
    contents(&mut out, page);
    let mut open = false;
    for block in &page.blocks {
        if let Block::Heading(text) = block {
            if open {
                out.push_str("</section>\n");
            }
            open = true;
            let _ = write!(out, "<section id=\"{}\">\n<h2>{}</h2>\n", anchor(text), escaped(text));
        } else {
            write_block(&mut out, block);
        }
    }
    if open {
        out.push_str("</section>\n");
    }
    let _ = write!(out, "</main>\n<div id=\"tip\" role=\"status\" hidden></div>\n");
    let _ = write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

/// Links to the sections.
fn contents(out: &mut String, page: &Page) {
    out.push_str("<nav aria-label=\"Sections\"><ul>\n");
    for block in &page.blocks {
        if let Block::Heading(text) = block {
            let _ = writeln!(out, "<li><a href=\"#{}\">{}</a></li>", anchor(text), escaped(text));
        }
    }
    out.push_str("</ul></nav>\n");
}

fn anchor(text: &str) -> String {
    text.to_lowercase().replace(' ', "-")
}

fn write_block(out: &mut String, block: &Block) {
    // Writing to a String cannot fail.
    let _ = match block {
        Block::Heading(_) => Ok(()),
        Block::Text(text) => writeln!(out, "<p>{}</p>", escaped(text)),
        Block::Table(table) => {
            let rows = table.write(TableFormat::Html);
            writeln!(out, "<div class=\"wide\" tabindex=\"0\">{rows}</div>")
        }
        Block::Picture(name, picture) => writeln!(out, "{}", figure(name, picture)),
        Block::Play(picture, playback) => {
            writeln!(out, "{}{}", figure("machine", picture), player(playback))
        }
        Block::Sizes(sizes) => writeln!(out, "{}", picker(sizes)),
        Block::Code(text) => {
            writeln!(out, "<pre tabindex=\"0\"><code>{}</code></pre>", escaped(text))
        }
    };
}

fn figure(name: &str, picture: &Picture) -> String {
    // It is wider than a telephone: there it scrolls.
    format!("<figure id=\"plot-{name}\" tabindex=\"0\">\n{}</figure>\n", picture.inline())
}

/// Controls that need the script, which shows them, and the data that they play.
fn player(playback: &Playback) -> String {
    let last = playback.times.len().saturating_sub(1);
    let data = serde_json::to_string(playback).unwrap_or_default();
    // Within a script, only this would end it.
    let data = data.replace('<', "\\u003c");
    format!(
        "<div id=\"player\" class=\"controls\" hidden>\n<p>{}</p>\n\
         <button type=\"button\" id=\"play\" aria-pressed=\"false\">Play</button>\n\
         <label>Time <input type=\"range\" id=\"time\" min=\"0\" max=\"{last}\" value=\"0\"></label>\n\
         <output id=\"now\" for=\"time\"></output>\n\
         <ul id=\"queues\" aria-live=\"off\"><li>the links on which most packets wait are listed here</li></ul>\n</div>\n\
         <script type=\"application/json\" id=\"playback\">{data}</script>\n",
        escaped(&format!(
            "Play {}: color of a link is the share of time that it sends, its width grows with the \
             packets that wait for it; color of a GPU is what it does.",
            playback.title
        ))
    )
}

/// A choice of a size, and what holds at each.
fn picker(sizes: &[(String, Vec<String>)]) -> String {
    let mut out = String::from(
        "<div id=\"picker\" class=\"controls\" hidden><label>Size of a call <select id=\"size\">\n",
    );
    for (index, (name, _)) in sizes.iter().enumerate() {
        let _ = writeln!(out, "<option value=\"{index}\">{}</option>", escaped(name));
    }
    out.push_str("</select></label></div>\n");
    for (index, (name, rows)) in sizes.iter().enumerate() {
        let _ = write!(
            out,
            "<div class=\"size\" data-size=\"{index}\"><p>{}:</p>\n<ol>",
            escaped(name)
        );
        for row in rows {
            let _ = write!(out, "<li>{}</li>", escaped(row));
        }
        out.push_str("</ol></div>\n");
    }
    out
}

/// Colors by name, for the page and its script.
fn variables() -> String {
    let mut named = vec![
        ("paper".to_owned(), Ink::Paper),
        ("text".to_owned(), Ink::Text),
        ("muted".to_owned(), Ink::Muted),
        ("grid".to_owned(), Ink::Grid),
        ("panel".to_owned(), Ink::Panel),
        ("link".to_owned(), Ink::Series(0)),
    ];
    named.extend((0..HEAT_LEVELS).map(|level| (format!("heat-{level}"), Ink::Heat(level))));
    let doings = crate::report::plot::timeline::Doing::ALL;
    named.extend(
        doings.iter().enumerate().map(|(index, entry)| (format!("doing-{index}"), entry.2)),
    );
    let list = |dark: bool| -> String {
        let one = |(name, ink): &(String, Ink)| {
            let (light, night) = ink.colors();
            format!("--{name}:#{:06X};", if dark { night } else { light })
        };
        named.iter().map(one).collect()
    };
    format!(
        ":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n",
        list(false),
        list(true)
    )
}
