//! Columns of text, aligned.

use std::fmt::Write;

use super::markup::escaped;

/// How a table is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableFormat {
    /// Aligned columns.
    Text,
    /// A table for an issue.
    Markdown,
    /// Comma-separated values.
    Csv,
    /// A table of a page.
    Html,
}

/// A table: the first column is aligned left, the others right unless they are told otherwise.
#[derive(Clone, Debug, Default)]
pub struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
    left: Vec<usize>,
}

impl Table {
    /// With these column names.
    pub fn new(header: &[&str]) -> Table {
        let header = header.iter().map(|&name| name.to_owned()).collect();
        Table { header, rows: Vec::new(), left: vec![0] }
    }

    /// Aligns a column left.
    #[must_use]
    pub fn left(mut self, column: usize) -> Table {
        self.left.push(column);
        self
    }

    /// Adds a row; missing cells are empty.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// As text that ends with a line break.
    pub fn write(&self, format: TableFormat) -> String {
        match format {
            TableFormat::Text => self.text(),
            TableFormat::Markdown => self.markdown(),
            TableFormat::Csv => self.csv(),
            TableFormat::Html => self.html(),
        }
    }

    fn cell(row: &[String], column: usize) -> &str {
        row.get(column).map_or("", String::as_str)
    }

    fn text(&self) -> String {
        let columns = self.header.len();
        let width = |column: usize| {
            let cells = std::iter::once(&self.header).chain(&self.rows);
            cells.map(|row| Self::cell(row, column).chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut out = String::new();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let mut line = String::new();
            for (column, &width) in widths.iter().enumerate() {
                let cell = Self::cell(row, column);
                let space = if column == 0 { "" } else { "  " };
                // Writing to a String cannot fail.
                let _ = if self.left.contains(&column) {
                    write!(line, "{space}{cell:<width$}")
                } else {
                    write!(line, "{space}{cell:>width$}")
                };
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut out = line(self.header.clone());
        let rule = |column: usize| if self.left.contains(&column) { "---" } else { "---:" };
        out.push_str(&line((0..self.header.len()).map(|c| rule(c).to_owned()).collect()));
        for row in &self.rows {
            let cells = (0..self.header.len()).map(|c| Self::cell(row, c).replace('|', "\\|"));
            out.push_str(&line(cells.collect()));
        }
        out
    }

    fn html(&self) -> String {
        let row = |cells: &[String], tag: &str| {
            let mut out = String::from("<tr>");
            for column in 0..self.header.len() {
                let class = if self.left.contains(&column) { " class=\"left\"" } else { "" };
                let text = escaped(Self::cell(cells, column));
                // Writing to a String cannot fail.
                let _ = write!(out, "<{tag}{class}>{text}</{tag}>");
            }
            out + "</tr>\n"
        };
        let rows: String = self.rows.iter().map(|cells| row(cells, "td")).collect();
        let head = row(&self.header, "th");
        format!("<table>\n<thead>{head}</thead>\n<tbody>\n{rows}</tbody>\n</table>\n")
    }

    fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        // Writing to memory cannot fail, and all rows are filled up to one length.
        let _ = writer.write_record(&self.header);
        for row in &self.rows {
            let _ = writer.write_record((0..self.header.len()).map(|c| Self::cell(row, c)));
        }
        writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms_of_one_table() {
        let mut table = Table::new(&["what", "us"]);
        table.row(vec!["ring, LL".into(), "14.9".into()]);
        table.row(vec!["a".into(), "150".into()]);
        assert_eq!(
            table.write(TableFormat::Text),
            "what        us\nring, LL  14.9\na          150\n"
        );
        assert_eq!(table.write(TableFormat::Csv), "what,us\n\"ring, LL\",14.9\na,150\n");
        let markdown = "| what | us |\n| --- | ---: |\n| ring, LL | 14.9 |\n| a | 150 |\n";
        assert_eq!(table.write(TableFormat::Markdown), markdown);
    }
}
