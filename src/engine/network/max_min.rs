//! Flows that share links max-min fairly (Bertsekas and Gallager, Data Networks, section 6.5.2):
//! rates of all pipes rise together until a link is full, its pipes are frozen, and so on.
//!
//! A read weighs on the links of its requests too. Right for permutations and rings, too fast for
//! all-to-all, where queues block each other (`docs/models.md`).

use super::flows::Flows;

/// The model.
pub type MaxMin<'a> = Flows<'a, true>;

/// A pipe's demand: how much of each link one unit of its rate takes.
pub(super) struct Demand<'a> {
    /// Links and their femtoseconds for one payload byte of this pipe.
    pub(super) costs: &'a [(u32, u64)],
}

/// Progressive filling: the payload rate of each pipe in bytes per femtosecond.
///
/// `links` is the number of links; costs are femtoseconds of a link per payload byte, so a link is
/// full when the sum of rate times cost is one.
pub(super) fn fair_rates(links: usize, pipes: &[Demand<'_>]) -> Vec<f64> {
    let mut rates = vec![0.0; pipes.len()];
    let mut left = vec![1.0_f64; links];
    let mut load = vec![0.0_f64; links];
    for pipe in pipes {
        for &(link, cost) in pipe.costs {
            load[link as usize] += cost as f64;
        }
    }
    // Links that rising pipes use, in order, and the pipes that still rise.
    let mut used: Vec<usize> = (0..links).filter(|&link| load[link] > 1e-9).collect();
    let mut rising: Vec<usize> = (0..pipes.len()).collect();
    loop {
        // The link that fills first if all unfrozen pipes rise together.
        let mut step = f64::INFINITY;
        let mut full = usize::MAX;
        for &link in &used {
            let rise = left[link] / load[link];
            if rise < step {
                (step, full) = (rise, link);
            }
        }
        if full == usize::MAX {
            return rates;
        }
        let step = step.max(0.0);
        for &index in &rising {
            rates[index] += step;
            for &(link, cost) in pipes[index].costs {
                left[link as usize] -= step * cost as f64;
            }
        }
        rising.retain(|&index| {
            let costs = pipes[index].costs;
            let frozen = costs.iter().any(|&(link, _)| link as usize == full);
            if frozen {
                for &(link, cost) in costs {
                    load[link as usize] -= cost as f64;
                }
            }
            !frozen
        });
        load[full] = 0.0;
        used.retain(|&link| load[link] > 1e-9);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_share_a_link_and_one_takes_the_rest() {
        // Pipes A and B over link 0, B and C over link 1; one byte takes 1 fs of link 0 and 0.5 fs
        // (so two bytes per fs) of link 1. A = B = 0.5; C = (1 - 0.5 x 0.5) / 0.5 = 1.5. Costs are
        // integers, so all is scaled by 2: A = B = 0.25, C = 0.75.
        let (a, b, c) = ([(0, 2)], [(0, 2), (1, 1)], [(1, 1)]);
        let pipes = [Demand { costs: &a }, Demand { costs: &b }, Demand { costs: &c }];
        let rates = fair_rates(2, &pipes);
        assert!((rates[0] - 0.25).abs() < 1e-12, "{rates:?}");
        assert!((rates[1] - 0.25).abs() < 1e-12, "{rates:?}");
        assert!((rates[2] - 0.75).abs() < 1e-12, "{rates:?}");
    }
}
