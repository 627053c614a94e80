//! Flows that share links max-min fairly (Bertsekas and Gallager, Data Networks, section 6.5.2):
//! rates of all pipes rise together until a link is full, its pipes are frozen, and so on.
//!
//! A read weighs on the links of its requests too. Right for permutations and rings, too fast for
//! all-to-all, where queues block each other (`docs/models.md`).

use super::flows::Flows;
use crate::fabric::LinkId;

/// The model.
pub type MaxMin<'a> = Flows<'a, true>;

/// Links of a pipe, and how much of each one unit of its rate takes: femtoseconds for one payload byte.
pub(super) type Costs = [(LinkId, u64)];

/// A pipe that uses a link.
#[derive(Copy, Clone)]
struct User {
    pipe: u32,
    cost: f64,
}

/// The pipes that move something, and what they get of the links that they share. A link is full when
/// the sum of rate times cost is one.
#[derive(Default)]
pub(super) struct Sharing {
    /// In the order in which they began.
    pub(super) active: Vec<u32>,
    /// By link: those of them that use it, in the same order, and the sum of their costs.
    users: Vec<Vec<User>>,
    needs: Vec<f64>,
    /// By pipe: its rate of the last filling, bytes per femtosecond, and how much it rises in the next
    /// step, zero when its rate is found.
    pub(super) rates: Vec<f64>,
    rises: Vec<f64>,
    /// Pipes whose rate a filling has not found yet.
    rising: Vec<u32>,
    /// By link: what a filling has left of it, and what rising pipes take of it for a unit of rate.
    left: Vec<f64>,
    load: Vec<f64>,
    /// Links that rising pipes use, in order.
    used: Vec<u32>,
}

impl Sharing {
    /// No pipe moves anything over so many links.
    pub(super) fn new(links: usize) -> Sharing {
        Sharing { users: vec![Vec::new(); links], needs: vec![0.0; links], ..Sharing::default() }
    }

    /// Whether some pipe uses one of these links.
    pub(super) fn touches(&self, costs: &Costs) -> bool {
        costs.iter().any(|&(link, _)| !self.users[link as usize].is_empty())
    }

    /// A pipe begins to move something.
    pub(super) fn begin(&mut self, pipe: u32, costs: &Costs) {
        self.active.push(pipe);
        for &(link, cost) in costs {
            let cost = cost as f64;
            self.users[link as usize].push(User { pipe, cost });
            self.needs[link as usize] += cost;
        }
        if self.rates.len() <= pipe as usize {
            self.rates.resize(pipe as usize + 1, 0.0);
            self.rises.resize(pipe as usize + 1, 0.0);
        }
    }

    /// A pipe has moved all that it had.
    pub(super) fn end(&mut self, pipe: u32, costs: &Costs) {
        self.active.retain(|&other| other != pipe);
        for &(link, cost) in costs {
            self.users[link as usize].retain(|user| user.pipe != pipe);
            self.needs[link as usize] -= cost as f64;
        }
    }

