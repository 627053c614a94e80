//! What the wires allow: no schedule can be faster than this.
//!
//! A call needs at least one one-way trip between its two most distant ranks, and every cut of the
//! ranks must carry what has to cross it. Both are bounds, so their maximum is one; the trip and the
//! slowest cut are not added, since the last byte may start before the first arrives.

use serde::Serialize;

use super::{EndpointId, Fabric, LinkId};
use crate::units::{Bandwidth, Time};
use crate::workload::Collective;

/// The bound of one call, with what sets it.
#[derive(Clone, Debug, Serialize)]
pub struct Bound {
    /// No call of this size can take less.
    pub time: Time,
    /// The part that does not shrink with the size.
    pub latency: Time,
    /// The part that the slowest cut needs.
    pub transfer: Time,
    /// The cut in words: a link, or the latency.
    pub limit: String,
}

/// Bytes that must cross from some ranks to the others, as a share of the call's size, whatever the
/// algorithm. `from` of `n` ranks are on the sending side; `root_sends` says on which side rank 0 is;
/// `in_switch`: a switch adds and copies.
///
/// Each result that depends on a rank's data of the other side crosses once: the sums of an
/// all-reduce, the receivers' sums of a reduce-scatter, the senders' pieces of an all-gather, each
/// pair's piece of an all-to-all. A single GPU of an all-reduce carries `2 (n-1)/n` (Patarasuk and
/// Yuan, J. Parallel Distrib. Comput. 69, 2009), or all of its data once where a switch adds.
fn share(collective: Collective, from: usize, n: usize, root_sends: bool, in_switch: bool) -> f64 {
    let (from, to, n) = (from as f64, (n - from) as f64, n as f64);
    match collective {
        Collective::AllReduce if from <= 1.0 && !in_switch => 2.0 * (n - 1.0) / n,
        Collective::AllReduce => 1.0,
        Collective::AllGather => from / n,
        Collective::ReduceScatter => to / n,
        Collective::Broadcast => f64::from(u8::from(root_sends)),
        Collective::Reduce => f64::from(u8::from(!root_sends)),
        Collective::AllToAll => from * to / n,
    }
}

impl Fabric {
    /// The bound of a call of `bytes` over GPUs `gpus`, the root first.
    pub fn bound(&self, collective: Collective, gpus: &[usize], bytes: u64) -> Bound {
        let n = gpus.len();
        let latency = self.farthest(collective, gpus);
        if n < 2 {
            let time = Time::ZERO;
            return Bound { time, latency: time, transfer: time, limit: "nothing to do".into() };
        }
        let members: Vec<EndpointId> = gpus.iter().map(|&gpu| gpu as EndpointId).collect();
        let in_switch = self.multicast(&members).is_ok();
        let mut transfer = Time::ZERO;
        let mut limit = "latency".to_string();
        let mut consider = |senders: &[usize], links: &[LinkId], name: String| {
            let rate: f64 = links.iter().map(|&link| self.payload_rate(link).as_gb_per_s()).sum();
            let root_sends = senders.contains(&gpus[0]);
            let needed = share(collective, senders.len(), n, root_sends, in_switch);
            let time = Time::from_ns(needed * bytes as f64 / rate.max(1e-9));
            if time > transfer {
                transfer = time;
                limit = name;
            }
        };
        for (link, senders) in self.cut_links(gpus) {
            consider(&senders, &[link], self.links[link as usize].label.clone());
        }
        for (a, b) in self.socket_pairs() {
            let links: Vec<LinkId> = (0..self.links.len() as u32)
                .filter(|&link| self.links[link as usize].sockets == Some((a, b)))
                .collect();
            if let Some(senders) = self.senders_across(gpus, &links) {
                consider(&senders, &links, format!("socket {a} -> socket {b}"));
            }
        }
        let time = latency.max(transfer);
        if latency >= transfer {
            limit = "latency".into();
        }
        Bound { time, latency, transfer, limit }
    }

