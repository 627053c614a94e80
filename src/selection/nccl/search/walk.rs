//! One attempt of the search: depth first over GPUs, each hop taking the trial speed off every link
//! of its path, until as many channels are found as the links have room for.

use super::super::graph::{PathType, Pattern};
use super::super::path::Paths;
use super::super::system::{LinkKind, Node, NodeKind, System};

/// What is tried, and what was found with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) pattern: Pattern,
    /// Places of the GPUs of each channel, one channel after the other, with room for the most.
    pub(super) order: Vec<usize>,
    pub(super) channels: usize,
    pub(super) least: usize,
    pub(super) most: usize,
    pub(super) intra: f32,
    pub(super) inter: f32,
    pub(super) type_intra: PathType,
    pub(super) same_channels: bool,
    pub(super) hops: i64,
}

/// The order in which GPUs are tried.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Order {
    /// As they stand on PCI.
    Pci,
    /// As in the channel before.
    Replay,
    /// By rate and hops.
    Best,
}

/// Left of a budget when the most channels were found.
pub(super) const PERFECT: i64 = -1;

/// Rates as NCCL keeps them: to the nearest 1/1000.
fn rounded(gb_per_s: f32) -> f32 {
    (gb_per_s * 1000.0).round() / 1000.0
}

/// The state of an attempt.
pub(super) struct Walk<'a> {
    system: &'a System,
    paths: &'a Paths,
    intel_overhead: f64,
    /// What is left of each link, GB/s.
    free: Vec<f32>,
    /// By GPU, one bit for each channel that has it.
    used: Vec<u64>,
    pub(super) trial: Trial,
    pub(super) best: Trial,
    pub(super) budget: i64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        system: &'a System,
        paths: &'a Paths,
        intel_overhead: f64,
        first: Trial,
    ) -> Walk<'a> {
        Walk {
            system,
            paths,
            intel_overhead,
            free: system.links.iter().map(|link| link.gb_per_s).collect(),
            used: vec![0; system.gpus.len()],
            best: first.clone(),
            trial: first,
            budget: 0,
        }
    }

    fn gpus(&self) -> usize {
        self.system.gpus.len()
    }

    /// Searches with what the trial says and this many steps; the best is kept.
    pub(super) fn attempt(&mut self, budget: i64) {
        self.budget = budget;
        self.trial.channels = 0;
        self.next_channel();
    }

    /// Begins another channel.
    fn next_channel(&mut self) {
        if self.trial.pattern == Pattern::Nvls {
            self.begin(self.trial.channels, Order::Best);
            return;
        }
        if self.trial.channels == 0 {
            self.begin(0, Order::Pci);
        } else {
            self.begin(self.replayed(0), Order::Replay);
        }
        if !self.trial.same_channels || self.trial.channels == 0 {
            for gpu in 0..self.gpus() {
                self.begin(gpu, Order::Best);
            }
        }
    }

    /// The GPU at a step of the channel before.
    fn replayed(&self, step: usize) -> usize {
        self.trial.order[(self.trial.channels - 1) * self.gpus() + step]
    }

    fn begin(&mut self, gpu: usize, order: Order) {
        let flag = 1_u64 << self.trial.channels;
        self.used[gpu] ^= flag;
        self.at(gpu, 0, order);
        self.used[gpu] ^= flag;
    }

    /// The channel has reached a GPU as its `step`-th.
    fn at(&mut self, gpu: usize, step: usize, order: Order) {
        if self.budget <= 0 {
            return;
        }
        self.budget -= 1;
        let (count, channel) = (self.gpus(), self.trial.channels);
        self.trial.order[channel * count + step] = gpu;
        if self.trial.pattern == Pattern::Nvls {
            self.head(gpu);
        } else if step < count - 1 {
            match order {
                Order::Pci => self.go(gpu, step + 1, step + 1, order),
                Order::Replay => self.go(gpu, self.replayed(step + 1), step + 1, order),
                Order::Best => {
                    for next in self.candidates(gpu) {
                        self.go(gpu, next, step + 1, order);
                    }
                }
            }
        } else if self.trial.pattern == Pattern::Ring {
            let first = self.trial.order[channel * count];
            let ends = (self.system.gpus[gpu], self.system.gpus[first]);
            if self.take(ends, 1.0) {
                self.channel_found();
                self.give_back(ends, 1.0);
            }
        } else {
            // A last step that only closes the chain costs one of the budget, as a ring's does.
            self.channel_found();
        }
    }

    fn go(&mut self, gpu: usize, next: usize, step: usize, order: Order) {
        let ends = (self.system.gpus[gpu], self.system.gpus[next]);
        if self.take(ends, 1.0) {
            let flag = 1_u64 << self.trial.channels;
            self.used[next] ^= flag;
            self.at(next, step, order);
            self.used[next] ^= flag;
            self.give_back(ends, 1.0);
        }
    }

    /// A channel is complete: keep it if the graph is now better, then look for one more.
    fn channel_found(&mut self) {
        if self.budget <= 0 {
            return;
        }
        self.budget -= 1;
        self.trial.channels += 1;
        if self.better() {
            self.best = self.trial.clone();
            if self.trial.channels == self.trial.most {
                self.budget = PERFECT;
            }
        }
        if self.trial.channels < self.trial.most {
            self.next_channel();
        }
        self.trial.channels -= 1;
    }

    /// More rate in all, or the same with fewer hops.
    fn better(&self) -> bool {
        let (new, old) = (&self.trial, &self.best);
        if new.channels < new.least {
            return false;
        }
        let all = |channels: usize, rate: f32| channels as f32 * rate;
        if new.pattern == Pattern::Nvls {
            // A channel is a GPU that gathers from the switches: the more the better.
            return (new.channels > old.channels && new.channels <= self.gpus())
                || all(new.channels, new.inter) > all(old.channels, old.inter);
        }
        let (here, there) = (all(new.channels, new.intra), all(old.channels, old.intra));
        here > there || here == there && new.pattern == old.pattern && new.hops < old.hops
    }

    /// GPUs to try next: fastest path first, then fewest hops, then the order on PCI. With
    /// NVSwitches only the neighbours, as those then talk to few peers.
    fn candidates(&self, gpu: usize) -> Vec<usize> {
        let count = self.gpus();
        let flag = 1_u64 << self.trial.channels;
        let from = self.system.gpus[gpu];
        let mut next: Vec<usize> = (1..count)
            .map(|distance| (gpu + distance) % count)
            .filter(|&other| {
                let path = self.paths.between(from, self.system.gpus[other]);
                !path.links.is_empty() && self.used[other] & flag == 0
            })
            .collect();
        // A stable sort; NCCL compares whole GB/s.
        next.sort_by_key(|&other| {
            let path = self.paths.between(from, self.system.gpus[other]);
            (-(path.gb_per_s as i64), path.links.len())
        });
        if self.system.nvswitch.is_none() {
            return next;
        }
        let (before, after) = ((gpu + count - 1) % count, (gpu + 1) % count);
        // In the order in which NCCL moves them to the front, so the last stands first.
        let moved = match self.trial.pattern {
            Pattern::Ring => vec![after, before],
            Pattern::SplitTree | Pattern::BalancedTree => vec![before, after],
            _ => vec![after],
        };
        let mut front: Vec<usize> = Vec::new();
        for neighbour in moved {
            if next.contains(&neighbour) && !front.contains(&neighbour) {
                front.insert(0, neighbour);
            }
        }
        front
    }

    /// NVLS with this GPU as head: the switches send to all GPUs and all send to the switches, the
    /// head twice as much.
    fn head(&mut self, head: usize) {
        let Some(switch) = self.system.nvswitch else { return };
        let mut taken: Vec<((Node, Node), f32)> = Vec::new();
        let down = self.system.gpus.iter().map(|&gpu| (switch, gpu));
        let up = self.system.gpus.iter().map(|&gpu| (gpu, switch));
        let all: Vec<(Node, Node)> = down.chain(up).collect();
        let of_head = self.system.gpus[head];
        let mut complete = true;
        for ends in all {
            let share = if ends.0 == of_head || ends.1 == of_head { 2.0 } else { 1.0 };
            if !self.take(ends, share) {
                complete = false;
                break;
            }
            taken.push((ends, share));
        }
        if complete {
            self.channel_found();
        }
        for (ends, share) in taken.into_iter().rev() {
            self.give_back(ends, share);
        }
    }

    /// Takes the trial speed off every link of a path; takes nothing when one has too little left,
    /// or when the path is longer than allowed.
    fn take(&mut self, ends: (Node, Node), share: f32) -> bool {
        let path = self.paths.between(ends.0, ends.1);
        let back = self.paths.between(ends.1, ends.0);
        let tree = matches!(
            self.trial.pattern,
            Pattern::Tree | Pattern::BalancedTree | Pattern::SplitTree
        );
        // NCCL compares types only for hops that count once.
        let limited = share == 1.0;
        let too_far = |kind: PathType| limited && kind > self.trial.type_intra;
        if path.kind == PathType::Dis || too_far(path.kind) || tree && too_far(back.kind) {
            return false;
        }
        let steps = path.links.len();
        let done = self.follow(ends, share * self.trial.intra, steps);
        if done < steps {
            self.follow(ends, -share * self.trial.intra, done);
            return false;
        }
        self.trial.hops += share as i64 * steps as i64;
        true
    }

    fn give_back(&mut self, ends: (Node, Node), share: f32) {
        let steps = self.paths.between(ends.0, ends.1).links.len();
        self.follow(ends, -share * self.trial.intra, steps);
        self.trial.hops -= share as i64 * steps as i64;
    }

    /// Takes a rate off the first links of a path; returns how many had it.
    fn follow(&mut self, (from, to): (Node, Node), rate: f32, steps: usize) -> usize {
        let (system, path) = (self.system, self.paths.between(from, to));
        let kind = |node: Node| &system.nodes[node].0;
        let from_gpu = matches!(kind(from), NodeKind::Gpu { .. });
        let intel = |&link: &usize| {
            matches!(kind(system.links[link].to), NodeKind::Cpu { intel: true, .. })
        };
        // Intel's root complex cuts peer traffic into small pieces.
        let cut = path.kind == PathType::Phb && from_gpu && path.links.iter().any(intel);
        let pci = if cut { (f64::from(rate) * self.intel_overhead) as f32 } else { rate };
        for (step, &link) in path.links[..steps].iter().enumerate() {
            let end = &system.links[link];
            let forward = if end.kind == LinkKind::Pci { pci } else { rate };
            let backward = match kind(end.to) {
                // GPUs before Ampere that are written to answer on the link back.
                NodeKind::Gpu { compute_capability, .. }
                    if *compute_capability < 80 && !from_gpu =>
                {
                    forward / 8.0
                }
                NodeKind::Cpu { power: true, .. } if end.kind == LinkKind::Nvl => forward,
                _ => 0.0,
            };
            let reverse = if backward == 0.0 { None } else { self.reverse(link) };
            let short = reverse.is_some_and(|reverse| self.free[reverse] < backward);
            if self.free[link] < forward || short {
                return step;
            }
            self.free[link] = rounded(self.free[link] - forward);
            if let Some(reverse) = reverse {
                self.free[reverse] = rounded(self.free[reverse] - backward);
            }
        }
        steps
    }

    /// The other direction of a link.
    fn reverse(&self, link: usize) -> Option<usize> {
        let end = &self.system.links[link];
        self.system.leaving[end.to].iter().copied().find(|&other| {
            self.system.links[other].to == end.from && self.system.links[other].kind == end.kind
        })
    }
}
