//! `nvidia-smi topo -m`, of any driver, with or without header, legend, colors and all rows.

use super::Format;
use crate::error::{Error, Problem, Result};
use crate::input::found::matrix::is_gpu;
use crate::input::found::{Found, Matrix, Relation};
use crate::lines::{Line, lines, problem};

/// The format.
pub(super) const FORMAT: Format =
    Format { name: "smi-topo", title: "nvidia-smi topo -m", sniff, read };

const HELP: &str = "cells are X, SYS, NODE, PHB, PXB, PIX, NV1 to NV36 or N/A";
/// A larger matrix is no machine.
const DEVICES_MAX: usize = 256;

fn sniff(text: &str) -> bool {
    lines(text).any(|line| {
        let words = words(&line);
        words.len() > 1 && is_gpu(&words[0]) && Relation::parse(&words[1]).is_some()
    })
}

/// Words of a line; bars of a Markdown table are none.
pub(super) fn words(line: &Line) -> Vec<String> {
    line.text.replace(['|', '`'], " ").split_whitespace().map(str::to_owned).collect()
}

/// A row: its device, its cells, what follows them.
struct Row<'a> {
    line: Line<'a>,
    name: String,
    cells: Vec<Relation>,
    rest: Vec<String>,
}

fn read(file: &str, text: &str) -> Result<Found> {
    let mut found = Found::from_source(file, FORMAT.title);
    let mut header: Option<Vec<String>> = None;
    let (mut rows, mut problems): (Vec<Row>, Vec<Problem>) = (Vec::new(), Vec::new());
    for line in lines(text) {
        let words = words(&line);
        let Some(first) = words.first() else { continue };
        if first.ends_with(':') && !rows.is_empty() {
            // The legends come after all rows.
            break;
        }
        let is_header =
            is_gpu(first) && words.get(1).is_none_or(|w| is_gpu(w) || w == "CPU" || nic(w));
        if header.is_none() && is_header {
            header = Some(words.into_iter().take_while(|word| word != "CPU").collect());
        } else if is_gpu(first)
            || nic(first) && words.get(1).is_some_and(|w| Relation::parse(w).is_some())
        {
            match row(line, words, header.as_deref()) {
                Ok(row) => rows.push(row),
                Err(problem) => problems.push(*problem),
            }
        }
    }
    let names = header.unwrap_or_else(|| rows.iter().map(|row| row.name.clone()).collect());
    let failed = |problems| Error::Input { file: file.into(), text: text.into(), problems };
    if names.len() > DEVICES_MAX {
        let problem = Problem::new(format!("{} devices, at most {DEVICES_MAX}", names.len()), "");
        return Err(failed(vec![problem]));
    }
    let matrix = fill(&mut found, names, &rows, &mut problems);
    if !problems.is_empty() {
        return Err(failed(problems));
    }
    found.matrix = Some(matrix);
    Ok(found)
}

/// Whether a word can name a NIC.
fn nic(word: &str) -> bool {
    let starts = ["NIC", "mlx", "bnxt", "efa", "ib", "hsi", "rdma", "roce", "irdma", "cxi"];
    let digit = word.chars().last().is_some_and(|c| c.is_ascii_digit());
    digit && starts.iter().any(|start| word.starts_with(start))
}

fn row<'a>(
    line: Line<'a>,
    words: Vec<String>,
    header: Option<&[String]>,
) -> std::result::Result<Row<'a>, Box<Problem>> {
    let columns = header.map_or(usize::MAX, <[String]>::len);
    let mut cells = Vec::new();
    let mut rest = words.iter().skip(1).peekable();
    while cells.len() < columns
        && let Some(word) = rest.peek()
    {
        match Relation::parse(word) {
            Some(cell) => cells.push(cell),
            None if header.is_none() || word.starts_with(['.', '(']) => break,
            // A row that is cut off or lacks cells goes on with its CPUs.
            None if word.starts_with(|c: char| c.is_ascii_digit()) => break,
            None => {
                let message = format!("`{word}` is no path type");
                return Err(Box::new(problem(&line, message, HELP)));
            }
        }
        rest.next();
    }
    let rest = rest.cloned().collect();
    Ok(Row { line, name: words[0].clone(), cells, rest })
}

/// The matrix of the rows; a pair that one row lacks is taken from the other.
fn fill(
    found: &mut Found,
    names: Vec<String>,
    rows: &[Row],
    problems: &mut Vec<Problem>,
) -> Matrix {
    let count = names.len();
    let mut matrix = Matrix {
        cells: vec![vec![Relation::Unknown; count]; count],
        numa: vec![None; count],
        names,
        places: Vec::new(),
    };
    let mut seen = vec![false; count];
    for row in rows {
        let Some(at) = matrix.names.iter().position(|name| *name == row.name) else {
            let message = format!("row {} has no column", row.name);
            problems.push(problem(&row.line, message, "is a part of the header missing?"));
            continue;
        };
        if seen[at] {
            problems.push(problem(
                &row.line,
                format!("row {} stands twice", row.name),
                "give one matrix a file",
            ));
            continue;
        }
        seen[at] = true;
        if row.cells.get(at).is_some_and(|cell| *cell != Relation::Own) {
            let message = format!("{} and itself: {}, expected X", row.name, row.cells[at]);
            problems.push(problem(&row.line, message, "are columns missing before it?"));
            continue;
        }
        for (column, &cell) in row.cells.iter().enumerate().filter(|(column, _)| *column < count) {
            matrix.cells[at][column] = cell;
        }
        matrix.numa[at] = row.rest.get(1).and_then(|word| word.parse().ok());
    }
    mirror(found, &mut matrix);
    let unknown = (0..count).any(|a| (0..a).any(|b| matrix.cells[a][b] == Relation::Unknown));
    if unknown {
        found.remark(
            "the matrix lacks cells: rows are cut off or missing",
            "pairs that are not said are taken as far as the others allow",
        );
    }
    matrix
}

/// Each cell for both ways; of two that differ the upper stands.
fn mirror(found: &mut Found, matrix: &mut Matrix) {
    for a in 0..matrix.names.len() {
        for b in a + 1..matrix.names.len() {
            let (upper, lower) = (matrix.cells[a][b], matrix.cells[b][a]);
            if upper == Relation::Unknown {
                matrix.cells[a][b] = lower;
            } else {
                if lower != Relation::Unknown && lower != upper {
                    let (one, two) = (&matrix.names[a], &matrix.names[b]);
                    found.conflict(
                        format!("{one}-{two} is {upper} in one row, {lower} in the other"),
                        "the upper one was taken",
                    );
                }
                matrix.cells[b][a] = upper;
            }
        }
    }
}
