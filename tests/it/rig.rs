//! A machine on the bench: a topology compiled with the embedded constants, and calls run on it.

use collsim::algorithm::{ALGORITHMS, Algorithm, Flags, Implementation, Kernel, Protocol, Request};
use collsim::algorithm::{Transport, build};
use collsim::engine::{Fidelity, Outcome, RunOptions, simulate};
use collsim::fabric::{Calibration, CompileOptions, Fabric};
use collsim::input::embedded::MACHINES;
use collsim::input::{load_scenario, load_topology};
use collsim::schedule::Schedule;
use collsim::sweep::plan::{Plan, parse_edits};
use collsim::topology::Topology;
use collsim::units::Time;

/// A compiled machine.
pub(crate) struct Rig {
    pub(crate) topology: Topology,
    pub(crate) calibration: Calibration,
    pub(crate) fabric: Fabric,
}

/// An algorithm with one of its protocols.
pub(crate) type Choice = (&'static Algorithm, Protocol);

/// Every algorithm that any machine can run, with each of its protocols.
pub(crate) fn choices() -> Vec<Choice> {
    with_protocols(|algorithm| !algorithm.is_in_switch())
}

fn with_protocols(wanted: impl Fn(&Algorithm) -> bool) -> Vec<Choice> {
    let all = ALGORITHMS.iter().filter(|&algorithm| wanted(algorithm));
    all.flat_map(|algorithm| algorithm.protocols.iter().map(move |&p| (algorithm, p))).collect()
}

/// How much faster a machine may become by being made slower as a whole, as a share of the time.
/// Packets: queues and store units serve in order of arrival, and what delays one packet can let
/// another go first on which more depends (Graham, Bounds on multiprocessing timing anomalies, SIAM
/// J. Appl. Math. 17, 1969); kernels that read and write at once show most of it, 0.86 % (staged ring). Fair shares:
/// the unit of an SM for loads and stores serves in order of arrival there too (seen: 0.034 %), and
/// where warps of several sends share it, latencies alone do (seen: 0.30 % of an all-to-all).
pub(crate) fn anomaly(fidelity: Fidelity, (algorithm, protocol): Choice) -> f64 {
    let of_order = match fidelity {
        Fidelity::AlphaBeta => 1e-9,
        Fidelity::MaxMin => 5e-4,
        Fidelity::Packet => 0.01,
    };
    let of_order =
        if algorithm.name == "all_to_all" { SHARED_UNIT.max(of_order) } else { of_order };
    let nccl = algorithm.implementations.contains(&Implementation::Nccl);
    if nccl && protocol == Protocol::Simple { f64::max(of_order, ONE_LOOK) } else { of_order }
}

/// What the order in which several sends reach their SM's unit is worth.
const SHARED_UNIT: f64 = 0.006;

/// NCCL's Simple protocol remembers how many steps its last look at a counter showed. Steps that come
/// late may show at one look where early ones take one each, so that waiting longer once can save a
/// look (seen: 1.4 % of an all-to-all of 43,008 B that an IOMMU slows, 0.34 % of a chain).
const ONE_LOOK: f64 = 0.02;

/// The embedded topology of this name.
pub(crate) fn topology(name: &str) -> Topology {
    load_topology(name).expect("an embedded machine")
}

/// The same with edits.
pub(crate) fn edited(machine: &str, edits: &str) -> Topology {
    let calibration = Calibration::embedded().expect("embedded");
    let scenario = load_scenario("kimi-k25-tp8").expect("built in");
    let plan = Plan { topology: topology(machine), scenario, choice: Default::default() };
    let edits = parse_edits(&[edits.to_owned()]).expect("edits");
    plan.edited(&edits, &calibration).expect("a machine").0.topology
}

/// All embedded machines with two GPUs or more.
pub(crate) fn machines() -> impl Iterator<Item = Rig> {
    MACHINES.iter().map(|machine| Rig::named(machine.name)).filter(|rig| rig.gpus().len() > 1)
}

impl Rig {
    /// Compiles a topology.
    pub(crate) fn of(topology: Topology) -> Rig {
        let calibration = Calibration::embedded().expect("embedded calibration");
        let fabric = Fabric::compile(&topology, &calibration, CompileOptions::default())
            .expect("machines compile");
        Rig { topology, calibration, fabric }
    }

    /// The embedded machine of this name.
    pub(crate) fn named(name: &str) -> Rig {
        Rig::of(topology(name))
    }

    /// All GPUs.
    pub(crate) fn gpus(&self) -> Vec<u32> {
        (0..self.fabric.gpu_count as u32).collect()
    }

    /// Every algorithm that all GPUs of this machine can run, with each of its protocols.
    pub(crate) fn choices(&self) -> Vec<Choice> {
        let switched = self.fabric.multicast(&self.gpus()).is_ok();
        with_protocols(|algorithm| switched || !algorithm.is_in_switch())
    }

    /// What a library does around and inside a call here.
    pub(crate) fn kernel(&self, implementation: Implementation) -> Kernel {
        let model = self.topology.gpu_models()[0];
        Kernel::of(implementation, &self.calibration, model).expect("known")
    }

    /// A kernel that costs nothing by itself, so that what is left are GPUs and wires.
    pub(crate) fn bare_kernel(&self) -> Kernel {
        Kernel {
            start: None,
            end: Time::ZERO,
            step: Time::ZERO,
            slice: Time::ZERO,
            trip: Time::ZERO,
            line_trip: Time::ZERO,
            pointer: Time::ZERO,
            block: Time::ZERO,
            simple: Time::ZERO,
            ..self.kernel(Implementation::CustomAllReduce)
        }
    }

    /// A call by GPUs in this order, its size rounded up to what the algorithm can split.
    pub(crate) fn request(&self, choice: Choice, gpus: Vec<u32>, bytes: u64) -> Request<'_> {
        Request {
            fabric: &self.fabric,
            bytes: choice.0.collective.round_up(bytes, gpus.len()),
            gpus,
            protocol: choice.1,
            kernel: self.bare_kernel(),
            transport: Transport::Peer,
            flags: Flags::Peer,
            blocks: None,
            settled: None,
            orders: Vec::new(),
            islands: Vec::new(),
        }
    }

    /// The schedule of a call by all GPUs.
    pub(crate) fn schedule(&self, choice: Choice, bytes: u64) -> Schedule {
        build(choice.0, &self.request(choice, self.gpus(), bytes)).expect("builds")
    }

    /// Runs a schedule once.
    pub(crate) fn run(&self, schedule: &Schedule, fidelity: Fidelity) -> Outcome {
        let place = || format!("{}, {}, {}", self.topology.name, schedule.name, fidelity.name());
        simulate(&self.fabric, schedule, fidelity, RunOptions::default())
            .unwrap_or_else(|error| panic!("{}: {error}", place()))
    }

    /// How long a schedule takes.
    pub(crate) fn time(&self, schedule: &Schedule, fidelity: Fidelity) -> Time {
        self.run(schedule, fidelity).call_time(0)
    }
}
