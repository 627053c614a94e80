//! A picture: shapes in groups, drawn as SVG by plotters.
//!
//! Plotters rounds to whole pixels and knows neither groups nor titles. A picture is therefore drawn
//! ten times as large and shown at its size, and every group is drawn by itself and put between the
//! tags that name it: readers without a script see its title on hovering, and a page can switch it.

use std::collections::BTreeSet;
use std::fmt::Write;

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, DrawingArea, IntoDrawingArea, IntoFont, PathElement, Polygon, RGBColor, Rectangle,
    SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, FontTransform, ShapeStyle, TextStyle};

use super::letters;
use super::style::{FONTS, Ink, LABEL, MARGIN, TITLE, WIDTH, dark_sheet};
use crate::report::markup::escaped;

/// Drawn units of a pixel.
const UNITS: f64 = 10.0;
/// Plotters divides the size of letters by this.
const LETTER_SCALE: f64 = 1.24;

/// Pixels from the upper left corner.
pub type Point = (f64, f64);

/// Where a text's place is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// A text, vertically centered on its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Words {
    /// Its place.
    pub at: Point,
    /// What it says.
    pub text: String,
    /// Letters, pixels.
    pub size: f64,
    /// Which part of it is at its place.
    pub anchor: Anchor,
    /// Color.
    pub ink: Ink,
    /// In bold.
    pub bold: bool,
    /// From bottom to top.
    pub upright: bool,
}

impl Words {
    /// Words in the ordinary size.
    pub fn new(at: Point, text: impl Into<String>, anchor: Anchor, ink: Ink) -> Words {
        let text = text.into();
        Words { at, text, size: LABEL, anchor, ink, bold: false, upright: false }
    }

    /// The same in letters of another size.
    #[must_use]
    pub fn sized(mut self, size: f64) -> Words {
        self.size = size;
        self
    }

    /// The same in bold.
    #[must_use]
    pub fn bold(mut self) -> Words {
        self.bold = true;
        self
    }

    /// The same from bottom to top.
    #[must_use]
    pub fn upright(mut self) -> Words {
        self.upright = true;
        self
    }

    /// Left, top, right and bottom of what they cover.
    pub fn area(&self) -> [f64; 4] {
        let width = letters::width(&self.text, self.size, self.bold);
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let (x, y, half) = (self.at.0, self.at.1, self.size * 0.42);
        if self.upright {
            [x - half, y - width + before, x + half, y + before]
        } else {
            [x - before, y - half, x - before + width, y + half]
        }
    }
}

/// A shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A line through points, with its width.
    Line(Vec<Point>, Ink, f64),
    /// A filled outline, with its opacity.
    Area(Vec<Point>, Ink, f64),
    /// A filled rectangle: two corners, and its opacity.
    Block(Point, Point, Ink, f64),
    /// A filled circle with its radius.
    Dot(Point, f64, Ink),
    /// An empty circle with its radius.
    Ring(Point, f64, Ink),
    /// Text.
    Words(Words),
}

/// Shapes that belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The series they are part of, which a page can switch off.
    pub series: Option<String>,
    /// What a script finds them by, as `data-NAME="VALUE"`.
    pub data: Vec<(&'static str, String)>,
    /// Shown on hovering.
    pub tip: Option<String>,
    /// In the order of drawing.
    pub shapes: Vec<Shape>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// What it shows.
    pub title: String,
    /// What can be read off it, for those who do not see it.
    pub summary: String,
    /// Pixels.
    pub height: f64,
    /// In the order of drawing.
    pub groups: Vec<Group>,
    /// Where free space begins below the heading, pixels.
    pub top: f64,
}

