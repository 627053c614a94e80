//! NCCL's lists: `ring,tree`, `^LL`, `LL,Simple;allreduce:^LL`.

use crate::algorithm::nccl::Collective;

/// For each collective in NCCL's order, which elements are on; `None` where no part names it.
pub(super) type ByCollective = Vec<Option<Vec<bool>>>;

/// Reads a list over `elements`, in any case. The first part may name no collective and is meant
/// for all; a later part replaces what an earlier one said. `^` turns a list round, so that all
/// that it does not name is on: `^LL` switches LL128 on, also where it is not trusted.
///
/// `None` when an element or a collective is unknown, or a later part names no collective.
pub(super) fn parse_list(text: &str, elements: &[&str]) -> Option<ByCollective> {
    let mut on = vec![None; Collective::ALL.len()];
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    for (at, part) in parts.enumerate() {
        let (only, list) = match part.split_once(':') {
            Some((name, list)) => (Some(Collective::from_name(name.trim())?), list),
            None if at == 0 => (None, part),
            None => return None,
        };
        let row = row(list.trim(), elements)?;
        for (this, _) in Collective::ALL {
            if only.is_none_or(|only| only == this) {
                on[this as usize] = Some(row.clone());
            }
        }
    }
    on.iter().any(Option::is_some).then_some(on)
}

fn row(list: &str, elements: &[&str]) -> Option<Vec<bool>> {
    let (named, list) = match list.strip_prefix('^') {
        Some(rest) => (false, rest),
        None => (true, list),
    };
    let mut on = vec![!named; elements.len()];
    for word in list.split(',').map(str::trim) {
        on[elements.iter().position(|element| element.eq_ignore_ascii_case(word))?] = named;
    }
    Some(on)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns: LL, LL128, Simple; rows: broadcast, reduce, all-gather, reduce-scatter, all-reduce.
    fn shown(text: &str) -> Option<String> {
        let on = parse_list(text, &["LL", "LL128", "Simple"])?;
        let letters = on.iter().map(|row| match row {
            None => "...".to_owned(),
            Some(row) => row.iter().map(|&on| if on { '1' } else { '0' }).collect(),
        });
        Some(letters.collect::<Vec<String>>().join(" "))
    }

    #[test]
    fn lists_are_read_as_nccl_reads_them() {
        let known = [
            ("LL", "100 100 100 100 100"),
            ("simple,ll", "101 101 101 101 101"),
            ("^LL", "011 011 011 011 011"),
            ("allreduce:LL128", "... ... ... ... 010"),
            ("LL,Simple;allreduce:^LL", "101 101 101 101 011"),
            ("^LL128;allreduce:LL128;broadcast:simple", "001 101 101 101 010"),
        ];
        for (text, rows) in known {
            assert_eq!(shown(text).as_deref(), Some(rows), "{text}");
        }
        for wrong in ["", ";", "LL256", "LL;Simple", "everything:LL", "^", "LL,,Simple"] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
    }
}
