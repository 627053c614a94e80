//! `simulate sweep csv`, `pareto`, `cheapest` and `effects`: what the rows of a finished sweep say.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufReader};

use clap::Args;

use super::files::{cannot, ordinary, part_of};
use super::row_files::{Onward, is_cut, next_line, rename, too_long};
use super::shards::{finished, missing, parsed};
use crate::error::{Error, Result};
use crate::report::number::{short, signed_percent};
use crate::report::table::{Table, TableFormat};
use crate::sweep::rows::{Bests, Prices, Row, Worth};
use crate::units::{format_size, format_thousands, parse_size};

/// Options of `sweep csv`.
#[derive(Debug, Args)]
pub(super) struct CsvOptions {
    /// The rows.
    file: String,
    /// The file to write.
    #[arg(long, short, value_name = "FILE")]
    out: String,
}

/// Rows and price tags.
#[derive(Debug, Args)]
pub(super) struct PriceOptions {
    /// The rows.
    file: String,
    /// What an edit or a machine costs; left out: each edit counts one.
    #[arg(long = "price", value_name = "WHAT = PRICE")]
    prices: Vec<String>,
}

/// Options of `sweep cheapest`.
#[derive(Debug, Args)]
pub(super) struct CheapestOptions {
    #[command(flatten)]
    priced: PriceOptions,
    /// Bytes of the call.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    bytes: u64,
    /// Most time that a call may take, us.
    #[arg(long, value_name = "US", value_parser = positive)]
    most_us: f64,
}

fn positive(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|us| us.is_finite() && *us > 0.0);
    number.ok_or_else(|| format!("`{text}` is no time: write us, such as 20"))
}

/// What rows say, and what is said of them.
pub(super) struct Told {
    pub(super) text: String,
    /// Which cases of their sweep they lack.
    pub(super) note: Option<String>,
}

/// Does something with every row of a file, in order; says which cases of its sweep it lacks.
fn each_row(file: &str, mut with: impl FnMut(Row) -> Result<()>) -> Result<Option<String>> {
    finished(file)?;
    ordinary(file)?;
    let opened = File::open(file).map_err(|error| cannot("read", file, &error))?;
    let (mut head, mut line, mut rows) = (String::new(), Vec::new(), 0);
    let mut reader = BufReader::new(opened);
    for number in 1_u64.. {
        let length = next_line(&mut reader, &mut line);
        if length.map_err(|error| cannot("read", file, &error))? == 0 {
            break;
        }
        let wrong = |reason: String| {
            let message = format!("{file}: line {number}: no row of a sweep: {reason}");
            Error::request(message, "name what `simulate sweep run` or `merge` wrote")
        };
        if is_cut(&line) {
            return Err(wrong(format!("it {}", too_long())));
        }
        if number == 1 {
            head = String::from_utf8_lossy(&line).into_owned();
            parsed(file, &head)?;
            continue;
        }
        rows += 1;
        with(serde_json::from_slice(&line).map_err(|error| wrong(error.to_string()))?)?;
    }
    missing(file, &head, rows)
}

fn bests(file: &str) -> Result<(Bests, Option<String>)> {
    let mut bests = Bests::default();
    let note = each_row(file, |row| {
        bests.take(&row);
        Ok(())
    })?;
    Ok((bests, note))
}

/// Columns of the values.
const HEADER: [&str; 10] = [
    "case",
    "machine",
    "edits",
    "algorithm",
    "seed",
    "bytes",
    "us",
    "in_place_us",
    "waiting_us",
    "error",
];

/// Writes the rows as comma-separated values.
pub(super) fn csv(options: &CsvOptions) -> Result<Told> {
    let CsvOptions { file, out } = options;
    ordinary(out)?;
    let part = part_of(out);
    let failed = |error: &io::Error| Onward::told(&part, error);
    let file_to = Onward::open(&part)?;
    let fresh = file_to.is_fresh();
    let mut to = csv::Writer::from_writer(file_to);
    let mut write = |cells: &[String]| {
        to.write_record(cells).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => failed(&error),
            other => failed(&io::Error::other(format!("{other:?}"))),
        })
    };
    write(&HEADER.map(str::to_owned))?;
    let mut rows = 0;
    let written = each_row(file, |row| {
        fn cell<T: ToString>(value: Option<T>) -> String {
            value.map_or(String::new(), |value| value.to_string())
        }
        rows += 1;
        write(&[
            row.case.to_string(),
            row.machine,
            row.edits,
            row.algorithm,
            cell(row.seed),
            cell(row.bytes),
            cell(row.us),
            cell(row.in_place_us),
            cell(row.waiting_us),
            row.error.unwrap_or_default(),
        ])
    });
    let finish = || {
        let file = to.into_inner().map_err(csv::IntoInnerError::into_error)?;
        file.finish()?;
        rename(&part, out)
    };
    let ended = written.and_then(|note| finish().map(|()| note).map_err(|error| failed(&error)));
    if ended.is_err() && fresh {
        // What was begun is of no use; that it cannot be removed is told by the error itself.
        let _ = fs::remove_file(&part);
    }
    Ok(Told { note: ended?, text: format!("{out}: {} rows\n", format_thousands(rows)) })
}

fn worth_row(table: &mut Table, one: &Worth) {
    let edits = if one.build.edits.is_empty() { "as it is" } else { &one.build.edits };
    table.row(vec![
        format_size(one.bytes),
        short(one.price),
        short(one.best.us),
        one.best.algorithm.clone(),
        one.build.machine.clone(),
        edits.to_owned(),
    ]);
}

fn worth_table() -> Table {
    let header = ["size", "price", "us", "by", "machine", "edits"];
    Table::new(&header).left(3).left(4).left(5)
}

/// Builds that no other beats in price and time.
pub(super) fn pareto(options: &PriceOptions) -> Result<Told> {
    let (bests, note) = bests(&options.file)?;
    let front = bests.worth(&Prices::parse(&options.prices)?)?;
    let mut table = worth_table();
    front.iter().for_each(|one| worth_row(&mut table, one));
    Ok(Told { text: table.write(TableFormat::Text), note })
}

/// The cheapest build that meets a target.
pub(super) fn cheapest(options: &CheapestOptions) -> Result<Told> {
    let CheapestOptions { priced, bytes, most_us } = options;
    let prices = Prices::parse(&priced.prices)?;
    let most = short(*most_us);
    let (bests, note) = bests(&priced.file)?;
    let text = match bests.cheapest(*bytes, *most_us, &prices)? {
        None => format!("no build does {} B within {most} us\n", format_thousands(*bytes)),
        Some(one) => {
            let mut table = worth_table();
            worth_row(&mut table, &one);
            let text = table.write(TableFormat::Text);
            format!("{text}nothing cheaper of these rows stays within {most} us\n")
        }
    };
    Ok(Told { text, note })
}

/// What each edit does.
pub(super) fn effects(file: &str) -> Result<Told> {
    let (bests, note) = bests(file)?;
    let effects = bests.effects();
    if effects.is_empty() {
        return Ok(Told { text: "no two builds differ in one edit alone\n".to_owned(), note });
    }
    let mut table = Table::new(&["edit", "fastest call", "least", "most", "pairs"]);
    for one in effects {
        let [least, most] = one.range.map(signed_percent);
        table.row(vec![one.edit, signed_percent(one.mean), least, most, one.pairs.to_string()]);
    }
    let mut text = table.write(TableFormat::Text);
    let _ = writeln!(text, "mean over builds and sizes that differ in this edit alone");
    Ok(Told { text, note })
}
