//! Calls among ranks that do not come together, as lines below the first screen.

use std::fmt::Write;

use super::number::{percent, short};
use crate::sweep::Answer;

/// A table of all cases for each step whose ranks compute before its calls; empty without one.
pub(super) fn text(answer: &Answer) -> String {
    let mut out = String::new();
    for (index, step) in answer.steps.iter().enumerate() {
        let with_stay = answer.rows.iter().zip(&answer.in_place);
        let rows: Vec<_> = with_stay
            .filter_map(|(row, stays)| Some((&row[index].title, stays[index].as_ref()?)))
            .collect();
        let Some((_, first)) = rows.first() else { continue };
        let _ = writeln!(
            out,
            "{} in place, ranks arriving apart, us: mean over ranks of {} calls",
            step.step.name, first.calls
        );
        let _ = writeln!(
            out,
            "  {:<34}{:>9}{:>10}{:>7}{:>9}{:>11}{:>14}",
            "", "in place", "waiting", "", "moving", "last rank", "call to call"
        );
        for (title, stay) in rows {
            let share = stay.waiting_us / stay.in_place_us;
            let _ = writeln!(
                out,
                "  {title:<34}{:>9}{:>10}{:>7}{:>9}{:>11}{:>14}",
                short(stay.in_place_us),
                short(stay.waiting_us),
                percent(if share.is_finite() { share } else { 0.0 }),
                short(stay.moving_us),
                short(stay.last_rank_us),
                short(stay.call_to_call_us),
            );
        }
    }
    out
}
