//! NCCL's search for channels (`graph/search.cc`, `ncclTopoCompute`): attempts at falling speeds and
//! ever longer paths until channels are found, then attempts to make those faster. When none are
//! found NCCL takes the order of ranks at 0.1 GB/s and prices everything by that.

mod walk;

use serde::Serialize;

use self::walk::{PERFECT, Trial, Walk};
use super::beliefs::Beliefs;
use super::graph::{Graph, GraphFile, PathType, Pattern};
use super::path::Paths;
use super::system::System;

/// What was found for every pattern that is searched.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Graphs {
    /// Rings.
    pub ring: Graph,
    /// Trees: within a machine, chains.
    pub tree: Graph,
    /// NVLS: each channel holds its head alone. `None` without NVSwitches or before Hopper, or when
    /// the switches have no room.
    pub nvls: Option<Graph>,
    /// What a real search would also do, sentences.
    pub not_modelled: Vec<String>,
}

/// A search for one pattern.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What to search.
    pub pattern: Pattern,
    /// Fewest channels.
    pub least: usize,
    /// Most channels.
    pub most: usize,
}

/// Searches rings, then trees with as many channels, then NVLS, on one machine of `machines`.
pub fn search_all(system: &System, paths: &Paths, beliefs: &Beliefs, machines: u32) -> Graphs {
    search_rest(system, paths, beliefs, machines, &GraphFile::default())
}

/// As [`search_all`], where a graph file does not give the graph already.
pub fn search_rest(
    system: &System,
    paths: &Paths,
    beliefs: &Beliefs,
    machines: u32,
    given: &GraphFile,
) -> Graphs {
    let most = beliefs.budget().ring_channels.value as usize;
    let find =
        |pattern, least, most| search(system, paths, beliefs, Wanted { pattern, least, most });
    let ring = given.ring.clone().unwrap_or_else(|| find(Pattern::Ring, 1, most));
    let alike = ring.channels.len();
    let tree = given.tree.clone().unwrap_or_else(|| find(Pattern::BalancedTree, alike, alike));
    let heads = system.gpus.len().min(beliefs.budget().nvls_heads.value as usize);
    let able = system.nvswitch.is_some() && system.least_capability() >= 90 && heads > 1;
    let found = || able.then(|| find(Pattern::Nvls, heads, heads));
    let nvls = given.nvls.clone().or_else(found).filter(|graph| !graph.channels.is_empty());
    let mut not_modelled = Vec::new();
    if machines > 1 {
        let nets: Vec<&str> = system.nets.iter().map(|&net| system.nodes[net].1.as_str()).collect();
        let named = if nets.is_empty() { "none stated".to_owned() } else { nets.join(", ") };
        not_modelled.push(format!(
            "channels that leave and enter a machine by its NICs ({named}): the graphs are those of \
             one machine alone"
        ));
    }
    Graphs { ring, tree, nvls, not_modelled }
}

/// Searches one pattern on one machine.
pub fn search(system: &System, paths: &Paths, beliefs: &Beliefs, wanted: Wanted) -> Graph {
    if system.gpus.len() == 1 {
        return alone(system, beliefs, wanted);
    }
    let mut search = Search::new(system, paths, beliefs, wanted);
    search.first_pass();
    search.split_channels();
    search.second_pass();
    search.result(system, beliefs)
}

/// A communicator of one GPU has channels that go nowhere.
fn alone(system: &System, beliefs: &Beliefs, wanted: Wanted) -> Graph {
    let rank = system.gpus.first().map_or(0, |&gpu| system.rank(gpu));
    let speeds = beliefs.intra_speeds(system.least_capability());
    let speed = f64::from(speeds.first().copied().unwrap_or(0.0));
    Graph {
        pattern: wanted.pattern,
        channels: vec![vec![rank]; wanted.least.max(1)],
        bw_intra: speed,
        bw_inter: speed,
        latency_inter_us: 0.0,
        type_intra: PathType::Loc,
        type_inter: PathType::Pix,
        same_channels: true,
        cross_nic: 0,
        fallback: false,
    }
}

struct Search<'a> {
    walk: Walk<'a>,
    wanted: Wanted,
    speeds: &'a [f32],
    /// Place in `speeds`.
    speed: usize,
    /// The fastest path between GPUs, and the most that one GPU sends, GB/s.
    fastest: f32,
    total: f32,
    nearest: PathType,
    farthest: PathType,
    capability: u32,
    amd: bool,
    beliefs: &'a Beliefs,
    /// Steps left of all attempts.
    left: i64,
}

