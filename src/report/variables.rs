//! How to make NCCL take its fastest row of the first screen, where that is not what it takes by itself.

use super::first_screen::title_word;
use crate::algorithm::{Implementation, Transport, nccl};
use crate::prediction::CasePrediction;
use crate::sweep::environments::{ALL_PEERS, GAIN_MIN};
use crate::sweep::{Answer, Question};

/// A row with the variables; none where NCCL's own choice is as good, or unknown.
pub(super) fn text(question: &Question<'_>, answer: &Answer) -> Option<String> {
    let us = |case: &CasePrediction| case.time_us.value;
    let pick = answer.picks.last()?;
    let taken = pick.prediction.as_ref()?;
    let of_nccl = question.cases.iter().zip(&answer.rows).filter_map(|(case, row)| {
        let own = case.implementation == Implementation::Nccl && case.transport == Transport::Peer;
        Some((case, row.last().filter(|_| own)?))
    });
    let best = of_nccl.min_by(|a, b| us(a.1).total_cmp(&us(b.1)));
    let (case, best) = best.filter(|best| us(best.1) < us(taken) * (1.0 - GAIN_MIN))?;
    let level = if pick.staged { format!("{ALL_PEERS} ") } else { String::new() };
    let (algorithm, protocol) =
        (nccl::Algorithm::from_name(case.algorithm.name)?.name(), case.protocol.name());
    let title = title_word(&best.title);
    Some(format!(
        "  NCCL takes {title} with {level}NCCL_ALGO={algorithm} NCCL_PROTO={protocol}, at every size \
         [simulate choose]"
    ))
}
