//! Every pair of GPUs: latency of a read, and rate of a stream of writes, on idle wires.

use super::Kind;
use super::heat::{Heat, LEGEND, legend};
use super::picture::Picture;
use super::style::{Ink, LABEL, MARGIN, WIDTH};
use crate::error::Result;
use crate::fabric::Fabric;
use crate::report::number::short;
use crate::sweep::Study;
use crate::topology::PathType;

/// The kind.
pub(super) const KIND: Kind = Kind {
    name: "peers",
    about: "each pair of GPUs: read latency and write rate, in the order of nvidia-smi",
    of_calls: false,
    draw,
};

/// Bytes of a read, and payload of a write's packets, as SMs make them.
const PACKET: u32 = 128;
/// Machines of more GPUs say nothing in a cell, and nothing on hovering.
const CELLS_MAX: usize = 16;
const TIPS_MAX: usize = 8;

fn draw(study: &Study<'_>) -> Result<Picture> {
    let machine = study.question.machine;
    Ok(picture(&super::machine_name(study), &machine.nominal.fabric))
}

type Cells = Vec<Vec<Option<f64>>>;

fn pairs(count: usize, of: impl Fn(usize, usize) -> Option<f64>) -> Cells {
    let row = |a: usize| (0..count).map(|b| if a == b { None } else { of(a, b) }).collect();
    (0..count).map(row).collect()
}

fn picture(name: &str, fabric: &Fabric) -> Picture {
    let count = fabric.gpu_count;
    let latency = pairs(count, |a, b| {
        fabric.read_latency(a, b as u32, PACKET).filter(|_| fabric.peer_to_peer).map(|t| t.as_us())
    });
    let rate = pairs(count, |a, b| {
        let path = fabric.path(a as u32, b as u32).filter(|_| fabric.peer_to_peer)?;
        let rates = path.iter().map(|&link| {
            let payload = match fabric.split(a as u32, b as u32) {
                0 => PACKET,
                split => u32::from(split).min(PACKET),
            };
            fabric.links[link as usize].write_rate(payload).as_gb_per_s()
        });
        rates.reduce(f64::min)
    });
    let summary = if count < 2 {
        "One GPU: there are no pairs.".to_owned()
    } else if fabric.peer_to_peer {
        "One pair at a time, idle wires, one way. Boxes: GPUs below one switch or joined by NVLink, \
         and of one socket."
            .to_owned()
    } else {
        "P2P is off: GPUs reach each other by host memory only.".to_owned()
    };
    let mut picture = Picture::new(&format!("Pairs of GPUs: {name}"), &summary);
    let mut y = picture.top + LABEL;
    let maps = [
        ("128-byte read by the row's GPU, us", &latency),
        ("writes by the row's GPU, GB/s", &rate),
    ];
    for (title, cells) in maps {
        y = map(&mut picture, fabric, title, cells, y) + 26.0;
    }
    let room = y - 10.0 - picture.top;
    picture.end(room)
}

/// One map with its legend; says where it ends.
fn map(picture: &mut Picture, fabric: &Fabric, title: &str, cells: &Cells, y: f64) -> f64 {
    use super::picture::{Anchor, Words};
    let values = || cells.iter().flatten().flatten().copied();
    let least = values().fold(f64::INFINITY, f64::min);
    let most = values().fold(0.0, f64::max);
    picture.plain();
    picture.words(Words::new((MARGIN, y), title, Anchor::Start, Ink::Text));
    // Where all are alike, their figure says it.
    if least.is_finite() && short(most) != short(least) {
        legend(picture, WIDTH - 230.0, y, &short(least), &short(most));
    }
    // From the least to the most; one value for all is the middle.
    let share = |value: f64| {
        if most > least { 0.12 + 0.88 * (value - least) / (most - least) } else { 0.5 }
    };
    let count = cells.len();
    let names: Vec<String> = (0..count).map(|gpu| gpu.to_string()).collect();
    let say = |row: usize, column: usize| match cells[row][column] {
        _ if count > CELLS_MAX => String::new(),
        Some(value) => short(value),
        None if row == column => "-".to_owned(),
        None => String::new(),
    };
    let tip = |row: usize, column: usize| match cells[row][column] {
        Some(value) if count <= TIPS_MAX => {
            let path = fabric.path_type(row as u32, column as u32);
            format!("GPU {row} to GPU {column} ({path}): {}", short(value))
        }
        _ => String::new(),
    };
    let left = MARGIN + 28.0;
    let side = ((WIDTH - MARGIN - left) / count.max(1) as f64).min(64.0);
    let heat = Heat {
        rows: names.iter().map(|name| format!("GPU {name}")).collect(),
        columns: names,
        shares: cells.iter().map(|row| row.iter().map(|cell| cell.map(share)).collect()).collect(),
        text: &say,
        tip: &tip,
        left: left + 14.0,
        right: left + 14.0 + (side * count as f64).min(WIDTH - MARGIN - left - 14.0),
        top: y + LEGEND + 8.0,
        row: side.min(24.0),
    };
    heat.draw(picture);
    let near = |a: u32, b: u32| matches!(fabric.path_type(a, b), PathType::Nv(_) | PathType::Pix);
    boxes(picture, &heat, count, 1.2, near);
    boxes(picture, &heat, count, 2.0, |a, b| fabric.path_type(a, b) != PathType::Sys);
    heat.bottom()
}

/// A box around each run of GPUs that belong together, unless all do.
fn boxes(
    picture: &mut Picture,
    heat: &Heat<'_>,
    count: usize,
    width: f64,
    together: impl Fn(u32, u32) -> bool,
) {
    picture.plain();
    let mut first = 0;
    while first < count {
        let joined = (first + 1..count).take_while(|&next| together(first as u32, next as u32));
        let last = joined.last().unwrap_or(first);
        if last > first && last - first + 1 < count {
            let x = |index: usize| heat.left + index as f64 * heat.column();
            let y = |index: usize| heat.top + index as f64 * heat.row;
            let (from, to) = ((x(first), y(first)), (x(last + 1), y(last + 1)));
            picture.outline(from, to, Ink::Text, width);
        }
        first = last + 1;
    }
}
