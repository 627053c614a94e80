//! `raw/contention.csv`: what several copies at once reached.
//!
//! Rows by p2pmark are true concurrent reads. Of the rows made with torch copies only those are
//! used in which every flow has a source and a destination of its own and all flows are alike; in
//! others the clock stops at the last pair listed (trap 2 of `measured/README.md`).

use super::{About, Sink};
use crate::error::Result;
use crate::measurement::table::{Row, with_header};
use crate::measurement::{Copy, Memory, Run};

const COPY_BYTES: u64 = 64 << 20;

/// All rows.
pub(super) fn read(sink: &mut Sink, file: &str, text: &str) -> Result<()> {
    for row in with_header(file, text)? {
        match unusable(&row)? {
            Some(reason) => sink.skip(&row, reason),
            None if row.column("pattern")?.starts_with("staggered") => staggered(sink, &row)?,
            None => pairs(sink, &row)?,
        }
    }
    Ok(())
}

/// Why a row cannot be used, if so.
fn unusable(row: &Row) -> Result<Option<&'static str>> {
    let op = row.column("op")?;
    let told =
        format!("{} {} {}", row.column("pattern")?, row.column("config")?, row.column("note")?)
            .to_lowercase();
    let has = |word: &str| told.contains(word);
    Ok(if op.contains("p2pmark ring") {
        Some("the direction of the ring's reads is not stated")
    } else if op.contains("fork, writes") {
        Some("another program, not described")
    } else if has("non-idle") {
        Some("GPUs were not idle: for spread only")
    } else if op.contains("p2pmark") {
        None
    } else if has("old stack") || has("2-root") || has("4-root") || has("re-run") {
        Some("another wiring or software than the topology's, or a re-run")
    } else if has("gen2") || has("acs on") || has("iommu=") || has("misconfigured") {
        Some("the machine was changed for this row")
    } else if has("aer replay") || has("host") || has("bios") || has("xgmi") {
        Some("link errors, host memory or settings: no experiment")
    } else if !matches!(op, "write" | "posted write") {
        Some("a torch copy named read is a push the other way (trap 2)")
    } else {
        None
    })
}

fn fit(sink: &Sink, flows: usize) -> bool {
    sink.machine == "wrx90-7955wx-2xpm50100-flat-8gpu"
        || sink.machine.starts_with("asus-esc8000a") && flows == 1
}

/// `staggered: GPU i -> (i+3) mod 8`: reads by p2pmark, rate a flow.
fn staggered(sink: &mut Sink, row: &Row) -> Result<()> {
    let pattern = row.column("pattern")?;
    let distance = pattern.split("(i+").nth(1).and_then(|rest| rest.split(')').next());
    let distance = row.count(distance.ok_or_else(|| row.wrong("no distance such as (i+3)"))?)?;
    let gpus: Vec<u32> = (0..8).collect();
    let copies = crate::algorithm::streams::staggered_reads(&gpus, distance as usize, 0)
        .iter()
        .map(|stream| Copy {
            from: Memory::Gpu(stream.from),
            to: Memory::Gpu(stream.to),
            engine: stream.engine,
            bytes: COPY_BYTES,
        })
        .collect();
    let rate = row.number(row.column("per_flow_GBps")?)? * 8.0;
    let about = About::new("staggered reads", format!("distance {distance}")).fit(fit(sink, 8));
    // The source's rate is the mean over flows, each by its own clock: a flow within a switch ends
    // long before one that shares an uplink.
    let about = about.note("mean rate a flow times flows");
    sink.add(row, about, Run::Copies(copies), 8 + 1, (rate, "GB/s"));
    Ok(())
}

/// Writes of stated pairs.
fn pairs(sink: &mut Sink, row: &Row) -> Result<()> {
    let pattern = row.column("pattern")?;
    let flows = row.count(row.column("n_flows")?)? as usize;
    let Some(pairs) =
        stated(pattern).or_else(|| switches(pattern, flows)).or_else(|| phrase(pattern))
    else {
        sink.skip(row, "the pairs are not stated");
        return Ok(());
    };
    let alone = |pick: fn(&(u32, u32)) -> u32| {
        let mut ends: Vec<u32> = pairs.iter().map(pick).collect();
        ends.sort_unstable();
        ends.windows(2).all(|two| two[0] != two[1])
    };
    if pairs.len() != flows || !alone(|pair| pair.0) || !alone(|pair| pair.1) {
        sink.skip(row, "flows share a GPU: torch copies are serialised there (trap 2)");
        return Ok(());
    }
    let copies: Vec<Copy> = pairs
        .iter()
        .map(|&(from, to)| Copy {
            from: Memory::Gpu(from),
            to: Memory::Gpu(to),
            engine: from,
            bytes: COPY_BYTES,
        })
        .collect();
    let experiment = if flows == 1 { "one flow" } else { "uplink sharing" };
    let mut about = About::new(experiment, pattern).fit(fit(sink, flows));
    about.regime = row.column("note")?.contains("COLLAPSE");
    let rate = row.middle(row.column("total_GBps")?)?;
    sink.add(row, about, Run::Copies(copies), 0, (rate, "GB/s"));
    Ok(())
}

