//! Dispatch and combine of an expert layer beside gathering everything.

use std::fmt::Write;

use serde::Serialize;

use super::number::short;
use super::table::{Table, TableFormat};
use crate::prediction::experts::ExpertExchange;
use crate::units::format_thousands;

/// Everything that was asked for.
#[derive(Clone, Debug, Serialize)]
pub struct Experts {
    /// The machine.
    pub topology: String,
    /// GPUs of the ranks.
    pub gpus: Vec<u32>,
    /// The model.
    pub model: String,
    /// Experts of a layer, and how many a token uses.
    pub experts: [u32; 2],
    /// Bytes of a token to an expert and back.
    pub token_bytes: [u32; 2],
    /// Version of NCCL.
    pub nccl: String,
    /// Whether regimes that the machine's file declares hold.
    pub regimes: bool,
    /// Why DeepEP's kernels refuse this machine, if they do.
    pub refused: Option<String>,
    /// By tokens of a rank.
    pub rows: Vec<Row>,
}

/// A number of tokens.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Tokens that each rank brings.
    pub tokens: u32,
    /// What the layer's exchanges cost.
    #[serde(flatten)]
    pub exchange: ExpertExchange,
}

/// As text.
pub fn text(experts: &Experts) -> String {
    let [count, used] = experts.experts;
    let [there, back] = experts.token_bytes;
    let mut out = format!(
        "{}: an expert layer of {} on {} GPUs: {count} experts, {used} a token; a token is {there} B \
         there, {back} B back\n",
        experts.topology,
        experts.model,
        experts.gpus.len()
    );
    if let Some(refused) = &experts.refused {
        let _ =
            writeln!(out, "dispatch and combine refused here: {refused}; what they would take:");
    }
    if experts.regimes {
        out.push_str(
            "the regimes that this machine's file declares hold; --no-regimes: without them\n",
        );
    }
    out.push('\n');
    let mut table = Table::new(&[
        "tokens",
        "ranks",
        "sends",
        "dispatch",
        "combine",
        "both us",
        "gathered",
        "all-gather",
        "reduce-sc",
        "both us",
        "faster",
    ]);
    for Row { tokens, exchange } in &experts.rows {
        let us = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let faster = match exchange.gathered() {
            None => "-".to_owned(),
            Some(all) if all < exchange.exchanged() => {
                format!("gather {:.1}x", exchange.exchanged() / all)
            }
            Some(all) => format!("dispatch {:.1}x", all / exchange.exchanged()),
        };
        table.row(vec![
            tokens.to_string(),
            format!("{:.2}", exchange.ranks_per_token),
            format_thousands(exchange.sent_bytes[0]),
            short(exchange.exchange_us[0]),
            short(exchange.exchange_us[1]),
            short(exchange.exchanged()),
            format_thousands(exchange.gathered_bytes[0]),
            us(exchange.gathered_us[0]),
            us(exchange.gathered_us[1]),
            us(exchange.gathered()),
            faster,
        ]);
    }
    out += &table.write(TableFormat::Text);
    let [gathers, scatters] = [taken(experts, 0), taken(experts, 1)];
    let by = if gathers == scatters { gathers } else { format!("{gathers}; {scatters}") };
    let _ = writeln!(
        out,
        "\ntokens: of each rank; ranks: different ones that a token's experts lie on, by even routing; \
         sends: bytes\nthat leave a rank in dispatch; gathered: NCCL {} brings every token to every \
         rank and adds the results\n({by}).\nCompute and uneven routing are not in these figures; no \
         measured row of DeepEP checks them.",
        experts.nccl
    );
    out
}

/// What NCCL takes, each once.
fn taken(experts: &Experts, way: usize) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in &experts.rows {
        let name = row.exchange.gathered_by[way].as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" then ")
}
