//! Statements of a rank -> thread blocks: a chain of dependencies each, flags between chains.

use super::{Act, Statement, chunks};
use crate::algorithm::plan::{Move, OneSidedBlock, OneSidedKind, OneSidedStep, Piece, Space};
use crate::error::Span;

/// Thread blocks of a rank at most.
const BLOCKS_MAX: usize = 1024;

/// Where and what is wrong.
pub(super) type Fault = (Span, String);

/// The thread blocks of a rank.
///
/// # Errors
/// Statements that require themselves, and too many chains.
pub(super) fn chains(rank: u32, statements: &[Statement]) -> Result<Vec<OneSidedBlock>, Fault> {
    let order = ordered(statements)?;
    let none = || vec![Vec::new(); statements.len()];
    let (mut needs, mut raises, mut waits) = (none(), none(), none());
    let mut chain_of: Vec<usize> = vec![0; statements.len()];
    // The last statement of each chain so far.
    let mut last: Vec<usize> = Vec::new();
    let mut flags = 0;
    for &at in &order {
        let after = all_after(statements, &needs, at);
        let goes_on = after.iter().find(|before| last[chain_of[**before]] == **before);
        let chain = goes_on.map_or(last.len(), |before| chain_of[*before]);
        match last.get_mut(chain) {
            Some(last) => *last = at,
            None => last.push(at),
        }
        chain_of[at] = chain;
        for &before in after.iter().filter(|before| chain_of[**before] != chain) {
            raises[before].push(flags);
            waits[at].push(flags);
            flags += 1;
        }
        needs[at] = after;
        if last.len() > BLOCKS_MAX {
            let fault = format!("rank {rank} has more than {BLOCKS_MAX} chains of statements");
            return Err((statements[at].span.clone(), fault));
        }
    }
    let mut blocks = vec![OneSidedBlock::default(); last.len()];
    for &at in &order {
        let (act, span) = (statements[at].act, &statements[at].span);
        let wait = |flag: &usize| OneSidedKind::Wait { from: rank, channel: *flag as u32 };
        let signal = |flag: &usize| {
            let channel = *flag as u32;
            OneSidedKind::Signal { to: rank, channel, fenced: false }
        };
        let kinds =
            waits[at].iter().map(wait).chain(done(act, rank)).chain(raises[at].iter().map(signal));
        let steps = kinds.map(|kind| OneSidedStep { kind, span: span.clone() });
        blocks[chain_of[at]].steps.extend(steps);
    }
    Ok(blocks)
}

/// What must have ended before a statement: a statement that must only have begun has begun when what
/// comes before it has ended.
fn all_after(statements: &[Statement], needs: &[Vec<usize>], at: usize) -> Vec<usize> {
    let mut after = statements[at].after.clone();
    for beside in &statements[at].beside {
        after.extend(&needs[*beside]);
    }
    after.sort_unstable();
    after.dedup();
    after
}

/// Statements so that each comes after those that it needs.
fn ordered(statements: &[Statement]) -> Result<Vec<usize>, Fault> {
    let mut waiting: Vec<usize> = Vec::new();
    let mut later: Vec<Vec<usize>> = vec![Vec::new(); statements.len()];
    for (at, statement) in statements.iter().enumerate() {
        let before = statement.after.iter().chain(&statement.beside);
        waiting.push(before.clone().count());
        before.for_each(|before| later[*before].push(at));
    }
    let mut ready: std::collections::BTreeSet<usize> =
        (0..statements.len()).filter(|at| waiting[*at] == 0).collect();
    let mut order = Vec::new();
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for next in &later[at] {
            waiting[*next] -= 1;
            if waiting[*next] == 0 {
                ready.insert(*next);
            }
        }
    }
    match (0..statements.len()).find(|at| waiting[*at] > 0) {
        Some(at) => Err((statements[at].span.clone(), "it requires itself in a circle".to_owned())),
        None => Ok(order),
    }
}

/// Steps of a statement: a message is stored at its receiver, then a flag.
fn done(act: Act, rank: u32) -> Vec<OneSidedKind> {
    let count = chunks(act);
    match act {
        Act::Send { to, tag, .. } => {
            let place = |rank, space| vec![Piece { rank, space, chunk: 0, packets: false }];
            let (from, there) = (place(rank, Space::Input), place(to, Space::Scratch));
            let moved = Move { from, to: there, count, share: (0, 1) };
            let signal = OneSidedKind::Signal { to, channel: tag, fenced: true };
            let data = (count > 0).then_some(OneSidedKind::Move(moved));
            data.into_iter().chain([signal]).collect()
        }
        Act::Receive { from, tag, .. } => vec![OneSidedKind::Wait { from, channel: tag }],
        Act::Compute(ns) => vec![OneSidedKind::Compute(ns)],
    }
}
