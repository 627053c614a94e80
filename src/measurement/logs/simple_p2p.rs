//! CUDA's simpleP2P: one line with the rate between two GPUs.

use super::pairs::{add, copy};
use super::{LogFormat, Reading};
use crate::error::Result;
use crate::lines::lines;
use crate::measurement::Memory;

/// The format.
pub(super) const FORMAT: LogFormat =
    LogFormat { title: "simpleP2P", sniff: |text| text.contains(SIGN), read };

const SIGN: &str = "cudaMemcpyPeer / cudaMemcpy between GPU";

fn read(text: &str, reading: &mut Reading) -> Result<()> {
    for line in lines(text) {
        let Some((_, rest)) = line.text.split_once(SIGN) else { continue };
        let figures = rest.split_once(" and GPU").and_then(|(from, rest)| {
            let (to, rate) = rest.split_once(':')?;
            let rate = rate.trim().strip_suffix("GB/s")?.trim();
            Some((from.parse::<u32>().ok()?, to.parse::<u32>().ok()?, rate.parse::<f64>().ok()?))
        });
        let Some((from, to, rate)) = figures.filter(|f| f.0 != f.1 && f.2.is_finite()) else {
            let place = reading.place(line.number);
            reading.warn(format!("{place}: the rate is cut off: left out"));
            continue;
        };
        // There and back in turn: the rate of either.
        let one = copy(Memory::Gpu(from), Memory::Gpu(to), from, false);
        add(reading, line.number, "simpleP2P", vec![one], rate);
    }
    Ok(())
}
