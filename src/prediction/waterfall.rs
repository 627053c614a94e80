//! Why one-stage is slower than its bytes over the link's rate: the time of a call as a sum.

use serde::Serialize;

use super::case::{Case, CasePrediction};
use super::machine::Machine;
use super::options::CaseOptions;
use crate::algorithm::one_shot_pull::{THREADS, blocks_for};
use crate::error::Result;
use crate::schedule::ELEMENT_BYTES;

/// One addend.
#[derive(Clone, Debug, Serialize)]
pub struct Term {
    /// What it is.
    pub name: String,
    /// How long, us; overlap of the others makes it negative.
    pub us: f64,
}

/// The addends of a one-stage pull, in us; they sum to the predicted time.
#[derive(Clone, Debug, Serialize)]
pub struct Waterfall {
    /// Bytes of the call.
    pub bytes: u64,
    /// Addends.
    pub terms: Vec<Term>,
}

/// Bytes of one read request's data, as SM loads make them.
const READ_BYTES: u32 = 128;
/// The smallest call: barriers and one read, nothing to transfer.
const TINY: u64 = 16;

impl Waterfall {
    /// Takes the prediction of a one-stage pull apart.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn of(
        case: &Case,
        machine: &Machine,
        options: &CaseOptions,
        prediction: &CasePrediction,
    ) -> Result<Waterfall> {
        let fabric = &machine.nominal.fabric;
        let n = options.gpus.len() as u64;
        let bytes = prediction.bytes_rounded;
        let pairs = options.gpus.iter().flat_map(|&a| options.gpus.iter().map(move |&b| (a, b)));
        let round_trip = pairs
            .filter(|(a, b)| a != b)
            .filter_map(|(a, b)| fabric.read_latency(a as usize, b, READ_BYTES))
            .max()
            .unwrap_or_default()
            .as_us();
        // All other ranks' buffers enter by the last link of the path from a peer.
        let last = fabric.path(options.gpus[1], options.gpus[0]).and_then(|path| path.last());
        let (rate, overhead) = last.map_or((f64::INFINITY, 0), |&link| {
            let link = &fabric.links[link as usize];
            (link.wire_rate().as_gb_per_s(), link.completion_overhead)
        });
        let payload = ((n - 1) * bytes) as f64 / rate / 1e3;
        let headers = payload * f64::from(overhead) / f64::from(READ_BYTES);
        let kernel = case.kernel(&machine.nominal, machine)?;
        let launch = (kernel.start.unwrap_or_default() + kernel.end).as_us();
        let bare = machine.without_regimes.as_ref().unwrap_or(&machine.nominal);
        let tiny = case.run(bare, machine, TINY, options)?.time.as_us();
        let barriers = tiny - launch - round_trip;
        let blocks = u64::from(options.blocks.unwrap_or_else(|| blocks_for(bytes)));
        let trips = bytes.div_ceil(blocks * u64::from(THREADS * ELEMENT_BYTES));
        let reads = trips as f64 * round_trip;
        let total = prediction.time_us.value;
        let bare = prediction.without_regimes_us.map_or(total, |range| range.value);
        let sharing = bare - payload - headers - reads - barriers - launch;
        let mut terms = vec![
            Term { name: format!("at {rate:.0} GB/s"), us: payload },
            Term { name: "headers".into(), us: headers },
            Term { name: "read round trip".into(), us: reads },
            Term { name: "barriers".into(), us: barriers },
            Term { name: "kernel".into(), us: launch },
            Term { name: "sharing".into(), us: sharing },
        ];
        if prediction.without_regimes_us.is_some() {
            terms.push(Term { name: "regime *".into(), us: total - bare });
        }
        Ok(Waterfall { bytes, terms })
    }

    /// Their sum.
    pub fn total_us(&self) -> f64 {
        self.terms.iter().map(|term| term.us).sum()
    }
}
