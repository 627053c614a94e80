//! CSV rows that know their file and line, so that an error can name them.

use std::sync::Arc;

use crate::error::{Error, Problem, Result};

/// Faulty rows that are told one by one; with more of them it is another file.
const FAULTY_MAX: usize = 1000;

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// The file as it should be called in errors.
    pub file: Arc<str>,
    /// Line in the file, from 1.
    pub line: u64,
    header: Arc<csv::StringRecord>,
    fields: csv::StringRecord,
}

/// Reads a file whose first line names the columns.
///
/// # Errors
/// [`Error::Input`] naming file and line when a row has another number of columns.
pub fn with_header(file: &str, text: &str) -> Result<Vec<Row>> {
    let (rows, faulty) = with_header_or_fault(file, text)?;
    match faulty.into_iter().next() {
        Some((row, fault)) => Err(row.wrong(fault)),
        None => Ok(rows),
    }
}

/// Rows that do not fit the header, each with what is wrong.
pub type Faulty = Vec<(Row, String)>;

/// As [`with_header`], but rows with another number of columns come apart, with what is wrong.
///
/// # Errors
/// [`Error::Input`] naming file and line when a row is no CSV.
pub fn with_header_or_fault(file: &str, text: &str) -> Result<(Vec<Row>, Faulty)> {
    let (mut rows, mut faulty) = (Vec::new(), Vec::new());
    let mut header: Option<Arc<csv::StringRecord>> = None;
    for row in rows_of(file, text) {
        let mut row = row?;
        let Some(header) = &header else {
            header = Some(Arc::new(row.fields));
            continue;
        };
        if row.fields.len() == header.len() {
            row.header = Arc::clone(header);
            rows.push(row);
        } else if faulty.len() == FAULTY_MAX {
            let what = format!("over {FAULTY_MAX} rows have another number of columns");
            return Err(row.wrong(format!("{what} than the first: is it the right file?")));
        } else {
            let fault = format!("{} columns, expected {}", row.fields.len(), header.len());
            faulty.push((row, fault));
        }
    }
    Ok((rows, faulty))
}

/// Reads a file of rows that each say themselves what they are: `chase,host,0,1170.4,ns`.
///
/// # Errors
/// [`Error::Input`] naming file and line when a row is no CSV.
pub fn without_header(file: &str, text: &str) -> Result<Vec<Row>> {
    rows_of(file, text).collect()
}

/// Rows one after another, without a header.
fn rows_of(file: &str, text: &str) -> impl Iterator<Item = Result<Row>> {
    let reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let file: Arc<str> = Arc::from(file);
    let header = Arc::new(csv::StringRecord::new());
    reader.into_records().map(move |record| {
        let fields = record.map_err(|error| {
            let line = error.position().map_or(0, csv::Position::line);
            input_error(&file, line, error.to_string())
        })?;
        let line = fields.position().map_or(0, csv::Position::line);
        Ok(Row { file: Arc::clone(&file), line, header: Arc::clone(&header), fields })
    })
}

fn input_error(file: &str, line: u64, message: String) -> Error {
    let problem =
        Problem::new(message, format!("line {line}")).help("measured/README.md lists the columns");
    Error::Input { file: file.to_owned(), text: String::new(), problems: vec![problem] }
}

impl Row {
    /// An error at this row.
    pub fn wrong(&self, message: impl Into<String>) -> Error {
        input_error(&self.file, self.line, message.into())
    }

    /// File and line.
    pub fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Which of these columns the file does not have.
    pub fn missing<'a>(&self, columns: &[&'a str]) -> Vec<&'a str> {
        let there = |name: &&&str| !self.header.iter().any(|column| column == **name);
        columns.iter().filter(there).copied().collect()
    }

    /// Whether another row reads the same.
    pub fn same_as(&self, other: &Row) -> bool {
        self.fields == other.fields
    }

    /// A field by place; empty beyond the end.
    pub fn field(&self, index: usize) -> &str {
        self.fields.get(index).map_or("", str::trim)
    }

    /// A field by its column's name.
    ///
    /// # Errors
    /// When the file has no such column.
    pub fn column(&self, name: &str) -> Result<&str> {
        let index = self.header.iter().position(|column| column == name);
        index
            .map(|index| self.field(index))
            .ok_or_else(|| self.wrong(format!("there is no column `{name}`")))
    }

    /// The field after the one that reads `key`.
    ///
    /// # Errors
    /// When no field reads so.
    pub fn after(&self, key: &str) -> Result<&str> {
        let index = self.fields.iter().position(|field| field == key);
        index
            .map(|index| self.field(index + 1))
            .ok_or_else(|| self.wrong(format!("there is no field after `{key}`")))
    }

    /// A number.
    ///
    /// # Errors
    /// When the text is none, or not finite and positive or zero.
    pub fn number(&self, text: &str) -> Result<f64> {
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
            _ => Err(self.wrong(format!("`{text}` is no number"))),
        }
    }

    /// A count.
    ///
    /// # Errors
    /// When the text is none.
    pub fn count(&self, text: &str) -> Result<u32> {
        text.parse().map_err(|_| self.wrong(format!("`{text}` is no count")))
    }

    /// A number or the middle of a range such as `1.40-1.45`.
    ///
    /// # Errors
    /// When it is neither.
    pub fn middle(&self, text: &str) -> Result<f64> {
        match text.split_once('-') {
            Some((low, high)) => Ok((self.number(low)? + self.number(high)?) / 2.0),
            None => self.number(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_file_and_line() {
        let rows = with_header("own.csv", "metric,value\ntime,3\ntime,x\n").expect("two columns");
        let error = rows[1].number(rows[1].column("value").expect("there")).expect_err("no number");
        assert_eq!(error.to_string(), "own.csv: line 3: `x` is no number");
        let error = rows[0].column("ranks").expect_err("no such column");
        assert_eq!(error.to_string(), "own.csv: line 2: there is no column `ranks`");
        let error = with_header("own.csv", "a,b\n1,2,3\n").expect_err("three columns");
        assert_eq!(error.to_string(), "own.csv: line 2: 3 columns, expected 2");
    }

    #[test]
    fn fields_after_a_key_and_middles() {
        let rows = without_header("probe.csv", "chase,host,rep,2,ns\n").expect("CSV");
        assert_eq!(rows[0].after("rep").expect("there"), "2");
        assert!(rows[0].after("bytes").is_err());
        assert!((rows[0].middle("1.40-1.60").expect("a range") - 1.5).abs() < 1e-12);
        assert!(rows[0].number("-1").is_err() && rows[0].number("inf").is_err());
    }
}
