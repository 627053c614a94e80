//! What the wires allow: no schedule can be faster than this.
//!
//! A call needs at least one one-way trip between its two most distant ranks, and every cut of the
//! ranks must carry what has to cross it. Both are bounds, so their maximum is one; the trip and the
//! slowest cut are not added, since the last byte may start before the first arrives.

use super::{EndpointId, Fabric, LinkId};
use crate::units::{Bandwidth, Time};

/// The bound of one call, with what sets it.
#[derive(Clone, Debug)]
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

impl Fabric {
    /// The bound of an all-reduce of `bytes` over GPUs `gpus`, without in-switch reduction.
    ///
    /// Every GPU's links carry at least `2 S (n-1)/n` in and out (Patarasuk and Yuan 2009), and any
    /// cut through the machine carries at least `S` each way: one reduced half in, the other out.
    pub fn all_reduce_bound(&self, gpus: &[usize], bytes: u64) -> Bound {
        let n = gpus.len() as f64;
        let latency = self.diameter(gpus);
        if gpus.len() < 2 {
            let time = Time::ZERO;
            return Bound { time, latency: time, transfer: time, limit: "nothing to do".into() };
        }
        let mut transfer = Time::ZERO;
        let mut limit = "latency".to_string();
        let mut consider = |needed: f64, links: &[LinkId], name: String| {
            let rate: f64 = links.iter().map(|&link| self.payload_rate(link).as_gb_per_s()).sum();
            let time = Time::from_ns(needed / rate.max(1e-9));
            if time > transfer {
                transfer = time;
                limit = name;
            }
        };
        for (link, senders) in self.cut_links(gpus) {
            let needed = if senders.len() == 1 { 2.0 * (n - 1.0) / n } else { 1.0 };
            consider(needed * bytes as f64, &[link], self.links[link as usize].label.clone());
        }
        for (a, b) in self.socket_pairs() {
            let links: Vec<LinkId> = (0..self.links.len() as u32)
                .filter(|&link| self.links[link as usize].sockets == Some((a, b)))
                .collect();
            if self.crosses(gpus, &links) {
                consider(bytes as f64, &links, format!("socket {a} -> socket {b}"));
            }
        }
        let time = latency.max(transfer);
        if latency >= transfer {
            limit = "latency".into();
        }
        Bound { time, latency, transfer, limit }
    }

    /// The longest idle one-way trip of a flag between two of the GPUs.
    pub fn diameter(&self, gpus: &[usize]) -> Time {
        let pairs = gpus.iter().flat_map(|&a| gpus.iter().map(move |&b| (a, b)));
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

    fn crosses(&self, gpus: &[usize], links: &[LinkId]) -> bool {
        gpus.iter().any(|&a| {
            gpus.iter().any(|&b| {
                self.path(a as EndpointId, b as EndpointId)
                    .is_some_and(|path| path.iter().any(|link| links.contains(link)))
            })
        })
    }
}