impl<'a> Search<'a> {
    fn new(
        system: &'a System,
        paths: &'a Paths,
        beliefs: &'a Beliefs,
        wanted: Wanted,
    ) -> Search<'a> {
        let pairs = || {
            let gpus = || system.gpus.iter().copied();
            gpus().flat_map(move |a| gpus().filter(move |&b| a != b).map(move |b| (a, b)))
        };
        let between = |(a, b)| paths.between(a, b);
        let types = || pairs().map(between).map(|path| path.kind);
        let nearest = types().min().unwrap_or(PathType::Loc);
        let capability = system.least_capability();
        let split = wanted.pattern == Pattern::Ring && two_nvlink_islands(system, paths);
        let least = if split && wanted.least == 1 && wanted.most >= 2 { 2 } else { wanted.least };
        let first = Trial {
            pattern: wanted.pattern,
            order: vec![0; wanted.most * system.gpus.len()],
            channels: 0,
            least,
            most: wanted.most,
            intra: 0.0,
            inter: 0.0,
            type_intra: nearest,
            same_channels: wanted.pattern != Pattern::Nvls,
            hops: 0,
        };
        Search {
            walk: Walk::new(system, paths, beliefs.intel_peer_overhead(), first),
            wanted,
            speeds: beliefs.intra_speeds(capability),
            speed: 0,
            fastest: pairs().map(between).map(|path| path.gb_per_s).fold(0.0, f32::max),
            total: system.gpus.iter().map(|&gpu| most_sent(system, gpu)).fold(0.0, f32::max),
            nearest,
            farthest: types().max().unwrap_or(PathType::Sys),
            capability,
            amd: system.amd(),
            beliefs,
            left: beliefs.budget().all.value as i64,
        }
    }

    fn set_speed(&mut self, place: usize) {
        self.speed = place;
        self.walk.trial.intra = self.speeds[place];
        self.walk.trial.inter = self.speeds[place];
    }

    fn last_speed(&self) -> usize {
        self.speeds.len() - 1
    }

    fn attempt(&mut self) {
        let budget = self.beliefs.budget();
        let steps =
            if self.walk.trial.same_channels { &budget.same_channels } else { &budget.attempt };
        self.left -= steps.value as i64;
        self.walk.attempt(steps.value as i64);
    }

    /// Nothing better can be found.
    fn satisfied(&self) -> bool {
        let best = &self.walk.best;
        self.walk.budget == PERFECT || best.channels as f32 * best.inter >= self.total
    }

    /// From fast to slow, from near to far, until there are channels.
    fn first_pass(&mut self) {
        let count = self.walk.trial.order.len() / self.wanted.most.max(1);
        // A chain of n GPUs has n - 1 hops, so it may take a little more than a ring.
        let chain = count as f32 / (count as f32 - 1.0);
        let total =
            if self.wanted.pattern == Pattern::Ring { self.total } else { self.total * chain };
        let least = self.walk.trial.least as f32;
        let too_fast = |speed: f32| speed > self.fastest || speed * least > total;
        let first = self.speeds.iter().position(|&speed| !too_fast(speed));
        self.set_speed(first.unwrap_or(self.last_speed()));
        loop {
            self.attempt();
            if self.satisfied() || !self.relax() {
                return;
            }
        }
    }

    /// Allows a little more; false when there is nothing left to allow.
    fn relax(&mut self) -> bool {
        let same_at_first = self.wanted.pattern != Pattern::Nvls;
        // Different channels are not tried across AMD sockets.
        let across_amd = self.amd && self.walk.trial.type_intra == PathType::Sys;
        if self.walk.trial.same_channels && !across_amd {
            self.walk.trial.same_channels = false;
            return true;
        }
        self.walk.trial.same_channels = same_at_first;
        self.left += self.walk.budget;
        let found = self.walk.best.channels > 0;
        if self.left < 0 && found {
            return false;
        }
        if self.capability >= 90 && self.walk.trial.pattern == Pattern::BalancedTree {
            self.walk.trial.pattern = Pattern::Tree;
            return true;
        }
        self.walk.trial.pattern = self.walk.best.pattern;
        let at = self.walk.trial.type_intra;
        if at < self.farthest && (!found || at < self.walk.best.type_intra) {
            self.walk.trial.type_intra = PathType::ALL[at as usize + 1].0;
            return true;
        }
        self.walk.trial.type_intra = self.nearest;
        let ratio = self.beliefs.budget().ratio.value as f32;
        let next = self.speed + 1;
        if next < self.speeds.len() && (!found || self.speeds[next] / self.walk.best.inter > ratio)
        {
            self.set_speed(next);
            return true;
        }
        false
    }

    /// Two slower channels carry more than one fast one, so fast channels are split.
    fn split_channels(&mut self) {
        let budget = self.beliefs.budget();
        let best = &mut self.walk.best;
        let many = self.capability > 80
            && best.intra < budget.duplicate_many_from.value as f32
            && best.channels > 4;
        if best.channels == 0
            || best.pattern == Pattern::Nvls
            || best.intra < budget.duplicate_from.value as f32
            || many
        {
            return;
        }
        let gpus = best.order.len() / best.most.max(1);
        let twice = (best.channels * 2).min(best.most);
        let (found, room) = best.order.split_at_mut(best.channels * gpus);
        let more = (twice - best.channels) * gpus;
        room[..more].copy_from_slice(&found[..more]);
        let parts = twice.div_ceil(best.channels) as f32;
        best.intra /= parts;
        best.inter /= parts;
        best.channels = twice;
    }

    /// Faster, with the channels that were found.
    fn second_pass(&mut self) {
        let best = self.walk.best.clone();
        let slow_enough = |&speed: &f32| speed <= best.inter;
        let first = self.speeds.iter().position(slow_enough).unwrap_or(self.last_speed());
        let channels = best.channels;
        self.walk.trial = best;
        self.set_speed(first);
        self.walk.trial.least = channels;
        self.walk.budget = PERFECT;
        while self.walk.budget != 0 && self.speed > 0 {
            let faster = self.speeds[self.speed - 1];
            let (trial, best) = (&self.walk.trial, &self.walk.best);
            match best.pattern {
                Pattern::Ring => self.set_speed(self.speed - 1),
                Pattern::Nvls if trial.inter == best.inter && trial.inter < trial.intra * 2.0 => {
                    self.walk.trial.least = channels;
                    self.walk.trial.most = channels;
                    self.walk.trial.inter = faster;
                    self.speed -= 1;
                }
                // The rate inside a machine may exceed that between machines up to twice.
                _ if trial.intra == best.intra && trial.intra < trial.inter * 2.0 => {
                    self.walk.trial.intra = faster;
                    self.speed -= 1;
                }
                _ => return,
            }
            self.attempt();
        }
    }

    fn result(&self, system: &System, beliefs: &Beliefs) -> Graph {
        let best = &self.walk.best;
        let gpus = system.gpus.len();
        let ranks: Vec<u32> = system.gpus.iter().map(|&gpu| system.rank(gpu)).collect();
        let fallback = best.channels == 0 && best.pattern != Pattern::Nvls;
        let speed = f64::from((beliefs.fallback_speed() * 1000.0).round()) / 1000.0;
        let channel = |at: usize| {
            let all = best.order[at * gpus..(at + 1) * gpus].iter();
            let kept = if best.pattern == Pattern::Nvls { 1 } else { gpus };
            all.take(kept).map(|&gpu| ranks[gpu]).collect()
        };
        let rate = |found: f32| if fallback { speed } else { f64::from(found) };
        Graph {
            pattern: best.pattern,
            channels: if fallback {
                vec![ranks.clone()]
            } else {
                (0..best.channels).map(channel).collect()
            },
            bw_intra: rate(best.intra),
            bw_inter: rate(best.inter),
            latency_inter_us: 0.0,
            type_intra: if fallback { PathType::Sys } else { best.type_intra },
            type_inter: if fallback { PathType::Sys } else { PathType::Pix },
            same_channels: best.same_channels,
            cross_nic: 0,
            fallback,
        }
    }
}

/// The most that a GPU sends, GB/s: all its NVLinks, or its PCIe link.
fn most_sent(system: &System, gpu: usize) -> f32 {
    use super::system::LinkKind::{Nvl, Pci};
    let of = |kind| {
        let links = system.leaving[gpu].iter().map(|&link| &system.links[link]);
        links.filter(move |link| link.kind == kind).map(|link| link.gb_per_s)
    };
    of(Nvl).sum::<f32>().max(of(Pci).next_back().unwrap_or(0.0))
}

/// GPUs fall into two groups with NVLink inside each and none between: trees then need two channels,
/// so rings get two also.
fn two_nvlink_islands(system: &System, paths: &Paths) -> bool {
    let gpus = &system.gpus;
    let mut island: Vec<usize> = (0..gpus.len()).collect();
    for a in 0..gpus.len() {
        for b in a + 1..gpus.len() {
            if paths.between(gpus[a], gpus[b]).kind == PathType::Nvl {
                island[b] = island[a];
            }
        }
    }
    let members = |of: usize| island.iter().filter(|&&other| other == of).count();
    (0..gpus.len()).filter(|&of| members(of) > 1).count() == 2
}
