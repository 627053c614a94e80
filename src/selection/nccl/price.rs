//! NCCL's belief of one algorithm and protocol on a graph: latency and bandwidth, step by step as
//! `graph/tuning.cc` computes them.

use super::graph::{Graph, PathType, Pattern};
use super::tables::{Generation, InterSteps};
use super::tune::{Cpu, Pricing};
use crate::algorithm::Protocol;
use crate::algorithm::nccl::{Algorithm, Collective};

/// What carries a step.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Place {
    NvLink,
    Pci,
    Net,
}

impl Pricing<'_> {
    /// Algorithm bandwidth, GB/s.
    pub(super) fn bandwidth(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        protocol: Protocol,
        graph: &Graph,
    ) -> f32 {
        let channels = graph.channels.len() as f32;
        let mut bus = channels * self.channel_rate(collective, algorithm, graph);
        if self.comm.capability == (80, 80) && self.constants.bus_max_a100 > 0.0 {
            bus = bus.min(self.constants.bus_max_a100);
        }
        bus = match algorithm {
            Algorithm::Ring => self.ring(collective, protocol, bus, channels),
            Algorithm::Tree => self.tree(protocol, bus, channels, graph),
            Algorithm::Pat => (f64::from(bus) * self.constants.pat_share.graph) as f32,
            Algorithm::CollnetDirect => self.collnet_direct(collective, bus, channels, graph),
            _ => bus,
        };
        let gathers = matches!(collective, Collective::AllGather | Collective::ReduceScatter);
        if algorithm != Algorithm::Ring && gathers {
            return bus;
        }
        let steps = f64::from(self.steps(collective));
        let ratio = match algorithm {
            Algorithm::Nvls | Algorithm::NvlsTree if self.nvls_efficiency() == 0.0 => 5.0 / 6.0,
            Algorithm::Ring | Algorithm::Nvls | Algorithm::NvlsTree => {
                (f64::from(self.comm.ranks) / steps) as f32
            }
            _ => 0.5,
        };
        bus * ratio
    }

    fn nvls_efficiency(&self) -> f32 {
        *self.constants.nvls_efficiency.of(self.generation())
    }

    /// Rate of one channel, GB/s.
    fn channel_rate(&self, collective: Collective, algorithm: Algorithm, graph: &Graph) -> f32 {
        let (intra, inter) = (graph.bw_intra as f32, graph.bw_inter as f32);
        if !algorithm.is_nvls() {
            let inside = self.comm.machines <= 2 || algorithm.is_collnet();
            return if inside { intra } else { inter };
        }
        let tree = algorithm == Algorithm::NvlsTree;
        let two = self.comm.machines <= 2;
        let efficiency = self.nvls_efficiency();
        if efficiency == 0.0 {
            let across = if tree && !two { inter / 2.0 } else { inter };
            return intra.min(across);
        }
        let channels = graph.channels.len() as f32;
        if channels < 2.0 {
            return 0.0;
        }
        // Each GPU heads a channel and gives the others' data, not its own.
        let mut inside = intra * efficiency * (channels - 1.0) / channels;
        let ranks = self.comm.ranks as f32 / self.comm.machines as f32;
        // All-reduce has two operations under way at once.
        inside *= if collective == Collective::AllReduce { 2.0 } else { (ranks - 1.0) / ranks };
        let across = if tree && two { inter * 2.0 } else { inter };
        let cap = if tree {
            self.constants.nvls_tree_per_channel.of(self.generation())[self.scale()] as f32
        } else {
            f32::MAX
        };
        inside.min(across).min(cap)
    }

    /// Cap of LL over all channels: by GPU in one machine, by CPU across.
    fn ll_max(&self) -> f64 {
        let row = match (self.comm.machines, self.comm.cpu) {
            (1, _) => self.generation(),
            (_, Cpu::Amd | Cpu::Mixed) => Generation::Ampere,
            _ => Generation::Volta,
        };
        self.constants.ll_max.of(row)[self.scale()]
    }

    fn ring(&self, collective: Collective, protocol: Protocol, bus: f32, channels: f32) -> f32 {
        let bus = f64::from(bus);
        let rate = match protocol {
            Protocol::Ll => {
                let sums = matches!(collective, Collective::AllReduce | Collective::Reduce);
                let share = self.constants.ring_ll_share;
                let share = if sums || self.comm.machines > 1 {
                    share.sums_or_spans
                } else {
                    share.otherwise
                };
                self.ll_max().min(bus * share)
            }
            Protocol::Ll128 => {
                let share = self.constants.ring_ll128_share;
                let several = self.comm.ranks >= 2 * self.comm.machines;
                let share = if several { share.several_gpus } else { share.one_gpu };
                let cap = self.constants.ring_ll128_per_channel.of(self.generation());
                (bus * share).min(f64::from(channels) * cap[self.scale()])
            }
            Protocol::Simple => bus,
        };
        rate as f32
    }

    fn tree(&self, protocol: Protocol, bus: f32, channels: f32, graph: &Graph) -> f32 {
        let share = self.constants.tree_share;
        let (generation, scale) = (self.generation(), self.scale());
        let channels = f64::from(channels);
        let cap = self.constants.tree_per_channel.of(generation)[scale];
        // NCCL keeps each step in 32 bits.
        let bus = f64::from((f64::from(bus) * share.graph).min(channels * cap) as f32);
        let rate = match protocol {
            Protocol::Ll => (bus / share.ll_divisor).min(self.ll_max()),
            Protocol::Ll128 => {
                let one = self.comm.machines == 1;
                let lines = if one { share.ll128_one_machine } else { share.ll128_across };
                let cap = self.constants.tree_ll128_per_channel.of(generation)[scale];
                (bus * lines).min(channels * cap)
            }
            Protocol::Simple => bus,
        } as f32;
        if graph.pattern == Pattern::Tree {
            (f64::from(rate) * share.pattern_tree) as f32
        } else {
            rate
        }
    }

    fn collnet_direct(
        &self,
        collective: Collective,
        bus: f32,
        channels: f32,
        graph: &Graph,
    ) -> f32 {
        let share = self.constants.collnet;
        let ranks = self.comm.ranks as f32 / self.comm.machines as f32;
        if collective != Collective::AllReduce {
            return ranks
                * (graph.bw_intra as f32).min(graph.bw_inter as f32 * share.network_share);
        }
        // Full rate needs a NIC for each GPU.
        let mut factor = ranks / channels;
        factor -= (factor - 1.0) / 2.0;
        let bus = bus / factor;
        if self.comm.capability.0 >= 90 {
            (f64::from(bus) * share.hopper_share) as f32
        } else {
            bus
        }
    }

    /// Steps of a ring.
    fn steps(&self, collective: Collective) -> u32 {
        match collective {
            Collective::AllReduce => 2 * (self.comm.ranks - 1),
            Collective::AllGather | Collective::ReduceScatter => self.comm.ranks - 1,
            Collective::Broadcast | Collective::Reduce => self.comm.ranks,
        }
    }

    /// What a call costs whatever its size, us.
    pub(super) fn latency(
        &self,
        collective: Collective,
        algorithm: Algorithm,
        protocol: Protocol,
        graph: &Graph,
    ) -> f32 {
        let inside = if graph.type_intra == PathType::Nvl { Place::NvLink } else { Place::Pci };
        let machines = self.comm.machines;
        let base = self.constants.base_latency.of(algorithm, protocol);
        let mut intra = self.step(inside, algorithm, protocol);
        let alone = self.constants.one_gpu_a_machine && self.comm.ranks == machines;
        let net = if alone { Algorithm::Tree } else { algorithm };
        let mut inter = self.step(Place::Net, net, protocol) + graph.latency_inter_us as f32;
        if protocol == Protocol::Simple {
            inter += graph.latency_inter_us as f32; // the flush
        }
        if machines > 1 && protocol == Protocol::Ll {
            intra = (f64::from(intra) * self.constants.ll_across) as f32;
        }
        let peers = (self.comm.ranks / machines - 1) as f32;
        let levels = machines.ilog2() as f32;
        match algorithm {
            Algorithm::Ring if matches!(collective, Collective::Broadcast | Collective::Reduce) => {
                let here = if machines == 1 { inside } else { Place::Net };
                base + self.pipeline(collective, protocol, graph, here)
            }
            Algorithm::Ring => base + self.ring_steps(collective, protocol, intra, inter),
            Algorithm::Tree => base + 2.0 * (peers * intra + levels * inter),
            Algorithm::CollnetDirect => {
                let serial = f64::from(peers) * self.constants.collnet.peer_us;
                let there_and_back = 2.0 * (f64::from(peers.min(1.0) * intra) + serial);
                (f64::from(base) + there_and_back + f64::from(inter)) as f32
            }
            Algorithm::CollnetChain => base + 2.0 * peers * intra + inter,
            Algorithm::Nvls => intra + if machines > 1 { inter } else { 0.0 },
            Algorithm::NvlsTree => base + intra + 2.0 * levels * inter,
            Algorithm::Pat => {
                let share = self.constants.pat_share;
                let network = f64::from(levels) * f64::from(inter) / share.network_divisor;
                (f64::from(base) + network + f64::from(self.comm.ranks) * share.rank_us) as f32
            }
        }
    }

    /// Time of a step; Power's trees are spared the tree's latency in Simple.
    fn step(&self, place: Place, algorithm: Algorithm, protocol: Protocol) -> f32 {
        let hardware = &self.constants.hardware_latency;
        let row = match place {
            Place::NvLink => &hardware.nvlink,
            Place::Pci => &hardware.pci,
            Place::Net => &hardware.net,
        };
        let power = self.comm.cpu == Cpu::Power && place == Place::Pci;
        let spared = power && algorithm == Algorithm::Tree && protocol == Protocol::Simple;
        row.of(if spared { Algorithm::Ring } else { algorithm }, protocol)
    }

    /// A chain from or to the root; its channels hide all hops but one where they are alike.
    fn pipeline(
        &self,
        collective: Collective,
        protocol: Protocol,
        graph: &Graph,
        here: Place,
    ) -> f32 {
        if graph.same_channels {
            return self.step(here, Algorithm::Ring, protocol);
        }
        let chunk = if protocol == Protocol::Simple { Algorithm::Tree } else { Algorithm::Ring };
        self.steps(collective) as f32 * self.step(here, chunk, protocol)
    }

    fn ring_steps(
        &self,
        collective: Collective,
        protocol: Protocol,
        intra: f32,
        inter: f32,
    ) -> f32 {
        let machines = self.comm.machines;
        let all_reduce = collective == Collective::AllReduce;
        let across = match (all_reduce, self.constants.inter_steps) {
            _ if machines == 1 => 0,
            (true, InterSteps::TwiceMachines) => 2 * machines,
            (true, InterSteps::TwiceAllButOne) => 2 * (machines - 1),
            (false, _) => machines - 1,
        };
        // Rings across machines start a network operation at every step.
        let overhead = self.constants.net_overhead;
        let mut least = match self.comm.cpu {
            _ if machines == 1 => 0.0,
            Cpu::Intel => overhead.intel,
            Cpu::Amd => overhead.amd,
            _ => overhead.other,
        };
        if protocol == Protocol::Simple {
            least *= overhead.simple_factor;
        }
        let steps = self.steps(collective);
        (steps - across) as f32 * intra.max(least) + across as f32 * inter
    }
}