    /// The longest idle one-way trip of a flag that a result depends on: from or to the root, or
    /// between any two of the GPUs.
    fn farthest(&self, collective: Collective, gpus: &[usize]) -> Time {
        let from =
            if collective == Collective::Broadcast { &gpus[..1.min(gpus.len())] } else { gpus };
        let to = if collective == Collective::Reduce { &gpus[..1.min(gpus.len())] } else { gpus };
        let pairs = from.iter().flat_map(|&a| to.iter().map(move |&b| (a, b)));
        pairs
            .filter(|(a, b)| a != b)
            .filter_map(|(a, b)| self.flag_latency(a, b))
            .max()
            .unwrap_or_default()
    }

    /// Payload rate of the largest packets, the most a link can give.
    fn payload_rate(&self, link: LinkId) -> Bandwidth {
        let link = &self.links[link as usize];
        // Completions carry the least overhead of all packets.
        let overhead = f64::from(link.completion_overhead.min(link.write_overhead));
        link.wire_rate() * (256.0 / (256.0 + overhead))
    }

    /// Links whose removal parts the GPUs, with those on the sending side.
    fn cut_links(&self, gpus: &[usize]) -> Vec<(LinkId, Vec<usize>)> {
        let mut cuts = Vec::new();
        for link in 0..self.links.len() as u32 {
            let uses = |a: usize, b: usize| {
                self.path(a as EndpointId, b as EndpointId).is_some_and(|path| path.contains(&link))
            };
            let senders: Vec<usize> = gpus
                .iter()
                .copied()
                .filter(|&a| gpus.iter().any(|&b| a != b && uses(a, b)))
                .collect();
            if senders.is_empty() || senders.len() == gpus.len() {
                continue;
            }
            let others = gpus.iter().copied().filter(|gpu| !senders.contains(gpu));
            let all_cross = others.clone().all(|b| senders.iter().all(|&a| uses(a, b)));
            if all_cross {
                cuts.push((link, senders));
            }
        }
        cuts
    }

    fn socket_pairs(&self) -> Vec<(u8, u8)> {
        let mut pairs: Vec<(u8, u8)> = self.links.iter().filter_map(|link| link.sockets).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// The GPUs whose way to some other one leads over the links, if all those and no others reach
    /// the rest so: then the links are a cut.
    fn senders_across(&self, gpus: &[usize], links: &[LinkId]) -> Option<Vec<usize>> {
        let uses = |a: usize, b: usize| {
            self.path(a as EndpointId, b as EndpointId)
                .is_some_and(|path| path.iter().any(|link| links.contains(link)))
        };
        let sends = |a: usize| gpus.iter().any(|&b| a != b && uses(a, b));
        let (senders, others): (Vec<usize>, Vec<usize>) = gpus.iter().partition(|&&a| sends(a));
        let parted = others.iter().all(|&b| senders.iter().all(|&a| uses(a, b)));
        (parted && !senders.is_empty() && !others.is_empty()).then_some(senders)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_one_gpu_are_the_bus_factors() {
        // Sending by one of 8: all-reduce 2 x 7/8, reduce-scatter and all-to-all 7/8; receiving by
        // one of 8, all-gather 7/8. nccl-tests divides by the same.
        let n = 8;
        for (collective, from, root_sends) in [
            (Collective::AllReduce, 1, true),
            (Collective::AllGather, 7, true),
            (Collective::ReduceScatter, 1, true),
            (Collective::AllToAll, 1, true),
            (Collective::Broadcast, 1, true),
            (Collective::Reduce, 7, false),
        ] {
            let found = share(collective, from, n, root_sends, false);
            assert!((found - collective.bus_factor(n)).abs() < 1e-12, "{collective:?}");
        }
        // Four and four: 16 pairs of eighths.
        assert!((share(Collective::AllToAll, 4, n, true, false) - 2.0).abs() < 1e-12);
        // A switch that adds lets a GPU send its data once.
        assert!((share(Collective::AllReduce, 1, n, true, true) - 1.0).abs() < 1e-12);
    }
}