impl Picture {
    /// With a title and a line or two below it; its height is set by [`Picture::end`].
    pub fn new(title: &str, summary: &str) -> Picture {
        let room = WIDTH - 2.0 * MARGIN;
        let mut picture = Picture {
            title: title.to_owned(),
            summary: summary.to_owned(),
            height: 0.0,
            groups: vec![Group::default()],
            top: MARGIN + TITLE / 2.0,
        };
        // Bold letters are wider than those that `fitted` measures.
        for row in letters::wrapped(title, TITLE * 1.08, room, 2) {
            let at = (MARGIN, picture.top);
            let words = Words::new(at, row, Anchor::Start, Ink::Text).sized(TITLE).bold();
            picture.words(words);
            picture.top += TITLE * 1.25;
        }
        picture.top += 1.0;
        for row in letters::wrapped(summary, LABEL, room, 4) {
            let at = (MARGIN, picture.top);
            picture.words(Words::new(at, row, Anchor::Start, Ink::Muted));
            picture.top += LABEL * 1.35;
        }
        picture.top += 4.0;
        picture
    }

    /// Ends `room` pixels below the heading.
    #[must_use]
    pub fn end(mut self, room: f64) -> Picture {
        self.height = (self.top + room).ceil();
        self
    }

    /// Begins a group.
    pub fn group(&mut self, group: Group) {
        self.groups.push(group);
    }

    /// Begins a group of a series.
    pub fn series(&mut self, name: &str) {
        self.group(Group { series: Some(name.to_owned()), ..Group::default() });
    }

    /// Begins a group that says something on hovering.
    pub fn tip(&mut self, series: Option<&str>, tip: String) {
        let series = series.map(str::to_owned);
        self.group(Group { series, tip: Some(tip), ..Group::default() });
    }

    /// Begins a group without a name.
    pub fn plain(&mut self) {
        self.group(Group::default());
    }

    /// Adds a shape to the last group.
    pub fn add(&mut self, shape: Shape) {
        if let Some(group) = self.groups.last_mut() {
            group.shapes.push(shape);
        }
    }

    /// Adds words.
    pub fn words(&mut self, words: Words) {
        // XML has no control characters.
        let text: String =
            words.text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if !text.trim().is_empty() {
            self.add(Shape::Words(Words { text, ..words }));
        }
    }

    /// Adds a line through points.
    pub fn line(&mut self, points: Vec<Point>, ink: Ink, width: f64) {
        self.add(Shape::Line(points, ink, width));
    }

    /// Adds a filled rectangle.
    pub fn block(&mut self, from: Point, to: Point, ink: Ink) {
        self.add(Shape::Block(from, to, ink, 1.0));
    }

    /// Adds the outline of a rectangle.
    pub fn outline(&mut self, from: Point, to: Point, ink: Ink, width: f64) {
        let corners = vec![from, (to.0, from.1), to, (from.0, to.1), from];
        self.line(corners, ink, width);
    }

    /// All shapes.
    pub fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.groups.iter().flat_map(|group| &group.shapes)
    }

    /// All inks that it uses.
    pub fn inks(&self) -> BTreeSet<Ink> {
        let of = |shape: &Shape| match shape {
            Shape::Line(_, ink, _) | Shape::Area(_, ink, _) | Shape::Block(_, _, ink, _) => *ink,
            Shape::Dot(_, _, ink) | Shape::Ring(_, _, ink) => *ink,
            Shape::Words(words) => words.ink,
        };
        self.shapes().map(of).chain([Ink::Paper]).collect()
    }

    /// As a file of its own.
    pub fn svg(&self) -> String {
        self.written(&format!("<style>{}</style>\n", dark_sheet(&self.inks())))
    }

    /// As a part of a page that brings the style sheet itself.
    pub fn inline(&self) -> String {
        self.written("")
    }

    fn written(&self, style: &str) -> String {
        let (width, height) = (WIDTH, self.height);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {} {}\" role=\"img\" font-family=\"{FONTS}\">\n\
             <title>{}</title>\n<desc>{}</desc>\n{style}",
            width * UNITS,
            height * UNITS,
            escaped(&self.title),
            escaped(&self.summary)
        );
        let paper = Shape::Block((0.0, 0.0), (width, height), Ink::Paper, 1.0);
        out.push_str(&drawn(&[paper], self.height));
        for group in self.groups.iter().filter(|group| !group.shapes.is_empty()) {
            write_group(&mut out, group, self.height);
        }
        out.push_str("</svg>\n");
        out
    }
}