/// `0->4 + 1->6` anywhere in the text.
fn stated(pattern: &str) -> Option<Vec<(u32, u32)>> {
    let digits = |text: &str, from_end: bool| -> Option<u32> {
        let is_digit = |c: &char| c.is_ascii_digit();
        let found: String = if from_end {
            let back: String = text.chars().rev().take_while(is_digit).collect();
            back.chars().rev().collect()
        } else {
            text.chars().take_while(is_digit).collect()
        };
        found.parse().ok()
    };
    let parts: Vec<&str> = pattern.split("->").collect();
    if parts.len() < 2 || pattern.contains("SW") {
        return None;
    }
    parts.windows(2).map(|two| Some((digits(two[0], true)?, digits(two[1], false)?))).collect()
}

/// `2 flows SW1->SW2+SW3`: GPUs of a switch of four in order, to GPUs of the others in order.
fn switches(pattern: &str, flows: usize) -> Option<Vec<(u32, u32)>> {
    let text = pattern.split("flows ").nth(1)?;
    let text = text.split(" only").next()?.split(" [").next()?.split(" (").next()?;
    let number = |word: &str| word.trim().strip_prefix("SW")?.parse::<u32>().ok()?.checked_sub(1);
    let mut used = [0_u32; 8];
    let mut sent = [0_u32; 8];
    let mut pairs = Vec::new();
    for part in text.split(" + ") {
        let (from, targets) = part.split_once("->")?;
        let from = number(from)?;
        for target in targets.split('+') {
            let (times, target) = match target.split_once("xSW") {
                Some((times, rest)) => (times.parse().ok()?, number(&format!("SW{rest}"))?),
                None => (1, number(target)?),
            };
            // Two flows to one switch named once.
            let times = if text.contains('+') { times } else { times.max(flows as u32) };
            for _ in 0..times {
                pairs.push((from * 4 + sent[from as usize], target * 4 + used[target as usize]));
                sent[from as usize] += 1;
                used[target as usize] += 1;
            }
        }
    }
    // Several destination switches for more than two flows: unlike flows, whose total the clock of
    // the benchmark misstates.
    let alike = flows <= 2 || !text.contains('+');
    alike.then_some(pairs)
}

/// Patterns in words on machines with four GPUs a switch, in the source's numbering.
fn phrase(pattern: &str) -> Option<Vec<(u32, u32)>> {
    let one_to_one = |count: u32| (0..count).map(|i| (i, i + 4)).collect();
    Some(match pattern {
        "1 flow same switch" | "1 flow same leaf" | "1 flow intra-switch" => vec![(0, 1)],
        "2 flows same switch" | "2 flows different leaves (PIX each)" => vec![(0, 1), (2, 3)],
        "2 flows cross-leaf (PXB)" => vec![(0, 2), (1, 3)],
        "1 flow cross switch" | "1 flow cross-switch" => one_to_one(1),
        "2 flows cross switch, same src switch" | "2 flows one src switch -> one dst switch" => {
            one_to_one(2)
        }
        "2 flows cross-root (NODE)" => vec![(0, 4), (2, 6)],
        "4 flows cross switch 1:1" | "4 flows NODE 1:1" | "cross-chip 4 flows 1:1 all pairs" => {
            one_to_one(4)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_from_text() {
        assert_eq!(stated("same VS: 0->4 + 1->6"), Some(vec![(0, 4), (1, 6)]));
        assert_eq!(stated("cross-chip 1 flow 0->4 (scaling run)"), Some(vec![(0, 4)]));
        assert_eq!(stated("16 flows cross switch"), None);
        assert_eq!(switches("2 flows SW1->SW2+SW3", 2), Some(vec![(0, 4), (1, 8)]));
        assert_eq!(switches("2 flows SW1->SW2 only", 2), Some(vec![(0, 4), (1, 5)]));
        assert_eq!(switches("2 flows SW1->SW2 + SW3->SW4", 2), Some(vec![(0, 4), (8, 12)]));
        assert_eq!(switches("4 flows SW1->4xSW2", 4).map(|pairs| pairs.len()), Some(4));
        assert_eq!(switches("3 flows SW1->SW2+SW3+SW4", 3), None);
    }
}
