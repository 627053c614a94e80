//! Flows that share links max-min fairly (Bertsekas and Gallager, Data Networks, section 6.5.2):
//! rates of all pipes rise together until a link is full, its pipes are frozen, and so on.
//!
//! A read weighs on the links of its requests too. Right for permutations and rings, too fast for
//! all-to-all, where queues block each other (`docs/models.md`).

use super::flows::Flows;
use crate::fabric::LinkId;

/// The model.
pub type MaxMin<'a> = Flows<'a, true>;

/// A pipe that uses a link, and how much of the link one unit of its rate takes: femtoseconds for one
/// payload byte.
#[derive(Copy, Clone)]
pub(super) struct User {
    pub(super) pipe: u32,
    pub(super) cost: f64,
}

/// Progressive filling, in memory that is kept from one time to the next.
#[derive(Default)]
pub(super) struct Filling {
    /// Payload rate of each pipe of the last filling, bytes per femtosecond.
    pub(super) rates: Vec<f64>,
    /// Pipes whose rate still rises.
    rising: Vec<bool>,
    /// By link: what is left of it, and what rising pipes take of it for each unit of rate.
    left: Vec<f64>,
    load: Vec<f64>,
    /// Links that rising pipes use, in order.
    used: Vec<u32>,
}

impl Filling {
    /// Finds the rates of `active` pipes. `users` has those of each link in the same order, and `costs`
    /// a pipe's links. A link is full when the sum of rate times cost is one.
    pub(super) fn fill<'c>(
        &mut self,
        users: &[Vec<User>],
        active: &[u32],
        costs: impl Fn(u32) -> &'c [(LinkId, u64)],
    ) {
        self.begin(users, active);
        // All rising pipes have the same rate.
        let mut level = 0.0;
        while let Some((step, full)) = self.fills_first() {
            let step = step.max(0.0);
            level += step;
            for &link in &self.used {
                let rising = users[link as usize].iter().filter(|u| self.rising[u.pipe as usize]);
                let left = self.left[link as usize];
                self.left[link as usize] = rising.fold(left, |left, user| left - step * user.cost);
            }
            for user in &users[full] {
                if std::mem::take(&mut self.rising[user.pipe as usize]) {
                    self.rates[user.pipe as usize] = level;
                    for &(link, cost) in costs(user.pipe) {
                        self.load[link as usize] -= cost as f64;
                    }
                }
            }
            let load = &self.load;
            self.used.retain(|&link| load[link as usize] > 1e-9);
        }
        // Those that use no link at all.
        for &pipe in active {
            if std::mem::take(&mut self.rising[pipe as usize]) {
                self.rates[pipe as usize] = level;
            }
        }
    }

    fn begin(&mut self, users: &[Vec<User>], active: &[u32]) {
        let pipes = active.iter().max().map_or(0, |&last| last as usize + 1);
        if self.rates.len() < pipes {
            self.rates.resize(pipes, 0.0);
            self.rising.resize(pipes, false);
        }
        active.iter().for_each(|&pipe| self.rising[pipe as usize] = true);
        self.left.clear();
        self.left.resize(users.len(), 1.0);
        self.load.clear();
        self.load.extend(users.iter().map(|users| users.iter().map(|user| user.cost).sum::<f64>()));
        self.used.clear();
        let load = &self.load;
        self.used.extend((0..users.len() as u32).filter(|&link| load[link as usize] > 1e-9));
    }

    /// The link that fills first if all rising pipes rise together, and by how much they do.
    fn fills_first(&self) -> Option<(f64, usize)> {
        let mut first = (f64::INFINITY, None);
        for &link in &self.used {
            let rise = self.left[link as usize] / self.load[link as usize];
            if rise < first.0 {
                first = (rise, Some(link as usize));
            }
        }
        first.1.map(|full| (first.0, full))
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
        let costs: [&[(LinkId, u64)]; 3] = [&[(0, 2)], &[(0, 2), (1, 1)], &[(1, 1)]];
        let user = |pipe, cost| User { pipe, cost };
        let users = [vec![user(0, 2.0), user(1, 2.0)], vec![user(1, 1.0), user(2, 1.0)]];
        let mut filling = Filling::default();
        filling.fill(&users, &[0, 1, 2], |pipe| costs[pipe as usize]);
        let rates = &filling.rates;
        assert!((rates[0] - 0.25).abs() < 1e-12, "{rates:?}");
        assert!((rates[1] - 0.25).abs() < 1e-12, "{rates:?}");
        assert!((rates[2] - 0.75).abs() < 1e-12, "{rates:?}");
    }
}