fn write_group(out: &mut String, group: &Group, height: f64) {
    let named = group.series.is_some() || group.tip.is_some() || !group.data.is_empty();
    if named {
        out.push_str("<g");
        if let Some(series) = &group.series {
            let _ = write!(out, " data-series=\"{}\"", escaped(series));
        }
        for (name, value) in &group.data {
            let _ = write!(out, " data-{name}=\"{}\"", escaped(value));
        }
        out.push('>');
        if let Some(tip) = &group.tip {
            let _ = write!(out, "<title>{}</title>", escaped(tip));
        }
        out.push('\n');
    }
    out.push_str(&drawn(&group.shapes, height));
    if named {
        out.push_str("</g>\n");
    }
}

/// Shapes as plotters draws them, without what is the same for all.
fn drawn(shapes: &[Shape], height: f64) -> String {
    let mut whole = String::new();
    let size = ((WIDTH * UNITS) as u32, (height * UNITS) as u32);
    let area = SVGBackend::with_string(&mut whole, size).into_drawing_area();
    for shape in shapes {
        // Drawing into memory cannot fail.
        let _ = draw(&area, shape);
    }
    let _ = area.present();
    drop(area);
    let body = whole.split_once('\n').map_or("", |parts| parts.1);
    let body = body.trim_end().strip_suffix("</svg>").unwrap_or(body);
    // Text begins and ends beside its tags, and what is so anyway need not be told.
    let body =
        body.replace("\">\n", "\">").replace("\n</text>", "</text>").replace(" opacity=\"1\"", "");
    body.replace(" font-family=\"sans-serif\"", "").replace(" stroke=\"none\"", "")
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    shape: &Shape,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let place =
        |point: &Point| ((point.0 * UNITS).round() as i32, (point.1 * UNITS).round() as i32);
    let units = |pixels: f64| (pixels * UNITS).round().max(1.0) as u32;
    let fill = |ink: Ink, opacity: f64| ShapeStyle::from(color(ink).mix(opacity)).filled();
    let stroke = |ink: Ink, width: f64| ShapeStyle::from(color(ink)).stroke_width(units(width));
    let failed = match shape {
        Shape::Line(points, ink, width) => {
            let points: Vec<(i32, i32)> = points.iter().map(place).collect();
            area.draw(&PathElement::new(points, stroke(*ink, *width))).err()
        }
        Shape::Area(points, ink, opacity) => {
            let points: Vec<(i32, i32)> = points.iter().map(place).collect();
            area.draw(&Polygon::new(points, fill(*ink, *opacity))).err()
        }
        Shape::Block(from, to, ink, opacity) => {
            area.draw(&Rectangle::new([place(from), place(to)], fill(*ink, *opacity))).err()
        }
        Shape::Dot(at, radius, ink) => {
            area.draw(&Circle::new(place(at), units(*radius), fill(*ink, 1.0))).err()
        }
        Shape::Ring(at, radius, ink) => {
            area.draw(&Circle::new(place(at), units(*radius), stroke(*ink, 1.4))).err()
        }
        Shape::Words(words) => {
            let style = text_style(words);
            area.draw(&Text::new(words.text.clone(), place(&words.at), style)).err()
        }
    };
    failed.map_or(Ok(()), |error| Err(error.to_string().into()))
}

fn text_style(words: &Words) -> TextStyle<'static> {
    let style = if words.bold { FontStyle::Bold } else { FontStyle::Normal };
    let font = ("sans-serif", words.size * UNITS * LETTER_SCALE).into_font().style(style);
    let font = if words.upright { font.transform(FontTransform::Rotate270) } else { font };
    let anchor = match words.anchor {
        Anchor::Start => HPos::Left,
        Anchor::Middle => HPos::Center,
        Anchor::End => HPos::Right,
    };
    let ink = color(words.ink).to_backend_color();
    TextStyle { color: ink, ..TextStyle::from(font).pos(Pos::new(anchor, VPos::Center)) }
}

fn color(ink: Ink) -> RGBColor {
    let [_, red, green, blue] = ink.colors().0.to_be_bytes();
    RGBColor(red, green, blue)
}
