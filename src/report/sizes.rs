//! A table of many sizes, in the columns of nccl-tests.

use super::table::Table;
use crate::prediction::CasePrediction;
use crate::workload::ElementType;

/// The columns.
const HEADER: [&str; 10] =
    ["size", "count", "type", "redop", "time", "low", "high", "algbw", "busbw", "algorithm"];

/// A row for every size and case; times in us, rates in GB/s.
pub fn table(rows: &[Vec<CasePrediction>], dtype: ElementType, ranks: usize) -> Table {
    let mut table = Table::new(&HEADER).left(9);
    for case in rows.iter().flatten() {
        let algbw = case.bytes as f64 / case.time_us.value / 1e3;
        let busbw = algbw * case.collective.bus_factor(ranks);
        let redop = if case.collective.reduces() { "sum" } else { "none" };
        // As nccl-tests counts: of data in pieces, the elements of one.
        let pieces = if case.collective.in_pieces() { ranks as u64 } else { 1 };
        let extrapolated = if case.extrapolated { " (extrapolated)" } else { "" };
        let regime = if case.regimes.is_empty() { "" } else { " *" };
        table.row(vec![
            case.bytes.to_string(),
            (case.bytes / dtype.bytes() / pieces).to_string(),
            dtype.name().to_owned(),
            redop.to_owned(),
            format!("{:.2}", case.time_us.value),
            format!("{:.2}", case.time_us.low),
            format!("{:.2}", case.time_us.high),
            format!("{algbw:.2}"),
            format!("{busbw:.2}"),
            format!("{}{regime}{extrapolated}", case.title),
        ]);
    }
    table
}
