//! `nvidia-smi -L`, `nvidia-smi nvlink -s` (rates of links) and `nvlink -R` (their far ends).

use super::Format;
use crate::error::Result;
use crate::input::found::{Address, Card, FarEnd, Found, GpuName, NvLinks};
use crate::lines::lines;

/// The format.
pub(super) const FORMAT: Format =
    Format { name: "smi-nvlink", title: "nvidia-smi nvlink or -L", sniff, read };

fn sniff(text: &str) -> bool {
    lines(text).any(|line| gpu(&line.text).is_some())
}

/// Number and name of `GPU 0: NVIDIA H200 (UUID: GPU-..)`.
fn gpu(line: &str) -> Option<(u32, &str)> {
    let (number, rest) = line.trim().strip_prefix("GPU ")?.split_once(": ")?;
    let (name, _) = rest.split_once(" (UUID:")?;
    Some((number.parse().ok()?, name))
}

fn read(file: &str, text: &str) -> Result<Found> {
    let mut found = Found::from_source(file, FORMAT.title);
    let mut current = None;
    let mut idle = 0;
    for line in lines(text) {
        if let Some((number, title)) = gpu(&line.text) {
            current = Some(number);
            let title = title.to_owned();
            found.cards.push(Card { number: Some(number), title, ..Card::default() });
            continue;
        }
        let rest = line.text.trim().strip_prefix("Link ").and_then(|rest| rest.split_once(": "));
        let (Some(number), Some((link, state))) = (current, rest) else { continue };
        if link.parse::<u32>().is_err() {
            continue;
        }
        if state.contains("inactive") {
            idle += 1;
            continue;
        }
        let to = match state.strip_prefix("Remote Device ") {
            Some(place) => {
                let place = place.split_whitespace().next().unwrap_or("").trim_end_matches(':');
                Address::parse(place).map_or(FarEnd::Unknown, FarEnd::Device)
            }
            None if state.contains("GB/s") => FarEnd::Unknown,
            None => continue,
        };
        let gpu = GpuName::Number(number);
        match found.nvlinks.iter_mut().find(|links| links.gpu == gpu && links.to == to) {
            Some(links) => links.count += 1,
            None => found.nvlinks.push(NvLinks { gpu, to, count: 1 }),
        }
    }
    if idle > 0 {
        found.remark(
            format!("{idle} NVLinks are inactive: left out"),
            "if a bridge or the fabric manager is missing, the machine could be faster",
        );
    }
    Ok(found)
}