    /// Progressive filling: finds the rates of all active pipes, whose links `costs` tells.
    pub(super) fn fill<'c>(&mut self, costs: impl Fn(u32) -> &'c Costs) {
        self.left.clear();
        self.left.resize(self.needs.len(), 1.0);
        self.load.clone_from(&self.needs);
        self.used.clear();
        let load = &self.load;
        self.used.extend((0..load.len() as u32).filter(|&link| load[link as usize] > 0.5));
        self.rising.clone_from(&self.active);
        self.rising.iter().for_each(|&pipe| self.rises[pipe as usize] = 1.0);
        // All rising pipes have the same rate.
        let mut level = 0.0;
        while let Some((step, full)) = self.fills_first() {
            // Links that are equally wide and used fill one after another, without a step between.
            if step > 0.0 {
                level += step;
                self.rising.iter().for_each(|&pipe| self.rises[pipe as usize] = step);
                self.rise();
            }
            for user in &self.users[full as usize] {
                if std::mem::take(&mut self.rises[user.pipe as usize]) > 0.0 {
                    self.rates[user.pipe as usize] = level;
                    for &(link, cost) in costs(user.pipe) {
                        self.load[link as usize] -= cost as f64;
                    }
                }
            }
            self.rising.retain(|&pipe| self.rises[pipe as usize] > 0.0);
            self.used.retain(|&link| self.load[link as usize] > 0.5);
        }
        // Those that use no link at all.
        self.rising.iter().for_each(|&pipe| self.rates[pipe as usize] = level);
    }

    /// The link that fills first if all rising pipes rise together, and by how much they do.
    fn fills_first(&self) -> Option<(f64, LinkId)> {
        let mut first = (f64::INFINITY, None);
        for &link in &self.used {
            let rise = self.left[link as usize] / self.load[link as usize];
            if rise < first.0 {
                first = (rise, Some(link));
            }
        }
        first.1.map(|full| (first.0, full))
    }

    /// Takes what rising pipes need of each link for a step; the others rise by zero and need nothing.
    fn rise(&mut self) {
        for &link in &self.used {
            let needed = |left, user: &User| left - self.rises[user.pipe as usize] * user.cost;
            let left = self.left[link as usize];
            self.left[link as usize] = self.users[link as usize].iter().fold(left, needed);
        }
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
        let costs: [&Costs; 3] = [&[(0, 2)], &[(0, 2), (1, 1)], &[(1, 1)]];
        let mut sharing = Sharing::new(2);
        (0..3).for_each(|pipe| sharing.begin(pipe, costs[pipe as usize]));
        sharing.fill(|pipe| costs[pipe as usize]);
        let near = |rate: f64, is: f64| assert!((rate - is).abs() < 1e-12, "{rate}, not {is}");
        near(sharing.rates[0], 0.25);
        near(sharing.rates[1], 0.25);
        near(sharing.rates[2], 0.75);
        // Without B each has a link to itself.
        sharing.end(1, costs[1]);
        sharing.fill(|pipe| costs[pipe as usize]);
        near(sharing.rates[0], 0.5);
        near(sharing.rates[2], 1.0);
    }

    /// Pipes over two to five of eight links, with costs that repeat.
    fn some_pipes() -> Vec<Vec<(LinkId, u64)>> {
        let mut state = 7_u64;
        let mut random = move |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % most
        };
        let mut pipe = || {
            let first = random(8);
            (0..2 + random(4)).map(|k| (((first + k) % 8) as LinkId, 15 + 5 * random(3))).collect()
        };
        (0..40).map(|_| pipe()).collect()
    }

    #[test]
    fn every_pipe_has_a_full_link_on_which_none_is_faster() {
        let pipes = some_pipes();
        for count in 1..pipes.len() {
            let mut sharing = Sharing::new(8);
            (0..count).for_each(|pipe| sharing.begin(pipe as u32, &pipes[pipe]));
            sharing.fill(|pipe| &pipes[pipe as usize]);
            let rates = &sharing.rates[..count];
            let users = |link| {
                let found = pipes[..count].iter().zip(rates);
                found.filter_map(move |(costs, rate)| {
                    costs.iter().find(|cost| cost.0 == link).map(|cost| (*rate, cost.1 as f64))
                })
            };
            let full = |link| users(link).map(|(rate, cost)| rate * cost).sum::<f64>();
            assert!((0..8).all(|link| full(link) < 1.0 + 1e-9), "{count} pipes");
            for (costs, rate) in pipes.iter().zip(rates) {
                let holds = |&(link, _): &(LinkId, u64)| {
                    full(link) > 1.0 - 1e-9 && users(link).all(|user| user.0 <= rate * (1.0 + 1e-9))
                };
                assert!(costs.iter().any(holds), "{count} pipes: {costs:?} at {rate}");
            }
        }
    }

    #[test]
    fn pipes_that_came_and_went_leave_no_trace() {
        let pipes = some_pipes();
        let (mut long, mut fresh) = (Sharing::new(8), Sharing::new(8));
        for pipe in 0..pipes.len() as u32 {
            long.begin(pipe, &pipes[pipe as usize]);
            long.fill(|pipe| &pipes[pipe as usize]);
            if pipe % 3 > 0 {
                long.end(pipe, &pipes[pipe as usize]);
            } else {
                fresh.begin(pipe, &pipes[pipe as usize]);
            }
        }
        long.fill(|pipe| &pipes[pipe as usize]);
        fresh.fill(|pipe| &pipes[pipe as usize]);
        for &pipe in &fresh.active {
            assert_eq!(long.rates[pipe as usize].to_bits(), fresh.rates[pipe as usize].to_bits());
        }
    }
}
