//! Which links packets wait for, and when: links over the time of one call.

use super::Kind;
use super::axis::{Axis, BELOW, Frame};
use super::heat::{Heat, LEGEND, legend};
use super::picture::{Anchor, Picture, Words};
use super::style::{Ink, LABEL, MARGIN, SMALL, WIDTH};
use crate::error::Result;
use crate::report::number::short;
use crate::sweep::Study;
use crate::sweep::study::RecordedCall;
use crate::units::format_thousands;

/// The kind.
pub const KIND: Kind = Kind {
    name: "contention",
    about: "packets that wait for each link, over the time of the call that waits most",
    of_calls: true,
    draw,
};

/// Most links that are shown.
const ROWS_MAX: usize = 20;
/// Most columns.
const COLUMNS_MAX: u64 = 96;

/// A link over the time of a call: packets that wait, and the share of time that it sends.
pub struct LinkRow {
    /// Its label.
    pub label: String,
    /// By column.
    pub depth: Vec<f64>,
    /// By column.
    pub busy: Vec<f64>,
}

fn draw(study: &Study<'_>) -> Result<Picture> {
    let call = study.call(study.most_contended()?)?;
    let fabric = &study.question.machine.nominal.fabric;
    let labels: Vec<&str> = fabric.links.iter().map(|link| link.label.as_str()).collect();
    let rows = rows(call, &labels, ROWS_MAX);
    let title = format!(
        "Where {} of {} B waits: {}",
        call.title,
        format_thousands(call.bytes),
        super::machine_name(study)
    );
    Ok(picture(&title, &rows, call))
}

/// The links on which packets wait longest, or that send most when none wait, in their own order.
pub fn rows(call: &RecordedCall, labels: &[&str], most: usize) -> Vec<LinkRow> {
    let timeline = &call.timeline;
    let step = timeline.interval.as_ps();
    let (first, last) = (call.start.as_ps() / step, call.end.as_ps().div_ceil(step));
    let each = (last - first).div_ceil(COLUMNS_MAX).max(1);
    let sum = |link: usize, of: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        let mean = |from: u64| {
            let to = (from + each).min(last);
            (from..to).map(|at| of(link, at as usize)).sum::<f64>() / (to - from) as f64
        };
        (first..last).step_by(each as usize).map(mean).collect()
    };
    let mut found: Vec<(usize, LinkRow)> = (0..labels.len())
        .map(|link| {
            let depth = sum(link, &|link, at| timeline.depth(link, at));
            let busy = sum(link, &|link, at| timeline.utilization(link, at));
            (link, LinkRow { label: labels[link].to_owned(), depth, busy })
        })
        .filter(|(_, row)| row.busy.iter().any(|busy| *busy > 0.0))
        .collect();
    let weight = |row: &LinkRow| (row.depth.iter().sum::<f64>(), row.busy.iter().sum::<f64>());
    found.sort_by(|(_, a), (_, b)| {
        let ((a, a_busy), (b, b_busy)) = (weight(a), weight(b));
        b.total_cmp(&a).then(b_busy.total_cmp(&a_busy))
    });
    found.truncate(most);
    found.sort_by_key(|(link, _)| *link);
    found.into_iter().map(|(_, row)| row).collect()
}

fn picture(title: &str, rows: &[LinkRow], call: &RecordedCall) -> Picture {
    let most = rows.iter().flat_map(|row| &row.depth).copied().fold(0.0, f64::max);
    let waits = most >= 0.05;
    let summary = if waits {
        "Color: packets that wait to be sent over a link, mean of the moment. The links on which \
         most time is spent waiting."
    } else {
        "Nothing waits: color is the share of time that a link sends."
    };
    let mut picture = Picture::new(title, summary);
    let names = rows.iter().map(|row| super::letters::width(&row.label, SMALL, false));
    let left = (MARGIN + 10.0 + names.fold(40.0, f64::max)).min(WIDTH * 0.38);
    let y = picture.top + 6.0;
    let (least, scale) = if waits { ("0 packets", most) } else { ("0 %", 1.0) };
    let top_text = if waits { short(most) } else { "100 %".to_owned() };
    legend(&mut picture, left, y, least, &top_text);
    // By the root, so that one packet can be told from none beside a thousand.
    let share = |row: &LinkRow, at: usize| {
        if waits { (row.depth[at] / scale).sqrt() } else { row.busy[at] }
    };
    let columns = rows.first().map_or(0, |row| row.busy.len());
    let shares: Vec<Vec<Option<f64>>> =
        rows.iter().map(|row| (0..columns).map(|at| Some(share(row, at))).collect()).collect();
    let silent = |_: usize, _: usize| String::new();
    let heat = Heat {
        rows: rows.iter().map(|row| row.label.clone()).collect(),
        columns: Vec::new(),
        shares,
        text: &silent,
        tip: &silent,
        left,
        right: WIDTH - MARGIN,
        top: y + LEGEND - 6.0,
        row: 15.0,
    };
    heat.draw(&mut picture);
    let us = (call.end - call.start).as_us();
    let mut x = Axis::linear("us from the start of the call", [0.0, us], 6);
    x.range = (0.0, us);
    x.ticks.retain(|tick| tick.0 <= us);
    let frame = Frame {
        x,
        y: Axis::linear("", [0.0, 1.0], 1),
        left: heat.left,
        right: heat.right,
        top: heat.top,
        bottom: heat.bottom(),
    };
    picture.plain();
    frame.draw_x(&mut picture, false);
    if rows.is_empty() {
        let at = (left, heat.top + LABEL);
        picture.words(Words::new(at, "no packet crosses a link", Anchor::Start, Ink::Muted));
    }
    let room = heat.bottom() + BELOW - picture.top;
    picture.end(room)
}
