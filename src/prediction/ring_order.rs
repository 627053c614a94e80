//! A ring along NVLinks, where not every pair of GPUs has one.
//!
//! NCCL searches rings; on a cube mesh or with bridged pairs the order of the GPUs is not one. Here
//! the ring whose thinnest NVLink bond is thickest is taken, the first in order of GPU numbers among
//! equals. Machines on which all pairs or none have NVLink keep the order of their GPUs.

use crate::topology::{PathType, Topology};

/// Rings of more GPUs are not searched: the number of orders grows too fast.
const GPUS_MAX: usize = 10;

/// The order of the first `count` GPUs along NVLinks, if it is another than their own.
pub fn nvlink_ring(topology: &Topology, count: usize) -> Option<Vec<u32>> {
    if !(3..=GPUS_MAX).contains(&count) {
        return None;
    }
    let bond = |a: usize, b: usize| match topology.path_type(a, b) {
        PathType::Nv(links) => links,
        _ => 0,
    };
    let bonds: Vec<Vec<u8>> = (0..count)
        .map(|a| (0..count).map(|b| if a == b { 0 } else { bond(a, b) }).collect())
        .collect();
    let thinnest = |order: &[usize]| {
        let pairs = (0..order.len()).map(|i| (order[i], order[(i + 1) % order.len()]));
        pairs.map(|(a, b)| bonds[a][b]).min().unwrap_or(0)
    };
    let own: Vec<usize> = (0..count).collect();
    let pairs = bonds.iter().enumerate().flat_map(|(a, row)| row.iter().skip(a + 1));
    let (least, most) = pairs.fold((u8::MAX, 0), |(low, high), &b| (low.min(b), high.max(b)));
    if least == most {
        return None;
    }
    let mut best = (thinnest(&own), own.clone());
    extend(&bonds, &mut vec![0], &mut best);
    (best.1 != own).then(|| best.1.iter().map(|&gpu| gpu as u32).collect())
}

/// Depth first over orders that begin with `order`, keeping the best complete ring.
fn extend(bonds: &[Vec<u8>], order: &mut Vec<usize>, best: &mut (u8, Vec<usize>)) {
    let last = order[order.len() - 1];
    if order.len() == bonds.len() {
        let pairs = (0..order.len()).map(|i| (order[i], order[(i + 1) % order.len()]));
        let thinnest = pairs.map(|(a, b)| bonds[a][b]).min().unwrap_or(0);
        if thinnest > best.0 {
            *best = (thinnest, order.clone());
        }
        return;
    }
    for next in 1..bonds.len() {
        if !order.contains(&next) && bonds[last][next] > best.0 {
            order.push(next);
            extend(bonds, order, best);
            order.pop();
        }
    }
}
